//! Giving back.

use super::Fixture;
use super::scene::*;
use crate::id::Fence;
use crate::secret::Token;
use crate::store::{Claim, Order, Release, ReleaseReply, StandingOrder, State};
use crate::verdict::{QuarantineCode, Strike, Verdict};

/// A clean release makes the endpoint ready at once.
pub async fn a_clean_release_is_granted_again_at_once(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let first = scene.grant().await;
    scene.return_clean(&first).await;
    assert_eq!(scene.status().await.ready, 1);
    let second = scene.grant().await;
    assert_eq!(first.endpoint, second.endpoint);
    assert_eq!(scene.member(&second.endpoint).await.unwrap().assignments, 2);
    scene.check().await;
}

/// A verdict's cooldown keeps the endpoint back for as long, and no longer.
pub async fn a_cooldown_keeps_the_endpoint_back(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.release(&grant, Verdict::cooldown(MINUTE * 2)).await;
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

/// Another token releases nothing.
pub async fn a_release_needs_the_right_token(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    scene.grant().await;
    let releases = vec![Release {
        claim: Claim::Lease(Token::random()),
        verdict: Verdict::quarantine(QuarantineCode::Credentials),
        site: None,
    }];
    assert_eq!(scene.release_all(releases).await, [ReleaseReply::NotOwner]);
    assert_eq!(scene.status().await.leased, 1);
}

/// A lease ends once: the second release finds nothing.
pub async fn a_lease_is_released_once(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.return_clean(&grant).await;
    let again = scene.release(&grant, Verdict::cooldown(MINUTE)).await;
    assert_eq!(again, ReleaseReply::NotOwner);
    assert_eq!(scene.status().await.ready, 1);
}

/// A release after the deadline changes nothing, whether or not the lease was taken back.
pub async fn a_release_after_the_deadline_changes_nothing(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.pass(TTL).await;
    let verdict = || Verdict::quarantine(QuarantineCode::Credentials).with_strike(Strike::Add);
    assert_eq!(scene.release(&grant, verdict()).await, ReleaseReply::NotOwner);
    assert_eq!(scene.status().await.expired, 1);
    scene.reap().await;
    assert_eq!(scene.release(&grant, verdict()).await, ReleaseReply::NotOwner);
    let member = scene.member(&grant.endpoint).await.unwrap();
    assert!(matches!(member.state, State::Cooling(_)), "{member:?}");
    assert_eq!(member.strikes, 0);
}

/// A late release leaves the next holder's lease alone.
pub async fn a_late_release_leaves_the_next_holder_alone(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let late = scene.grant().await;
    scene.pass(TTL + MINUTE).await;
    let next = scene.grant().await;
    assert_eq!(late.endpoint, next.endpoint);
    let verdict = Verdict::quarantine(QuarantineCode::Credentials);
    assert_eq!(scene.release(&late, verdict).await, ReleaseReply::NotOwner);
    scene.return_clean(&next).await;
    assert_eq!(scene.status().await.ready, 1);
}

/// A batch of releases has one reply for each, in order.
pub async fn a_batch_of_releases_is_answered_in_order(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let (first, second) = (scene.grant().await, scene.grant().await);
    let release = |claim| Release { claim, verdict: Verdict::default(), site: None };
    let claims = [second.claim(), Claim::Lease(Token::random()), first.claim(), second.claim()];
    let replies = scene.release_all(claims.map(release).to_vec()).await;
    use ReleaseReply::{NotOwner, Released};
    assert_eq!(replies, [Released, NotOwner, Released, NotOwner]);
    assert_eq!(scene.grant().await.endpoint, second.endpoint);
    scene.check().await;
}

/// An exclusive lease is not released by endpoint and fence.
pub async fn a_lease_is_not_released_by_its_fence(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    for fence in [grant.fence, Fence(0)] {
        let claim = Claim::Assignment { endpoint: grant.endpoint.clone(), fence };
        let release = Release { claim, verdict: Verdict::default(), site: None };
        assert_eq!(scene.release_all(vec![release]).await, [ReleaseReply::NotOwner]);
    }
    assert_eq!(scene.status().await.leased, 1);
}

/// A quarantine verdict parks the endpoint for good, whatever its cooldown says.
pub async fn a_quarantine_verdict_parks_the_endpoint(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    let mut verdict = Verdict::quarantine(QuarantineCode::Credentials);
    verdict.cooldown = MINUTE;
    scene.release(&grant, verdict).await;
    scene.pass(MINUTE * 100).await;
    scene.reap().await;
    scene.grants_nothing().await;
    let state = scene.member(&grant.endpoint).await.unwrap().state;
    assert_eq!(state, State::Quarantined(QuarantineCode::Credentials));
    assert_eq!(scene.status().await.quarantined, 1);
    scene.check().await;
}

/// Strikes are added, kept and reset as the verdict says, and the next grant tells them.
pub async fn strikes_follow_the_verdicts(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    for (strike, told) in [
        (Strike::Add, 0),
        (Strike::Add, 1),
        (Strike::Keep, 2),
        (Strike::Reset, 2),
        (Strike::Reset, 0),
        (Strike::Add, 0),
    ] {
        let grant = scene.grant().await;
        assert_eq!(grant.strikes, told, "before {strike:?}");
        scene.release(&grant, Verdict::default().with_strike(strike)).await;
    }
    assert_eq!(scene.list().await[0].strikes, 1);
}

/// An order on a leased endpoint comes into force when its lease ends, whatever the verdict.
pub async fn an_order_outdoes_a_verdict(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let grants = [scene.grant().await, scene.grant().await, scene.grant().await];
    scene.order(Order::Disable(vec![id("e0")])).await;
    scene.order(Order::Drain(vec![id("e1")])).await;
    scene.order(Order::Quarantine(vec![id("e2")], QuarantineCode::Administrator)).await;
    assert_eq!(scene.status().await.leased, 3);
    for (grant, verdict) in grants.iter().zip([
        Verdict::default().with_strike(Strike::Reset),
        Verdict::cooldown(MINUTE),
        Verdict::cooldown(MINUTE),
    ]) {
        assert_eq!(scene.release(grant, verdict).await, ReleaseReply::Released);
    }
    let members = scene.list().await;
    let seen: Vec<_> = members.iter().map(|member| (member.state, member.order)).collect();
    assert_eq!(
        seen,
        [
            (State::Disabled, Some(StandingOrder::Disable)),
            (State::Disabled, Some(StandingOrder::Drain)),
            (State::Quarantined(QuarantineCode::Administrator), None),
        ]
    );
    scene.pass(MINUTE).await;
    scene.grants_nothing().await;
    scene.check().await;
}
