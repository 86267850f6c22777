//! Giving up.

use super::Fixture;
use super::scene::*;
use crate::secret::Token;
use crate::store::{AcquireReply, CancelReply, Order, ReleaseReply, State};
use crate::verdict::Verdict;

/// A cancel ends the lease without a cooldown.
pub async fn a_cancel_frees_the_endpoint_at_once(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    assert_eq!(scene.cancel(token(&grant), MINUTE).await, CancelReply::Released);
    assert_eq!(scene.release(&grant, Verdict::default()).await, ReleaseReply::NotOwner);
    assert_eq!(scene.grant().await.endpoint, grant.endpoint);
    scene.check().await;
}

/// A token that was given up is not granted by an acquire that arrives later.
pub async fn a_tombstone_beats_a_late_acquire(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let token = Token::random();
    assert_eq!(scene.cancel(token, MINUTE).await, CancelReply::Tombstoned);
    assert_eq!(scene.acquire(token).await, AcquireReply::Cancelled);
    assert_eq!(scene.cancel(token, MINUTE).await, CancelReply::Tombstoned);
    assert_eq!(scene.status().await.ready, 1);
}

/// A cancel that ended a lease bars its token too: the acquire may have been sent twice.
pub async fn a_cancelled_lease_is_not_granted_again(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.cancel(token(&grant), MINUTE).await;
    assert_eq!(scene.acquire(token(&grant)).await, AcquireReply::Cancelled);
}

/// A cancelled token in a batch is left out; the others are granted.
pub async fn a_batch_skips_cancelled_tokens(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let tokens = [Token::random(), Token::random(), Token::random()];
    scene.cancel(tokens[1], MINUTE).await;
    let mut request = scene.request(tokens[0]);
    request.tokens = tokens.to_vec();
    let AcquireReply::Granted(grants) = scene.ask(request).await else {
        panic!("grants expected");
    };
    let of: Vec<_> = grants.iter().map(token).collect();
    assert_eq!(of, [tokens[0], tokens[2]]);
    assert_eq!(scene.status().await.ready, 1);
}

/// A tombstone stands as long as it was asked to, and no longer.
pub async fn a_tombstone_lapses(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let token = Token::random();
    scene.cancel(token, MINUTE * 2).await;
    scene.cancel(token, MINUTE / 2).await;
    scene.advance(MINUTE).await;
    assert_eq!(scene.acquire(token).await, AcquireReply::Cancelled);
    scene.pass(MINUTE).await;
    granted(scene.acquire(token).await);
}

/// More tombstones than one call sweeps lapse all the same.
pub async fn many_tombstones_lapse(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 200).await;
    let tokens: Vec<_> = (0..200).map(|_| Token::random()).collect();
    for token in &tokens {
        scene.cancel(*token, MINUTE * 2).await;
    }
    scene.pass(MINUTE * 2).await;
    scene.reap().await;
    for token in tokens {
        granted(scene.acquire(token).await);
    }
}

/// A cancel that arrives after the deadline leaves the next holder alone.
pub async fn a_late_cancel_leaves_the_next_holder_alone(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let late = scene.grant().await;
    scene.pass(TTL).await;
    assert_eq!(scene.cancel(token(&late), MINUTE).await, CancelReply::Tombstoned);
    scene.grants_nothing().await;
    scene.pass(MINUTE).await;
    let next = scene.grant().await;
    assert_eq!(scene.cancel(token(&late), MINUTE).await, CancelReply::Tombstoned);
    scene.return_clean(&next).await;
}

/// A cancel honours a standing order.
pub async fn a_cancel_does_not_undo_an_order(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.order(Order::Disable(vec![grant.endpoint.clone()])).await;
    assert_eq!(scene.cancel(token(&grant), MINUTE).await, CancelReply::Released);
    assert_eq!(scene.member(&grant.endpoint).await.unwrap().state, State::Disabled);
    scene.check().await;
}
