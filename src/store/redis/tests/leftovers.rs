//! What removed members leave behind does not grow without bound.

use super::*;

#[tokio::test]
async fn counts_of_removed_members_are_bounded() {
    let redis = pool(1000).await;
    let fill = "for nth = 1, 100000 do redis.call('HSET', KEYS[1], 'gone-' .. nth, 7) end";
    let filled: redis::RedisResult<()> = redis::Script::new(fill)
        .key(redis.key("former"))
        .invoke_async(&mut redis.connection.clone())
        .await;
    filled.unwrap();
    let former = async || redis.send::<usize>(&format!("HLEN {}", redis.key("former"))).await;
    // One by one, and as many as one call takes.
    for nth in 0..200 {
        order(&redis, Order::Remove(vec![id(&format!("e{nth}"))])).await.unwrap();
    }
    assert!(former().await <= 100_000, "{}", former().await);
    let ids = (200..1000).map(|nth| id(&format!("e{nth}"))).collect();
    order(&redis, Order::Remove(ids)).await.unwrap();
    assert!((99_000..=100_000).contains(&former().await), "{}", former().await);
    let kept: u64 = redis.send(&format!("HGET {} e999", redis.key("former"))).await;
    assert_eq!(kept, 0, "the last to come are not the first to be forgotten");
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
    assert_eq!(orders, 2, "beside the note only the one that waits");
    in_order(&redis).await;
}
