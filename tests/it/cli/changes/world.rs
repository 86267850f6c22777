//! A pool with its workers, proxies and sites, and the one who changes it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use reqwest_lease::{Inventory, LeaseMiddleware, Pool, PoolName, RedisRole, RedisStore};
use serde_json::Value;
use tokio::task::JoinSet;

use super::findings::{Carried, Evidence, Moment, Promises};
use super::inventory::{Entry, Folder, Mount, Plan};
use super::ledger::{self, WRITES_ALL_DOWN};
use super::proxy::Gate;
use super::work::Work;
use crate::cli::{CANARY, Rig};
use crate::support::microsocks::Microsocks;
use crate::support::origin::{Origin, Visit, text};
use crate::support::redis::{PATIENCE, Server};
use crate::support::web::Takes;
use crate::support::{Outgoing, direct_connections, eventually};
use crate::truth::layout::Flaw;
use crate::truth::relay::Relay;

/// What kind of run it is.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) mount: Mount,
    /// The pool is in Redis and the program changes it; else it is in this process, as is who does.
    pub(super) redis: bool,
    /// The worker follows its inventory.
    pub(super) follows: bool,
    /// What is wrong with the worker's scripts.
    pub(super) flaw: Flaw,
}

impl Form {
    pub(super) const fn redis(mount: Mount) -> Self {
        Self { mount, redis: true, follows: true, flaw: &[] }
    }

    pub(super) const fn memory(mount: Mount) -> Self {
        Self { redis: false, ..Self::redis(mount) }
    }
}

pub(super) struct World {
    pub(super) form: Form,
    pub(super) rig: Rig,
    relay: Relay,
    pub(super) pool: Pool,
    pub(super) gates: BTreeMap<String, Gate>,
    microsocks: Microsocks,
    sites: [Origin; 2],
    pub(super) folder: Folder,
    pub(super) plan: Plan,
    pub(super) work: Arc<Work>,
    tasks: JoinSet<()>,
    pub(super) promises: Promises,
    pub(super) began: Instant,
}

/// Endpoints with a proxy of ours each.
const GATES: [&str; 10] = ["n1", "n2", "n3", "n4", "n5", "s1", "s2", "s3", "s4", "s5"];

/// Those that are not among the first members.
pub(super) const SPARE: [&str; 2] = ["n5", "s5"];

/// The one whose proxy is microsocks, which checks its password and does not write it down.
pub(super) const SOCKS: &str = "m1";

impl World {
    pub(super) async fn start(form: Form) -> Self {
        let rig = Rig::on(Server::start(WRITES_ALL_DOWN)).await;
        let mut gates = BTreeMap::new();
        for id in GATES {
            gates.insert(id.to_owned(), Gate::start(id).await);
        }
        let microsocks = Microsocks::start(Some((SOCKS, &super::password(0))));
        let (mut plan, ids) = (Plan { version: 1, ..Plan::default() }, GATES.map(str::to_owned));
        let first = gates.iter().filter(|(id, _)| !SPARE.contains(&id.as_str()));
        let urls = first.map(|(id, gate)| (id.clone(), gate.url()));
        for (id, url) in urls.chain([(SOCKS.to_owned(), microsocks.url("socks5h"))]) {
            plan.endpoints.insert(id, Entry { url, weight: 1, password: 0 });
        }
        let ids: Vec<_> = ids.into_iter().chain([SOCKS.to_owned()]).collect();
        let mut folder = Folder::new(rig.path(), form.mount, &ids);
        folder.put(&plan);
        let relay = Relay::start(rig.redis.server.port(), None, form.flaw).await;
        if form.redis {
            rig.good("init --inventory proxies.toml --policy least-assigned").await;
        }
        let pool = Self::worker(form, &rig, &relay, &folder).await;
        let sites = [Origin::http(answer).await, Origin::https(answer).await];
        let tls = sites[1].authority().client_config();
        let client = LeaseMiddleware::builder(pool.clone()).tls(tls).build().unwrap();
        let urls = [sites[0].url(""), sites[1].url("")];
        let work = Work::new(pool.clone(), client.into_client(), urls);
        let tasks = work.start();
        let promises = Promises::default();
        let began = Instant::now();
        let world = Self {
            form,
            rig,
            relay,
            pool,
            gates,
            microsocks,
            sites,
            folder,
            plan,
            work,
            tasks,
            promises,
            began,
        };
        world.work.goes_on(ENOUGH).await;
        world
    }

    /// The pool as its workers have it: with no more rights than they need.
    async fn worker(form: Form, rig: &Rig, relay: &Relay, folder: &Folder) -> Pool {
        let inventory = Inventory::from_file(folder.file()).await.unwrap();
        let builder = Pool::builder(PoolName::new("conformance").unwrap(), inventory);
        if !form.redis {
            return builder.build().await.unwrap();
        }
        let set_user = RedisRole::Worker.set_user("worker", &rig.redis.namespace);
        rig.redis.send::<()>(&set_user).await;
        rig.redis.send::<()>(&format!("ACL SETUSER worker >{CANARY}-worker")).await;
        let url = format!("redis://worker:{CANARY}-worker@127.0.0.1:{}", relay.port());
        let store = RedisStore::builder(url).namespace(&rig.redis.namespace);
        let store = store.call_timeout(PATIENCE).build().await.unwrap();
        let pool = builder.store(store).build().await.unwrap();
        if form.follows {
            pool.watch_inventory().await.unwrap();
        }
        pool
    }

    /// Now, after whatever has returned before.
    pub(super) async fn now(&self) -> Moment {
        let fence = self.fence().await;
        Moment { mark: self.work.mark(), fence }
    }

    /// The number of the last grant.
    pub(super) async fn fence(&self) -> u64 {
        self.pool.status().await.unwrap().fence.0
    }

    pub(super) async fn goes_on(&self) {
        self.work.goes_on(ENOUGH).await;
    }

    /// Waits until requests have gone through this endpoint from now on.
    pub(super) async fn is_used(&self, id: &str) {
        let seen = self.work.number_sent();
        let used = || self.work.sent()[seen..].iter().any(|sent| sent.endpoint == id);
        eventually(&format!("a request through {id}"), || used().then_some(())).await;
    }

    /// What a command says in JSON.
    pub(super) async fn json(&self, line: &str) -> Value {
        self.rig.json(line).await
    }

    /// Scripts that were changed on their way, for the twins.
    pub(super) fn changed_scripts(&self) -> usize {
        self.relay.changed()
    }

    /// Ends the work, and returns when all has been given back.
    pub(super) async fn ends(&mut self) {
        self.work.ends();
        let tasks = async { while self.tasks.join_next().await.is_some() {} };
        tokio::time::timeout(Duration::from_secs(60), tasks).await.expect("the end of all tasks");
        self.pool.shutdown().await;
    }

    /// What was seen.
    pub(super) fn evidence(&self) -> Evidence {
        let granted = match self.form.redis {
            true => {
                let directory = self.rig.redis.server.directory();
                ledger::granted(directory, &self.rig.redis.key(""))
            }
            false => Vec::new(),
        };
        let proxies: Vec<&dyn Outgoing> = self.gates.values().map(|gate| gate as _).collect();
        let proxies: Vec<_> = proxies.into_iter().chain([&self.microsocks as _]).collect();
        for site in &self.sites {
            assert!(direct_connections(site, &proxies).is_empty());
        }
        Evidence { sent: self.work.sent(), carried: self.carried(), granted }
    }

    /// Every request at the sites, with what brought it.
    fn carried(&self) -> Vec<Carried> {
        let tunnels = self.sites[1].address().to_string();
        // Requests by their number, and tunnels by the end of theirs that a site sees: there are few
        // of those, so that no port is used again.
        let (mut requests, mut ends) = (BTreeMap::new(), BTreeMap::new());
        for (id, gate) in &self.gates {
            for asked in gate.asked() {
                let way = (id.clone(), asked.password);
                match asked.outgoing {
                    Some(end) if asked.target == tunnels => drop(ends.insert(end, way)),
                    Some(_) => drop(requests.insert(number(&asked.target), way)),
                    None => {}
                }
            }
        }
        let carried = |visit: Visit| {
            let number = number(&visit.path);
            let way = requests.get(&number).or(ends.get(&visit.peer)).cloned();
            let (endpoint, password) = way.unwrap_or_else(|| (SOCKS.to_owned(), None));
            Carried { number, endpoint, password }
        };
        self.sites.iter().flat_map(|site| site.visits()).map(carried).collect()
    }
}

/// A request's number, from the part before the last of its path.
fn number(path: &str) -> usize {
    path.rsplit('/').nth(1).unwrap().parse().unwrap()
}

/// Requests that end before it goes on: as many as there are tasks.
const ENOUGH: usize = super::work::TASKS;

/// What the sites answer: they take as long as the path's last part says.
fn answer(visit: &Visit) -> crate::support::origin::Answer {
    let takes: u64 = visit.path.rsplit('/').next().unwrap().parse().unwrap();
    let mut answer = text(StatusCode::OK, "hello");
    answer.extensions_mut().insert(Takes(Duration::from_millis(takes)));
    answer
}
