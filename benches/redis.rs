//! What calls cost a Redis server, in microseconds by its own count, beside the least that a lease
//! takes in the same run. It starts a server of its own; `REDIS_SERVER` names another program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a benchmark fails by panicking, and the tests' support does more than it needs"
)]

#[path = "../tests/it/support"]
mod support {
    pub(crate) mod program;
    pub(crate) mod redis;
}

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest_lease::conformance::Fixture;
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminRequest, EndpointId, Grant, LeaseStore, MAX_BATCH, Member,
    Order, Policy, PoolConfig, Release, ReleaseRequest, Site, Strike, Token, Verdict,
};

use support::redis::{Redis, Server};

const MEMBERS: usize = 1000;
const PAIRS: usize = 16_384;

/// The least that a lease takes: an endpoint moves from one set to another and has an owner.
const TAKE: &str = r"#!lua
local call, ready, leases, owners = redis.call, KEYS[1], KEYS[2], KEYS[3]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id = call('ZRANGE', ready, 0, 0)[1]
if not id then return {'empty'} end
call('ZREM', ready, id)
call('ZADD', leases, string.format('%.0f', now + ARGV[2]), id)
call('HSET', owners, id, ARGV[1])
return {'granted', id, string.format('%.0f', now + ARGV[2])}
";
const GIVE: &str = r"#!lua flags=allow-oom
local call, ready, leases, owners = redis.call, KEYS[1], KEYS[2], KEYS[3]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if call('HGET', owners, ARGV[1]) ~= ARGV[2] then return {'not_owner'} end
local deadline = call('ZSCORE', leases, ARGV[1])
if tonumber(deadline) <= now then return {'not_owner'} end
call('HDEL', owners, ARGV[1])
call('ZREM', leases, ARGV[1])
call('ZADD', ready, string.format('%.0f', now), ARGV[1])
return {'released'}
";

#[tokio::main]
async fn main() {
    let server = Arc::new(Server::start(&[]));
    let plain = plain_pair(&Redis::on(server.clone()).await).await;
    println!("{:30} {plain:6.1} us", "plain three-key pair");
    for (name, config, site) in [
        ("earliest", PoolConfig::default(), None),
        ("earliest, for a site", PoolConfig::default(), Site::parse("a.example")),
        ("earliest, no failover hold", with(|config| config.failover_hold = false), None),
        ("least assigned", with(|config| config.policy = Policy::LeastAssigned), None),
        ("random", with(|config| config.policy = Policy::Random), None),
    ] {
        for batch in [1, MAX_BATCH] {
            let redis = Redis::on(server.clone()).await;
            let cost = pairs(&redis, config.clone(), site.clone(), batch).await;
            println!("{name:26} x{batch:2} {cost:6.1} us, {:.2} of plain", cost / plain);
        }
    }
}

fn with(change: impl Fn(&mut PoolConfig)) -> PoolConfig {
    let mut config = PoolConfig::default();
    change(&mut config);
    config
}

/// Server time in microseconds for one acquire and one release of one lease.
async fn pairs(redis: &Redis, config: PoolConfig, site: Option<Site>, batch: usize) -> f64 {
    let members = (0..MEMBERS).map(|nth| Member::new(id(nth))).collect();
    for order in [Order::Init(config.into()), Order::Add(members)] {
        redis.store.administer(AdminRequest::new(redis.pool(), order)).await.unwrap();
    }
    let pair = async || {
        let mut request =
            AcquireRequest::new(redis.pool(), Token::random(), Duration::from_secs(60));
        request.tokens = (0..batch).map(|_| Token::random()).collect();
        request.site = site.clone();
        let reply = redis.store.acquire(request).await.unwrap();
        let AcquireReply::Granted(grants) = reply else { panic!("{reply:?}") };
        assert_eq!(grants.len(), batch);
        let verdict = || Verdict::default().with_strike(Strike::Reset);
        let release = |grant: &Grant| Release::new(grant.claim(), verdict(), site.clone());
        let releases = grants.iter().map(release).collect();
        redis.store.release(ReleaseRequest::new(redis.pool(), releases)).await.unwrap();
    };
    cost(redis, batch, pair).await
}

async fn plain_pair(redis: &Redis) -> f64 {
    let (take, give) = (redis::Script::new(TAKE), redis::Script::new(GIVE));
    for nth in 0..MEMBERS {
        redis.send::<()>(&format!("ZADD {} {nth} {}", redis.key("ready"), id(nth))).await;
    }
    let keys = ["ready", "leases", "owners"].map(|name| redis.key(name));
    let token = "0123456789abcdef0123456789abcdef";
    let pair = async || {
        let mut connection = redis.connection.clone();
        let taken: Vec<String> =
            take.key(&keys).arg(token).arg(60_000).invoke_async(&mut connection).await.unwrap();
        let given: Vec<String> =
            give.key(&keys).arg(&taken[1]).arg(token).invoke_async(&mut connection).await.unwrap();
        assert_eq!(given, ["released"]);
    };
    cost(redis, 1, pair).await
}

/// Runs pairs, some at once so that the server is kept at work.
async fn cost(redis: &Redis, batch: usize, pair: impl AsyncFn()) -> f64 {
    pair().await;
    let before = spent(redis).await;
    let turns = PAIRS / batch / AT_ONCE;
    let worker = || async {
        for _ in 0..turns {
            pair().await;
        }
    };
    join_all((0..AT_ONCE).map(|_| worker())).await;
    (spent(redis).await - before) as f64 / (turns * AT_ONCE * batch) as f64
}

const AT_ONCE: usize = 16;

/// Microseconds that the server has spent on scripts.
async fn spent(redis: &Redis) -> u64 {
    let stats: String = redis.send("INFO commandstats").await;
    let of = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name));
        let usec = line.and_then(|line| line.split(",usec=").nth(1));
        usec.and_then(|usec| usec.split(',').next()).map_or(0, |usec| usec.parse().unwrap())
    };
    of("cmdstat_evalsha:") + of("cmdstat_eval:")
}

fn id(nth: usize) -> EndpointId {
    EndpointId::new(format!("endpoint-{nth:04}")).unwrap()
}
