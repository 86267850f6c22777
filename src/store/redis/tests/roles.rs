//! What the store does as each of the server's users.

use std::sync::Arc;

use super::*;
use crate::redis::acl::Role;
use crate::store::{AuditRequest, Setup};
use crate::verdict::QuarantineCode;

/// The same pool as a user of a role.
async fn login(redis: &Redis, role: Role) -> Redis {
    let user = format!("{role:?}").to_lowercase();
    redis.send::<()>(&role.set_user(&user, &redis.namespace)).await;
    redis.send::<()>(&format!("ACL SETUSER {user} >word")).await;
    let url = redis.server.url().replace("redis://", &format!("redis://{user}:word@"));
    let builder = crate::store::RedisStore::builder(url).namespace(&redis.namespace);
    Redis {
        store: builder.call_timeout(support::redis::PATIENCE).build().await.unwrap(),
        namespace: redis.namespace.clone(),
        pool: redis.pool(),
        connection: redis.connection.clone(),
        server: redis.server.clone(),
    }
}

fn orders() -> Vec<Order> {
    let ids = || vec![id("e0")];
    let members = || vec![Member::new(id("e0")), Member::new(id("e1")).with_weight(2)];
    vec![
        Order::Init(Setup::new(PoolConfig::default()).loading()),
        Order::Load(members()),
        Order::Open,
        Order::Add(members()),
        Order::Disable(ids()),
        Order::Drain(ids()),
        Order::Quarantine(ids(), QuarantineCode::Probe),
        Order::EndQuarantine(ids(), QuarantineCode::Probe),
        Order::Enable(ids()),
        Order::Remove(ids()),
        Order::EndHold,
        Order::Resume,
        Order::Pause,
        Order::DestroyPool,
    ]
}

async fn server() -> Redis {
    Redis::on(Arc::new(Server::start(&[]))).await
}

/// All keys of the pool, with what they hold.
async fn everything(redis: &Redis) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for key in redis.send::<Vec<String>>(&format!("KEYS {}*", redis.key(""))).await {
        let held = redis.send::<Vec<u8>>(&format!("DUMP {key}")).await;
        all.push((key, held));
    }
    all.sort();
    all
}

#[tokio::test]
async fn an_administrator_may_order_all_and_read_the_trail() {
    let administrator = login(&server().await, Role::Administrator).await;
    let number = orders().len();
    for one in orders() {
        let word = one.word();
        order(&administrator, one).await.unwrap_or_else(|error| panic!("{word}: {error}"));
    }
    let request = AuditRequest::new(administrator.pool(), None, 100);
    assert_eq!(administrator.store.audit(request).await.unwrap().len(), number);
}

#[tokio::test]
async fn a_worker_may_order_nothing_and_what_it_tries_changes_nothing() {
    let redis = server().await;
    let worker = login(&redis, Role::Worker).await;
    let mut refused = 0;
    for one in orders() {
        let before = everything(&redis).await;
        let word = one.word();
        let reply = order(&worker, one.clone()).await;
        assert_eq!(kind(reply), Some(Kind::StoreRefused), "{word}");
        assert_eq!(everything(&redis).await, before, "{word}");
        refused += 1;
        order(&redis, one).await.unwrap();
    }
    assert_eq!(refused, orders().len());
    set_up(&redis, PoolConfig::default(), 2).await;
    let request = AuditRequest::new(worker.pool(), None, 1);
    assert_eq!(kind(worker.store.audit(request).await), Some(Kind::StoreRefused));
    // Its own work it does.
    release(&worker, &grant(&worker).await, Verdict::default()).await.unwrap();
    in_order(&redis).await;
}

#[tokio::test]
async fn an_observer_reads_the_trail_and_orders_nothing() {
    let redis = server().await;
    set_up(&redis, PoolConfig::default(), 2).await;
    let observer = login(&redis, Role::Observer).await;
    let request = AuditRequest::new(observer.pool(), None, 9);
    assert_eq!(observer.store.audit(request).await.unwrap().len(), 2);
    assert_eq!(observer.store.status(&observer.pool()).await.unwrap().ready, 2);
    let before = everything(&redis).await;
    for one in orders() {
        assert_eq!(kind(order(&observer, one).await), Some(Kind::StoreRefused));
    }
    assert_eq!(everything(&redis).await, before);
}

#[tokio::test]
async fn each_role_is_told_its_rights() {
    let redis = server().await;
    set_up(&redis, PoolConfig::default(), 2).await;
    let rights = async |redis: &Redis| {
        let rights = redis.store.rights(&redis.pool()).await.unwrap();
        [
            rights.read,
            rights.tokens,
            rights.lease,
            rights.order,
            rights.read_trail,
            rights.write_trail,
            rights.outside,
            rights.server,
        ]
        .map(u8::from)
    };
    assert_eq!(rights(&redis).await, [1, 1, 1, 1, 1, 1, 1, 1]);
    let as_role = async |role| rights(&login(&redis, role).await).await;
    assert_eq!(as_role(Role::Administrator).await, [1, 1, 1, 1, 1, 1, 0, 0]);
    assert_eq!(as_role(Role::Worker).await, [1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(as_role(Role::Observer).await, [1, 0, 0, 0, 1, 0, 0, 0]);
}

#[tokio::test]
async fn an_observer_sees_server_and_remains_and_mends_nothing() {
    let redis = server().await;
    set_up(&redis, PoolConfig::default(), 2).await;
    let observer = login(&redis, Role::Observer).await;
    let report = observer.store.report(&redis.pool()).await.unwrap();
    assert!(report.is_primary && report.version.contains(' '));
    let refused = observer.store.repair(&redis.pool(), None).await;
    assert_eq!(kind(refused), Some(Kind::StoreRefused));
    redis.send::<()>(&format!("DEL {}", redis.key("meta"))).await;
    redis.send::<()>(&format!("SET {} x", redis.key("cooling"))).await;
    let remains = observer.store.remains(&redis.pool()).await.unwrap();
    assert_eq!(remains.sound, ["ready", "members", "uses", "orders"]);
    assert_eq!(remains.foreign, ["cooling"]);
    assert_eq!(kind(observer.store.forget_trail(&redis.pool()).await), Some(Kind::StoreRefused));
    assert!(redis.store.forget_trail(&redis.pool()).await.unwrap());
    order(&redis, Order::DestroyPool).await.unwrap();
    assert!(redis.store.remains(&redis.pool()).await.unwrap().is_empty());
}
