//! A server at its limit of memory.

use std::sync::Arc;

use super::*;

#[tokio::test]
async fn a_full_server_takes_leases_back_and_grants_none() {
    let redis = Redis::on(Arc::new(Server::start(&["--maxmemory-policy", "noeviction"]))).await;
    set_up(&redis, PoolConfig::default(), 5).await;
    let grants = [grant(&redis).await, grant(&redis).await, grant(&redis).await];
    redis.send::<()>("CONFIG SET maxmemory 1").await;

    assert_eq!(kind(acquire(&redis, Token::random()).await), Some(Kind::StoreUnavailable));
    assert!(matches!(renew(&redis, &grants[0]).await, Ok(RenewReply::Renewed(_))));
    let rest = Verdict::cooldown(TTL);
    assert_eq!(release(&redis, &grants[0], rest).await.unwrap(), ReleaseReply::Released);
    assert_eq!(cancel(&redis, token(&grants[1])).await.unwrap(), CancelReply::Released);
    assert_eq!(redis.store.status(&redis.pool()).await.unwrap().leased, 1);
    redis.send::<()>("CONFIG SET maxmemory 0").await;
    redis.advance(TTL).await;
    redis.send::<()>("CONFIG SET maxmemory 1").await;
    assert_eq!(reap(&redis).await.unwrap(), (1, 1));
    in_order(&redis).await;
}
