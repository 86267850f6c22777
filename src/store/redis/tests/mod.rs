//! What only this store can be asked: damage, limits of memory, restarts, arguments of others.

mod arguments;
mod audit;
mod backlog;
mod checker;
#[cfg(feature = "redis-cluster")]
mod cluster;
mod damage;
mod denied;
mod faults;
mod hints;
mod hold;
mod leftovers;
mod load;
mod loss;
mod lost;
mod malformed;
mod memory;
mod nowhere;
mod quick;
mod random;
mod roles;
mod scan;
mod scenes;
#[allow(dead_code, reason = "the integration tests need more of it")]
#[path = "../../../../tests/it/support"]
mod support {
    pub(crate) mod program;
    pub(crate) mod redis;
}

use std::time::Duration;

pub(super) use self::support::redis::{Redis, Server};
use crate::conformance::Fixture;
use crate::error::{Error, Kind};
use crate::id::{EndpointId, PoolName};
use crate::secret::Token;
use crate::store::{
    AcquireReply, AcquireRequest, AdminRequest, CancelReply, CancelRequest, Grant, LeaseStore,
    Member, Order, PoolConfig, ReapRequest, RedisStore, Release, ReleaseReply, ReleaseRequest,
    RenewReply, RenewRequest,
};
use crate::verdict::Verdict;

const TTL: Duration = Duration::from_secs(60);

/// A pool with members `e0`, `e1` and so on.
async fn pool(members: usize) -> Redis {
    let redis = Redis::new().await;
    set_up(&redis, PoolConfig::default(), members).await;
    redis
}

async fn set_up(redis: &Redis, config: PoolConfig, members: usize) {
    order(redis, Order::Init(config.into())).await.unwrap();
    let members = (0..members).map(|nth| Member::new(id(&format!("e{nth}")))).collect();
    order(redis, Order::Add(members)).await.unwrap();
}

async fn order(redis: &Redis, order: Order) -> Result<usize, Error> {
    let request = AdminRequest::new(redis.pool(), order);
    redis.store.administer(request).await.map(|reply| reply.changed)
}

async fn acquire(redis: &Redis, token: Token) -> Result<AcquireReply, Error> {
    redis.store.acquire(AcquireRequest::new(redis.pool(), token, TTL)).await
}

async fn grant(redis: &Redis) -> Grant {
    match acquire(redis, Token::random()).await.unwrap() {
        AcquireReply::Granted(mut grants) => grants.remove(0),
        other => panic!("a grant expected, not {other:?}"),
    }
}

async fn release(redis: &Redis, grant: &Grant, verdict: Verdict) -> Result<ReleaseReply, Error> {
    let releases = vec![Release { claim: grant.claim(), verdict, site: None }];
    let request = ReleaseRequest::new(redis.pool(), releases);
    redis.store.release(request).await.map(|replies| replies[0])
}

async fn renew(redis: &Redis, grant: &Grant) -> Result<RenewReply, Error> {
    let request = RenewRequest { pool: redis.pool(), token: token(grant), ttl: TTL };
    redis.store.renew(request).await
}

async fn cancel(redis: &Redis, token: Token) -> Result<CancelReply, Error> {
    let request = CancelRequest { pool: redis.pool(), token, tombstone: TTL };
    redis.store.cancel(request).await
}

async fn reap(redis: &Redis) -> Result<(usize, usize), Error> {
    let reply = redis.store.reap(ReapRequest { pool: redis.pool() }).await?;
    Ok((reply.reclaimed, reply.promoted))
}

async fn in_order(redis: &Redis) {
    let found = redis.store.check(&redis.pool()).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
}

fn token(grant: &Grant) -> Token {
    grant.term.unwrap().token
}

fn id(name: &str) -> EndpointId {
    EndpointId::new(name).unwrap()
}

fn kind<T>(reply: Result<T, Error>) -> Option<Kind> {
    reply.err().map(|error| error.kind())
}

fn hex(token: Token) -> String {
    token.expose().iter().map(|byte| format!("{byte:02x}")).collect()
}
