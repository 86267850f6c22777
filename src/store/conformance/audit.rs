//! The trail of an administrator's orders.

use std::time::{Duration, SystemTime};

use super::Fixture;
use super::scene::*;
use crate::error::Kind;
use crate::id::AdminName;
use crate::store::{
    AdminRequest, AuditEntry, AuditId, AuditRequest, MAX_AUDITED, Order, PoolConfig, Setup,
};
use crate::verdict::{QuarantineCode, Verdict};

/// Each order is in the trail, newest first: what it was, who gave it, from which version, and whom
/// it named.
pub async fn every_order_is_recorded(fixture: &dyn Fixture) {
    for config in kinds() {
        let begun = SystemTime::now() - SLACK;
        let one = || vec![id("e1")];
        let orders = [
            (Order::Init(Setup::new(config).loading().after_loss()), "init:loading:after_loss", 0),
            (Order::Load(numbered(2)), "load", 2),
            (Order::Open, "open", 0),
            (Order::Add(numbered(3)), "add", 3),
            (Order::Disable(one()), "disable", 1),
            (Order::Drain(one()), "drain", 1),
            (Order::Quarantine(one(), QuarantineCode::Probe), "quarantine:probe", 1),
            (Order::EndQuarantine(one(), QuarantineCode::Probe), "end_quarantine:probe", 1),
            (Order::Enable(one()), "enable", 1),
            (Order::Remove(one()), "remove", 1),
            (Order::Pause, "pause", 0),
            (Order::Resume, "resume", 0),
            (Order::EndHold, "end_hold", 0),
            (Order::Pause, "pause", 0),
            (Order::DestroyPool, "destroy", 0),
        ];
        let number = orders.len();
        for (nth, (order, word, _)) in orders.iter().enumerate() {
            assert_eq!(order.word(), *word);
            let request = AdminRequest::new(fixture.pool(), order.clone())
                .by(AdminName::new(format!("kim.{nth}@example.net")).unwrap())
                .with_config_version(nth as u64);
            fixture.store().administer(request).await.unwrap();
        }
        let entries = page(fixture, None, number).await;
        assert_eq!(entries.len(), number);
        for (nth, (entry, (_, word, named))) in entries.iter().rev().zip(&orders).enumerate() {
            assert_eq!((entry.order.as_str(), entry.number), (*word, *named));
            let by = format!("kim.{nth}@example.net");
            assert_eq!(entry.by.as_ref().map(AdminName::as_str), Some(by.as_str()));
            assert_eq!(entry.config_version, Some(nth as u64));
            let expected = match named {
                1 => one(),
                all => numbered(*all).into_iter().map(|member| member.endpoint).collect(),
            };
            assert_eq!(entry.endpoints, expected, "{word}");
            assert!((begun..=SystemTime::now() + SLACK).contains(&entry.time));
        }
        assert!(entries.windows(2).all(|two| two[0].id > two[1].id));
    }
}

/// An order in nobody's name, from no inventory, is recorded as one.
pub async fn an_order_may_be_nobodys(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let last = &page(fixture, None, 1).await[0];
    assert_eq!((last.order.as_str(), &last.by, last.config_version), ("add", &None, None));
    assert_eq!(scene.status().await.config_version, None);
}

/// An order that changed nothing is recorded: somebody wanted it.
pub async fn an_order_that_changes_nothing_is_recorded(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    for order in [
        Order::Resume,
        Order::Open,
        Order::EndHold,
        Order::Add(numbered(1)),
        Order::Enable(vec![id("e0")]),
        Order::Disable(Vec::new()),
        Order::Remove(Vec::new()),
        Order::Add(Vec::new()),
    ] {
        let word = order.word();
        assert_eq!(scene.order(order).await, 0, "{word}");
        assert_eq!(page(fixture, None, 1).await[0].order, word);
    }
}

/// An order that is refused leaves no trace.
pub async fn a_refused_order_is_not_recorded(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let before = page(fixture, None, 100).await;
    for order in [
        Order::Init(PoolConfig::default().into()),
        Order::Load(numbered(1)),
        Order::Add([numbered(1), numbered(1)].concat()),
        Order::Disable(vec![id("e0"), id("nobody")]),
        Order::DestroyPool,
    ] {
        scene.try_order(order).await.unwrap_err();
    }
    assert_eq!(page(fixture, None, 100).await, before);
}

/// What workers do is not in the trail.
pub async fn work_is_not_recorded(fixture: &dyn Fixture) {
    for config in kinds() {
        let scene = Scene::with(fixture, config, numbered(2)).await;
        let before = page(fixture, None, 100).await;
        let grant = scene.grant().await;
        scene.release(&grant, Verdict::quarantine(QuarantineCode::Credentials)).await;
        scene.reap().await;
        scene.status().await;
        assert_eq!(page(fixture, None, 100).await, before);
        scene.destroy().await;
    }
}

/// A trail is read in pages, from the newest entry to the first.
pub async fn a_trail_comes_in_pages_newest_first(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 5).await;
    for nth in 0..5 {
        scene.order(Order::Disable(vec![id(&format!("e{nth}"))])).await;
    }
    let all = page(fixture, None, usize::MAX).await;
    assert_eq!(all.len(), 7);
    assert_eq!((all[0].endpoints[0].as_str(), all[6].order.as_str()), ("e4", "init"));
    let mut seen: Vec<AuditEntry> = Vec::new();
    loop {
        let some = page(fixture, seen.last().map(|entry| entry.id), 3).await;
        assert!(some.len() <= 3);
        if some.is_empty() {
            break;
        }
        seen.extend(some);
    }
    assert_eq!(seen, all);
    assert_eq!(page(fixture, None, 0).await, []);
}

/// Of an order on many the trail names some and tells the number.
pub async fn a_long_order_names_some_of_its_endpoints(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 100).await;
    let many = || numbered(100).into_iter().map(|member| member.endpoint);
    scene.order(Order::Disable(many().collect())).await;
    for entry in page(fixture, None, 2).await {
        assert_eq!((entry.number, entry.endpoints.len()), (100, MAX_AUDITED), "{entry:?}");
        assert_eq!(entry.endpoints, many().take(MAX_AUDITED).collect::<Vec<_>>());
    }
}

/// The trail outlasts the pool and goes on with the next of its name; where there was none there is
/// no trail.
pub async fn a_trail_outlasts_its_pool(fixture: &dyn Fixture) {
    let none = fixture.store().audit(AuditRequest::new(fixture.pool(), None, 9)).await;
    assert_eq!(none.unwrap_err().kind(), Kind::PoolUninitialised);
    let scene = Scene::new(fixture, 1).await;
    scene.destroy().await;
    let words = async || -> Vec<String> {
        page(fixture, None, 9).await.into_iter().map(|entry| entry.order).collect()
    };
    assert_eq!(words().await, ["destroy", "pause", "add", "init"]);
    Scene::bare(fixture, Setup::new(PoolConfig::default()).after_loss()).await;
    assert_eq!(words().await, ["init:after_loss", "destroy", "pause", "add", "init"]);
}

/// A status has the version of the last order that named one.
pub async fn a_status_has_the_last_config_version(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    for (version, expected) in [(Some(7), 7), (None, 7), (Some(u64::MAX), u64::MAX), (Some(3), 3)] {
        let request = AdminRequest::new(fixture.pool(), Order::Add(numbered(1)));
        fixture.store().administer(request.with_config_version(version)).await.unwrap();
        assert_eq!(scene.status().await.config_version, Some(expected));
    }
}

async fn page(fixture: &dyn Fixture, before: Option<AuditId>, limit: usize) -> Vec<AuditEntry> {
    let request = AuditRequest::new(fixture.pool(), before, limit);
    fixture.store().audit(request).await.expect("a trail")
}

/// How far the store's clock and this machine's may differ.
const SLACK: Duration = Duration::from_secs(60);
