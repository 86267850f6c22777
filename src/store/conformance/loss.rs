//! Pools that are erased, and pools in the place of lost ones.

use super::Fixture;
use super::scene::*;
use crate::error::Kind;
use crate::secret::Token;
use crate::store::{
    AcquireReply, AcquireRequest, Mode, Order, PoolConfig, ReleaseReply, RenewReply, Setup,
};
use crate::verdict::{QuarantineCode, Strike, Verdict};

/// After a loss nothing is granted until the leases of before have run out, whether or not the pool
/// holds after a failover.
pub async fn a_pool_after_a_loss_waits_for_the_leases_of_before(fixture: &dyn Fixture) {
    for (nth, config) in kinds().filter(|config| config.mode == Mode::Exclusive).enumerate() {
        let config = PoolConfig { largest_ttl: MINUTE * 5, failover_hold: nth != 0, ..config };
        let scene = Scene::with(fixture, Setup::new(config).after_loss(), numbered(2)).await;
        assert_about(held(&scene).await, MINUTE * 5);
        assert_about(scene.status().await.hold.unwrap(), MINUTE * 5);
        scene.advance(MINUTE * 4).await;
        assert_about(held(&scene).await, MINUTE);
        scene.check().await;
        scene.pass(MINUTE).await;
        assert_eq!(scene.status().await.hold, None);
        scene.grant().await;
        scene.check().await;
        scene.destroy().await;
    }
}

/// The hold goes on while the pool is loaded.
pub async fn a_lost_pool_is_loaded_while_it_holds(fixture: &dyn Fixture) {
    let setup = Setup::new(PoolConfig::default()).loading().after_loss();
    let scene = Scene::bare(fixture, setup).await;
    scene.order(Order::Load(numbered(2))).await;
    assert_eq!(scene.acquire(Token::random()).await, AcquireReply::Loading);
    scene.advance(MINUTE * 4).await;
    scene.order(Order::Open).await;
    assert_about(held(&scene).await, PoolConfig::default().largest_ttl - MINUTE * 4);
}

/// An administrator who knows that no lease of before is in use ends the hold.
pub async fn an_administrator_ends_a_hold_after_a_loss(fixture: &dyn Fixture) {
    for failover_hold in [true, false] {
        let config = PoolConfig { failover_hold, ..PoolConfig::default() };
        let scene = Scene::with(fixture, Setup::new(config).after_loss(), numbered(1)).await;
        held(&scene).await;
        assert_eq!(scene.order(Order::EndHold).await, 1);
        assert_eq!(scene.order(Order::EndHold).await, 0);
        scene.grant().await;
        scene.destroy().await;
    }
}

/// Fences after a loss are above all of before, over several losses, and grow on.
pub async fn fences_after_a_loss_are_above_those_of_before(fixture: &dyn Fixture) {
    for config in kinds() {
        let mut last = None;
        for after_loss in [false, true, true] {
            let setup = Setup { after_loss, ..Setup::new(config.clone()) };
            let scene = Scene::with(fixture, setup, numbered(3)).await;
            scene.order(Order::EndHold).await;
            for _ in 0..3 {
                let fence = scene.grant().await.fence;
                assert!(Some(fence) > last, "{fence} after {last:?}");
                last = Some(fence);
            }
            assert_eq!(Some(scene.status().await.fence), last);
            assert!(last.is_some_and(|fence| fence.0 < 1 << 53), "whole in any script");
            scene.destroy().await;
        }
    }
}

/// Strikes are counted and cleared by fences of that size as by small ones.
pub async fn strikes_are_counted_after_a_loss(fixture: &dyn Fixture) {
    let strike = || Verdict::default().with_strike(Strike::Add);
    let reset = || Verdict::default().with_strike(Strike::Reset);
    for mode in [Mode::Exclusive, Mode::Shared] {
        let config = PoolConfig { mode, ..PoolConfig::default() };
        let scene = Scene::with(fixture, Setup::new(config).after_loss(), numbered(1)).await;
        scene.order(Order::EndHold).await;
        for strikes in 1..4 {
            scene.release(&scene.grant().await, strike()).await;
            assert_eq!(scene.list().await[0].strikes, strikes);
        }
        if mode == Mode::Shared {
            let (slow, failed) = (scene.grant().await, scene.grant().await);
            scene.release(&failed, strike()).await;
            scene.release(&slow, reset()).await;
            scene.release(&slow, strike()).await;
            assert_eq!(scene.list().await[0].strikes, 4);
        }
        scene.release(&scene.grant().await, reset()).await;
        assert_eq!(scene.list().await[0].strikes, 0);
        scene.destroy().await;
    }
}

/// What was granted before a loss is no longer given back, and harms nobody.
pub async fn a_grant_of_before_a_loss_harms_nobody(fixture: &dyn Fixture) {
    for config in kinds() {
        let scene = Scene::with(fixture, config.clone(), numbered(1)).await;
        let before = scene.grant().await;
        scene.destroy().await;
        let scene = Scene::with(fixture, Setup::new(config).after_loss(), numbered(1)).await;
        scene.order(Order::EndHold).await;
        let after = scene.grant().await;
        let verdict = Verdict::quarantine(QuarantineCode::Credentials);
        assert_eq!(scene.release(&before, verdict).await, ReleaseReply::NotOwner);
        if before.term.is_some() {
            assert_eq!(scene.renew(&before, TTL).await, RenewReply::NotOwner);
        }
        assert_eq!(scene.status().await.quarantined, 0);
        scene.return_clean(&after).await;
        scene.check().await;
        scene.destroy().await;
    }
}

/// A shared pool reserves nothing, so that there is nothing to wait for.
pub async fn a_shared_pool_after_a_loss_grants_at_once(fixture: &dyn Fixture) {
    let config = PoolConfig { mode: Mode::Shared, ..PoolConfig::default() };
    let scene = Scene::with(fixture, Setup::new(config).after_loss(), numbered(1)).await;
    assert_eq!(scene.status().await.hold, None);
    scene.grant().await;
}

/// A pool that was erased is one that was never set up, and can be set up anew.
pub async fn a_destroyed_pool_is_gone(fixture: &dyn Fixture) {
    for config in kinds() {
        let scene = Scene::with(fixture, config.clone(), weighted(&[1, 2, 1])).await;
        let held = scene.grant().await;
        scene.order(Order::Disable(vec![id("e2")])).await;
        scene.destroy().await;
        let status = scene.store().status(&scene.pool()).await;
        assert_eq!(status.unwrap_err().kind(), Kind::PoolUninitialised);
        let request = AcquireRequest::new(scene.pool(), Token::random(), TTL);
        let reply = scene.store().acquire(request).await;
        assert_eq!(reply.unwrap_err().kind(), Kind::PoolUninitialised);
        let again = scene.try_order(Order::DestroyPool).await;
        assert_eq!(again.unwrap_err().kind(), Kind::PoolUninitialised);

        let scene = Scene::with(fixture, config, Vec::new()).await;
        let status = scene.status().await;
        assert_eq!((status.members(), status.paused, status.fence.0), (0, false, 0));
        scene.add(numbered(3)).await;
        assert!(scene.list().await.iter().all(|member| member.assignments == 0));
        assert_eq!(scene.status().await.ready, 3);
        assert_eq!(scene.release(&held, Verdict::default()).await, ReleaseReply::NotOwner);
        scene.check().await;
        scene.destroy().await;
    }
}

/// A pool that workers may be using is not erased.
pub async fn a_pool_in_use_is_not_destroyed(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    scene.refuses(Order::DestroyPool, "in use").await;
    scene.grant().await;
    scene.order(Order::Pause).await;
    assert_eq!(scene.order(Order::DestroyPool).await, 1);
    let loading = Setup::new(PoolConfig::default()).loading();
    let scene = Scene::bare(fixture, loading).await;
    assert_eq!(scene.order(Order::DestroyPool).await, 1);
}

/// Time left of the hold that a fresh token meets.
async fn held(scene: &Scene<'_>) -> std::time::Duration {
    match scene.acquire(Token::random()).await {
        AcquireReply::Hold(left) => left,
        other => panic!("a hold expected, not {other:?}"),
    }
}
