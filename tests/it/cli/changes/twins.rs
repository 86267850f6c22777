//! Runs in which a guard is off, and what is found then.

use super::counted;
use super::findings::Wrong;
use super::inventory::Mount;
use super::strings;
use super::world::{Form, World};
use crate::support::eventually;
use crate::truth::layout::Flaw;

/// What is found of a run once its work has ended.
async fn found(mut world: World) -> Vec<Wrong> {
    assert_eq!(world.changed_scripts() > 0, !world.form.flaw.is_empty());
    world.ends().await;
    counted(&world.promises.broken(&world.evidence())).into_keys().collect()
}

async fn flawed(flaw: Flaw) -> World {
    World::start(Form { flaw, ..Form::redis(Mount::Renamed) }).await
}

/// The worker goes on with the inventory that it had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_goes_on_with_an_old_password_is_found() {
    let _turn = super::TURN.lock().await;
    let form = Form { follows: false, ..Form::redis(Mount::Renamed) };
    let mut world = World::start(form).await;
    world.plan.endpoints.get_mut("n1").unwrap().password = 1;
    world.gates["n1"].accepts(&[0, 1]);
    world.brings_passwords().await;
    let now = world.now().await;
    world.promises.rotates("n1", 1, now);
    world.is_used("n1").await;
    assert_eq!(found(world).await, [Wrong::OldPassword]);
}

/// The old password is refused before the worker has the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_is_refused_too_early_is_found() {
    let _turn = super::TURN.lock().await;
    let mut world = World::start(Form::redis(Mount::Renamed)).await;
    world.gates["n1"].accepts(&[1]);
    world.goes_on().await;
    world.plan.endpoints.get_mut("n1").unwrap().password = 1;
    world.brings_passwords().await;
    assert_eq!(found(world).await, [Wrong::Failed]);
}

/// A worker's script gives endpoints back whatever orders stand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_past_an_order_is_found() {
    let _turn = super::TURN.lock().await;
    let mut world = flawed(RELEASES_KNOW_NO_ORDERS).await;
    world.takes_out_provider("north").await;
    world.goes_on().await;
    assert_eq!(found(world).await, [Wrong::GrantedAfterOrder, Wrong::GrantedAgainstOrder]);
}

const RELEASES_KNOW_NO_ORDERS: Flaw = &[
    ("standing = call('HMGET', orders, unpack(ids))", "standing = {[asked + 1] = orders}"),
    ("if order or not note", "if not note"),
];

/// A worker's script grants although the pool is paused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_of_a_paused_pool_is_found() {
    let _turn = super::TURN.lock().await;
    let mut world = flawed(GRANTS_KNOW_NO_PAUSE).await;
    world.order("pause", &[]).await;
    let now = world.now().await;
    world.promises.bans("*", now);
    world.goes_on().await;
    assert_eq!(found(world).await, [Wrong::GrantedAfterOrder, Wrong::GrantedAgainstOrder]);
}

const GRANTS_KNOW_NO_PAUSE: Flaw = &[
    ("if wants[1] and not paused and", "if wants[1] and"),
    ("if paused or not note", "if not note"),
];

/// Somebody puts an endpoint back that is out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_is_planted_past_an_order_is_found() {
    let _turn = super::TURN.lock().await;
    let mut world = World::start(Form::redis(Mount::Renamed)).await;
    world.takes_out("drain --wait=30s", &strings(&["n1"])).await;
    for command in ["HDEL {orders} n1", "HDEL {parked} n1", "ZADD {ready} 0 n1"] {
        world.rig.plant(command).await;
    }
    world.is_used("n1").await;
    assert_eq!(found(world).await, [Wrong::GrantedAfterOrder]);
}

/// One more password than is told changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_that_cuts_another_endpoint_s_connections_is_found() {
    let _turn = super::TURN.lock().await;
    let mut world = World::start(Form::memory(Mount::Renamed)).await;
    let before = world.connections();
    for id in ["n1", "n2"] {
        world.plan.endpoints.get_mut(id).unwrap().password = 1;
        world.gates[id].accepts(&[0, 1]);
    }
    world.brings_passwords().await;
    let cut = || world.cut("n1", &before) == ["n2"];
    eventually("a cut connection", || cut().then_some(())).await;
    assert!(found(world).await.is_empty());
}
