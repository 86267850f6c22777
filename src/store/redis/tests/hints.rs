//! When a release tells those who wait elsewhere.

use std::sync::Arc;

use super::*;
use crate::redis::acl::Role;
use crate::store::RedisStore;

async fn own_server() -> Redis {
    let redis = Redis::on(Arc::new(Server::start(&[]))).await;
    set_up(&redis, PoolConfig::default(), 2).await;
    redis
}

async fn give_back(redis: &Redis, store: &RedisStore, verdict: Verdict, hint: bool) {
    let releases = vec![Release { claim: grant(redis).await.claim(), verdict, site: None }];
    let request = ReleaseRequest::new(redis.pool(), releases).with_hint(hint);
    assert_eq!(store.release(request).await.unwrap(), [ReleaseReply::Released]);
}

#[tokio::test]
async fn a_hint_is_given_when_asked_for_and_when_something_is_ready() {
    let redis = own_server().await;
    let before = redis.calls("spublish").await;
    let given = async || redis.calls("spublish").await - before;
    give_back(&redis, &redis.store, Verdict::default(), false).await;
    assert_eq!(given().await, 0, "nobody asked for it");
    give_back(&redis, &redis.store, Verdict::cooldown(TTL), true).await;
    assert_eq!(given().await, 0, "nothing is ready");
    give_back(&redis, &redis.store, Verdict::default(), true).await;
    assert_eq!(given().await, 1);
    order(&redis, Order::Enable(vec![id("e0")])).await.unwrap();
    assert_eq!(given().await, 2, "orders tell always");
}

#[tokio::test]
async fn who_may_not_publish_gives_back_all_the_same() {
    let redis = own_server().await;
    let rules = Role::Worker.set_user("mute", &redis.namespace);
    redis.send::<()>(&rules).await;
    redis.send::<()>("ACL SETUSER mute >word resetchannels").await;
    let url = redis.server.url().replace("//", "//mute:word@");
    let store = RedisStore::builder(url).namespace(&redis.namespace).build().await.unwrap();
    give_back(&redis, &store, Verdict::default(), true).await;
    in_order(&redis).await;
}
