//! Pools that are loaded before they open.

use super::Fixture;
use super::scene::*;
use crate::secret::Token;
use crate::store::{
    AcquireReply, Member, Mode, Order, Policy, PoolConfig, Setup, StandingOrder, State,
};
use crate::verdict::QuarantineCode;

/// A pool that is being loaded grants nothing and says why; once it is open it grants.
pub async fn a_loading_pool_grants_nothing(fixture: &dyn Fixture) {
    for config in kinds() {
        let scene = Scene::bare(fixture, Setup::new(config.clone()).loading()).await;
        assert_eq!(scene.acquire(Token::random()).await, AcquireReply::Loading, "{config:?}");
        assert_eq!(scene.order(Order::Load(numbered(2))).await, 2);
        assert_eq!(scene.acquire(Token::random()).await, AcquireReply::Loading, "{config:?}");
        let status = scene.status().await;
        assert!(status.loading && status.fence.0 == 0, "{status:?}");
        assert_eq!((status.ready, status.members(), &status.config), (2, 2, &config));
        scene.check().await;
        assert_eq!(scene.order(Order::Open).await, 1);
        assert!(!scene.status().await.loading);
        scene.grant().await;
        scene.check().await;
        scene.destroy().await;
    }
}

/// What was loaded has its weights and counts, and is granted as if it had been added.
pub async fn an_opened_pool_grants_what_was_loaded(fixture: &dyn Fixture) {
    let scene = loading(fixture, Policy::Earliest).await;
    scene.order(Order::Load(vec![Member::new(id("b"))])).await;
    scene.order(Order::Load(vec![Member::new(id("c")), Member::new(id("a"))])).await;
    scene.order(Order::Open).await;
    assert_eq!(three_grants(&scene).await, ["b", "c", "a"]);
    scene.destroy().await;

    let scene = loading(fixture, Policy::LeastAssigned).await;
    let member = |name: &str| Member::new(id(name));
    let light = vec![member("a").with_assignments(4), member("b")];
    scene.order(Order::Load(light)).await;
    scene.order(Order::Load(vec![member("c").with_weight(3).with_assignments(4)])).await;
    scene.order(Order::Open).await;
    let told: Vec<_> =
        scene.list().await.iter().map(|member| (member.assignments, member.weight)).collect();
    assert_eq!(told, [(4, 1), (0, 1), (4, 3)]);
    assert_eq!(three_grants(&scene).await, ["b", "c", "a"]);
    scene.check().await;
    scene.destroy().await;

    let setup = Setup::new(PoolConfig { mode: Mode::Shared, ..PoolConfig::default() }).loading();
    let scene = Scene::bare(fixture, setup).await;
    scene.order(Order::Load(weighted(&[1, 2]))).await;
    scene.order(Order::Open).await;
    assert_eq!(three_grants(&scene).await, ["e1", "e0", "e1"]);
    scene.check().await;
}

/// A load that broke off is run again: what is there stays, and what is named is updated.
pub async fn a_load_can_be_run_again(fixture: &dyn Fixture) {
    for config in kinds() {
        let scene = Scene::bare(fixture, Setup::new(config).loading()).await;
        let first = Member::new(id("e0")).with_assignments(5);
        assert_eq!(scene.order(Order::Load(vec![first, Member::new(id("e1"))])).await, 2);
        assert_eq!(scene.order(Order::Load(numbered(4))).await, 2);
        assert_eq!(scene.order(Order::Load(numbered(4))).await, 0);
        let member = scene.member(&id("e0")).await.unwrap();
        assert_eq!((member.assignments, member.weight), (5, 1));
        let heavy = vec![Member::new(id("e0")).with_weight(2), Member::new(id("e3"))];
        assert_eq!(scene.order(Order::Load(heavy)).await, 1);
        let member = scene.member(&id("e0")).await.unwrap();
        assert_eq!((member.assignments, member.weight), (5, 2));
        let light = Member::new(id("e0")).with_assignments(0);
        assert_eq!(scene.order(Order::Load(vec![light])).await, 1);
        assert_eq!(scene.status().await.ready, 4);
        scene.order(Order::Open).await;
        scene.check().await;
        scene.destroy().await;
    }
}

/// Only a pool that is not open is loaded, and it is opened once.
pub async fn an_open_pool_is_not_loaded(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    scene.refuses(Order::Load(numbered(2)), "is open").await;
    assert_eq!(scene.status().await.members(), 1);
    assert_eq!(scene.order(Order::Open).await, 0);
    scene.grant().await;
}

/// Orders on what has been loaded are in force when the pool opens.
pub async fn orders_hold_while_a_pool_is_loaded(fixture: &dyn Fixture) {
    for config in kinds() {
        let scene = Scene::bare(fixture, Setup::new(config).loading()).await;
        scene.order(Order::Load(numbered(5))).await;
        scene.order(Order::Disable(vec![id("e0")])).await;
        scene.order(Order::Quarantine(vec![id("e1")], QuarantineCode::Probe)).await;
        assert_eq!(scene.order(Order::Remove(vec![id("e2")])).await, 1);
        scene.order(Order::Pause).await;
        // Run again, as after a crash: what was removed comes back, the rest stands.
        assert_eq!(scene.order(Order::Load(numbered(5))).await, 1);
        scene.add(vec![Member::new(id("late"))]).await;
        assert_eq!(scene.acquire(Token::random()).await, AcquireReply::Loading);
        scene.order(Order::Open).await;
        assert_eq!(scene.acquire(Token::random()).await, AcquireReply::Paused);
        let disabled = scene.member(&id("e0")).await.unwrap();
        assert_eq!(disabled.order, Some(StandingOrder::Disable));
        let quarantined = scene.member(&id("e1")).await.unwrap();
        assert_eq!(quarantined.state, State::Quarantined(QuarantineCode::Probe));
        let status = scene.status().await;
        assert_eq!((status.ready, status.disabled, status.quarantined), (4, 1, 1));
        scene.check().await;
        scene.destroy().await;
    }
}

/// One bad member keeps out all of its load.
pub async fn a_bad_member_keeps_out_the_whole_load(fixture: &dyn Fixture) {
    let scene = loading(fixture, Policy::Earliest).await;
    for bad in [Member::new(id("e0")), Member::new(id("bad")).with_weight(0)] {
        let members = vec![Member::new(id("e0")), bad];
        refused(scene.try_order(Order::Load(members)).await, "endpoint");
        assert_eq!(scene.status().await.members(), 0);
    }
}

async fn loading(fixture: &dyn Fixture, policy: Policy) -> Scene<'_> {
    let config = PoolConfig { policy, ..PoolConfig::default() };
    Scene::bare(fixture, Setup::new(config).loading()).await
}

async fn three_grants(scene: &Scene<'_>) -> [String; 3] {
    [
        scene.grant().await.endpoint.to_string(),
        scene.grant().await.endpoint.to_string(),
        scene.grant().await.endpoint.to_string(),
    ]
}
