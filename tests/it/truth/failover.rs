//! Restarts, promotions and failbacks: nothing is granted while a grant that was lost may be relied
//! on.
//!
//! Each test with the failover hold has a twin without it, which leases one endpoint to two.

mod scene;

use std::time::{Duration, Instant};

#[cfg(feature = "redis-sentinel")]
use reqwest_lease::RedisStore;
use reqwest_lease::{AcquireReply, AcquireRequest, Kind, LeaseStore, RenewRequest, Token};
use tokio::time::sleep;

use self::scene::{Own, Pair, Scene, TTL, follows, knows};
#[cfg(feature = "redis-sentinel")]
use super::NAMESPACE;
use super::diary::wall;
use super::server::Server;
use super::{APPEND_ONLY, pool_name};
use crate::support::SOON;

#[tokio::test]
async fn a_restart_with_all_that_was_written_holds_back() {
    let mut server = Server::start(APPEND_ONLY);
    let scene = Scene::on(&server, true).await;
    let known = [scene.lease().await, scene.lease().await];
    server.kill();
    server.restart();
    scene.keeps_its_word([&known[0], &known[1]], None).await;
}

/// A server that starts with a snapshot from before its last grant.
async fn restart_with_a_snapshot(hold: bool) -> (Server, Scene, [Own; 3]) {
    let mut server = Server::start(&[]);
    let scene = Scene::on(&server, hold).await;
    let known = [scene.lease().await, scene.lease().await];
    let _: () = server.ask("SAVE");
    let lost = scene.lease().await;
    server.kill();
    server.restart();
    let [one, other] = known;
    (server, scene, [one, other, lost])
}

#[tokio::test]
async fn a_restart_with_a_snapshot_holds_back() {
    let (_server, scene, [one, other, lost]) = restart_with_a_snapshot(true).await;
    scene.keeps_its_word([&one, &other], Some(&lost)).await;
}

#[tokio::test]
async fn a_restart_with_a_snapshot_without_a_hold_leases_twice() {
    let (_server, scene, [.., lost]) = restart_with_a_snapshot(false).await;
    scene.leases_twice(&lost).await;
}

#[tokio::test]
async fn a_restart_with_nothing_is_never_an_empty_pool() {
    let mut server = Server::start(&[]);
    let scene = Scene::on(&server, true).await;
    let own = scene.lease().await;
    server.kill();
    server.restart();
    let begun = Instant::now();
    let mut told = 0;
    while told < 20 {
        let request = AcquireRequest::new(pool_name(), Token::random(), TTL);
        match scene.store.acquire(request).await.unwrap_err().kind() {
            Kind::PoolUninitialised => told += 1,
            kind => assert!(kind == Kind::StoreUnavailable && told == 0, "{kind}"),
        }
        assert!(begun.elapsed() < SOON);
    }
    let renewal = scene.store.renew(RenewRequest::new(pool_name(), own.token, TTL)).await;
    assert_eq!(renewal.unwrap_err().kind(), Kind::PoolUninitialised);
    assert_eq!(scene.release(&own).await.unwrap_err().kind(), Kind::PoolUninitialised);
    let keys: Vec<String> = server.ask("KEYS *");
    assert!(keys.is_empty(), "{keys:?}");
}

/// The replica takes over, without the last grant.
async fn promote_without_the_last_grant(hold: bool) -> (Pair, Scene, [Own; 3]) {
    let mut pair = Pair::start(&[]).await;
    let scene = Scene::on(&pair.primary, hold).await;
    let (one, other) = (scene.lease().await, scene.lease().await);
    knows(&pair.replica, &other).await;
    pair.link.silence(true);
    let lost = scene.lease().await;
    pair.primary.kill();
    let _: () = pair.replica.ask("REPLICAOF NO ONE");
    scene.way.lead_to(pair.replica.port());
    (pair, scene, [one, other, lost])
}

#[tokio::test]
async fn a_promoted_replica_holds_back() {
    let (_pair, scene, [one, other, lost]) = promote_without_the_last_grant(true).await;
    scene.keeps_its_word([&one, &other], Some(&lost)).await;
}

#[tokio::test]
async fn a_promoted_replica_without_a_hold_leases_twice() {
    let (_pair, scene, [.., lost]) = promote_without_the_last_grant(false).await;
    scene.leases_twice(&lost).await;
}

/// The replica takes over, the old primary follows it, and then takes over again without the last
/// grant.
async fn go_and_come_back(hold: bool) -> (Pair, Scene, [Own; 3]) {
    let mut pair = Pair::start(&[]).await;
    let scene = Scene::on(&pair.primary, hold).await;
    let known = [scene.lease().await, scene.lease().await];
    knows(&pair.replica, &known[1]).await;
    let _: () = pair.replica.ask("REPLICAOF NO ONE");
    pair.link.lead_to(pair.replica.port());
    let _: () = pair.primary.ask(&format!("REPLICAOF 127.0.0.1 {}", pair.link.port()));
    scene.way.lead_to(pair.replica.port());
    follows(&pair.primary).await;
    assert!(pair.replica.info("stats").contains("sync_partial_ok:1\r\n"), "it was a full one");
    if hold {
        scene.keeps_its_word([&known[0], &known[1]], None).await;
    }
    scene.until_all_are_free().await;

    let (one, other) = (scene.lease().await, scene.lease().await);
    knows(&pair.primary, &other).await;
    pair.link.silence(true);
    let lost = scene.lease().await;
    pair.replica.kill();
    let _: () = pair.primary.ask("REPLICAOF NO ONE");
    scene.way.lead_to(pair.primary.port());
    (pair, scene, [one, other, lost])
}

#[tokio::test]
async fn a_failback_holds_back_each_time() {
    let (_pair, scene, [one, other, lost]) = go_and_come_back(true).await;
    scene.keeps_its_word([&one, &other], Some(&lost)).await;
}

#[tokio::test]
async fn a_failback_without_a_hold_leases_twice() {
    let (_pair, scene, [.., lost]) = go_and_come_back(false).await;
    scene.leases_twice(&lost).await;
}

/// A primary that is cut off from its replica goes on for a while; then the replica takes over.
async fn split(hold: bool) -> (Pair, Scene, Own) {
    let careful = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"];
    let pair = Pair::start(&careful).await;
    let counts =
        |primary: &Server| primary.info("replication").contains("min_slaves_good_slaves:1\r\n");
    pair.primary.wait_for("the replica counts", counts).await;
    let scene = Scene::on(&pair.primary, hold).await;
    let first = scene.lease().await;
    knows(&pair.replica, &first).await;
    scene.release(&first).await.unwrap();
    pair.link.silence(true);
    let begun = Instant::now();
    let (mut last, mut grants) = (None, 0);
    let refused = loop {
        let asked = wall();
        let token = Token::random();
        match scene.store.acquire(AcquireRequest::new(pool_name(), token, TTL)).await {
            Ok(AcquireReply::Granted(granted)) => {
                if let Some(last) = last.replace(Own::new(&granted[0], asked)) {
                    let _ = scene.release(&last).await;
                }
                grants += 1;
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
        assert!(begun.elapsed() < SOON, "it never refuses");
        sleep(Duration::from_millis(5)).await;
    };
    println!("{grants} grants in {:?} after the cut, then: {refused}", begun.elapsed());
    assert_eq!(refused.to_string(), "the store has too few replicas");
    let last = last.unwrap();
    // It takes nothing back either: the deadline does.
    assert_eq!(scene.release(&last).await.unwrap_err().kind(), Kind::StoreUnavailable);
    let _: () = pair.replica.ask("REPLICAOF NO ONE");
    let _: () = pair.replica.ask("CONFIG SET min-replicas-to-write 0");
    scene.way.lead_to(pair.replica.port());
    (pair, scene, last)
}

#[tokio::test]
async fn a_primary_without_its_replica_refuses_and_the_other_holds_back() {
    let (_pair, scene, last) = split(true).await;
    assert!(last.is_trusted(), "the machine is too slow to show anything");
    let since = scene.holds_back().await;
    let granted = scene.grants_after_a_hold(since).await;
    assert!(!last.is_trusted() && granted.fence > last.fence, "{granted:?} {last:?}");
}

#[tokio::test]
async fn a_split_without_a_hold_leases_twice() {
    let (_pair, scene, last) = split(false).await;
    scene.leases_twice(&last).await;
}

#[cfg(feature = "redis-sentinel")]
#[tokio::test]
async fn a_failover_by_sentinels_holds_back() {
    let mut primary = Server::start(&[]);
    let replica = Server::start(&["--replicaof", &format!("127.0.0.1 {}", primary.port())]);
    follows(&replica).await;
    let scene = Scene::on(&primary, true).await;
    let sentinels: Vec<_> = (0..3).map(|_| Server::sentinel(&primary)).collect();
    for sentinel in &sentinels {
        let all = |sentinel: &Server| {
            sentinel.ask::<String>("INFO sentinel").contains("slaves=1,sentinels=3")
        };
        sentinel.wait_for("all know each other", all).await;
    }
    let urls = sentinels.iter().map(Server::url);
    let builder = RedisStore::sentinel(urls, "pool", "redis://whoever").namespace(NAMESPACE);
    let scene = Scene { store: builder.build().await.unwrap(), ..scene };
    let own = scene.lease().await;
    knows(&replica, &own).await;
    primary.kill();
    let since = scene.holds_back().await;
    scene.grants_after_a_hold(since).await;
    scene.store_in_order().await;
}
