//! Pools that count grants and reserve nothing.

use super::Fixture;
use super::scene::*;
use crate::id::Fence;
use crate::secret::Token;
use crate::store::{
    AcquireReply, CancelReply, Claim, Grant, MAX_BATCH, Mode, Order, Policy, PoolConfig, Release,
    ReleaseReply, State,
};
use crate::verdict::{QuarantineCode, Strike, Verdict};

/// One endpoint serves any number of holders at once, each grant counted.
pub async fn a_shared_endpoint_has_many_holders(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let grants = [scene.grant().await, scene.grant().await, scene.grant().await];
    assert!(grants.iter().all(|grant| grant.term.is_none()));
    assert!(grants[0].fence < grants[1].fence && grants[1].fence < grants[2].fence);
    assert_eq!(scene.list().await[0].assignments, 3);
    assert_eq!(scene.status().await.ready, 1);
    for grant in &grants {
        scene.return_clean(grant).await;
    }
    scene.check().await;
}

/// A shared pool goes by assignments, whatever policy it was given.
pub async fn a_shared_pool_grants_the_least_assigned(fixture: &dyn Fixture) {
    let config = PoolConfig { mode: Mode::Shared, policy: Policy::Random, ..PoolConfig::default() };
    let scene = Scene::with(fixture, config, weighted(&[2, 1])).await;
    let mut granted = Vec::new();
    for _ in 0..6 {
        granted.push(scene.grant().await.endpoint.to_string());
    }
    assert_eq!(granted, ["e0", "e1", "e0", "e0", "e1", "e0"]);
}

/// A batch is counted one by one, and granted in full.
pub async fn a_shared_batch_is_granted_in_full(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 2).await;
    let mut request = scene.request(Token::random());
    request.tokens = (0..MAX_BATCH).map(|_| Token::random()).collect();
    let AcquireReply::Granted(grants) = scene.ask(request).await else {
        panic!("grants expected");
    };
    assert_eq!(grants.len(), MAX_BATCH);
    let counts: Vec<_> = scene.list().await.iter().map(|member| member.assignments).collect();
    assert_eq!(counts, [8, 8]);
}

/// A verdict keeps a shared endpoint from everybody, and a late success does not bring it back.
pub async fn a_shared_cooldown_is_not_undone_by_a_success(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let grants = [scene.grant().await, scene.grant().await, scene.grant().await];
    scene.release(&grants[0], Verdict::cooldown(MINUTE * 2)).await;
    scene.grants_nothing().await;
    scene.release(&grants[1], Verdict::default()).await;
    scene.release(&grants[2], Verdict::cooldown(MINUTE)).await;
    scene.advance(MINUTE).await;
    scene.grants_nothing().await;
    scene.check().await;
    scene.pass(MINUTE).await;
    scene.grant().await;
}

/// A longer cooldown extends a shorter one.
pub async fn a_longer_shared_cooldown_counts(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let grants = [scene.grant().await, scene.grant().await];
    scene.release(&grants[0], Verdict::cooldown(MINUTE)).await;
    scene.release(&grants[1], Verdict::cooldown(MINUTE * 3)).await;
    scene.pass(MINUTE * 2).await;
    scene.grants_nothing().await;
    scene.pass(MINUTE).await;
    scene.grant().await;
}

/// A success does not clear a strike that was added after its grant; a later one does.
pub async fn a_late_success_does_not_clear_a_newer_strike(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let (slow, failed) = (scene.grant().await, scene.grant().await);
    scene.release(&failed, Verdict::default().with_strike(Strike::Add)).await;
    scene.release(&slow, Verdict::default().with_strike(Strike::Reset)).await;
    let later = scene.grant().await;
    assert_eq!(later.strikes, 1);
    scene.release(&later, Verdict::default().with_strike(Strike::Reset)).await;
    assert_eq!(scene.list().await[0].strikes, 0);
}

/// Holders at once that fail at once are one failure; one that was granted later is another.
pub async fn failures_at_once_are_one_strike(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let strike = || Verdict::default().with_strike(Strike::Add);
    let at_once = [scene.grant().await, scene.grant().await, scene.grant().await];
    for grant in &at_once {
        scene.release(grant, strike()).await;
    }
    assert_eq!(scene.list().await[0].strikes, 1);
    scene.release(&scene.grant().await, strike()).await;
    assert_eq!(scene.list().await[0].strikes, 2);
}

/// A shared endpoint goes to quarantine and stays there under later verdicts.
pub async fn a_shared_quarantine_outlasts_later_verdicts(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 2).await;
    let grants = [scene.grant().await, scene.grant().await, scene.grant().await];
    assert_eq!(grants[0].endpoint, grants[2].endpoint);
    scene.release(&grants[0], Verdict::quarantine(QuarantineCode::Credentials)).await;
    scene.release(&grants[2], Verdict::cooldown(MINUTE)).await;
    scene.pass(MINUTE * 2).await;
    let state = scene.member(&grants[0].endpoint).await.unwrap().state;
    assert_eq!(state, State::Quarantined(QuarantineCode::Credentials));
    assert_eq!(scene.grant().await.endpoint, grants[1].endpoint);
    scene.check().await;
}

/// Evidence from before an endpoint was enabled does not put it into quarantine again; from after it
/// does.
pub async fn a_shared_endpoint_that_was_enabled_is_judged_anew(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let old = [scene.grant().await, scene.grant().await];
    let verdict = || Verdict::quarantine(QuarantineCode::Credentials);
    scene.release(&old[0], verdict()).await;
    scene.grants_nothing().await;
    scene.order(Order::Enable(vec![old[0].endpoint.clone()])).await;
    scene.release(&old[1], verdict()).await;
    let new = scene.grant().await;
    scene.release(&new, verdict()).await;
    scene.grants_nothing().await;
    scene.check().await;
}

/// An order takes a shared endpoint out at once, and no verdict brings it back.
pub async fn a_shared_endpoint_obeys_orders_at_once(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let grants = [scene.grant().await, scene.grant().await];
    scene.order(Order::Drain(vec![id("e0")])).await;
    scene.grants_nothing().await;
    scene.release(&grants[0], Verdict::default().with_strike(Strike::Reset)).await;
    scene.release(&grants[1], Verdict::cooldown(MINUTE)).await;
    scene.pass(MINUTE).await;
    scene.grants_nothing().await;
    assert_eq!(scene.list().await[0].state, State::Disabled);
    scene.check().await;
    scene.order(Order::Remove(vec![id("e0")])).await;
    assert_eq!(scene.list().await, []);
}

/// A shun keeps a shared endpoint from its site only.
pub async fn a_shared_endpoint_is_shunned_for_a_site(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 2).await;
    let grant = scene.grant().await;
    let verdict = Verdict::default().with_shun(MINUTE);
    scene.release_for(&grant, verdict, Some(&site("a.example"))).await;
    for _ in 0..4 {
        let mut request = scene.request(Token::random());
        request.site = Some(site("a.example"));
        assert_eq!(granted(scene.ask(request).await).endpoint, id("e1"));
    }
    assert_eq!(scene.grant().await.endpoint, id("e0"));
}

/// What was never granted is not given back: another fence, a token, an unknown endpoint.
pub async fn a_shared_release_needs_a_grant(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let Grant { endpoint, fence, .. } = scene.grant().await;
    let verdict = Verdict::quarantine(QuarantineCode::Credentials);
    for claim in [
        Claim::Assignment { endpoint: endpoint.clone(), fence: Fence(fence.0 + 1) },
        Claim::Assignment { endpoint: id("nobody"), fence },
        Claim::Lease(Token::random()),
    ] {
        let release = Release { claim, verdict: verdict.clone(), site: None };
        assert_eq!(scene.release_all(vec![release]).await, [ReleaseReply::NotOwner]);
    }
    assert_eq!(scene.status().await.ready, 1);
}

/// A cancel in a shared pool has nothing to end, and bars the token.
pub async fn a_shared_cancel_bars_the_token(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let token = Token::random();
    assert_eq!(scene.cancel(token, MINUTE).await, CancelReply::Tombstoned);
    assert_eq!(scene.acquire(token).await, AcquireReply::Cancelled);
    assert_eq!(scene.list().await[0].assignments, 0);
}

/// A pool without an eligible endpoint says so; nothing is granted in its stead.
pub async fn an_empty_shared_pool_is_an_answer(fixture: &dyn Fixture) {
    let scene = Scene::shared(fixture, 1).await;
    let grant = scene.grant().await;
    scene.release(&grant, Verdict::cooldown(MINUTE)).await;
    let reply = scene.acquire(Token::random()).await;
    let AcquireReply::Empty { next: Some(next), restricted: false } = reply else {
        panic!("a time to ask again is expected, not {reply:?}");
    };
    assert_about(next, MINUTE);
}
