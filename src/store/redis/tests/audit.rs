//! The trail of orders, as it is stored.

use super::*;
use crate::store::{AuditRequest, MAX_AUDITED, MAX_TRAIL, Setup};

async fn newest(redis: &Redis) -> crate::store::AuditEntry {
    redis.store.audit(AuditRequest::new(redis.pool(), None, 1)).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_trail_keeps_about_the_last_ten_thousand() {
    let redis = pool(1).await;
    let fill = "for nth = 1, 20000 do \
                redis.call('XADD', KEYS[1], '*', 'by', '', 'order', 'pause') end";
    let filled: redis::RedisResult<()> = redis::Script::new(fill)
        .key(redis.key("audit"))
        .invoke_async(&mut redis.connection.clone())
        .await;
    filled.unwrap();
    order(&redis, Order::Pause).await.unwrap();
    let kept: usize = redis.send(&format!("XLEN {}", redis.key("audit"))).await;
    assert!((MAX_TRAIL..MAX_TRAIL + 200).contains(&kept), "{kept}");
    let all = redis.store.audit(AuditRequest::new(redis.pool(), None, usize::MAX)).await.unwrap();
    assert_eq!((all.len(), all[0].order.as_str()), (kept, "pause"));
}

#[tokio::test]
async fn an_order_on_many_is_recorded_as_often_as_it_takes_place() {
    let redis = pool(1100).await;
    let all = redis.store.audit(AuditRequest::new(redis.pool(), None, 9)).await.unwrap();
    let told: Vec<_> = all.iter().map(|entry| (entry.order.as_str(), entry.number)).collect();
    assert_eq!(told, [("add", 100), ("add", 500), ("add", 500), ("init", 0)]);
}

#[tokio::test]
async fn a_load_is_recorded_once() {
    let redis = Redis::new().await;
    let loading = Setup::new(PoolConfig::default()).loading();
    order(&redis, Order::Init(loading)).await.unwrap();
    let members = (0..1100).map(|nth| Member::new(id(&format!("e{nth}")))).collect();
    assert_eq!(order(&redis, Order::Load(members)).await.unwrap(), 1100);
    let all = redis.store.audit(AuditRequest::new(redis.pool(), None, 9)).await.unwrap();
    let told: Vec<_> = all.iter().map(|entry| (entry.order.as_str(), entry.number)).collect();
    assert_eq!(told, [("load", 1100), ("init:loading", 0)]);
    assert_eq!((all[0].endpoints.len(), all[0].endpoints[31].as_str()), (MAX_AUDITED, "e31"));
}

#[tokio::test]
async fn the_time_is_the_servers() {
    let redis = pool(1).await;
    let time = async || {
        let [seconds, micros]: [u64; 2] = redis.send("TIME").await;
        std::time::SystemTime::UNIX_EPOCH + Duration::from_micros(seconds * 1_000_000 + micros)
    };
    let before = time().await;
    order(&redis, Order::Pause).await.unwrap();
    assert!((before..=time().await).contains(&newest(&redis).await.time));
}

#[tokio::test]
async fn an_entry_of_another_making_is_read_as_far_as_it_goes() {
    let redis = pool(1).await;
    redis.send::<()>(&format!("XADD {} * order later by kim more 7", redis.key("audit"))).await;
    let entry = newest(&redis).await;
    assert_eq!((entry.order.as_str(), entry.number), ("later", 0));
    assert_eq!(entry.by.unwrap().as_str(), "kim");
}

#[tokio::test]
async fn no_order_of_a_damaged_trail_is_carried_out() {
    let redis = pool(2).await;
    redis.send::<()>(&format!("DEL {}", redis.key("audit"))).await;
    redis.send::<()>(&format!("HSET {} a b", redis.key("audit"))).await;
    for refused in [
        Order::Add(vec![Member::new(id("new"))]),
        Order::Disable(vec![id("e0")]),
        Order::Remove(vec![id("e0")]),
        Order::Pause,
        Order::EndHold,
    ] {
        assert_eq!(kind(order(&redis, refused).await), Some(Kind::StoreRefused));
    }
    let request = AuditRequest::new(redis.pool(), None, 1);
    assert_eq!(kind(redis.store.audit(request).await), Some(Kind::StoreRefused));
    let status = redis.store.status(&redis.pool()).await.unwrap();
    assert_eq!((status.ready, status.paused), (2, false));
    // Workers go on.
    release(&redis, &grant(&redis).await, Verdict::default()).await.unwrap();
    in_order(&redis).await;
}
