//! What else a server can be: full of something else, closed, gone, a cluster.

use super::*;
use crate::error::Kind;
use crate::redis::acl::Role;

#[tokio::test]
async fn a_key_of_another_kind_is_told_and_left_alone() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(SECOND, 1);
    let seat = Seat { passage: Passage { process: 0, number: 0 }, most: 1, hold: SECOND };
    let _: () = rig.server.ask(&format!("RPUSH {KEY} x"));
    let error = bucket.reserve(PROBE, None).await.unwrap_err();
    assert_eq!(error.kind(), Kind::StoreRefused);
    assert_eq!(rig.server.ask::<u64>(&format!("LLEN {KEY}")), 1);
    for text in ["x", "1:2", "1:2:3:4", "-1:2:3"] {
        let _: () = rig.server.ask(&format!("SET {KEY} {text}"));
        let error = bucket.reserve(PROBE, None).await.unwrap_err();
        assert_eq!(error.kind(), Kind::StoreRefused, "{text}");
        assert_eq!(rig.server.ask::<String>(&format!("GET {KEY}")), text);
    }
    let _: () = rig.server.ask("FLUSHALL");
    let _: () = rig.server.ask(&format!("SET {KEY}:passages x"));
    let error = bucket.reserve(PROBE, Some(&seat)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::StoreRefused);
    assert_eq!(rig.server.ask::<u64>(&format!("EXISTS {KEY}")), 0, "nothing was written");
}

#[tokio::test]
async fn a_worker_may_do_all_of_it_and_an_observer_only_look() {
    let rig = Rig::start().await;
    for (user, role) in [("worker", Role::Worker), ("observer", Role::Observer)] {
        let _: () = rig.server.ask(&role.set_user(user, "lease"));
        let _: () = rig.server.ask(&format!("ACL SETUSER {user} >word"));
    }
    let url = |user: &str| format!("redis://{user}:word@127.0.0.1:{}", rig.server.port());
    let worker = Bucket::new(limits(&url("worker")).await, "a.test", SECOND, 1);
    let seat = Seat { passage: Passage { process: 0, number: 0 }, most: 1, hold: SECOND };
    let Reserved::Slot(slot) = worker.reserve(PROBE, Some(&seat)).await.unwrap() else { panic!() };
    assert!(slot.entered);
    // The clock is set back: passages are read and written too.
    rig.step(3_600_000_000);
    worker.reserve(PROBE, Some(&seat)).await.unwrap();
    worker.undo(&slot).await.unwrap();
    worker.enter(&seat).await.unwrap();
    worker.leave(&[seat.passage]).await.unwrap();
    worker.pause(0, SECOND, BACKOFF).await.unwrap();
    worker.settle(1, true).await.unwrap();
    worker.reset().await.unwrap();
    let observer = Bucket::new(limits(&url("observer")).await, "a.test", SECOND, 1);
    let error = observer.reserve(PROBE, None).await.unwrap_err();
    assert_eq!(error.to_string(), "the store's user may not do this");
}

#[tokio::test]
async fn a_server_that_is_gone_lets_nothing_pass_and_is_told_in_time() {
    let mut rig = Rig::start().await;
    let bucket = rig.bucket(SECOND, 1);
    slot(&bucket).await;
    rig.server.kill();
    for _ in 0..3 {
        let begun = std::time::Instant::now();
        let error = bucket.reserve(PROBE, None).await.unwrap_err();
        assert_eq!(error.kind(), Kind::StoreUnavailable);
        assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    }
    rig.server.restart();
    let begun = std::time::Instant::now();
    let first = loop {
        match bucket.reserve(PROBE, None).await {
            Ok(Reserved::Slot(slot)) => break slot,
            other => assert!(begun.elapsed() < 10 * SECOND, "{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert!(first.wait > SECOND / 2, "the server forgot, and the bucket is taken for empty");
}

#[tokio::test]
async fn what_was_lost_is_made_up_for_by_an_empty_bucket_once() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(10 * SECOND, 5);
    // The twin: a server that forgot and was not seen to fail allows its burst.
    assert_eq!(wait(&bucket).await, Duration::ZERO);
    let _: () = rig.server.ask("FLUSHALL");
    assert_eq!(wait(&bucket).await, Duration::ZERO);
    let _: () = rig.server.ask("FLUSHALL");
    assert!(rig.limits.shared.outage.begin() && rig.limits.shared.outage.end());
    let first = wait(&bucket).await;
    assert!(first > 9 * SECOND && first <= 10 * SECOND, "{first:?}");
    let second = wait(&bucket).await;
    assert!(second > 19 * SECOND && second <= 20 * SECOND, "{second:?}");
}

#[cfg(feature = "redis-cluster")]
#[tokio::test]
async fn each_bucket_has_a_slot_of_its_own_in_a_cluster() {
    let server = Server::start(&["--cluster-enabled", "yes"]);
    let _: () = server.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    let ok = |server: &Server| server.ask::<String>("CLUSTER INFO").contains("cluster_state:ok");
    server.wait_for("the cluster stands", ok).await;
    let options = ConnectOptions::cluster(vec![Secret::new(server.url())]);
    let connection = Connection::connect(options).await.unwrap();
    let limits =
        SharedLimits::new(Handle { connection, namespace: Namespace::new("lease").unwrap() });
    let slot = |key: &str| server.ask::<u64>(&format!("CLUSTER KEYSLOT {key}"));
    let mut slots = std::collections::BTreeSet::new();
    for site in ["a.test", "b.test", "[::1]", "*.example.org"] {
        let bucket = Bucket::new(limits.clone(), site, SECOND, 1);
        let seat = Seat { passage: Passage { process: 0, number: 0 }, most: 1, hold: SECOND };
        let reserved = bucket.reserve(PROBE, Some(&seat)).await.unwrap();
        assert!(matches!(reserved, Reserved::Slot(Slot { entered: true, .. })), "{site}");
        let key = format!("lease:budget:{{{site}}}");
        assert_eq!(slot(&key), slot(&format!("{key}:passages")), "{site}");
        slots.insert(slot(&key));
    }
    assert_eq!(slots.len(), 4);
}
