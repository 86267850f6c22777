//! Members that come, go and return.

use super::Fixture;
use super::scene::*;
use crate::store::{Member, Order, Policy, ReleaseReply, StandingOrder, State};
use crate::verdict::{QuarantineCode, Verdict};

/// A new member is ready at once.
pub async fn a_new_member_is_ready(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 0).await;
    assert_eq!(scene.add(weighted(&[3, 1])).await, 2);
    assert_eq!(scene.add(weighted(&[3, 1])).await, 0);
    let members = scene.list().await;
    assert_eq!((members[0].weight, members[1].weight), (3, 1));
    assert!(members.iter().all(|member| member.state == State::Ready));
    scene.grant().await;
    scene.check().await;
}

/// Adding a member that is there leaves its lease and its orders alone.
pub async fn adding_again_changes_only_what_is_named(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 3).await;
    let grant = scene.grant().await;
    scene.order(Order::Disable(vec![id("e1")])).await;
    assert_eq!(scene.add(weighted(&[2, 2, 1])).await, 2);
    let members = scene.list().await;
    assert!(matches!(members[0].state, State::Leased(_)));
    assert_eq!(members[1].state, State::Disabled);
    assert_eq!((members[0].weight, members[1].weight, members[2].weight), (2, 2, 1));
    scene.return_clean(&grant).await;
    scene.check().await;
}

/// A member that is not leased goes at once, from any place.
pub async fn an_idle_member_goes_at_once(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 4).await;
    let grant = scene.grant().await;
    scene.release(&grant, Verdict::cooldown(MINUTE)).await;
    scene.order(Order::Disable(vec![id("e1")])).await;
    scene.order(Order::Quarantine(vec![id("e2")], QuarantineCode::Administrator)).await;
    let all = vec![id("e0"), id("e1"), id("e2"), id("e3")];
    assert_eq!(scene.order(Order::Remove(all)).await, 4);
    assert_eq!((scene.status().await.members(), scene.list().await.len()), (0, 0));
    scene.pass(MINUTE).await;
    scene.reap().await;
    scene.grants_nothing().await;
    scene.check().await;
}

/// A leased member is drained, and goes when its lease ends.
pub async fn a_leased_member_goes_when_its_lease_ends(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    assert_eq!(scene.order(Order::Remove(vec![id("e0")])).await, 1);
    assert_eq!(scene.order(Order::Remove(vec![id("e0")])).await, 0);
    let member = &scene.list().await[0];
    assert!(matches!(member.state, State::Leased(_)));
    assert_eq!(member.order, Some(StandingOrder::Remove));
    scene.check().await;
    let verdict = Verdict::quarantine(QuarantineCode::Credentials);
    assert_eq!(scene.release(&grant, verdict).await, ReleaseReply::Released);
    assert_eq!(scene.list().await, []);
    assert_eq!(scene.release(&grant, Verdict::default()).await, ReleaseReply::NotOwner);
    scene.check().await;
}

/// A member that is on its way out stays so under other orders, and stays in when added again.
pub async fn a_removal_is_undone_by_adding_and_nothing_else(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.order(Order::Remove(vec![id("e0")])).await;
    let ids = || vec![id("e0")];
    for order in [
        Order::Enable(ids()),
        Order::Disable(ids()),
        Order::Drain(ids()),
        Order::Quarantine(ids(), QuarantineCode::Administrator),
        Order::EndQuarantine(ids(), QuarantineCode::Administrator),
    ] {
        assert_eq!(scene.order(order).await, 0);
    }
    assert_eq!(scene.list().await[0].order, Some(StandingOrder::Remove));
    assert_eq!(scene.add(numbered(1)).await, 1);
    scene.return_clean(&grant).await;
    let member = &scene.list().await[0];
    assert_eq!((member.state, member.order, member.assignments), (State::Ready, None, 1));
    scene.check().await;
}

/// A member that returns has its own count.
pub async fn a_returning_member_keeps_its_count(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, counted(&[7, 5])).await;
    scene.order(Order::Remove(vec![id("e0")])).await;
    scene.add(vec![Member::new(id("e0"))]).await;
    assert_eq!(counts(&scene).await, [7, 5]);
    assert_eq!(scene.list().await[0].strikes, 0);
}

/// A member that returns below the lowest count, or comes for the first time, starts at it.
pub async fn a_newcomer_starts_at_the_lowest_count(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, counted(&[2, 9])).await;
    scene.order(Order::Remove(vec![id("e0")])).await;
    scene.add(numbered(3)).await;
    assert_eq!(counts(&scene).await, [9, 9, 9]);
}

/// The lowest count is taken for the newcomer's weight.
pub async fn a_heavy_newcomer_starts_at_the_lowest_share(fixture: &dyn Fixture) {
    let members = vec![
        Member::new(id("e0")).with_weight(10).with_assignments(100),
        Member::new(id("e1")).with_weight(1).with_assignments(12),
    ];
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, members).await;
    scene.add(vec![Member::new(id("e2")), Member::new(id("e3")).with_weight(5)]).await;
    assert_eq!(counts(&scene).await, [100, 12, 10, 50]);
}

/// A count that is named holds, for new members and for those that are there.
pub async fn a_named_count_holds(fixture: &dyn Fixture) {
    let scene = Scene::ranked(fixture, Policy::LeastAssigned, counted(&[7, 5])).await;
    let named =
        vec![Member::new(id("e1")).with_assignments(8), Member::new(id("e2")).with_assignments(0)];
    assert_eq!(scene.add(named).await, 2);
    assert_eq!(counts(&scene).await, [7, 8, 0]);
    assert_eq!(scene.grant().await.endpoint, id("e2"));
    assert_eq!(scene.grant().await.endpoint, id("e0"));
}

/// A member that returns under another holder's token is not that holder's.
pub async fn a_removed_lease_does_not_return(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let gone = scene.grant().await;
    scene.order(Order::Remove(vec![id("e0")])).await;
    scene.pass(TTL + MINUTE).await;
    scene.reap().await;
    scene.add(numbered(1)).await;
    let next = scene.grant().await;
    assert_eq!(scene.release(&gone, Verdict::default()).await, ReleaseReply::NotOwner);
    scene.return_clean(&next).await;
    scene.check().await;
}

fn counted(assignments: &[u64]) -> Vec<Member> {
    let members = numbered(assignments.len()).into_iter().zip(assignments);
    members.map(|(member, count)| member.with_assignments(*count)).collect()
}

async fn counts(scene: &Scene<'_>) -> Vec<u64> {
    scene.list().await.iter().map(|member| member.assignments).collect()
}
