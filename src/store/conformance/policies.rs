//! Which endpoint is granted.

use std::collections::HashMap;

use super::Fixture;
use super::scene::*;
use crate::id::EndpointId;
use crate::secret::Token;
use crate::store::{Member, Mode, Order, Policy, PoolConfig};
use crate::verdict::Verdict;

/// Endpoints are granted in the order in which they came back, however quick.
pub async fn the_earliest_is_first_in_first_out(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::Earliest, reversed(20)).await;
    let order: Vec<_> = reversed(20).into_iter().map(|member| member.endpoint).collect();
    let mut grants = Vec::new();
    for _ in 0..20 {
        grants.push(scene.grant().await);
    }
    let granted: Vec<_> = grants.iter().map(|grant| grant.endpoint.clone()).collect();
    assert_eq!(granted, order);
    let back = [7, 3, 19, 0, 12];
    for nth in back {
        scene.return_clean(&grants[nth]).await;
    }
    for nth in back {
        assert_eq!(scene.grant().await.endpoint, grants[nth].endpoint);
    }
}

/// What counts is when an endpoint became available, not when it was looked at.
pub async fn the_earliest_counts_from_the_end_of_a_cooldown(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let grants = [scene.grant().await, scene.grant().await, scene.grant().await];
    scene.release(&grants[0], Verdict::cooldown(MINUTE * 5)).await;
    scene.release(&grants[1], Verdict::cooldown(MINUTE)).await;
    scene.advance(MINUTE / 2).await;
    scene.return_clean(&grants[2]).await;
    scene.advance(MINUTE * 6).await;
    for expected in [2, 1, 0] {
        assert_eq!(scene.grant().await.endpoint, grants[expected].endpoint);
    }
}

/// Equal weights are granted alike, and ties go by id.
pub async fn the_least_assigned_goes_round_by_id(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, reversed(5)).await;
    let mut granted = Vec::new();
    for _ in 0..10 {
        let grant = scene.grant().await;
        scene.return_clean(&grant).await;
        granted.push(grant.endpoint.to_string());
    }
    assert_eq!(granted, ["e0", "e1", "e2", "e3", "e4", "e0", "e1", "e2", "e3", "e4"]);
}

/// Ties go by id as bytes, not as numbers or by length, also for members that come later.
pub async fn ties_go_by_id(fixture: &dyn Fixture) {
    let member = |name: &&str| Member::new(id(name));
    let early = ["b", "a-long-name-that-is-not-kept-inline-1", "B", "10"];
    let late = ["9", "a-long-name-that-is-not-kept-inline-0", "a"];
    let members = early.iter().map(member).collect();
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, members).await;
    scene.add(late.iter().map(member).collect()).await;
    let mut expected: Vec<_> = early.iter().chain(&late).map(|name| name.to_string()).collect();
    expected.sort();
    for name in expected {
        assert_eq!(scene.grant().await.endpoint.as_str(), name);
    }
}

/// Failed and unfinished assignments count too.
pub async fn every_assignment_counts(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, numbered(2)).await;
    let (first, second) = (scene.grant().await, scene.grant().await);
    scene.cancel(token(&second), MINUTE).await;
    scene.cancel(token(&first), MINUTE).await;
    assert_eq!(scene.grant().await.endpoint, id("e0"));
    scene.pass(TTL + MINUTE).await;
    let next = [scene.grant().await, scene.grant().await];
    assert_eq!(next.map(|grant| grant.endpoint), ["e1", "e0"].map(id));
    let counts: Vec<_> = scene.list().await.iter().map(|member| member.assignments).collect();
    assert_eq!(counts, [3, 2]);
}

/// Uneven weights stay within one assignment of the ideal at every step, and are exact at each
/// multiple of their sum.
pub async fn weights_are_kept_within_one_assignment(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, weighted(&[1, 2, 3, 5, 7, 2])).await;
    shares_hold(&scene, &[1, 2, 3, 5, 7, 2]).await;
}

/// The same for a shared pool.
pub async fn shared_weights_are_kept_within_one_assignment(fixture: &dyn Fixture) {
    let config = PoolConfig { mode: Mode::Shared, ..PoolConfig::default() };
    let scene = Scene::with(fixture, config, weighted(&[5, 3, 1])).await;
    shares_hold(&scene, &[5, 3, 1]).await;
}

/// A new weight counts from the next grant.
pub async fn a_new_weight_counts_at_once(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, numbered(2)).await;
    let changed = scene.add(vec![Member::new(id("e1")).with_weight(9)]).await;
    assert_eq!(changed, 1);
    for _ in 0..100 {
        let grant = scene.grant().await;
        scene.return_clean(&grant).await;
    }
    let counts: Vec<_> = scene.list().await.iter().map(|member| member.assignments).collect();
    assert_eq!(counts, [10, 90]);
}

/// Equal fractions are equal: weights 1 and 3 meet at every fourth grant, far from zero too.
pub async fn equal_shares_tie_far_from_zero(fixture: &dyn Fixture) {
    let far = 500_000_000_000;
    let members = vec![
        Member::new(id("a")).with_assignments(far).with_weight(1),
        Member::new(id("b")).with_assignments(far * 3 + 1).with_weight(3),
    ];
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, members).await;
    let mut granted = String::new();
    for _ in 0..8 {
        let grant = scene.grant().await;
        scene.return_clean(&grant).await;
        granted.push_str(grant.endpoint.as_str());
    }
    assert_eq!(granted, "abbbabbb");
}

/// A random policy reaches all endpoints about alike, also when they come back at once.
pub async fn random_grants_reach_all_alike(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::Random, numbered(8)).await;
    let mut random = 1_u64;
    let mut counts = HashMap::<EndpointId, usize>::new();
    let mut repeats = 0;
    let mut last = None;
    for _ in 0..1600 {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut request = scene.request(Token::random());
        request.random = random;
        let grant = granted(scene.ask(request).await);
        scene.return_clean(&grant).await;
        repeats += usize::from(last.as_ref() == Some(&grant.endpoint));
        last = Some(grant.endpoint.clone());
        *counts.entry(grant.endpoint).or_default() += 1;
    }
    assert_eq!(counts.len(), 8);
    assert!(counts.values().all(|count| (100..=300).contains(count)), "{counts:?}");
    assert!((100..=300).contains(&repeats), "{repeats} in a row");
    scene.check().await;
}

/// A pool keeps its policy while members come and go.
pub async fn policies_outlast_orders(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, numbered(3)).await;
    let grant = scene.grant().await;
    scene.return_clean(&grant).await;
    scene.order(Order::Disable(vec![id("e1")])).await;
    scene.order(Order::Enable(vec![id("e1")])).await;
    let order = [scene.grant().await, scene.grant().await, scene.grant().await];
    assert_eq!(order.map(|grant| grant.endpoint), ["e1", "e2", "e0"].map(id));
}

async fn shares_hold(scene: &Scene<'_>, weights: &[u32]) {
    let total: u32 = weights.iter().sum();
    let mut counts = vec![0_u32; weights.len()];
    for step in 1..=1000_u32 {
        let grant = scene.grant().await;
        scene.return_clean(&grant).await;
        let nth: usize = grant.endpoint.as_str()[1..].parse().unwrap();
        counts[nth] += 1;
        for (count, weight) in counts.iter().zip(weights) {
            let ideal = f64::from(step * weight) / f64::from(total);
            let off = (f64::from(*count) - ideal).abs();
            assert!(off < 1.0, "{counts:?} for {weights:?} after {step}");
            assert!(step % total != 0 || off == 0.0, "{counts:?} after {step}");
        }
    }
}

fn reversed(members: usize) -> Vec<Member> {
    let mut members = numbered(members);
    members.reverse();
    members
}
