//! The process that hands pages to the workers, kills one of them and watches the pool heal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::process::Stdio;
use std::time::Instant;

use reqwest_lease::{BoxError, Endpoint, EndpointId, Inventory, Order, Pool, PoolName, RedisStore};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use crate::healing;
use crate::local::proxy::ForwardProxy;
use crate::local::site::Site;
use crate::shared;
use crate::worker::{AT_ONCE, EXPIRY_COOLDOWN, TTL};

const WORKERS: usize = 4;
const ENDPOINTS: usize = 10;

/// The worker that is killed, and after how many pages.
const VICTIM: usize = 2;
const KILL_AFTER: usize = 12;

/// A line from a worker, or its end.
type News = (usize, Option<String>);

struct Worker {
    process: Child,
    orders: Option<ChildStdin>,
    /// Pages in its hands, with the endpoint that it has leased for them.
    pages: BTreeMap<String, Option<EndpointId>>,
    done: usize,
}

/// Runs the whole show on this Redis.
pub(crate) async fn run(redis: &str) -> Result<(), BoxError> {
    let site = Site::start().await?;
    let mut proxies = Vec::new();
    for _ in 0..ENDPOINTS {
        proxies.push(ForwardProxy::start(Default::default()).await?);
    }
    let name = PoolName::new(format!("workers-{}", std::process::id()))?;
    let store = RedisStore::connect(redis).await?;
    let inventory = inventory(&proxies)?;
    let pool = Pool::builder(name.clone(), inventory.clone()).store(store.clone()).build().await?;
    shared::set_up(&pool).await?;
    println!("pool {name}: {ENDPOINTS} endpoints, leases of {TTL:?}");

    let (news, mut hear) = mpsc::unbounded_channel();
    let mut workers = Vec::new();
    for nth in 0..WORKERS {
        workers.push(Worker::start(nth, redis, &pool, &proxies, news.clone()).await?);
    }
    let mut pages: VecDeque<String> = pages(&site).collect();
    let (all, mut fetched, mut killed) = (pages.len(), BTreeSet::new(), None);
    while fetched.len() < all {
        for worker in &mut workers {
            worker.hand_out(&mut pages).await?;
        }
        let (nth, line) = hear.recv().await.ok_or("all workers are gone")?;
        let worker = &mut workers[nth];
        match line.as_deref().map(|line| line.split(' ').collect::<Vec<_>>()).as_deref() {
            Some(["leased", endpoint, url]) => {
                worker.pages.insert((*url).to_owned(), Some(EndpointId::new(endpoint)?));
            }
            Some(["done", "200", url]) => {
                worker.pages.remove(*url);
                worker.done += 1;
                fetched.insert((*url).to_owned());
            }
            Some(_) => return Err(format!("worker {nth}: {}", line.unwrap_or_default()).into()),
            None if killed.is_some() && nth == VICTIM => {
                let left = std::mem::take(&mut worker.pages);
                println!("its {} unfinished pages go to the others", left.len());
                pages.extend(left.into_keys());
            }
            None => return Err(format!("worker {nth} ended by itself").into()),
        }
        let victim = &mut workers[VICTIM];
        let held: Vec<_> = victim.pages.values().flatten().cloned().collect();
        if killed.is_none() && fetched.len() >= KILL_AFTER && held.len() == AT_ONCE {
            victim.process.start_kill()?;
            victim.orders = None;
            let names: Vec<_> = held.iter().map(ToString::to_string).collect();
            println!("worker {VICTIM} killed while it held {}", names.join(" and "));
            killed = Some((Instant::now(), held));
        }
    }
    let (since, held) = killed.ok_or("nobody was killed")?;
    for (nth, worker) in workers.iter_mut().enumerate() {
        worker.orders = None;
        let end = worker.process.wait().await?;
        let how = if nth == VICTIM { "killed" } else { "done" };
        println!("worker {nth}: {:3} pages, {how}", worker.done);
        if nth != VICTIM && !end.success() {
            return Err(format!("worker {nth}: {end}").into());
        }
    }
    println!("{} of {all} pages fetched", fetched.len());
    healing::watch(&pool, &store, &held, since, TTL, EXPIRY_COOLDOWN).await?;
    let found = store.check(&name).await?;
    if !found.is_empty() {
        return Err(format!("the pool's state is not sound: {found:?}").into());
    }
    println!("the pool's state is sound");
    pool.administer(Order::Pause).await?;
    pool.administer(Order::DestroyPool).await?;
    pool.shutdown().await;
    Ok(())
}

fn inventory(proxies: &[ForwardProxy]) -> Result<Inventory, BoxError> {
    let named = proxies.iter().enumerate();
    let endpoints: Result<Vec<_>, BoxError> = named
        .map(|(nth, proxy)| Ok(Endpoint::new(EndpointId::new(id(nth))?, &proxy.url(), None)?))
        .collect();
    Ok(Inventory::from_endpoints(endpoints?)?)
}

fn id(nth: usize) -> String {
    format!("p{nth}")
}

/// The site's articles, each twice as it were another page.
fn pages(site: &Site) -> impl Iterator<Item = String> {
    let article = |topic: usize, nth: usize| format!("/topics/{topic}/{nth}.html");
    let paths = (1..=6).flat_map(move |topic| (1..=7).map(move |nth| article(topic, nth)));
    let twice = paths.flat_map(|path| [path.clone(), format!("{path}?again")]);
    twice.map(|path| site.url(&path)).collect::<Vec<_>>().into_iter()
}

impl Worker {
    async fn start(
        nth: usize,
        redis: &str,
        pool: &Pool,
        proxies: &[ForwardProxy],
        news: mpsc::UnboundedSender<News>,
    ) -> Result<Self, BoxError> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--work-for", pool.name().as_str()])
            // Not an argument: those are for all to see.
            .env("LEASE_REDIS_URL", redis)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut orders = process.stdin.take().ok_or("no way in")?;
        for (nth, proxy) in proxies.iter().enumerate() {
            orders.write_all(format!("endpoint {} {}\n", id(nth), proxy.url()).as_bytes()).await?;
        }
        orders.write_all(b"start\n").await?;
        let mut lines = BufReader::new(process.stdout.take().ok_or("no way out")?).lines();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = news.send((nth, Some(line)));
            }
            let _ = news.send((nth, None));
        });
        Ok(Self { process, orders: Some(orders), pages: BTreeMap::new(), done: 0 })
    }

    /// Gives it pages until it has its hands full.
    async fn hand_out(&mut self, pages: &mut VecDeque<String>) -> Result<(), BoxError> {
        let Some(orders) = &mut self.orders else { return Ok(()) };
        while self.pages.len() < AT_ONCE
            && let Some(page) = pages.pop_front()
        {
            orders.write_all(format!("page {page}\n").as_bytes()).await?;
            self.pages.insert(page, None);
        }
        Ok(())
    }
}
