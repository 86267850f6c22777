//! Grants.

use std::time::Duration;

use async_trait::async_trait;

use super::Fixture;
use super::scene::*;
use crate::id::{EndpointId, PoolName};
use crate::secret::Token;
use crate::store::{
    AcquireReply, Grant, LeaseStore, MAX_BATCH, Order, PoolConfig, ReleaseReply, State,
};
use crate::verdict::Verdict;

/// A grant names an endpoint of the pool, its token and the time left.
pub async fn a_grant_has_a_token_and_the_time_asked_for(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let token = Token::random();
    let grant = granted(scene.acquire(token).await);
    let term = grant.term.unwrap();
    assert_eq!((grant.endpoint.as_str(), term.token, grant.strikes), ("e0", token, 0));
    assert_about(term.remaining, TTL);
    let member = scene.member(&grant.endpoint).await.unwrap();
    assert!(matches!(member.state, State::Leased(_)));
    assert_eq!(member.assignments, 1);
    scene.check().await;
}

/// An endpoint has at most one holder.
pub async fn an_endpoint_has_one_holder_at_a_time(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(scene.grant().await.endpoint);
    }
    ids.sort();
    assert_eq!(ids, ["e0", "e1", "e2"].map(id));
    scene.grants_nothing().await;
    scene.check().await;
}

/// An acquire sent twice gets one lease.
pub async fn a_repeated_token_gets_the_same_lease(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let token = Token::random();
    let first = granted(scene.acquire(token).await);
    scene.advance(MINUTE / 2).await;
    let second = granted(scene.acquire(token).await);
    assert_eq!((&first.endpoint, first.fence), (&second.endpoint, second.fence));
    assert_about(second.term.unwrap().remaining, TTL - MINUTE / 2);
    let status = scene.status().await;
    assert_eq!((status.leased, status.ready, status.fence), (1, 2, first.fence));
    assert_eq!(scene.member(&first.endpoint).await.unwrap().assignments, 1);
}

/// A pause stops new grants, not the answer to a repeated one.
pub async fn a_repeated_token_gets_its_lease_in_a_paused_pool(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let token = Token::random();
    let first = granted(scene.acquire(token).await);
    scene.order(Order::Pause).await;
    assert_eq!(granted(scene.acquire(token).await).fence, first.fence);
}

/// A token whose lease has run out is like a new one.
pub async fn a_token_whose_lease_ran_out_gets_a_new_one(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let token = Token::random();
    let first = granted(scene.acquire(token).await);
    scene.pass(TTL).await;
    let second = granted(scene.acquire(token).await);
    assert_ne!(first.endpoint, second.endpoint);
    assert!(second.fence > first.fence);
    assert_about(second.term.unwrap().remaining, TTL);
    scene.check().await;
}

/// A batch is granted as far as endpoints go, in the order of its tokens.
pub async fn a_batch_is_granted_as_far_as_endpoints_go(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 5).await;
    let tokens = tokens(MAX_BATCH);
    let grants = batch(&scene, &tokens).await;
    let of: Vec<_> = grants.iter().map(token).collect();
    assert_eq!(of, tokens[..5]);
    assert_eq!(distinct(&grants), 5);
    scene.grants_nothing().await;
    scene.check().await;
}

/// A batch that is sent again gets what it has, and what has come free since.
pub async fn a_repeated_batch_keeps_its_leases_and_gets_more(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let tokens = tokens(4);
    let first = batch(&scene, &tokens).await;
    scene.add(numbered(3)).await;
    let second = batch(&scene, &tokens).await;
    assert_eq!(second.len(), 3);
    for (before, after) in first.iter().zip(&second) {
        assert_eq!((&before.endpoint, before.fence), (&after.endpoint, after.fence));
    }
    assert_eq!(distinct(&second), 3);
}

/// A later grant has a larger fence, across endpoints and releases.
pub async fn fences_grow_with_every_grant(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let mut last = scene.status().await.fence;
    for _ in 0..10 {
        let grant = scene.grant().await;
        assert!(grant.fence > last);
        last = grant.fence;
        scene.return_clean(&grant).await;
    }
    assert_eq!(scene.status().await.fence, last);
    for grant in batch(&scene, &tokens(3)).await {
        assert!(grant.fence > last);
        last = grant.fence;
    }
}

/// An empty pool tells when something could be free.
pub async fn an_empty_pool_tells_when_to_ask_again(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    let AcquireReply::Empty { next: Some(next), restricted: false } =
        scene.acquire(Token::random()).await
    else {
        panic!("a time to ask again is expected");
    };
    assert!(!next.is_zero() && next <= TTL + MINUTE, "{next:?}");
    scene.release(&grant, Verdict::cooldown(MINUTE * 3)).await;
    let AcquireReply::Empty { next: Some(next), restricted: false } =
        scene.acquire(Token::random()).await
    else {
        panic!("a time to ask again is expected");
    };
    assert_about(next, MINUTE * 3);
}

/// A pool from which nothing is on its way back says so.
pub async fn a_pool_with_nothing_on_its_way_names_no_time(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 0).await;
    let nothing = AcquireReply::Empty { next: None, restricted: false };
    assert_eq!(scene.acquire(Token::random()).await, nothing);
    scene.add(numbered(1)).await;
    scene.order(Order::Disable(vec![id("e0")])).await;
    assert_eq!(scene.acquire(Token::random()).await, nothing);
}

/// An endpoint that the request excludes is passed over.
pub async fn an_excluded_endpoint_is_passed_over(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let mut request = scene.request(Token::random());
    request.exclude = vec![id("e0"), id("e1"), id("nobody")];
    assert_eq!(granted(scene.ask(request.clone()).await).endpoint, id("e2"));
    request.tokens = tokens(1);
    let reply = scene.ask(request).await;
    assert!(matches!(reply, AcquireReply::Empty { restricted: true, .. }), "{reply:?}");
    assert_eq!(scene.grant().await.endpoint, id("e0"));
}

/// The preferred endpoint comes first when it can be granted, and is no condition.
pub async fn a_preferred_endpoint_comes_first(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let prefer = |name| {
        let mut request = scene.request(Token::random());
        request.prefer = Some(id(name));
        request
    };
    assert_eq!(granted(scene.ask(prefer("e2")).await).endpoint, id("e2"));
    assert_eq!(granted(scene.ask(prefer("e2")).await).endpoint, id("e0"));
    let mut excluded = prefer("e1");
    excluded.exclude = vec![id("e1")];
    let reply = scene.ask(excluded).await;
    assert!(matches!(reply, AcquireReply::Empty { restricted: true, .. }), "{reply:?}");
    assert_eq!(granted(scene.ask(prefer("nobody")).await).endpoint, id("e1"));
    scene.check().await;
}

/// What happens in one pool does not show in another.
pub async fn pools_share_nothing(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    let other = Other { fixture, name: format!("{}-other", fixture.pool()) };
    let second = Scene::with(&other, PoolConfig::default(), numbered(1)).await;
    let mut foreign = second.grant().await;
    assert_eq!(foreign.endpoint, grant.endpoint);
    second.return_clean(&foreign).await;
    foreign.term = grant.term;
    let reply = second.release(&foreign, Verdict::default()).await;
    assert_eq!(reply, ReleaseReply::NotOwner);
    assert_eq!(scene.status().await.leased, 1);
    assert_eq!(second.status().await.ready, 1);
}

/// The same fixture with another pool.
struct Other<'a> {
    fixture: &'a dyn Fixture,
    name: String,
}

#[async_trait]
impl Fixture for Other<'_> {
    fn store(&self) -> &dyn LeaseStore {
        self.fixture.store()
    }

    async fn advance(&self, by: Duration) {
        self.fixture.advance(by).await;
    }

    fn pool(&self) -> PoolName {
        PoolName::new(&self.name).unwrap()
    }
}

fn tokens(number: usize) -> Vec<Token> {
    (0..number).map(|_| Token::random()).collect()
}

async fn batch(scene: &Scene<'_>, tokens: &[Token]) -> Vec<Grant> {
    let mut request = scene.request(tokens[0]);
    request.tokens = tokens.to_vec();
    match scene.ask(request).await {
        AcquireReply::Granted(grants) => grants,
        other => panic!("grants expected, not {other:?}"),
    }
}

fn distinct(grants: &[Grant]) -> usize {
    let mut ids: Vec<&EndpointId> = grants.iter().map(|grant| &grant.endpoint).collect();
    ids.sort();
    ids.dedup();
    ids.len()
}
