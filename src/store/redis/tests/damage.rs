//! State that is not as it should be.

use std::collections::BTreeMap;

use super::*;
use crate::redis::keys::STATE;
use crate::store::{AuditRequest, ListRequest, Policy, Setup};
use crate::verdict::{QuarantineCode, Strike};

/// A pool in which every call has something to write: an expired lease, an endpoint past its
/// cooldown, a lapsed tombstone, a valid lease, parked and ordered endpoints.
async fn busy() -> (Redis, Grant) {
    let redis = pool(8).await;
    let cooled = grant(&redis).await;
    release(&redis, &cooled, Verdict::cooldown(TTL)).await.unwrap();
    grant(&redis).await;
    cancel(&redis, Token::random()).await.unwrap();
    order(&redis, Order::Quarantine(vec![id("e3")], QuarantineCode::Probe)).await.unwrap();
    order(&redis, Order::Disable(vec![id("e4")])).await.unwrap();
    order(&redis, Order::Add(vec![Member::new(id("e5")).with_weight(2)])).await.unwrap();
    redis.advance(TTL).await;
    reap(&redis).await.unwrap();
    let struck = grant(&redis).await;
    release(&redis, &struck, Verdict::default().with_strike(Strike::Add)).await.unwrap();
    let held = grant(&redis).await;
    let removed = grant(&redis).await;
    order(&redis, Order::Remove(vec![removed.endpoint])).await.unwrap();
    redis.advance(TTL / 2).await;
    renew(&redis, &held).await.unwrap();
    redis.advance(TTL / 2).await;
    (redis, held)
}

async fn call(redis: &Redis, held: &Grant, nth: usize) -> Option<Result<(), Error>> {
    let ids = || vec![id("e2"), id("e6")];
    let verdict = Verdict::cooldown(TTL).with_strike(Strike::Add);
    Some(match nth {
        0 => acquire(redis, Token::random()).await.map(drop),
        1 => acquire(redis, token(held)).await.map(drop),
        2 => renew(redis, held).await.map(drop),
        3 => release(redis, held, verdict).await.map(drop),
        4 => release(redis, held, Verdict::default()).await.map(drop),
        5 => cancel(redis, token(held)).await.map(drop),
        6 => cancel(redis, Token::random()).await.map(drop),
        7 => reap(redis).await.map(drop),
        8 => order(redis, Order::Add(vec![Member::new(id("new")).with_weight(3)])).await.map(drop),
        9 => order(redis, Order::Remove(ids())).await.map(drop),
        10 => order(redis, Order::Disable(ids())).await.map(drop),
        11 => order(redis, Order::Enable(vec![id("e3"), id("e4")])).await.map(drop),
        12 => order(redis, Order::Quarantine(ids(), QuarantineCode::Probe)).await.map(drop),
        13 => order(redis, Order::Pause).await.map(drop),
        14 => order(redis, Order::Resume).await.map(drop),
        15 => order(redis, Order::EndHold).await.map(drop),
        16 => order(redis, Order::Init(PoolConfig::default().into())).await.map(drop),
        17 => redis.store.status(&redis.pool()).await.map(drop),
        18 => {
            let request = ListRequest { pool: redis.pool(), after: None, limit: 9 };
            redis.store.list(request).await.map(drop)
        }
        19 => redis.store.check(&redis.pool()).await.map(drop),
        20 => {
            order(redis, Order::Load(vec![Member::new(id("new")).with_weight(3)])).await.map(drop)
        }
        21 => order(redis, Order::Open).await.map(drop),
        22 => redis.store.audit(AuditRequest::new(redis.pool(), None, 9)).await.map(drop),
        23 => order(redis, Order::DestroyPool).await.map(drop),
        24 => redis.store.repair(&redis.pool(), None).await.map(drop),
        _ => return None,
    })
}

/// All keys of the pool with what they hold.
async fn everything(redis: &Redis) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for key in redis.send::<Vec<String>>(&format!("KEYS {}*", redis.key(""))).await {
        let held = redis.send::<Vec<u8>>(&format!("DUMP {key}")).await;
        all.insert(key, held);
    }
    all
}

/// A pool in which nothing is due, so that calls do no more than they must.
async fn calm(config: PoolConfig) -> (Redis, Grant) {
    let redis = Redis::new().await;
    set_up(&redis, config, 8).await;
    let held = grant(&redis).await;
    order(&redis, Order::Disable(vec![id("e3"), id("e4")])).await.unwrap();
    (redis, held)
}

/// A pool that is not open yet, and a grant that it never made.
async fn loading() -> (Redis, Grant) {
    let (other, held) = calm(PoolConfig::default()).await;
    drop(other);
    let redis = Redis::new().await;
    let config = PoolConfig { policy: Policy::LeastAssigned, ..PoolConfig::default() };
    order(&redis, Order::Init(Setup::new(config).loading())).await.unwrap();
    let members = (0..8).map(|nth| Member::new(id(&format!("e{nth}")))).collect();
    order(&redis, Order::Load(members)).await.unwrap();
    order(&redis, Order::Disable(vec![id("e3"), id("e4")])).await.unwrap();
    (redis, held)
}

#[tokio::test]
async fn a_key_of_another_type_leaves_all_as_it_was() {
    let weighted =
        calm(PoolConfig { policy: Policy::LeastAssigned, ..PoolConfig::default() }).await;
    order(&weighted.0, Order::Add(vec![Member::new(id("e5")).with_weight(2)])).await.unwrap();
    let moved = calm(PoolConfig::default()).await;
    let meta = moved.0.key("meta");
    moved.0.send::<()>(&format!("HSET {meta} identity another")).await;
    for (redis, held) in
        [busy().await, calm(PoolConfig::default()).await, weighted, moved, loading().await]
    {
        leaves_all_as_it_was(redis, held).await;
    }
}

async fn leaves_all_as_it_was(redis: Redis, held: Grant) {
    let good = everything(&redis).await;
    let mut refusals = 0;
    for name in STATE.iter().copied().chain(["orders", "audit"]) {
        redis.send::<()>(&format!("SET {} other", redis.key(name))).await;
        let damaged = everything(&redis).await;
        for nth in 0.. {
            let Some(reply) = call(&redis, &held, nth).await else { break };
            let after = everything(&redis).await;
            if let Err(error) = reply {
                let expected = [Kind::StoreRefused, Kind::InvalidCall];
                assert!(expected.contains(&error.kind()), "{name}, call {nth}: {error}");
                assert_eq!(after, damaged, "{name}, call {nth}");
                refusals += 1;
            }
            // What was allowed did not need the key; put all back for the next.
            restore(&redis, &damaged).await;
        }
        restore(&redis, &good).await;
    }
    assert!(refusals > 100, "{refusals}");
    assert!(everything(&redis).await == good);
}

async fn restore(redis: &Redis, state: &BTreeMap<String, Vec<u8>>) {
    let mut pipe = redis::pipe();
    for key in redis.send::<Vec<String>>(&format!("KEYS {}*", redis.key(""))).await {
        pipe.del(key);
    }
    for (key, held) in state {
        pipe.cmd("RESTORE").arg(key).arg(0).arg(held);
    }
    let restored: redis::RedisResult<()> = pipe.query_async(&mut redis.connection.clone()).await;
    restored.unwrap();
}

#[tokio::test]
async fn a_pool_that_lost_its_meta_is_not_set_up() {
    let (redis, held) = busy().await;
    redis.send::<()>(&format!("DEL {}", redis.key("meta"))).await;
    let before = everything(&redis).await;
    // The trail outlasts the pool, and what is left can be erased.
    for nth in (0..22).filter(|nth| *nth != 16) {
        let reply = call(&redis, &held, nth).await.unwrap();
        assert_eq!(kind(reply), Some(Kind::PoolUninitialised), "call {nth}");
    }
    let refusal = call(&redis, &held, 16).await.unwrap().unwrap_err();
    assert_eq!(refusal.kind(), Kind::InvalidCall);
    assert!(refusal.to_string().contains("DestroyPool"), "{refusal}");
    assert!(everything(&redis).await == before);
}

#[tokio::test]
async fn a_newer_layout_is_left_alone() {
    let (redis, held) = busy().await;
    redis.send::<()>(&format!("HSET {} schema 2", redis.key("meta"))).await;
    let before = everything(&redis).await;
    for nth in (0..24).filter(|nth| *nth != 16) {
        let reply = call(&redis, &held, nth).await.unwrap();
        assert_eq!(kind(reply), Some(Kind::PoolTooNew), "call {nth}");
    }
    assert_eq!(kind(call(&redis, &held, 16).await.unwrap()), Some(Kind::InvalidCall));
    assert!(everything(&redis).await == before);
}

#[tokio::test]
async fn scripts_may_be_forgotten_at_any_time() {
    let redis = Redis::on(std::sync::Arc::new(Server::start(&[]))).await;
    set_up(&redis, PoolConfig::default(), 3).await;
    for _ in 0..3 {
        redis.send::<()>("SCRIPT FLUSH").await;
        let held = grant(&redis).await;
        redis.send::<()>("SCRIPT FLUSH").await;
        assert!(matches!(renew(&redis, &held).await, Ok(RenewReply::Renewed(_))));
        redis.send::<()>("SCRIPT FLUSH").await;
        assert_eq!(
            release(&redis, &held, Verdict::default()).await.unwrap(),
            ReleaseReply::Released
        );
        redis.send::<()>("SCRIPT FLUSH").await;
        assert_eq!(redis.store.status(&redis.pool()).await.unwrap().ready, 3);
    }
}
