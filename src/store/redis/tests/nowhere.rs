//! What is in no place, or points to what is not its own.

use super::scenes::{self, busy};
use super::*;
use crate::redis::commands;
use crate::store::{ListRequest, MemberState, StandingOrder, State};
use crate::verdict::QuarantineCode;

async fn list(redis: &Redis) -> Vec<MemberState> {
    let request = ListRequest { pool: redis.pool(), after: None, limit: 9 };
    redis.store.list(request).await.unwrap()
}

/// A pool of two, of which `e0` is in no place.
async fn astray() -> Redis {
    let redis = pool(2).await;
    redis.send::<()>(&format!("ZREM {} e0", redis.key("ready"))).await;
    assert_eq!(list(&redis).await[0].state, State::Lost);
    let found = redis.store.check(&redis.pool()).await.unwrap();
    assert!(found.iter().any(|found| found.to_string() == "e0 not in one place"), "{found:?}");
    redis
}

#[tokio::test]
async fn what_is_in_no_place_is_told_and_healed_by_orders() {
    for (mend, state) in [
        (Order::Add(vec![Member::new(id("e0"))]), Some(State::Ready)),
        (Order::Enable(vec![id("e0")]), Some(State::Ready)),
        (Order::Disable(vec![id("e0")]), Some(State::Disabled)),
        (
            Order::Quarantine(vec![id("e0")], QuarantineCode::Probe),
            Some(State::Quarantined(QuarantineCode::Probe)),
        ),
        (Order::Remove(vec![id("e0")]), None),
    ] {
        let redis = astray().await;
        assert_eq!(order(&redis, mend.clone()).await.unwrap(), 1, "{mend:?}");
        in_order(&redis).await;
        let found = list(&redis).await.into_iter().find(|member| member.endpoint == id("e0"));
        assert_eq!(found.map(|member| member.state), state, "{mend:?}");
    }
}

#[tokio::test]
async fn an_order_that_stands_is_kept_by_what_adds_the_endpoint_again() {
    let redis = pool(2).await;
    order(&redis, Order::Disable(vec![id("e0")])).await.unwrap();
    redis.send::<()>(&format!("HDEL {} e0", redis.key("parked"))).await;
    assert_eq!(list(&redis).await[0].state, State::Lost);
    order(&redis, Order::Add(vec![Member::new(id("e0"))])).await.unwrap();
    let member = list(&redis).await.remove(0);
    assert_eq!((member.state, member.order), (State::Disabled, Some(StandingOrder::Disable)));
    in_order(&redis).await;
}

#[tokio::test]
async fn a_pool_whose_orders_are_lost_grants_and_frees_nothing() {
    let scene = busy(PoolConfig::default()).await;
    let redis = &scene.redis;
    redis.send::<()>(&format!("DEL {}", redis.key("orders"))).await;
    let (before, content) = (scene.everything().await, scene.content().await);
    let mut waits = 0;
    for nth in 0.. {
        let Some(reply) = scenes::call(&redis.store, &redis.pool(), &scene.held, nth).await else {
            break;
        };
        match reply {
            Err(error) if error.kind() == Kind::PoolWithoutOrders => {
                assert!(error.is_transient() && !error.may_have_run(), "{error}");
                assert!(scene.content().await == content, "call {nth}");
                waits += 1;
            }
            // What has nothing to do with orders.
            other => {
                assert!(
                    [3, 8, 16, 21, 22, 25, 26, 27, 28, 29, 31, 32, 33, 34, 36].contains(&nth),
                    "{nth} {other:?}"
                )
            }
        }
        scene.restore(&before).await;
    }
    assert!(waits >= 15, "{waits}");
    let found = redis.store.check(&redis.pool()).await.unwrap();
    assert!(found.iter().any(|found| found.to_string() == "orders lost"), "{found:?}");
    // It can be erased and set up again.
    order(redis, Order::DestroyPool).await.unwrap();
    set_up(redis, PoolConfig::default(), 1).await;
    grant(redis).await;
    in_order(redis).await;
}

/// A pool of one with a lease, and a token whose record is of a lease that is over.
async fn stale() -> (Redis, Grant, Grant) {
    let redis = pool(1).await;
    let old = grant(&redis).await;
    let record: String =
        redis.send(&format!("HGET {} {}", redis.key("requests"), hex(token(&old)))).await;
    release(&redis, &old, Verdict::default()).await.unwrap();
    let new = grant(&redis).await;
    let requests = redis.key("requests");
    redis.send::<()>(&format!("HSET {requests} {} {record}", hex(token(&old)))).await;
    (redis, old, new)
}

#[tokio::test]
async fn a_record_of_a_lease_that_is_over_has_no_say() {
    let (redis, old, new) = stale().await;
    assert_eq!(renew(&redis, &old).await.unwrap(), RenewReply::NotOwner);
    let released = release(&redis, &old, Verdict::default()).await.unwrap();
    assert_eq!(released, ReleaseReply::NotOwner);
    let reply = acquire(&redis, token(&old)).await.unwrap();
    assert!(matches!(reply, AcquireReply::Empty { .. }), "{reply:?}");
    assert_eq!(cancel(&redis, token(&old)).await.unwrap(), CancelReply::Tombstoned);
    assert!(matches!(renew(&redis, &new).await.unwrap(), RenewReply::Renewed(_)));
    let released = release(&redis, &new, Verdict::default()).await.unwrap();
    assert_eq!(released, ReleaseReply::Released);
    in_order(&redis).await;
}

#[tokio::test]
async fn a_lease_that_runs_out_leaves_the_record_of_another() {
    let redis = pool(2).await;
    let (lost, kept) = (grant(&redis).await, grant(&redis).await);
    let requests = redis.key("requests");
    let other = hex(token(&kept));
    redis.advance(TTL / 2).await;
    renew(&redis, &kept).await.unwrap();
    redis.send::<()>(&format!("HSET {requests} @{} {other}", lost.endpoint)).await;
    redis.advance(TTL / 2).await;
    reap(&redis).await.unwrap();
    assert!(matches!(renew(&redis, &kept).await.unwrap(), RenewReply::Renewed(_)));
}

/// Twin: without the look at whom the endpoint points to, a late holder ends another's lease.
#[tokio::test]
async fn without_the_look_a_record_that_is_over_ends_anothers_lease() {
    let (redis, old, new) = stale().await;
    let source = commands::RELEASE.script.source;
    let blind = source.replace("call('HGET', requests, own) ~= one", "false");
    assert_ne!(blind, source);
    let mut call = redis::cmd("EVAL");
    call.arg(&blind).arg(commands::RELEASE.keys.len());
    for name in commands::RELEASE.keys {
        call.arg(redis.key(name));
    }
    let args = [&hex(token(&old)), "0", "keep", "", "0", ""];
    call.arg(&args).exec_async(&mut redis.connection.clone()).await.unwrap();
    assert_eq!(renew(&redis, &new).await.unwrap(), RenewReply::NotOwner);
}
