//! Each change that an administrator makes, with what must hold from then on.

use std::collections::{BTreeMap, BTreeSet};

use reqwest_lease::{EndpointId, Order, QuarantineCode};
use tokio::time::{Duration, Instant, sleep};

use super::inventory::{Entry, FILE, Mount};
use super::world::World;
use crate::support::{SOON, eventually};

/// Whether the workers or the pool learn first of other members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Workers,
    /// As the handbook does not have it.
    Pool,
}

/// The numbers of each endpoint's open connections.
pub(super) type Connections = BTreeMap<String, BTreeSet<usize>>;

impl World {
    /// Gives an order on endpoints, which are out when it has returned.
    pub(super) async fn takes_out(&mut self, command: &str, ids: &[String]) {
        self.order(command, ids).await;
        let now = self.now().await;
        ids.iter().for_each(|id| self.promises.bans(id, now));
        if command.starts_with("drain") && self.form.redis {
            let listed = self.json("list --state disabled").await;
            let listed: Vec<_> =
                listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
            assert!(ids.iter().all(|id| listed.contains(&id.as_str())), "{listed:?}");
        }
    }

    pub(super) async fn enables(&mut self, ids: &[String]) {
        self.lifts(ids).await;
        self.order("enable", ids).await;
    }

    /// These may come back from now on.
    async fn lifts(&mut self, ids: &[String]) {
        let until = self.fence().await;
        ids.iter().for_each(|id| self.promises.lifts(id, until));
    }

    /// The same by the provider's name.
    pub(super) async fn takes_out_provider(&mut self, name: &str) {
        let ids = self.plan.of(name);
        match self.form.redis {
            true => {
                drop(self.rig.good(&format!("disable --provider {name} --inventory {FILE}")).await)
            }
            false => self.order("disable", &ids).await,
        }
        let now = self.now().await;
        ids.iter().for_each(|id| self.promises.bans(id, now));
    }

    pub(super) async fn enables_provider(&mut self, name: &str) {
        let ids = self.plan.of(name);
        self.lifts(&ids).await;
        match self.form.redis {
            true => {
                drop(self.rig.good(&format!("enable --provider {name} --inventory {FILE}")).await);
            }
            false => self.order("enable", &ids).await,
        }
    }

    pub(super) async fn order(&self, command: &str, ids: &[String]) {
        if self.form.redis {
            drop(self.rig.good(&format!("{command} {}", ids.join(" "))).await);
            return;
        }
        let ids = ids.iter().map(|id| EndpointId::new(id).unwrap()).collect();
        let order = match command.split(' ').next().unwrap() {
            "disable" => Order::Disable(ids),
            "drain" => Order::Drain(ids),
            "enable" => Order::Enable(ids),
            "quarantine" => Order::Quarantine(ids, QuarantineCode::Administrator),
            "pause" => Order::Pause,
            "resume" => Order::Resume,
            other => panic!("{other}"),
        };
        self.pool.administer(order).await.unwrap();
    }

    /// Pauses until every task waits and nothing is leased, and goes on.
    pub(super) async fn pauses(&mut self) {
        self.order("pause", &[]).await;
        let now = self.now().await;
        self.promises.bans("*", now);
        let end = Instant::now() + SOON;
        while self.pool.status().await.unwrap().leased > 0 {
            assert!(Instant::now() < end, "not within {SOON:?}: the end of all leases");
            sleep(Duration::from_millis(5)).await;
        }
        self.lifts(&["*".to_owned()]).await;
        self.order("resume", &[]).await;
        let now = self.now().await;
        self.work.is_past(now.mark).await;
    }

    /// Brings the inventory to the workers.
    pub(super) async fn brings(&mut self) {
        self.folder.put(&self.plan);
        if !self.form.redis {
            self.pool.reload().await.unwrap();
        } else if self.form.follows {
            let is_there = || self.pool.inventory().snapshot().version() == Some(self.plan.version);
            eventually("the new version", || is_there().then_some(())).await;
        }
    }

    /// Brings other passwords to the workers: with a version of their own, or as their files alone.
    pub(super) async fn brings_passwords(&mut self) {
        if self.form.mount == Mount::Linked {
            self.plan.version += 1;
            return self.brings().await;
        }
        let before = self.pool.inventory().generation();
        self.folder.put(&self.plan);
        if !self.form.redis {
            self.pool.reload().await.unwrap();
        } else if self.form.follows {
            let grown = || self.pool.inventory().generation() > before;
            eventually("the new password", || grown().then_some(())).await;
        }
    }

    /// Other members: some are added, some go, some get another weight.
    pub(super) async fn syncs(
        &mut self,
        first: First,
        add: &[&str],
        remove: &[&str],
        weights: &[(&str, u32)],
    ) {
        let add: Vec<_> = add.iter().map(|id| (*id).to_owned()).collect();
        let mut before = self.connections();
        before.retain(|id, _| !add.contains(id));
        self.lifts(&add).await;
        self.plan.version += 1;
        for id in &add {
            let (url, password) = (self.gates[id].url(), self.gates[id].newest());
            self.plan.endpoints.insert(id.clone(), Entry { url, weight: 1, password });
        }
        let some_stay = self.plan.endpoints.len() > add.len() + remove.len();
        for id in remove {
            self.plan.endpoints.remove(*id);
        }
        for (id, weight) in weights {
            self.plan.endpoints.get_mut(*id).unwrap().weight = *weight;
        }
        if first == First::Workers || !self.form.redis {
            self.brings().await;
        }
        if self.form.redis {
            self.rig.file("next.toml", self.plan.text());
            self.rig.good("sync --inventory next.toml --yes").await;
        }
        let now = self.now().await;
        remove.iter().for_each(|id| self.promises.bans(id, now));
        if some_stay {
            self.goes_on().await;
        }
        if first == First::Pool && self.form.redis {
            self.brings().await;
        }
        self.has_members().await;
        assert_eq!(self.cut("", &before), [""; 0]);
    }

    /// The pool has the inventory's members, weights and version, once leases have ended.
    async fn has_members(&self) {
        let wanted: Vec<_> =
            self.plan.endpoints.iter().map(|(id, entry)| (id.clone(), entry.weight)).collect();
        for _ in 0..1000 {
            let members = self.pool.list().await.unwrap();
            let members = members.iter().map(|one| (one.endpoint.to_string(), one.weight));
            if members.collect::<Vec<_>>() == wanted {
                let version = self.pool.status().await.unwrap().config_version;
                return assert_eq!(version, Some(self.plan.version));
            }
            sleep(Duration::from_millis(5)).await;
        }
        panic!("{wanted:?} are not the members: {:?}", self.pool.list().await);
    }

    /// Changes a password as providers do: the old one is good for a while too.
    pub(super) async fn rotates(&mut self, id: &str) {
        let before = self.connections();
        let entry = self.plan.endpoints.get_mut(id).unwrap();
        let (old, new) = (entry.password, entry.password + 1);
        entry.password = new;
        self.gates[id].accepts(&[old, new]);
        self.brings_passwords().await;
        let now = self.now().await;
        self.promises.rotates(id, new, now);
        self.work.is_past(now.mark).await;
        self.gates[id].accepts(&[new]);
        self.goes_on().await;
        let gate = &self.gates[id];
        let gone = || gate.open().is_disjoint(&before[id]);
        eventually("the end of old connections", || gone().then_some(())).await;
        assert_eq!(self.cut(id, &before), [""; 0]);
    }

    /// The open connections of all endpoints.
    pub(super) fn connections(&self) -> Connections {
        self.gates.iter().map(|(id, gate)| (id.clone(), gate.open())).collect()
    }

    /// The endpoints of the inventory that have lost a connection of before, but for this one.
    pub(super) fn cut(&self, changed: &str, before: &Connections) -> Vec<String> {
        let others = before.iter().filter(|(id, _)| *id != changed);
        let others = others.filter(|(id, _)| self.plan.endpoints.contains_key(*id));
        let cut = others.filter(|(id, before)| !self.gates[*id].open().is_superset(before));
        cut.map(|(id, _)| id.clone()).collect()
    }

    /// A broken file comes, and a good one after it.
    pub(super) async fn mends_a_broken_file(&mut self) {
        let (before, connections) = (self.pool.counts().reloads_failed, self.connections());
        self.folder.put_text(&self.plan, "version = 'none'\n[[endpoint]]\n");
        if !self.form.redis {
            self.pool.reload().await.unwrap_err();
        }
        let failed = || self.pool.counts().reloads_failed > before;
        eventually("a failed reload", || failed().then_some(())).await;
        if self.form.redis {
            let refused = self.rig.words("sync --inventory proxies.toml --yes").await;
            assert_eq!(refused.code, 2, "{refused:?}");
        }
        self.goes_on().await;
        self.plan.version += 1;
        self.brings().await;
        self.goes_on().await;
        assert_eq!(self.cut("", &connections), [""; 0]);
    }
}
