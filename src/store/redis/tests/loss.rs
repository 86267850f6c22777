//! Pools of which some is lost, or all.

use super::*;
use crate::redis::keys::STATE;
use crate::store::{AuditRequest, Setup};

async fn keys(redis: &Redis) -> Vec<String> {
    let mut keys: Vec<String> = redis.send(&format!("KEYS {}*", redis.key(""))).await;
    keys.sort();
    keys
}

#[tokio::test]
async fn any_key_that_is_left_keeps_a_pool_from_being_set_up() {
    for name in STATE.iter().copied().chain(["orders"]) {
        for plant in ["SADD {} x", "HSET {} x 1", "ZADD {} 1 x"] {
            let redis = Redis::new().await;
            redis.send::<()>(&plant.replace("{}", &redis.key(name))).await;
            let planted = keys(&redis).await;
            for setup in [Setup::new(PoolConfig::default()), after_loss()] {
                let error = order(&redis, Order::Init(setup)).await.unwrap_err();
                assert_eq!(error.kind(), Kind::InvalidCall);
                let text = error.to_string();
                assert!(
                    text.contains(&format!("({name})")) && text.contains("DestroyPool"),
                    "{text}"
                );
            }
            assert_eq!(keys(&redis).await, planted);
            assert_eq!(order(&redis, Order::DestroyPool).await.unwrap(), 1, "{name} {plant}");
            assert_eq!(keys(&redis).await, [redis.key("audit")]);
            set_up(&redis, PoolConfig::default(), 1).await;
            grant(&redis).await;
            in_order(&redis).await;
        }
    }
}

#[tokio::test]
async fn what_is_only_advice_or_history_does_not_stand_in_the_way() {
    let redis = Redis::new().await;
    redis.send::<()>(&format!("ZADD {} 1 e0", redis.key("shun:a.example"))).await;
    redis.send::<()>(&format!("XADD {} * order pause", redis.key("audit"))).await;
    set_up(&redis, PoolConfig::default(), 1).await;
    grant(&redis).await;
}

#[tokio::test]
async fn a_pool_that_lost_its_meta_is_erased_and_begins_after_a_loss() {
    let redis = pool(3).await;
    let before = grant(&redis).await;
    redis.send::<()>(&format!("DEL {}", redis.key("meta"))).await;
    assert_eq!(kind(acquire(&redis, Token::random()).await), Some(Kind::PoolUninitialised));
    order(&redis, Order::Init(after_loss())).await.unwrap_err();
    order(&redis, Order::DestroyPool).await.unwrap();
    order(&redis, Order::Init(after_loss())).await.unwrap();
    let members = (0..3).map(|nth| Member::new(id(&format!("e{nth}")))).collect();
    order(&redis, Order::Add(members)).await.unwrap();
    let reply = acquire(&redis, Token::random()).await.unwrap();
    assert!(matches!(reply, AcquireReply::Hold(_)), "{reply:?}");
    assert_eq!(release(&redis, &before, Verdict::default()).await.unwrap(), ReleaseReply::NotOwner);
    redis.advance(PoolConfig::default().largest_ttl).await;
    assert!(grant(&redis).await.fence > before.fence);
    let trail = redis.store.audit(AuditRequest::new(redis.pool(), None, 9)).await.unwrap();
    let words: Vec<_> = trail.iter().map(|entry| entry.order.as_str()).collect();
    assert_eq!(words, ["add", "init:after_loss", "destroy", "add", "init"]);
    in_order(&redis).await;
}

#[tokio::test]
async fn a_failover_on_top_of_a_loss_begins_the_hold_anew() {
    let redis = Redis::new().await;
    order(&redis, Order::Init(after_loss())).await.unwrap();
    redis.advance(TTL).await;
    redis.send::<()>(&format!("HSET {} identity another", redis.key("meta"))).await;
    let reply = acquire(&redis, Token::random()).await.unwrap();
    let longest = PoolConfig::default().largest_ttl;
    assert!(matches!(reply, AcquireReply::Hold(left) if left > longest - TTL / 2), "{reply:?}");
}

#[tokio::test]
async fn damaged_orders_do_not_keep_a_pool_from_being_erased() {
    let redis = pool(1).await;
    order(&redis, Order::DestroyPool).await.unwrap_err();
    redis.send::<()>(&format!("SET {} x", redis.key("orders"))).await;
    order(&redis, Order::DestroyPool).await.unwrap();
    assert_eq!(keys(&redis).await, [redis.key("audit")]);
}

#[tokio::test]
async fn an_erased_pool_of_the_other_mode_is_met_as_it_is() {
    let redis = pool(1).await;
    assert!(grant(&redis).await.term.is_some());
    for mode in [crate::store::Mode::Shared, crate::store::Mode::Exclusive] {
        order(&redis, Order::Pause).await.unwrap();
        order(&redis, Order::DestroyPool).await.unwrap();
        let setup = Setup::new(PoolConfig { mode, ..PoolConfig::default() }).loading();
        order(&redis, Order::Init(setup)).await.unwrap();
        order(&redis, Order::Load(vec![Member::new(id("e0"))])).await.unwrap();
        assert_eq!(acquire(&redis, Token::random()).await.unwrap(), AcquireReply::Loading);
        order(&redis, Order::Open).await.unwrap();
        let exclusive = mode == crate::store::Mode::Exclusive;
        assert_eq!(grant(&redis).await.term.is_some(), exclusive);
    }
}

fn after_loss() -> Setup {
    Setup::new(PoolConfig::default()).after_loss()
}
