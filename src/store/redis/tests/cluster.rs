//! A pool with all that belongs to it is in one slot.

use std::net::TcpListener;
use std::sync::Arc;

use super::*;
use crate::redis::commands;
use crate::redis::keys::STATE;
use crate::redis::tests::cluster::{Nodes, POOLS, begin_to_move};
use crate::store::{AuditRequest, ListRequest, Setup, State};
use crate::verdict::Strike;

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

/// A paused pool of which all but the orders has moved to another node, with a lease of an endpoint
/// that has been disabled since. Every key holds something: else the node would send calls back.
async fn half_moved(nodes: &Nodes) -> (Redis, Grant, [String; 2]) {
    let [from, to, _] = &nodes.primaries[..] else { panic!() };
    let client = redis::Client::open(from.url()).unwrap();
    let redis = Redis {
        store: RedisStore::cluster([to.url()])
            .namespace("lease")
            .call_timeout(Duration::from_millis(300))
            .connect_timeout(Duration::from_secs(5))
            .build()
            .await
            .unwrap(),
        namespace: "lease".to_owned(),
        pool: PoolName::new(POOLS[0].0).unwrap(),
        connection: client.get_multiplexed_async_connection().await.unwrap(),
        server: Server::shared(),
    };
    set_up(&redis, PoolConfig::default(), 6).await;
    order(&redis, Order::Add(vec![Member::new(id("e5")).with_weight(2)])).await.unwrap();
    order(&redis, Order::Remove(vec![id("e4")])).await.unwrap();
    order(&redis, Order::Disable(vec![id("e3")])).await.unwrap();
    let cooled = grant(&redis).await;
    let verdict = Verdict::cooldown(TTL).with_strike(Strike::Add);
    release(&redis, &cooled, verdict).await.unwrap();
    cancel(&redis, Token::random()).await.unwrap();
    let held = grant(&redis).await;
    order(&redis, Order::Disable(vec![held.endpoint.clone()])).await.unwrap();
    order(&redis, Order::Pause).await.unwrap();
    let ids = begin_to_move(nodes);
    for name in STATE.iter().copied().chain(["audit"]) {
        let moved: String =
            from.ask(&format!("MIGRATE 127.0.0.1 {} {} 0 1000", to.port(), redis.key(name)));
        assert_eq!(moved, "OK", "{name}");
    }
    (redis, held, ids)
}

#[tokio::test]
async fn orders_that_have_not_moved_yet_are_waited_for() {
    let nodes = Nodes::start(false).await;
    let (redis, held, ids) = half_moved(&nodes).await;
    let [from, to, _] = &nodes.primaries[..] else { panic!() };
    let replies = [
        acquire(&redis, Token::random()).await.map(drop),
        release(&redis, &held, Verdict::default()).await.map(drop),
        cancel(&redis, token(&held)).await.map(drop),
        order(&redis, Order::Resume).await.map(drop),
        order(&redis, Order::Enable(vec![id("e3")])).await.map(drop),
        redis.store.status(&redis.pool()).await.map(drop),
    ];
    for reply in replies {
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), Kind::PoolWithoutOrders, "{error}");
        assert!(error.is_transient() && !error.may_have_run(), "{error}");
    }
    // A call that waits goes on when they have come.
    let waiting = tokio::spawn({
        let store = redis.store.clone();
        let request = AcquireRequest::new(redis.pool(), Token::random(), TTL);
        async move { store.acquire(request).await }
    });
    let orders = redis.key("orders");
    let _: String = from.ask(&format!("MIGRATE 127.0.0.1 {} {orders} 0 1000", to.port()));
    for server in [to, from] {
        let _: () = server.ask(&format!("CLUSTER SETSLOT {} NODE {}", POOLS[0].1, ids[1]));
    }
    let reply = waiting.await.unwrap().unwrap();
    // The slot's new node has another identity.
    assert!(matches!(reply, AcquireReply::Paused), "{reply:?}");
    release(&redis, &held, Verdict::default()).await.unwrap();
    let request = ListRequest { pool: redis.pool(), after: None, limit: 9 };
    let members = redis.store.list(request).await.unwrap();
    let member = members.iter().find(|member| member.endpoint == held.endpoint).unwrap();
    assert_eq!(member.state, State::Disabled);
    in_order(&redis).await;
}

#[tokio::test]
async fn a_slot_that_has_moved_begins_with_a_hold() {
    let nodes = Nodes::start(false).await;
    let (redis, _, ids) = half_moved(&nodes).await;
    let [from, to, _] = &nodes.primaries[..] else { panic!() };
    let orders = redis.key("orders");
    let _: String = from.ask(&format!("MIGRATE 127.0.0.1 {} {orders} 0 1000", to.port()));
    for server in [to, from] {
        let _: () = server.ask(&format!("CLUSTER SETSLOT {} NODE {}", POOLS[0].1, ids[1]));
    }
    order(&redis, Order::Resume).await.unwrap();
    let reply = acquire(&redis, Token::random()).await.unwrap();
    assert!(matches!(reply, AcquireReply::Hold(_)), "{reply:?}");
    order(&redis, Order::EndHold).await.unwrap();
    grant(&redis).await;
}

/// Twin: without the look for the note a paused pool grants, and a disabled endpoint is freed.
#[tokio::test]
async fn without_the_note_orders_that_have_not_moved_are_ignored() {
    let nodes = Nodes::start(false).await;
    let (redis, held, _) = half_moved(&nodes).await;
    let to = &nodes.primaries[1];
    let client = redis::Client::open(to.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let token = hex(token(&held));
    for (command, guard, turned_off, args) in [
        (
            &commands::ACQUIRE,
            "'*', '.'))",
            "'*', '.')), true",
            &["1000000", "0", "0", "", "1", "0123456789abcdef0123456789abcdef"][..],
        ),
        (&commands::RELEASE, "or not note or", "or", &[&token, "0", "keep", "", "0", ""]),
    ] {
        let source = command.script.source;
        let blind = source.replace(guard, turned_off).replace("watched == 'on'", "false");
        assert_ne!(blind, source);
        let mut pipe = redis::pipe();
        pipe.cmd("ASKING").ignore().cmd("EVAL").arg(&blind).arg(command.keys.len());
        for name in command.keys {
            pipe.arg(redis.key(name));
        }
        pipe.arg(args);
        let answer: Vec<Vec<String>> = pipe.query_async(&mut connection).await.unwrap();
        assert!(["released", "granted"].iter().any(|word| answer[0].iter().any(|it| it == word)));
    }
}
