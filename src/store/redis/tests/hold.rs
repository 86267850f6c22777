//! Restarts and failovers.

use std::sync::Arc;

use super::*;
use crate::store::{Mode, State};

async fn held(redis: &Redis) -> Duration {
    match acquire(redis, Token::random()).await.unwrap() {
        AcquireReply::Hold(left) => left,
        other => panic!("a hold expected, not {other:?}"),
    }
}

async fn fail_over(redis: &Redis) {
    redis.send::<()>(&format!("HSET {} identity another", redis.key("meta"))).await;
}

#[tokio::test]
async fn another_server_grants_nothing_until_old_leases_have_run_out() {
    let redis = pool(3).await;
    let before = grant(&redis).await;
    assert_eq!(redis.store.status(&redis.pool()).await.unwrap().hold, None);
    fail_over(&redis).await;
    let left = held(&redis).await;
    let largest = PoolConfig::default().largest_ttl;
    assert!(left <= largest && left > largest - Duration::from_secs(5), "{left:?}");
    assert!(redis.store.status(&redis.pool()).await.unwrap().hold.is_some());

    assert!(matches!(acquire(&redis, token(&before)).await, Ok(AcquireReply::Granted(_))));
    assert!(matches!(renew(&redis, &before).await, Ok(RenewReply::Renewed(_))));
    assert_eq!(release(&redis, &before, Verdict::default()).await.unwrap(), ReleaseReply::Released);
    redis.advance(largest - Duration::from_secs(10)).await;
    assert!(held(&redis).await <= Duration::from_secs(10));
    redis.advance(Duration::from_secs(10)).await;
    grant(&redis).await;
    in_order(&redis).await;
}

#[tokio::test]
async fn an_administrator_ends_a_hold() {
    let redis = pool(1).await;
    assert_eq!(order(&redis, Order::EndHold).await.unwrap(), 0);
    fail_over(&redis).await;
    assert_eq!(order(&redis, Order::EndHold).await.unwrap(), 1, "also before anybody noticed");
    release(&redis, &grant(&redis).await, Verdict::default()).await.unwrap();
    fail_over(&redis).await;
    held(&redis).await;
    assert_eq!(order(&redis, Order::EndHold).await.unwrap(), 1);
    assert_eq!(order(&redis, Order::EndHold).await.unwrap(), 0);
    grant(&redis).await;
}

/// A server that lacks grants does not know how many.
#[tokio::test]
async fn no_fence_of_a_grant_that_was_lost_is_given_again() {
    const MANY: u64 = 1_000_000;
    let redis = pool(3).await;
    let first = grant(&redis).await.fence.0;
    fail_over(&redis).await;
    held(&redis).await;
    held(&redis).await;
    order(&redis, Order::EndHold).await.unwrap();
    let second = grant(&redis).await.fence.0;
    assert!((first + MANY..first + 2 * MANY).contains(&second), "{first} {second}");
    fail_over(&redis).await;
    order(&redis, Order::EndHold).await.unwrap();
    let third = grant(&redis).await.fence.0;
    assert!((second + MANY..second + 2 * MANY).contains(&third), "{second} {third}");
}

#[tokio::test]
async fn pools_without_a_hold_go_on() {
    for config in [
        PoolConfig { failover_hold: false, ..PoolConfig::default() },
        PoolConfig { mode: Mode::Shared, ..PoolConfig::default() },
    ] {
        let redis = Redis::new().await;
        set_up(&redis, config, 1).await;
        fail_over(&redis).await;
        grant(&redis).await;
    }
}

#[tokio::test]
async fn leases_outlast_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let more = ["--dir", path, "--appendonly", "yes", "--appendfsync", "always"];
    let mut redis = Redis::on(Arc::new(Server::start(&more))).await;
    set_up(&redis, PoolConfig::default(), 2).await;
    let lease = grant(&redis).await;

    let namespace = redis.namespace.clone();
    drop(redis);
    redis = Redis::named(Arc::new(Server::start(&more)), namespace).await;
    held(&redis).await;
    let members = redis.store.list(list(&redis)).await.unwrap();
    let leased = members.iter().find(|member| member.endpoint == lease.endpoint).unwrap();
    assert!(matches!(leased.state, State::Leased(_)));
    let AcquireReply::Granted(again) = acquire(&redis, token(&lease)).await.unwrap() else {
        panic!("the lease is lost");
    };
    assert_eq!((again[0].fence, &again[0].endpoint), (lease.fence, &lease.endpoint));
    assert_eq!(release(&redis, &lease, Verdict::default()).await.unwrap(), ReleaseReply::Released);
    order(&redis, Order::EndHold).await.unwrap();
    assert!(grant(&redis).await.fence > lease.fence);
    in_order(&redis).await;
}

fn list(redis: &Redis) -> crate::store::ListRequest {
    crate::store::ListRequest { pool: redis.pool(), after: None, limit: 10 }
}
