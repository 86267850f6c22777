//! Leases that nobody gives back.

use std::time::Duration;

use super::Fixture;
use super::scene::*;
use crate::secret::Token;
use crate::store::{AcquireReply, MAX_BATCH, MAX_SWEEP, Order, PoolConfig, State};

/// An endpoint whose holder is silent comes back after its deadline and the cooldown.
pub async fn a_silent_holder_is_waited_for(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let mut request = scene.request(Token::random());
    request.expiry_cooldown = MINUTE * 2;
    let grant = granted(scene.ask(request).await);
    scene.pass(TTL).await;
    scene.grants_nothing().await;
    let State::Cooling(left) = scene.member(&grant.endpoint).await.unwrap().state else {
        panic!("the endpoint does not cool");
    };
    assert_about(left, MINUTE * 2);
    scene.advance(MINUTE).await;
    scene.grants_nothing().await;
    scene.check().await;
    scene.pass(MINUTE).await;
    assert_eq!(scene.grant().await.endpoint, grant.endpoint);
}

/// The cooldown counts from the deadline, not from the moment somebody looks.
pub async fn a_late_look_does_not_lengthen_the_cooldown(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.pass(TTL + MINUTE * 10).await;
    assert_eq!(scene.grant().await.endpoint, grant.endpoint);
}

/// A lease that may be reused without a cooldown is ready at its deadline.
pub async fn an_expiry_without_cooldown_is_ready_at_once(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let mut request = scene.request(Token::random());
    request.expiry_cooldown = Duration::ZERO;
    scene.ask(request).await;
    scene.pass(TTL).await;
    scene.grant().await;
    scene.check().await;
}

/// An order on a leased endpoint comes into force when the lease runs out, too.
pub async fn an_expiry_does_not_undo_an_order(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    scene.grant().await;
    scene.grant().await;
    scene.order(Order::Drain(vec![id("e0")])).await;
    scene.order(Order::Remove(vec![id("e1")])).await;
    scene.pass(TTL + MINUTE).await;
    scene.grants_nothing().await;
    let members = scene.list().await;
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].state, State::Disabled);
    scene.check().await;
}

/// Reaping says what it did and whether more is left.
pub async fn a_reap_reports_what_it_did(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let idle = scene.reap().await;
    assert_eq!((idle.reclaimed, idle.promoted, idle.more), (0, 0, false));
    scene.grant().await;
    scene.grant().await;
    scene.pass(TTL).await;
    let reply = scene.reap().await;
    assert_eq!((reply.reclaimed, reply.more), (2, false));
    scene.pass(MINUTE).await;
    let reply = scene.reap().await;
    assert_eq!((reply.reclaimed, reply.promoted, reply.more), (0, 2, false));
    assert_eq!(scene.status().await.ready, 3);
}

/// However many leases run out at once, one call takes back a bounded number.
pub async fn many_expiries_are_taken_back_in_bounded_steps(fixture: &dyn Fixture) {
    let members = 20_000;
    let scene = Scene::new(fixture, members).await;
    lease_all(&scene, members).await;
    scene.pass(TTL).await;
    assert_eq!(scene.status().await.expired, members);
    let mut left = members;
    while left > 0 {
        let reply = scene.reap().await;
        assert!((1..=MAX_SWEEP).contains(&reply.reclaimed) && reply.promoted <= MAX_SWEEP);
        left -= reply.reclaimed;
        assert_eq!(reply.more, left > 0);
    }
    scene.check().await;
    scene.pass(MINUTE).await;
    let mut promoted = 0;
    while promoted < members {
        let reply = scene.reap().await;
        assert!((1..=MAX_SWEEP).contains(&reply.promoted));
        promoted += reply.promoted;
        assert_eq!(reply.more, promoted < members);
    }
    scene.check().await;
}

/// An acquire does a bounded part of the clean-up, and is granted something all the same.
pub async fn an_acquire_takes_back_a_bounded_number(fixture: &dyn Fixture) {
    let members = MAX_SWEEP * 4;
    let scene = Scene::new(fixture, members).await;
    lease_all(&scene, members).await;
    scene.pass(TTL + MINUTE).await;
    scene.grant().await;
    let status = scene.status().await;
    assert!((1..=MAX_SWEEP).contains(&(members - status.expired)), "{status:?}");
    assert_eq!(status.leased, 1);
    scene.check().await;
}

/// A token with a lease that has run out, and that the sweep has not come to, gets a new one.
pub async fn an_expired_lease_is_never_granted_again(fixture: &dyn Fixture) {
    let members = MAX_SWEEP * 2;
    let config = PoolConfig { largest_lifetime: MINUTE * 60, ..PoolConfig::default() };
    let scene = Scene::with(fixture, config, numbered(members)).await;
    let last = lease_all(&scene, members).await;
    scene.pass(TTL).await;
    let reply = scene.acquire(last).await;
    assert!(matches!(reply, AcquireReply::Empty { .. }), "{reply:?}");
    scene.check().await;
}

/// Leases all members; gives the last token.
async fn lease_all(scene: &Scene<'_>, members: usize) -> Token {
    let mut granted = 0;
    let mut last = Token::random();
    while granted < members {
        let mut request = scene.request(last);
        request.tokens = (0..MAX_BATCH).map(|_| Token::random()).collect();
        let AcquireReply::Granted(grants) = scene.ask(request).await else {
            panic!("grants expected");
        };
        granted += grants.len();
        last = token(&grants[grants.len() - 1]);
    }
    last
}
