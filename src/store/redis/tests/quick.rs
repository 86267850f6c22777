//! What keeps calls quick.

use super::*;

#[tokio::test]
async fn tokens_are_looked_up_by_hash() {
    let redis = pool(2).await;
    let held = grant(&redis).await;
    release(&redis, &held, Verdict::default()).await.unwrap();
    for name in ["meta", "requests"] {
        let encoding: String = redis.send(&format!("OBJECT ENCODING {}", redis.key(name))).await;
        assert_eq!(encoding, "hashtable", "{name}");
    }
    // Without the note the server would search from end to end.
    redis.send::<()>(&format!("DEL {}", redis.key("requests"))).await;
    grant(&redis).await;
    let encoding: String = redis.send(&format!("OBJECT ENCODING {}", redis.key("requests"))).await;
    assert_ne!(encoding, "hashtable");
}

/// The twin takes its leases one by one: those are searched for from end to end while they are few.
#[tokio::test]
async fn leases_of_a_batch_are_found_without_a_search() {
    let (batch, one_by_one) = (pool(4).await, pool(4).await);
    let mut request = AcquireRequest::new(batch.pool(), Token::random(), TTL);
    request.tokens.push(Token::random());
    let reply = batch.store.acquire(request).await.unwrap();
    let AcquireReply::Granted(grants) = reply else { panic!("{reply:?}") };
    release(&batch, &grants[0], Verdict::default()).await.unwrap();
    grant(&one_by_one).await;
    for (redis, by_rank) in [(&batch, true), (&one_by_one, false)] {
        let leases = redis.key("leases");
        let encoding: String = redis.send(&format!("OBJECT ENCODING {leases}")).await;
        assert_eq!(encoding == "skiplist", by_rank, "{encoding}");
        assert_eq!(redis.send::<usize>(&format!("ZCARD {leases}")).await, 1);
        in_order(redis).await;
    }
}

async fn due(redis: &Redis) -> u64 {
    redis.send(&format!("HGET {} due", redis.key("meta"))).await
}

#[tokio::test]
async fn calls_know_when_the_next_lease_ends_or_has_cooled() {
    let redis = pool(3).await;
    let (first, second) = (grant(&redis).await, grant(&redis).await);
    let ends = due(&redis).await;
    let deadline: u64 =
        redis.send(&format!("ZSCORE {} {}", redis.key("leases"), first.endpoint)).await;
    assert_eq!(ends, deadline);
    release(&redis, &first, Verdict::cooldown(TTL / 2)).await.unwrap();
    assert!(due(&redis).await < ends);
    let cools = due(&redis).await;
    release(&redis, &second, Verdict::cooldown(TTL)).await.unwrap();
    assert_eq!(due(&redis).await, cools);
    redis.advance(TTL).await;
    grant(&redis).await;
    in_order(&redis).await;
}

#[tokio::test]
async fn a_time_that_is_too_late_hides_expiries_from_all_but_reap() {
    let redis = pool(1).await;
    grant(&redis).await;
    redis.advance(TTL).await;
    let late = format!("HSET {} due 4000000000000000", redis.key("meta"));
    redis.send::<()>(&late).await;
    let reply = acquire(&redis, Token::random()).await.unwrap();
    assert!(matches!(reply, AcquireReply::Empty { .. }), "{reply:?}");
    assert_eq!(reap(&redis).await.unwrap().0, 1);
    redis.advance(TTL).await;
    grant(&redis).await;
    in_order(&redis).await;
}
