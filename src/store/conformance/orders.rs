//! An administrator's orders.

use super::Fixture;
use super::scene::*;
use crate::secret::Token;
use crate::store::{AcquireReply, Order, ReleaseReply, StandingOrder, State};
use crate::verdict::{QuarantineCode, Verdict};

/// A disabled endpoint is not granted until it is enabled.
pub async fn a_disabled_endpoint_waits_for_enable(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    assert_eq!(scene.order(Order::Disable(vec![id("e0")])).await, 1);
    scene.pass(MINUTE * 100).await;
    scene.reap().await;
    scene.grants_nothing().await;
    let member = &scene.list().await[0];
    assert_eq!((member.state, member.order), (State::Disabled, Some(StandingOrder::Disable)));
    scene.check().await;
    assert_eq!(scene.order(Order::Enable(vec![id("e0")])).await, 1);
    assert_eq!(scene.list().await[0].order, None);
    scene.grant().await;
    scene.check().await;
}

/// A cooling endpoint is disabled at once, too.
pub async fn a_cooling_endpoint_is_disabled_at_once(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.release(&grant, Verdict::cooldown(MINUTE)).await;
    scene.order(Order::Disable(vec![id("e0")])).await;
    assert_eq!(scene.list().await[0].state, State::Disabled);
    scene.pass(MINUTE).await;
    scene.reap().await;
    scene.grants_nothing().await;
    scene.check().await;
}

/// An order that is taken back before the lease ends leaves no trace.
pub async fn an_order_can_be_taken_back_while_leased(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let grants = [scene.grant().await, scene.grant().await, scene.grant().await];
    scene.order(Order::Disable(vec![id("e0")])).await;
    scene.order(Order::Drain(vec![id("e1")])).await;
    scene.order(Order::Quarantine(vec![id("e2")], QuarantineCode::Administrator)).await;
    scene.check().await;
    assert_eq!(scene.order(Order::Enable(vec![id("e0"), id("e1"), id("e2")])).await, 3);
    for grant in &grants {
        scene.return_clean(grant).await;
    }
    assert_eq!(scene.status().await.ready, 3);
    scene.check().await;
}

/// A drained endpoint finishes its lease, and is granted no more.
pub async fn a_drained_endpoint_finishes_its_lease(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    assert_eq!(scene.order(Order::Drain(vec![id("e0")])).await, 1);
    let member = &scene.list().await[0];
    assert!(matches!(member.state, State::Leased(_)));
    assert_eq!(member.order, Some(StandingOrder::Drain));
    assert_eq!(scene.release(&grant, Verdict::default()).await, ReleaseReply::Released);
    scene.grants_nothing().await;
    assert_eq!(scene.status().await.disabled, 1);
    scene.check().await;
}

/// Quarantine by an administrator keeps an endpoint out until it is enabled.
pub async fn an_administrator_quarantines_and_enables(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let order = || Order::Quarantine(vec![id("e0")], QuarantineCode::Probe);
    assert_eq!(scene.order(order()).await, 1);
    assert_eq!(scene.order(order()).await, 0);
    assert_eq!(scene.list().await[0].state, State::Quarantined(QuarantineCode::Probe));
    assert_eq!(scene.grant().await.endpoint, id("e1"));
    scene.grants_nothing().await;
    scene.check().await;
    assert_eq!(scene.order(Order::Enable(vec![id("e0")])).await, 1);
    assert_eq!(scene.grant().await.endpoint, id("e0"));
}

/// An endpoint that is both disabled and in quarantine shows both, and comes back by one word.
pub async fn an_order_and_a_quarantine_stand_side_by_side(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    scene.order(Order::Disable(vec![id("e0")])).await;
    scene.order(Order::Quarantine(vec![id("e0")], QuarantineCode::Probe)).await;
    scene.order(Order::Quarantine(vec![id("e1")], QuarantineCode::Probe)).await;
    scene.order(Order::Disable(vec![id("e1")])).await;
    for member in scene.list().await {
        assert_eq!(member.state, State::Quarantined(QuarantineCode::Probe));
        assert_eq!(member.order, Some(StandingOrder::Disable));
    }
    scene.check().await;
    assert_eq!(scene.order(Order::Enable(vec![id("e0"), id("e1")])).await, 2);
    assert_eq!(scene.status().await.ready, 2);
    scene.check().await;
}

/// On a leased endpoint an order to disable it and one to quarantine it stand beside each other,
/// whichever came first: who ends the quarantine finds the other.
pub async fn orders_on_a_leased_endpoint_stand_side_by_side(fixture: &dyn Fixture) {
    let disable = || Order::Disable(vec![id("e0")]);
    let quarantine = || Order::Quarantine(vec![id("e0")], QuarantineCode::Probe);
    let scene = Scene::new(fixture, 1).await;
    for orders in [[disable(), quarantine()], [quarantine(), disable()]] {
        let grant = scene.grant().await;
        for order in orders {
            assert_eq!(scene.order(order.clone()).await, 1);
            assert_eq!(scene.order(order).await, 0);
        }
        assert_eq!(scene.list().await[0].order, Some(StandingOrder::Disable));
        scene.return_clean(&grant).await;
        let member = scene.list().await.remove(0);
        assert_eq!(member.state, State::Quarantined(QuarantineCode::Probe));
        assert_eq!(member.order, Some(StandingOrder::Disable));
        scene.order(Order::Enable(vec![id("e0")])).await;
        scene.check().await;
    }
    assert_eq!(scene.grant().await.endpoint, id("e0"));
}

/// A quarantine verdict on an endpoint under a standing order keeps its evidence.
pub async fn evidence_is_kept_under_an_order(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.order(Order::Drain(vec![id("e0")])).await;
    scene.release(&grant, Verdict::quarantine(QuarantineCode::Credentials)).await;
    let member = &scene.list().await[0];
    assert_eq!(member.state, State::Quarantined(QuarantineCode::Credentials));
    assert_eq!(member.order, Some(StandingOrder::Drain));
    scene.check().await;
}

/// A paused pool grants nothing; holders go on.
pub async fn a_paused_pool_grants_nothing(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let grant = scene.grant().await;
    assert_eq!(scene.order(Order::Pause).await, 1);
    assert_eq!(scene.order(Order::Pause).await, 0);
    assert!(scene.status().await.paused);
    assert_eq!(scene.acquire(Token::random()).await, AcquireReply::Paused);
    scene.return_clean(&grant).await;
    assert_eq!(scene.acquire(Token::random()).await, AcquireReply::Paused);
    assert_eq!(scene.order(Order::Resume).await, 1);
    assert_eq!(scene.order(Order::Resume).await, 0);
    scene.grant().await;
    scene.check().await;
}

/// An order counts what it changed, each endpoint once.
pub async fn an_order_counts_what_it_changed(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let all = || vec![id("e0"), id("e1"), id("e0")];
    assert_eq!(scene.order(Order::Enable(all())).await, 0);
    assert_eq!(scene.order(Order::Disable(all())).await, 2);
    assert_eq!(scene.order(Order::Disable(all())).await, 0);
    assert_eq!(scene.order(Order::Drain(all())).await, 2);
    assert_eq!(scene.order(Order::Enable(all())).await, 2);
    assert_eq!(scene.order(Order::Remove(all())).await, 2);
    assert_eq!(scene.order(Order::Disable(Vec::new())).await, 0);
    scene.check().await;
}

/// The end of a quarantine undoes no order, and no quarantine for another reason.
pub async fn the_end_of_a_quarantine_undoes_no_order(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 4).await;
    let (probe, word) = (QuarantineCode::Probe, QuarantineCode::Administrator);
    scene.order(Order::Quarantine(vec![id("e0"), id("e1")], probe)).await;
    scene.order(Order::Quarantine(vec![id("e2")], word)).await;
    scene.order(Order::Disable(vec![id("e1"), id("e3")])).await;
    let all = || vec![id("e0"), id("e1"), id("e2"), id("e3")];
    assert_eq!(scene.order(Order::EndQuarantine(all(), probe)).await, 2);
    assert_eq!(scene.order(Order::EndQuarantine(all(), probe)).await, 0);
    let states: Vec<_> = scene.list().await.into_iter().map(|member| member.state).collect();
    let expected = [State::Ready, State::Disabled, State::Quarantined(word), State::Disabled];
    assert_eq!(states, expected);
    assert_eq!(scene.list().await[1].order, Some(StandingOrder::Disable));
    scene.check().await;
    assert_eq!(scene.grant().await.endpoint, id("e0"));
    scene.grants_nothing().await;
}
