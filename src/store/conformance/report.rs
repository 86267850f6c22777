//! What a pool tells.

use super::Fixture;
use super::scene::*;
use crate::secret::Token;
use crate::store::{ListRequest, Order, Policy, PoolConfig, State};
use crate::verdict::{QuarantineCode, Verdict};

/// A new pool's status has its configuration, and nothing else.
pub async fn a_status_has_the_configuration(fixture: &dyn Fixture) {
    let config = PoolConfig {
        policy: Policy::Random,
        largest_ttl: MINUTE * 7,
        largest_lifetime: MINUTE * 70,
        ..PoolConfig::default()
    };
    let scene = Scene::with(fixture, config.clone(), Vec::new()).await;
    let status = scene.status().await;
    assert_eq!((&status.config, status.paused, status.members()), (&config, false, 0));
    assert_eq!(status.next, None);
}

/// Each member is counted in its one place.
pub async fn a_status_counts_each_place(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 6).await;
    let cooling = scene.grant().await;
    scene.release(&cooling, Verdict::cooldown(MINUTE * 2)).await;
    scene.grant().await;
    scene.order(Order::Disable(vec![id("e2")])).await;
    scene.order(Order::Drain(vec![id("e3")])).await;
    scene.order(Order::Quarantine(vec![id("e4")], QuarantineCode::Probe)).await;
    let status = scene.status().await;
    assert_eq!((status.ready, status.cooling, status.leased, status.expired), (1, 1, 1, 0));
    assert_eq!((status.disabled, status.quarantined, status.members()), (2, 1, 6));
    assert_about(status.next.unwrap(), TTL);
    scene.check().await;
}

/// What is recorded is told from what is valid: a lease past its deadline, an endpoint past its
/// cooldown.
pub async fn a_status_tells_recorded_from_valid(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let cooling = scene.grant().await;
    scene.release(&cooling, Verdict::cooldown(MINUTE)).await;
    let leased = scene.grant().await;
    scene.pass(TTL).await;
    let status = scene.status().await;
    assert_eq!((status.ready, status.cooling, status.leased, status.expired), (1, 0, 0, 1));
    assert_eq!(scene.member(&leased.endpoint).await.unwrap().state, State::Expired);
    let due = scene.member(&cooling.endpoint).await.unwrap().state;
    assert!(matches!(due, State::Ready | State::Cooling(std::time::Duration::ZERO)), "{due:?}");
    assert_eq!(scene.status().await, status);
}

/// A list comes in pages by id, each member once.
pub async fn a_list_comes_in_pages_by_id(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 25).await;
    let mut expected: Vec<_> = numbered(25).into_iter().map(|member| member.endpoint).collect();
    expected.sort();
    let mut seen = Vec::new();
    loop {
        let after = seen.last().cloned();
        let request = ListRequest { pool: fixture.pool(), after, limit: 10 };
        let page = scene.store().list(request).await.unwrap();
        assert!(page.len() <= 10);
        if page.is_empty() {
            break;
        }
        seen.extend(page.into_iter().map(|member| member.endpoint));
    }
    assert_eq!(seen, expected);
    let absent = ListRequest { pool: fixture.pool(), after: Some(id("e2-")), limit: 1 };
    assert_eq!(scene.store().list(absent).await.unwrap()[0].endpoint, id("e20"));
}

/// Looking changes nothing.
pub async fn looking_changes_nothing(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    let token = Token::random();
    let grant = granted(scene.acquire(token).await);
    scene.pass(TTL + MINUTE).await;
    for _ in 0..3 {
        assert_eq!(scene.status().await.expired, 1);
        assert_eq!(scene.member(&grant.endpoint).await.unwrap().state, State::Expired);
    }
}
