//! What removed members leave behind does not grow without bound.

use super::*;

#[tokio::test]
async fn counts_of_removed_members_are_bounded() {
    let redis = pool(300).await;
    let fill = "for nth = 1, 100000 do redis.call('HSET', KEYS[1], 'gone-' .. nth, 7) end";
    let filled: redis::RedisResult<()> = redis::Script::new(fill)
        .key(redis.key("former"))
        .invoke_async(&mut redis.connection.clone())
        .await;
    filled.unwrap();
    for nth in 0..300 {
        order(&redis, Order::Remove(vec![id(&format!("e{nth}"))])).await.unwrap();
    }
    let former: usize = redis.send(&format!("HLEN {}", redis.key("former"))).await;
    assert!(former <= 100_000, "{former}");
}

#[tokio::test]
async fn orders_to_remove_what_is_gone_are_forgotten() {
    let redis = pool(20).await;
    for _ in 0..10 {
        let held = grant(&redis).await;
        order(&redis, Order::Remove(vec![held.endpoint.clone()])).await.unwrap();
        release(&redis, &held, Verdict::default()).await.unwrap();
    }
    let held = grant(&redis).await;
    order(&redis, Order::Remove(vec![held.endpoint.clone()])).await.unwrap();
    let orders: usize = redis.send(&format!("HLEN {}", redis.key("orders"))).await;
    assert_eq!(orders, 1, "only the one that waits");
    in_order(&redis).await;
}
