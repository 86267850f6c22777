//! What each role may not do.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use reqwest_lease::conformance::Fixture;
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminRequest, EndpointId, Kind, LeaseStore, Member, Order,
    PoolConfig, PoolName, RedisRole, Token,
};

use super::{Roles, login};
use crate::support::redis::Redis;

async fn set_up(store: &dyn LeaseStore, pool: &PoolName) {
    let members = ["a", "b", "c"].map(|name| Member::new(EndpointId::new(name).unwrap())).into();
    for order in [Order::Init(PoolConfig::default().into()), Order::Add(members)] {
        store.administer(AdminRequest::new(pool.clone(), order)).await.unwrap();
    }
}

/// All that the server holds of the pool, as a text to compare.
async fn everything(redis: &Redis) -> Vec<(String, Vec<u8>)> {
    let mut keys: Vec<String> = redis.send(&format!("KEYS {}:*", redis.namespace)).await;
    keys.sort();
    let mut all = Vec::new();
    for key in keys {
        let held = redis.send(&format!("DUMP {key}")).await;
        all.push((key, held));
    }
    all
}

async fn connect(url: String) -> MultiplexedConnection {
    redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap()
}

/// What nobody but the server's owner does, and what touches orders, audit or others' keys.
const OF_OTHERS: &[&[&str]] = &[
    &["FLUSHALL"],
    &["FLUSHDB"],
    &["KEYS", "*"],
    &["SCAN", "0"],
    &["CONFIG", "SET", "maxmemory", "0"],
    &["CONFIG", "GET", "*"],
    &["SCRIPT", "LOAD", "return 1"],
    &["SCRIPT", "FLUSH"],
    &["SCRIPT", "KILL"],
    &["FUNCTION", "FLUSH"],
    &["ACL", "SETUSER", "other", "on", "nopass", "+@all", "~*"],
    &["ACL", "LIST"],
    &["CLIENT", "KILL", "TYPE", "pubsub"],
    &["REPLICAOF", "NO", "ONE"],
    &["BGREWRITEAOF"],
    &["SHUTDOWN", "NOSAVE"],
    &["MONITOR"],
    &["SAVE"],
    &["SWAPDB", "0", "0"],
    &["RENAME", "{pool}:meta", "{pool}:other"],
    &["DUMP", "{pool}:requests"],
    &["GET", "elsewhere"],
    &["SET", "elsewhere", "1"],
    &["EVAL", "return redis.call('SET', 'elsewhere', '1')", "0"],
    &["EVAL", "return redis.call('SET', KEYS[1], '1')", "1", "elsewhere"],
    &["EVAL", "return redis.call('FLUSHALL')", "0"],
    &["EVAL", "return redis.call('KEYS', '*')", "0"],
];

const OF_ADMINISTRATORS: &[&[&str]] = &[
    &["HSET", "{pool}:orders", "a", "disable"],
    &["HDEL", "{pool}:orders", "*"],
    &["DEL", "{pool}:orders"],
    &["XADD", "{pool}:audit", "*", "who", "me"],
    &["XRANGE", "{pool}:audit", "-", "+"],
    &["DEL", "{pool}:audit"],
    &["EVAL", "return redis.call('HSET', '{pool}:orders', '*', 'pause')", "0"],
    &["EVAL", "return redis.call('HSET', KEYS[1], '*', 'pause')", "1", "{pool}:orders"],
    &["EVAL", "return redis.call('XADD', '{pool}:audit', '*', 'who', 'me')", "0"],
    &["EVAL", "return redis.call('DEL', KEYS[1])", "1", "{pool}:audit"],
];

const WRITES: &[&[&str]] = &[
    &["HSET", "{pool}:meta", "fence", "1"],
    &["ZADD", "{pool}:ready", "1", "a"],
    &["DEL", "{pool}:leases"],
    &["HGETALL", "{pool}:requests"],
    &["HGETALL", "{pool}:requests"],
    &["ZRANGE", "{pool}:cancelled", "0", "-1"],
    &["EVAL_RO", "return redis.call('HGETALL', '{pool}:requests')", "0"],
];

fn command(words: &[&str], redis: &Redis) -> redis::Cmd {
    let pool = redis.key("");
    let pool = pool.trim_end_matches(':');
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(word.replace("{pool}", pool));
    }
    command
}

/// Each is refused for want of permission, and nothing is changed by it.
async fn are_refused(redis: &Redis, url: String, all: &[&[&[&str]]]) {
    let mut connection = connect(url).await;
    let before = everything(redis).await;
    for words in all.iter().copied().flatten() {
        let answer: redis::RedisResult<redis::Value> =
            command(words, redis).query_async(&mut connection).await;
        let error = answer.expect_err(&format!("{words:?}"));
        let told = error.to_string();
        // Inside a script the server's refusal has no code of its own.
        let inner = words[0].starts_with("EVAL")
            && ["ACL failure", "permission", "can't access", "can't run"]
                .iter()
                .any(|word| told.contains(word));
        assert!(error.code() == Some("NOPERM") || inner, "{words:?}: {told}");
        assert!(everything(redis).await == before, "{words:?}");
    }
    let elsewhere: bool = redis.send("EXISTS elsewhere").await;
    assert!(!elsewhere);
}

#[tokio::test]
async fn a_worker_does_nothing_that_is_not_its_own() {
    let roles = Roles::new().await;
    set_up(&roles, &roles.pool()).await;
    let url = login(&roles.redis, RedisRole::Worker).await;
    are_refused(&roles.redis, url, &[OF_OTHERS, OF_ADMINISTRATORS]).await;
}

#[tokio::test]
async fn an_administrator_keeps_to_the_namespace() {
    let roles = Roles::new().await;
    set_up(&roles, &roles.pool()).await;
    let url = login(&roles.redis, RedisRole::Administrator).await;
    are_refused(&roles.redis, url, &[OF_OTHERS]).await;
}

#[tokio::test]
async fn an_observer_writes_nothing_and_reads_no_tokens() {
    let roles = Roles::new().await;
    set_up(&roles, &roles.pool()).await;
    roles.acquire(AcquireRequest::new(roles.pool(), Token::random(), TTL)).await.unwrap();
    let url = login(&roles.redis, RedisRole::Observer).await;
    let readable = |words: &&&[&str]| words[0] != "XRANGE";
    let administrators: Vec<_> = OF_ADMINISTRATORS.iter().filter(readable).copied().collect();
    are_refused(&roles.redis, url, &[OF_OTHERS, &administrators, WRITES]).await;
}

/// Twin: to a user who may do all, the same commands are not refused for permission.
#[tokio::test]
async fn the_same_is_allowed_to_the_all_powerful() {
    let redis = Redis::on(std::sync::Arc::new(crate::support::redis::Server::start(&[]))).await;
    set_up(&redis.store, &redis.pool()).await;
    // What ends or blocks the server, or turns the connection into another thing.
    let spoils = ["FLUSHALL", "FLUSHDB", "SHUTDOWN", "MONITOR", "SWAPDB", "RENAME"];
    let all = [OF_OTHERS, OF_ADMINISTRATORS, WRITES];
    let mut allowed = 0;
    for words in all.iter().copied().flatten().filter(|words| !spoils.contains(&words[0])) {
        let answer: redis::RedisResult<redis::Value> =
            command(words, &redis).query_async(&mut redis.connection.clone()).await;
        if let Err(error) = answer {
            let told = error.to_string();
            let denied = ["NOPERM", "permission", "ACL", "can't access", "can't run"]
                .iter()
                .any(|word| told.contains(word));
            assert!(!denied, "{words:?}: {told}");
        } else {
            allowed += 1;
        }
    }
    assert!(allowed > 30, "{allowed}");
    for words in [&["FLUSHDB"], &["FLUSHALL"]] {
        set_up_again(&redis).await;
        command(words, &redis).exec_async(&mut redis.connection.clone()).await.unwrap();
        assert!(everything(&redis).await.is_empty());
    }
}

async fn set_up_again(redis: &Redis) {
    redis.send::<()>("FLUSHALL").await;
    set_up(&redis.store, &redis.pool()).await;
}

#[tokio::test]
async fn orders_of_workers_and_observers_are_refused_and_change_nothing() {
    let roles = Roles::new().await;
    set_up(&roles, &roles.pool()).await;
    let pool = roles.pool();
    let held = AcquireRequest::new(pool.clone(), Token::random(), TTL);
    let AcquireReply::Granted(held) = roles.acquire(held).await.unwrap() else { panic!() };
    let before = everything(&roles.redis).await;
    let ids = || vec![EndpointId::new("b").unwrap(), held[0].endpoint.clone()];
    let orders = || {
        let code = reqwest_lease::QuarantineCode::Administrator;
        let back = Member::new(EndpointId::new("a").unwrap()).with_weight(5);
        [
            Order::Disable(ids()),
            Order::Drain(ids()),
            Order::Enable(ids()),
            Order::Quarantine(ids(), code),
            Order::Add(vec![back]),
            Order::Pause,
            Order::Resume,
            Order::Remove(ids()),
        ]
    };
    for store in [&roles.worker, &roles.observer] {
        for order in orders() {
            let told = format!("{order:?}");
            let error = store.administer(AdminRequest::new(pool.clone(), order)).await;
            let error = error.expect_err(&told);
            assert_eq!(error.kind(), Kind::StoreRefused, "{told}");
            assert!(everything(&roles.redis).await == before, "{told}");
        }
    }
    for order in orders() {
        roles.administer(AdminRequest::new(pool.clone(), order)).await.unwrap();
    }
}

const TTL: Duration = Duration::from_secs(60);
