//! Restarts, promotions and failbacks: nothing is granted while a grant that was lost may be relied
//! on.
//!
//! Each test with the failover hold has a twin without it, which leases one endpoint to two.

use std::time::{Duration, Instant};

use reqwest_lease::{
    AcquireReply, AcquireRequest, Claim, EndpointId, Error, Fence, Grant, Kind, LeaseStore, Member,
    Order, PoolConfig, RedisStore, Release, ReleaseReply, ReleaseRequest, RenewReply, RenewRequest,
    Token, Verdict,
};
use tokio::time::sleep;

use super::diary::{micros, wall};
use super::relay::Relay;
use super::server::Server;
use super::{APPEND_ONLY, NAMESPACE, id, order, pool_name, prefix};
use crate::support::SOON;

/// The largest, so nothing is granted for this long.
const TTL: Duration = Duration::from_secs(2);

/// A lease as its holder knows it.
#[derive(Debug)]
struct Own {
    token: Token,
    endpoint: EndpointId,
    fence: Fence,
    /// It may be relied on until then.
    trust: u64,
}

impl Own {
    fn new(grant: &Grant, asked: u64) -> Self {
        let term = grant.term.unwrap();
        Self {
            token: term.token,
            endpoint: grant.endpoint.clone(),
            fence: grant.fence,
            trust: asked + micros(term.remaining),
        }
    }

    fn is_trusted(&self) -> bool {
        wall() < self.trust
    }
}

/// A pool of three endpoints, and the way to its present server.
struct Scene {
    store: RedisStore,
    way: Relay,
}

impl Scene {
    async fn on(server: &Server, hold: bool) -> Self {
        let way = Relay::start(server.port(), None, &[]).await;
        let store = RedisStore::builder(way.url()).namespace(NAMESPACE).build().await.unwrap();
        let mut config = PoolConfig::default();
        (config.largest_ttl, config.failover_hold) = (TTL, hold);
        order(&store, Order::Init(config)).await;
        order(&store, Order::Add((0..3).map(|nth| Member::new(id(nth))).collect())).await;
        Self { store, way }
    }

    /// Asks until the server answers.
    async fn ask(&self) -> Result<Own, AcquireReply> {
        let (token, begun) = (Token::random(), Instant::now());
        loop {
            let asked = wall();
            let mut request = AcquireRequest::new(pool_name(), token, TTL);
            request.expiry_cooldown = Duration::ZERO;
            match self.store.acquire(request).await {
                Ok(AcquireReply::Granted(grants)) => {
                    return Ok(Own::new(&grants[0], asked));
                }
                Ok(reply) => return Err(reply),
                Err(error) => assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}"),
            }
            assert!(begun.elapsed() < SOON * 3, "no answer");
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn lease(&self) -> Own {
        self.ask().await.unwrap()
    }

    async fn renew(&self, own: &Own) -> RenewReply {
        self.store.renew(RenewRequest::new(pool_name(), own.token, TTL)).await.unwrap()
    }

    async fn release(&self, own: &Own) -> Result<ReleaseReply, Error> {
        let release = Release::new(Claim::Lease(own.token), Verdict::default(), None);
        let request = ReleaseRequest::new(pool_name(), vec![release]);
        self.store.release(request).await.map(|replies| replies[0])
    }

    /// The next answer is that of a hold.
    async fn holds_back(&self) -> u64 {
        let asked = wall();
        match self.ask().await {
            Err(AcquireReply::Hold(left)) => assert!(left <= TTL, "{left:?}"),
            other => panic!("a hold expected, not {other:?}"),
        }
        asked
    }

    /// All answers are those of a hold until the largest ttl is over.
    async fn grants_after_a_hold(&self, since: u64) -> Own {
        let mut held = 0;
        loop {
            match self.ask().await {
                Ok(own) => {
                    let waited = wall() - since;
                    assert!(held > 10 && waited >= micros(TTL), "{held} {waited}");
                    return own;
                }
                Err(AcquireReply::Hold(_)) => held += 1,
                Err(other) => panic!("{other:?}"),
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// A lease that the server knows goes on through a hold, one that it lost is over before any
    /// other is granted.
    async fn keeps_its_word(&self, known: [&Own; 2], lost: Option<&Own>) {
        let since = self.holds_back().await;
        assert!(matches!(self.renew(known[0]).await, RenewReply::Renewed(_)));
        assert_eq!(self.release(known[1]).await.unwrap(), ReleaseReply::Released);
        if let Some(lost) = lost {
            assert!(lost.is_trusted(), "the machine is too slow to show anything");
            assert_eq!(self.renew(lost).await, RenewReply::NotOwner);
        }
        let granted = self.grants_after_a_hold(since).await;
        let before = [known[0], known[1], lost.unwrap_or(known[0])];
        assert!(before.iter().all(|own| own.fence < granted.fence), "{granted:?} {before:?}");
        assert!(lost.is_none_or(|lost| !lost.is_trusted()), "{granted:?} {lost:?}");
        self.store_in_order().await;
    }

    async fn store_in_order(&self) {
        assert_eq!(self.store.check(&pool_name()).await.unwrap(), []);
    }

    /// The twin: what was lost is leased to another while it is relied on.
    async fn leases_twice(&self, lost: &Own) {
        for _ in 0..3 {
            let Ok(own) = self.ask().await else { break };
            if own.endpoint == lost.endpoint {
                assert!(own.is_trusted() && lost.is_trusted(), "the machine is too slow");
                return;
            }
        }
        panic!("{lost:?} was not leased to another");
    }
}

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

/// A primary, its replica and the way between them.
struct Pair {
    primary: Server,
    replica: Server,
    link: Relay,
}

impl Pair {
    async fn start(options: &[&str]) -> Self {
        let primary = Server::start(options);
        let link = Relay::start(primary.port(), None, &[]).await;
        let replica = Server::start(options);
        let _: () = replica.ask(&format!("REPLICAOF 127.0.0.1 {}", link.port()));
        follows(&replica).await;
        Self { primary, replica, link }
    }
}

async fn follows(replica: &Server) {
    let up = |replica: &Server| {
        replica.info("replication").lines().any(|line| line == "master_link_status:up")
    };
    replica.wait_for("the replica follows", up).await;
}

/// Waits until a server has this lease.
async fn knows(server: &Server, own: &Own) {
    let command = format!("ZSCORE {}leases {}", prefix(), own.endpoint);
    let known = |server: &Server| server.ask::<Option<String>>(&command).is_some();
    server.wait_for("the lease arrives", known).await;
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

impl Scene {
    async fn until_all_are_free(&self) {
        let begun = Instant::now();
        while self.store.status(&pool_name()).await.unwrap().leased > 0 {
            assert!(begun.elapsed() < SOON, "a lease does not run out");
            sleep(Duration::from_millis(20)).await;
        }
    }
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
