//! Calls that are refused, before anything is changed.

use std::time::Duration;

use super::Fixture;
use super::scene::*;
use crate::error::{Error, Kind};
use crate::id::PoolName;
use crate::secret::Token;
use crate::store::{
    AcquireRequest, AdminReply, AdminRequest, CancelRequest, Claim, ListRequest, MAX_ASSIGNMENTS,
    MAX_BATCH, MAX_WEIGHT, Member, Order, PoolConfig, ReapRequest, Release, ReleaseRequest,
    RenewRequest,
};
use crate::verdict::{QuarantineCode, Verdict};

/// A pool that was never set up is not an empty one.
pub async fn an_unknown_pool_is_not_an_empty_one(fixture: &dyn Fixture) {
    let (store, pool) = (fixture.store(), fixture.pool());
    let token = Token::random();
    let release = Release { claim: Claim::Lease(token), verdict: Verdict::default(), site: None };
    let order = Order::Add(numbered(1));
    let named = || pool.clone();
    let list = ListRequest { pool: named(), after: None, limit: 1 };
    let releases = ReleaseRequest::new(named(), vec![release]);
    let cancel = CancelRequest { pool: named(), token, tombstone: MINUTE };
    for kind in [
        kind(store.acquire(AcquireRequest::new(named(), token, TTL)).await),
        kind(store.renew(RenewRequest { pool: named(), token, ttl: TTL }).await),
        kind(store.release(releases).await),
        kind(store.cancel(cancel).await),
        kind(store.reap(ReapRequest { pool: named() }).await),
        kind(store.status(&pool).await),
        kind(store.list(list).await),
        kind(store.administer(AdminRequest::new(named(), order)).await),
        kind(store.administer(AdminRequest::new(named(), Order::Pause)).await),
    ] {
        assert_eq!(kind, Some(Kind::PoolUninitialised));
    }
}

/// A pool is set up once; what it holds stays.
pub async fn a_pool_is_set_up_once(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    scene.grant().await;
    scene.refuses(Order::Init(PoolConfig::default().into()), "set up before").await;
    assert_eq!(scene.status().await.leased, 1);
}

/// Limits that cannot be kept are refused.
pub async fn a_pool_needs_limits_that_fit(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 0).await;
    let other = Fresh(fixture);
    let none = PoolConfig { largest_ttl: Duration::ZERO, ..PoolConfig::default() };
    let short =
        PoolConfig { largest_ttl: MINUTE * 2, largest_lifetime: MINUTE, ..PoolConfig::default() };
    for (config, message) in [(none, "above zero"), (short, "lifetime")] {
        let order = Order::Init(config.into());
        refused(other.administer(order).await, message);
        let again = other.administer(Order::Pause).await.unwrap_err();
        assert_eq!(again.kind(), Kind::PoolUninitialised);
    }
    scene.check().await;
}

/// A ttl is above zero and at most the pool's largest.
pub async fn a_ttl_has_limits(fixture: &dyn Fixture) {
    let config = PoolConfig { largest_ttl: MINUTE * 2, ..PoolConfig::default() };
    let scene = Scene::with(fixture, config, numbered(2)).await;
    let grant = scene.grant().await;
    for (ttl, message) in [(Duration::ZERO, "above zero"), (MINUTE * 2 + MILLISECOND, "largest")] {
        let mut request = scene.request(Token::random());
        request.ttl = ttl;
        refused(scene.store().acquire(request).await, message);
        let renewal = RenewRequest { pool: fixture.pool(), token: token(&grant), ttl };
        refused(scene.store().renew(renewal).await, message);
    }
    assert_eq!((scene.status().await.ready, scene.status().await.leased), (1, 1));
    let mut request = scene.request(Token::random());
    request.ttl = MINUTE * 2;
    assert_about(granted(scene.ask(request).await).term.unwrap().remaining, MINUTE * 2);
    scene.check().await;
}

/// A batch of tokens is neither empty nor too long, and names none twice.
pub async fn an_acquire_has_one_to_sixteen_tokens(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 40).await;
    let twice = Token::random();
    for (tokens, message) in [
        (Vec::new(), "1 to 16"),
        ((0..=MAX_BATCH).map(|_| Token::random()).collect(), "1 to 16"),
        (vec![twice, Token::random(), twice], "twice"),
    ] {
        let mut request = scene.request(Token::random());
        request.tokens = tokens;
        refused(scene.store().acquire(request).await, message);
    }
    assert_eq!(scene.status().await.ready, 40);
    scene.check().await;
}

/// A batch of releases is neither empty nor too long.
pub async fn a_release_has_one_to_sixteen_leases(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    let release = Release { claim: grant.claim(), verdict: Verdict::default(), site: None };
    for number in [0, MAX_BATCH + 1] {
        let releases = vec![release.clone(); number];
        let request = ReleaseRequest::new(fixture.pool(), releases);
        refused(scene.store().release(request).await, "1 to 16");
    }
    assert_eq!(scene.status().await.leased, 1);
}

/// Weights and counts have limits, and one bad member keeps out all.
pub async fn a_bad_member_keeps_out_the_whole_order(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let good = || Member::new(id("good"));
    let bad = || Member::new(id("bad"));
    for (member, message) in [
        (bad().with_weight(0), "bad has weight 0"),
        (bad().with_weight(MAX_WEIGHT + 1), "bad has weight 1001"),
        (bad().with_assignments(MAX_ASSIGNMENTS + 1), "bad"),
        (good(), "good is named twice"),
    ] {
        let members = vec![good(), member];
        scene.refuses(Order::Add(members), message).await;
        assert_eq!(scene.status().await.members(), 1);
    }
    let most = bad().with_weight(MAX_WEIGHT).with_assignments(MAX_ASSIGNMENTS);
    assert_eq!(scene.add(vec![good(), most]).await, 2);
}

/// An unknown endpoint in an order is named, and keeps back the whole order.
pub async fn an_unknown_endpoint_keeps_back_the_whole_order(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let ids = || vec![id("e0"), id("nobody")];
    for order in [
        Order::Remove(ids()),
        Order::Disable(ids()),
        Order::Drain(ids()),
        Order::Quarantine(ids(), QuarantineCode::Administrator),
        Order::EndQuarantine(ids(), QuarantineCode::Administrator),
        Order::Enable(ids()),
    ] {
        scene.refuses(order, "no endpoint nobody").await;
        assert_eq!(scene.status().await.ready, 1);
    }
}

/// A message of a refusal does not repeat a token.
pub async fn a_refusal_does_not_repeat_a_token(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let token = Token::from_bytes([0xab; 16]);
    let mut request = scene.request(token);
    request.tokens = vec![token, token];
    let error = scene.store().acquire(request).await.unwrap_err();
    let text = format!("{error} {error:?}").to_lowercase();
    assert!(!text.contains("abab") && !text.contains("171, 171"), "{text}");
}

/// The same store with a pool that does not exist.
struct Fresh<'a>(&'a dyn Fixture);

impl Fresh<'_> {
    async fn administer(&self, order: Order) -> Result<AdminReply, Error> {
        let name = format!("{}-fresh", self.0.pool());
        let pool = PoolName::new(name).unwrap();
        self.0.store().administer(AdminRequest::new(pool, order)).await
    }
}

fn kind<T>(reply: Result<T, Error>) -> Option<Kind> {
    reply.err().map(|error| error.kind())
}

const MILLISECOND: Duration = Duration::from_millis(1);
