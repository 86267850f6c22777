//! Servers in trouble: what each call is told, and that nothing is written.

use std::collections::BTreeMap;

use super::scenes::call;
use super::*;
use crate::redis::tests::proxy::{Fault, Proxy};
use crate::redis::tests::server::Server as Process;

/// A pool on a server of its own, which a test may spoil.
pub(super) struct Rig {
    pub(super) server: Process,
    pub(super) store: RedisStore,
    pub(super) held: Grant,
}

impl Rig {
    pub(super) async fn start(options: &[&str]) -> Self {
        let server = Process::start(options);
        let store = patient(&server.url()).await;
        let members = (0..8).map(|nth| Member::new(id(&format!("e{nth}")))).collect();
        for order in [Order::Init(PoolConfig::default().into()), Order::Add(members)] {
            store.administer(AdminRequest::new(vn(), order)).await.unwrap();
        }
        let held = granted(store.acquire(fresh()).await);
        Self { server, store, held }
    }

    pub(super) fn everything(&self) -> BTreeMap<String, Vec<u8>> {
        let keys: Vec<String> = self.server.ask("KEYS *");
        let dump = |key: String| {
            let held = self.server.ask(&format!("DUMP {key}"));
            (key, held)
        };
        keys.into_iter().map(dump).collect()
    }

    /// Every call is told this, and nothing is written.
    async fn all_are_unavailable(&self, message: &str) {
        let before = self.everything();
        self.are_unavailable(0..99, message).await;
        assert!(self.everything() == before);
    }

    /// These calls are told this. What may come instead: another word of the same kind.
    async fn are_unavailable(&self, calls: impl IntoIterator<Item = usize>, message: &str) {
        for nth in calls {
            let Some(reply) = call(&self.store, &vn(), &self.held, nth).await else { break };
            let reads = [23, 24, 25, 26, 31, 32, 33, 36].contains(&nth) && reply.is_ok();
            if !reads {
                unavailable(&reply.unwrap_err(), message);
            }
        }
    }
}

fn unavailable(error: &Error, message: &str) {
    assert_eq!(error.to_string(), message);
    assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}");
    assert!(error.is_transient() && !error.may_have_run(), "{error}");
}

pub(super) fn vn() -> PoolName {
    PoolName::new("vn").unwrap()
}

pub(super) fn fresh() -> AcquireRequest {
    AcquireRequest::new(vn(), Token::random(), TTL)
}

pub(super) fn granted(reply: Result<AcquireReply, Error>) -> Grant {
    match reply {
        Ok(AcquireReply::Granted(mut grants)) => grants.remove(0),
        other => panic!("a grant expected, not {other:?}"),
    }
}

/// A store that gives a slow machine time.
pub(super) async fn patient(url: &str) -> RedisStore {
    let builder = RedisStore::builder(url).connect_timeout(Duration::from_secs(5));
    builder.call_timeout(Duration::from_secs(5)).build().await.unwrap()
}

/// A store that gives up soon.
pub(super) async fn hasty(url: &str) -> RedisStore {
    let builder = RedisStore::builder(url).connect_timeout(Duration::from_secs(5));
    builder.call_timeout(Duration::from_millis(150)).build().await.unwrap()
}

/// What a server may answer; whether it passes by itself, and whether something may have run.
const ANSWERS: &[(&str, bool, bool)] = &[
    ("READONLY canary", true, false),
    ("OOM canary", true, false),
    ("MISCONF canary", true, false),
    ("NOREPLICAS canary", true, false),
    ("ERR Error running script: Script killed by user canary", true, false),
    ("ERR max number of clients reached canary", true, false),
    ("BUSY canary", true, false),
    ("LOADING canary", true, false),
    ("TRYAGAIN canary", true, false),
    ("CLUSTERDOWN canary", true, false),
    ("MASTERDOWN canary", true, false),
    ("MOVED 1 canary:7000", false, false),
    ("ASK 1 canary:7000", false, false),
    ("CROSSSLOT canary", false, false),
    ("NOAUTH canary", false, false),
    ("WRONGPASS canary", false, false),
    ("NOPERM User canary has no permissions", false, false),
    ("ERR Error compiling script canary", false, false),
    ("ERR ACL failure in script: User canary has no permissions", false, true),
    ("ERR canary", false, true),
    ("WRONGTYPE canary", false, true),
    ("CANARY canary", false, true),
    ("canary canary", false, true),
];

#[tokio::test]
async fn each_answer_of_a_server_is_sorted_by_what_ran_and_whether_it_passes() {
    let rig = Rig::start(&[]).await;
    let proxy = Proxy::start(rig.server.port()).await;
    let login = proxy.url().replace("redis://", "redis://:canary@");
    let _: () = rig.server.ask("CONFIG SET requirepass canary");
    let store = hasty(&login).await;
    for (words, passes, may_have_run) in ANSWERS {
        // An acquire, a release, a look and an order: each is another way through the store.
        for nth in [0, 5, 23, 15] {
            proxy.set(Fault::Answer(words));
            let error = call(&store, &vn(), &rig.held, nth).await.unwrap().unwrap_err();
            let told = format!("{words}, call {nth}: {error:?}");
            let kind = if *passes { Kind::StoreUnavailable } else { Kind::StoreRefused };
            assert_eq!((error.kind(), error.is_transient()), (kind, *passes), "{told}");
            // The deadline may come while the server is asked again.
            let late = error.to_string() == "the store did not answer in time";
            assert_eq!(error.may_have_run(), *may_have_run || late, "{told}");
            let text = format!("{error} {error:?}").to_lowercase();
            let port = rig.server.port().to_string();
            for secret in ["127.0.0.1", &port, &hex(token(&rig.held))] {
                assert!(!text.contains(secret), "{told}");
            }
            // A code of a script is told, when it is one.
            let allowed = usize::from(words.starts_with("CANARY")) * 2;
            assert_eq!(text.matches("canary").count(), allowed, "{told}");
            proxy.set(Fault::Pass);
            while store.status(&vn()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

#[tokio::test]
async fn a_replica_takes_no_call_and_says_so() {
    let (rig, other) = (Rig::start(&[]).await, Process::start(&[]));
    let before = rig.everything();
    // A replica that has not synchronised yet still has its own data.
    let _: () = rig.server.ask("CONFIG SET replica-serve-stale-data yes");
    other.signal("STOP");
    let _: () = rig.server.ask(&format!("REPLICAOF 127.0.0.1 {}", other.port()));
    let message = "the store is read-only: the server is a replica";
    rig.are_unavailable([0, 3, 5, 9, 11, 15, 19], message).await;
    assert!(rig.everything() == before);
    let _: () = rig.server.ask("REPLICAOF NO ONE");
}

#[tokio::test]
async fn a_server_that_cannot_save_takes_no_call() {
    let rig = Rig::start(&["--save", "3600 1000000", "--dbfilename", "blocked"]).await;
    std::fs::create_dir(rig.server.directory().join("blocked")).unwrap();
    let _ = rig.server.try_ask::<String>("BGSAVE");
    let failed = |server: &Process| server.info("persistence").contains("bgsave_status:err");
    rig.server.wait_for("a save fails", failed).await;
    rig.all_are_unavailable("the store cannot save its data").await;
    let _: () = rig.server.ask("CONFIG SET stop-writes-on-bgsave-error no");
    granted(rig.store.acquire(fresh()).await);
}

#[tokio::test]
async fn a_server_without_its_replicas_takes_no_call() {
    let rig = Rig::start(&[]).await;
    let _: () = rig.server.ask("CONFIG SET min-replicas-to-write 1");
    rig.all_are_unavailable("the store has too few replicas").await;
    let _: () = rig.server.ask("CONFIG SET min-replicas-to-write 0");
    granted(rig.store.acquire(fresh()).await);
}

#[tokio::test]
async fn a_busy_server_is_waited_for_and_takes_the_call_afterwards() {
    let rig = Rig::start(&["--busy-reply-threshold", "20"]).await;
    let before = rig.everything();
    let store = hasty(&rig.server.url()).await;
    let endless = rig.server.spawn_endless_script();
    let busy = |server: &Process| server.try_ask::<String>("PING").is_err();
    rig.server.wait_for("it is busy", busy).await;
    for nth in [0, 5, 23, 15] {
        let error = call(&store, &vn(), &rig.held, nth).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}");
        assert!(error.is_transient());
        if error.to_string() == "the store is busy with a long script" {
            assert!(!error.may_have_run());
        }
    }
    let waiting = tokio::spawn({
        let store = rig.store.clone();
        async move { store.acquire(fresh()).await }
    });
    // Calls that gave up were told BUSY, so none of them runs now.
    let _: () = rig.server.ask("SCRIPT KILL");
    endless.join().unwrap();
    granted(waiting.await.unwrap());
    assert_eq!(rig.store.status(&vn()).await.unwrap().leased, 2);
    assert_eq!(rig.everything().len(), before.len());
}

#[tokio::test]
async fn a_restart_tells_unavailable_then_what_is_left() {
    let rdb = ["--save", "3600 1000000"];
    for (options, saves, kept) in
        [(&["--appendonly", "yes"][..], false, true), (&rdb, true, true), (&[], false, false)]
    {
        let mut rig = Rig::start(options).await;
        if saves {
            let _: () = rig.server.ask("SAVE");
        }
        // The append-only file is written before the answer, though not yet on the disk.
        rig.server.kill();
        let store = &rig.store;
        for nth in [0, 5, 23, 15] {
            let error = call(store, &vn(), &rig.held, nth).await.unwrap().unwrap_err();
            assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}");
            assert!(error.is_transient());
        }
        rig.server.restart();
        let reply = loop {
            match rig.store.acquire(fresh()).await {
                Err(error) if error.kind() == Kind::StoreUnavailable => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                reply => break reply,
            }
        };
        match reply {
            Ok(AcquireReply::Hold(_)) => assert!(kept),
            Err(error) => {
                assert!(!kept && error.kind() == Kind::PoolUninitialised, "{error}");
            }
            other => panic!("{options:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_loading_server_is_told_as_unavailable() {
    let loads = ["--key-load-delay", "400", "--loading-process-events-interval-bytes", "1024"];
    let mut rig = Rig::start(&[&["--save", "3600 1000000"], &loads[..]].concat()).await;
    rig.server.fill("for i = 1, 5000 do redis.call('SET', 'k' .. i, string.rep('x', 64)) end");
    let _: () = rig.server.ask("SAVE");
    let store = hasty(&rig.server.url()).await;
    rig.server.kill();
    rig.server.restart();
    let mut told = Vec::new();
    while let Err(error) = store.status(&vn()).await {
        assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}");
        assert!(error.is_transient());
        told.push(error.to_string());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(told.contains(&"the store is loading its data".to_owned()), "{told:?}");
}

#[tokio::test]
async fn a_wrong_password_is_named_and_not_told() {
    let server = Process::start(&["--requirepass", "right"]);
    for login in [":canary@", "canary:canary@"] {
        let url = server.url().replace("redis://", &format!("redis://{login}"));
        let error = RedisStore::connect(url).await.unwrap_err();
        assert_eq!(error.to_string(), "the store refused the credentials");
        assert_eq!((error.kind(), error.is_transient()), (Kind::StoreRefused, false));
        assert!(!error.may_have_run());
        assert!(!format!("{error:?}").contains("canary"));
    }
}
