//! A pool and short words for what is done to it.

use std::time::Duration;

use super::Fixture;
use crate::error::{Error, Kind};
use crate::id::{EndpointId, PoolName};
use crate::secret::Token;
use crate::site::Site;
use crate::store::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, CancelReply, CancelRequest, Grant,
    LeaseStore, ListRequest, Member, MemberState, Mode, Order, Policy, PoolConfig, ReapReply,
    ReapRequest, Release, ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, Setup, Status,
    violations,
};
use crate::verdict::Verdict;

pub(super) const TTL: Duration = Duration::from_secs(60);
pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// How far real time may have gone on beside the fixture's.
const SLACK: Duration = Duration::from_secs(2);

pub(super) struct Scene<'a> {
    fixture: &'a dyn Fixture,
}

impl<'a> Scene<'a> {
    /// An exclusive pool, first in first out, with members `e0`, `e1` and so on.
    pub(super) async fn new(fixture: &'a dyn Fixture, members: usize) -> Self {
        Self::with(fixture, PoolConfig::default(), numbered(members)).await
    }

    pub(super) async fn shared(fixture: &'a dyn Fixture, members: usize) -> Self {
        let config = PoolConfig { mode: Mode::Shared, ..PoolConfig::default() };
        Self::with(fixture, config, numbered(members)).await
    }

    pub(super) async fn ranked(
        fixture: &'a dyn Fixture,
        policy: Policy,
        members: Vec<Member>,
    ) -> Self {
        let config = PoolConfig { policy, ..PoolConfig::default() };
        Self::with(fixture, config, members).await
    }

    pub(super) async fn with(
        fixture: &'a dyn Fixture,
        setup: impl Into<Setup>,
        members: Vec<Member>,
    ) -> Self {
        let scene = Self { fixture };
        scene.order(Order::Init(setup.into())).await;
        scene.add(members).await;
        scene
    }

    /// A pool without members.
    pub(super) async fn bare(fixture: &'a dyn Fixture, setup: Setup) -> Self {
        let scene = Self { fixture };
        scene.order(Order::Init(setup)).await;
        scene
    }

    /// Erases the pool, so that the property can set up another one.
    pub(super) async fn destroy(&self) {
        self.order(Order::Pause).await;
        self.order(Order::DestroyPool).await;
    }

    /// The pool's name.
    pub(super) fn pool(&self) -> PoolName {
        self.fixture.pool()
    }

    pub(super) fn store(&self) -> &dyn LeaseStore {
        self.fixture.store()
    }

    pub(super) async fn advance(&self, by: Duration) {
        self.fixture.advance(by).await;
    }

    /// Lets enough time pass that something due after `by` is due on any store.
    pub(super) async fn pass(&self, by: Duration) {
        self.advance(by + Duration::from_millis(1)).await;
    }

    pub(super) fn request(&self, token: Token) -> AcquireRequest {
        AcquireRequest::new(self.fixture.pool(), token, TTL)
    }

    pub(super) async fn ask(&self, request: AcquireRequest) -> AcquireReply {
        self.store().acquire(request).await.expect("an acquire that is allowed")
    }

    pub(super) async fn acquire(&self, token: Token) -> AcquireReply {
        self.ask(self.request(token)).await
    }

    /// A grant to a fresh token.
    pub(super) async fn grant(&self) -> Grant {
        granted(self.acquire(Token::random()).await)
    }

    /// A fresh token is granted nothing.
    pub(super) async fn grants_nothing(&self) {
        let reply = self.acquire(Token::random()).await;
        assert!(matches!(reply, AcquireReply::Empty { .. }), "{reply:?}");
    }

    pub(super) async fn renew(&self, grant: &Grant, ttl: Duration) -> RenewReply {
        let request = RenewRequest { pool: self.fixture.pool(), token: token(grant), ttl };
        self.store().renew(request).await.expect("a renewal that is allowed")
    }

    pub(super) async fn release(&self, grant: &Grant, verdict: Verdict) -> ReleaseReply {
        self.release_for(grant, verdict, None).await
    }

    pub(super) async fn release_for(
        &self,
        grant: &Grant,
        verdict: Verdict,
        site: Option<&Site>,
    ) -> ReleaseReply {
        let release = Release { claim: grant.claim(), verdict, site: site.cloned() };
        self.release_all(vec![release]).await[0]
    }

    pub(super) async fn release_all(&self, releases: Vec<Release>) -> Vec<ReleaseReply> {
        let request = ReleaseRequest::new(self.fixture.pool(), releases);
        self.store().release(request).await.expect("a release that is allowed")
    }

    /// Gives back without any consequence.
    pub(super) async fn return_clean(&self, grant: &Grant) {
        assert_eq!(self.release(grant, Verdict::default()).await, ReleaseReply::Released);
    }

    pub(super) async fn cancel(&self, token: Token, tombstone: Duration) -> CancelReply {
        let request = CancelRequest { pool: self.fixture.pool(), token, tombstone };
        self.store().cancel(request).await.expect("a cancel")
    }

    pub(super) async fn reap(&self) -> ReapReply {
        self.store().reap(ReapRequest { pool: self.fixture.pool() }).await.expect("a reap")
    }

    pub(super) async fn order(&self, order: Order) -> usize {
        self.try_order(order).await.expect("an order that is allowed").changed
    }

    pub(super) async fn try_order(&self, order: Order) -> Result<AdminReply, Error> {
        self.store().administer(AdminRequest::new(self.fixture.pool(), order)).await
    }

    /// The order is refused as a bad call, with a message that has this in it.
    pub(super) async fn refuses(&self, order: Order, message: &str) {
        refused(self.try_order(order).await, message);
        self.check().await;
    }

    pub(super) async fn add(&self, members: Vec<Member>) -> usize {
        self.order(Order::Add(members)).await
    }

    pub(super) async fn status(&self) -> Status {
        self.store().status(&self.fixture.pool()).await.expect("a status")
    }

    pub(super) async fn list(&self) -> Vec<MemberState> {
        let request = ListRequest { pool: self.fixture.pool(), after: None, limit: usize::MAX };
        self.store().list(request).await.expect("a list")
    }

    /// What the pool says of one member.
    pub(super) async fn member(&self, endpoint: &EndpointId) -> Option<MemberState> {
        self.list().await.into_iter().find(|member| member.endpoint == *endpoint)
    }

    /// The pool contradicts itself nowhere.
    pub(super) async fn check(&self) {
        let found = violations(self.store(), &self.fixture.pool()).await.expect("a look");
        assert!(found.is_empty(), "{found:?}");
    }
}

/// Both modes with all policies.
pub(super) fn kinds() -> impl Iterator<Item = PoolConfig> {
    let policies = [Policy::Earliest, Policy::LeastAssigned, Policy::Random];
    let of =
        move |mode| policies.map(|policy| PoolConfig { mode, policy, ..PoolConfig::default() });
    [Mode::Exclusive, Mode::Shared].into_iter().flat_map(of)
}

pub(super) fn numbered(members: usize) -> Vec<Member> {
    (0..members).map(|nth| Member::new(id(&format!("e{nth}")))).collect()
}

/// Members `e0`, `e1` and so on with these weights.
pub(super) fn weighted(weights: &[u32]) -> Vec<Member> {
    let weigh = |(member, weight): (Member, &u32)| member.with_weight(*weight);
    numbered(weights.len()).into_iter().zip(weights).map(weigh).collect()
}

pub(super) fn id(name: &str) -> EndpointId {
    EndpointId::new(name).expect("a plain name")
}

pub(super) fn site(host: &str) -> Site {
    Site::parse(host).expect("a host")
}

/// The one grant of a reply.
pub(super) fn granted(reply: AcquireReply) -> Grant {
    match reply {
        AcquireReply::Granted(mut grants) if grants.len() == 1 => grants.remove(0),
        other => panic!("one grant expected, not {other:?}"),
    }
}

pub(super) fn token(grant: &Grant) -> Token {
    grant.term.expect("an exclusive grant").token
}

pub(super) fn refused<T: std::fmt::Debug>(reply: Result<T, Error>, message: &str) {
    let error = reply.expect_err("a refusal");
    assert_eq!(error.kind(), Kind::InvalidCall, "{error}");
    assert!(error.to_string().contains(message), "{error} does not say {message}");
}

/// A time left is what it should be, or a little less where real time goes on.
pub(super) fn assert_about(actual: Duration, expected: Duration) {
    let least = expected.saturating_sub(SLACK);
    assert!((least..=expected).contains(&actual), "{actual:?} left, {expected:?} expected");
}
