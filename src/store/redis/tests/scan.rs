//! Endpoints that are passed over.

use super::*;
use crate::site::Site;
use crate::store::Policy;

/// A pool whose first members are shunned for a site.
async fn shunned(members: usize, number: usize, policy: Policy) -> (Redis, AcquireRequest) {
    let redis = Redis::new().await;
    set_up(&redis, PoolConfig { policy, ..PoolConfig::default() }, members).await;
    let site = Site::parse("a.example").unwrap();
    let mut add = redis::cmd("ZADD");
    add.arg(redis.key("shun:a.example"));
    let all: Vec<String> = redis.send(&format!("ZRANGE {} 0 -1", redis.key("ready"))).await;
    for id in &all[..number] {
        add.arg(4_000_000_000_000_000_u64).arg(id);
    }
    let added: redis::RedisResult<()> = add.query_async(&mut redis.connection.clone()).await;
    added.unwrap();
    let mut request = AcquireRequest::new(redis.pool(), Token::random(), TTL);
    request.site = Some(site);
    (redis, request)
}

#[tokio::test]
async fn up_to_256_are_passed_over_wherever_the_number_leads() {
    for policy in [Policy::Earliest, Policy::LeastAssigned] {
        for random in [0, u64::MAX / 2, u64::MAX] {
            let (redis, mut request) = shunned(256, 255, policy).await;
            request.random = random;
            let reply = redis.store.acquire(request).await.unwrap();
            assert!(matches!(reply, AcquireReply::Granted(_)), "{reply:?}");
            in_order(&redis).await;
        }
    }
}

#[tokio::test]
async fn behind_many_the_number_decides() {
    let (redis, mut request) = shunned(2000, 1000, Policy::Earliest).await;
    let reply = redis.store.acquire(request.clone()).await.unwrap();
    assert!(matches!(reply, AcquireReply::Empty { next: Some(_), restricted: true }), "{reply:?}");
    request.random = u64::MAX / 4 * 3;
    let reply = redis.store.acquire(request).await.unwrap();
    assert!(matches!(reply, AcquireReply::Granted(_)), "{reply:?}");
}

#[tokio::test]
async fn a_random_batch_is_granted_as_far_as_endpoints_go() {
    let (redis, mut request) = shunned(12, 3, Policy::Random).await;
    request.tokens = (0..16).map(|_| Token::random()).collect();
    request.random = u64::MAX / 3;
    let AcquireReply::Granted(grants) = redis.store.acquire(request).await.unwrap() else {
        panic!("grants expected");
    };
    assert_eq!(grants.len(), 9);
    in_order(&redis).await;
}

/// Endpoints that a call looks at: each look at a shun tells of as many as it asks for.
async fn looked_at(redis: &Redis, request: AcquireRequest) -> usize {
    let mut call = redis::cmd("EVAL");
    let source = crate::redis::commands::ACQUIRE.script.source;
    let counting = source.replace("call('ZMSCORE', shun, unpack(ids))", COUNTED);
    assert_ne!(counting, source);
    call.arg(counting).arg(13);
    for key in crate::redis::keys::STATE {
        call.arg(redis.key(key));
    }
    call.arg(redis.key("shun:a.example"));
    call.arg(60_000_000).arg(0).arg(request.random >> 32).arg("").arg(request.tokens.len());
    for token in &request.tokens {
        call.arg(hex(*token));
    }
    call.exec_async(&mut redis.connection.clone()).await.unwrap();
    redis.send(&format!("HGET {} looked_at", redis.key("meta"))).await
}

const COUNTED: &str = "(call('HINCRBY', KEYS[1], 'looked_at', #ids) and \
    call('ZMSCORE', shun, unpack(ids)))";

#[tokio::test]
async fn a_batch_looks_at_256_in_all_at_most() {
    for policy in [Policy::Random, Policy::Earliest] {
        let (redis, mut request) = shunned(3000, 2900, policy).await;
        request.tokens = (0..16).map(|_| Token::random()).collect();
        request.random = u64::MAX / 3;
        let looked_at = looked_at(&redis, request).await;
        assert!((200..=256).contains(&looked_at), "{policy:?}: {looked_at}");
    }
}
