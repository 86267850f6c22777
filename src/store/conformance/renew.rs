//! Keeping a lease.

use super::Fixture;
use super::scene::*;
use crate::store::{Order, PoolConfig, RenewReply, State};
use crate::verdict::Verdict;

fn renewed(reply: RenewReply) -> std::time::Duration {
    match reply {
        RenewReply::Renewed(remaining) => remaining,
        other => panic!("a renewal expected, not {other:?}"),
    }
}

/// A renewal moves the deadline, and the lease lives until then.
pub async fn a_renewal_moves_the_deadline(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.advance(TTL / 2).await;
    assert_about(renewed(scene.renew(&grant, TTL).await), TTL);
    scene.advance(TTL * 3 / 4).await;
    scene.grants_nothing().await;
    assert_eq!(scene.status().await.leased, 1);
    scene.return_clean(&grant).await;
    scene.check().await;
}

/// A renewal for less time than is left changes nothing.
pub async fn a_renewal_never_moves_a_deadline_closer(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    assert_about(renewed(scene.renew(&grant, TTL / 6).await), TTL);
    scene.advance(TTL / 2).await;
    assert_eq!(scene.status().await.leased, 1);
}

/// No renewal goes beyond the largest lifetime.
pub async fn a_renewal_ends_at_the_largest_lifetime(fixture: &dyn Fixture) {
    let config = PoolConfig {
        largest_ttl: MINUTE * 2,
        largest_lifetime: MINUTE * 3,
        ..PoolConfig::default()
    };
    let scene = Scene::with(fixture, config, numbered(1)).await;
    let grant = scene.grant().await;
    scene.advance(MINUTE / 2).await;
    assert_about(renewed(scene.renew(&grant, MINUTE * 2).await), MINUTE * 2);
    scene.advance(MINUTE).await;
    assert_about(renewed(scene.renew(&grant, MINUTE * 2).await), MINUTE * 3 / 2);
    scene.advance(MINUTE).await;
    assert_about(renewed(scene.renew(&grant, MINUTE * 2).await), MINUTE / 2);
    scene.pass(MINUTE / 2).await;
    assert_eq!(scene.renew(&grant, MINUTE).await, RenewReply::NotOwner);
}

/// A lease that has run out is not renewed, whether or not it was taken back.
pub async fn a_renewal_after_the_deadline_is_refused(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.pass(TTL).await;
    assert_eq!(scene.renew(&grant, TTL).await, RenewReply::NotOwner);
    scene.reap().await;
    assert_eq!(scene.renew(&grant, TTL).await, RenewReply::NotOwner);
    assert!(matches!(scene.list().await[0].state, State::Cooling(_)));
}

/// A late renewal leaves the next holder's deadline alone.
pub async fn a_late_renewal_leaves_the_next_holder_alone(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let late = scene.grant().await;
    scene.pass(TTL + MINUTE).await;
    let next = scene.grant().await;
    assert_eq!(scene.renew(&late, TTL * 2).await, RenewReply::NotOwner);
    let State::Leased(left) = scene.member(&next.endpoint).await.unwrap().state else {
        panic!("the next holder has lost its lease");
    };
    assert_about(left, TTL);
}

/// A renewal does not bring back what was released or cancelled.
pub async fn a_renewal_never_outlives_the_end(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let (released, cancelled) = (scene.grant().await, scene.grant().await);
    scene.release(&released, Verdict::default()).await;
    scene.cancel(token(&cancelled), MINUTE).await;
    assert_eq!(scene.renew(&released, TTL).await, RenewReply::NotOwner);
    assert_eq!(scene.renew(&cancelled, TTL).await, RenewReply::NotOwner);
    assert_eq!(scene.status().await.ready, 2);
}

/// Orders and pauses let a holder finish.
pub async fn a_renewal_is_allowed_under_orders_and_pause(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 4).await;
    let mut grants = Vec::new();
    for _ in 0..4 {
        grants.push(scene.grant().await);
    }
    scene.order(Order::Disable(vec![id("e0")])).await;
    scene.order(Order::Drain(vec![id("e1")])).await;
    scene.order(Order::Remove(vec![id("e2")])).await;
    scene.order(Order::Pause).await;
    scene.advance(TTL / 2).await;
    for grant in &grants {
        assert_about(renewed(scene.renew(grant, TTL).await), TTL);
    }
    scene.check().await;
}
