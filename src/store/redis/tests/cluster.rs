//! A pool with all that belongs to it is in one slot.

use std::net::TcpListener;
use std::sync::Arc;

use super::*;
use crate::store::{AuditRequest, Setup};

/// A cluster of one node, and a store of it.
async fn cluster() -> Redis {
    // A bus of the server's own choice would be 10,000 ports up, which may be none.
    let bus = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let server = Arc::new(Server::start(&["--cluster-enabled", "yes", "--cluster-port", &bus]));
    let connection = server.connection().await;
    let ask = async |words: &[&str]| -> String {
        redis::cmd("CLUSTER").arg(words).query_async(&mut connection.clone()).await.unwrap()
    };
    ask(&["ADDSLOTSRANGE", "0", "16383"]).await;
    let patience = std::time::Instant::now() + Duration::from_secs(20);
    while !ask(&["INFO"]).await.contains("cluster_state:ok") {
        assert!(std::time::Instant::now() < patience, "the cluster does not stand");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let store = crate::store::RedisStore::cluster([server.url()]).namespace("cluster");
    let store = store.build().await.unwrap();
    let pool = PoolName::new("conformance").unwrap();
    Redis { store, namespace: "cluster".to_owned(), pool, connection, server }
}

#[tokio::test]
async fn a_pool_of_a_cluster_is_loaded_audited_and_erased() {
    let redis = cluster().await;
    let setup = Setup::new(PoolConfig::default()).loading();
    order(&redis, Order::Init(setup)).await.unwrap();
    order(&redis, Order::Load(vec![Member::new(id("e0"))])).await.unwrap();
    order(&redis, Order::Open).await.unwrap();
    release(&redis, &grant(&redis).await, Verdict::default()).await.unwrap();
    in_order(&redis).await;
    order(&redis, Order::Pause).await.unwrap();
    order(&redis, Order::DestroyPool).await.unwrap();
    let trail = redis.store.audit(AuditRequest::new(redis.pool(), None, 9)).await.unwrap();
    let words: Vec<_> = trail.iter().map(|entry| entry.order.as_str()).collect();
    assert_eq!(words, ["destroy", "pause", "open", "load", "init:loading"]);
}
