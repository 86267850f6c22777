//! What a lease costs a Redis server, in microseconds by its own count, beside the least that one
//! takes. Short rounds of all rows alternate, and the lowest tenth counts: what else the machine
//! does can only add. It starts a server of its own; `REDIS_SERVER` names another program.
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
    Mode, Order, Policy, PoolConfig, Release, ReleaseRequest, Site, Strike, Token, Verdict,
};

use support::redis::{Redis, Server};

const MEMBERS: usize = 1000;
/// Leases in one round of one row.
const LEASES: usize = 256;
const ROUNDS: usize = 60;
/// Calls under way, so that the server is kept at work.
const AT_ONCE: usize = 16;

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

/// As many calls with as many keys, for what calling a script costs by itself.
const NOTHING: &str = "#!lua\nreturn redis.call('TIME')\n";

/// One line of the table.
struct Row {
    name: String,
    pair: Pair,
    /// Microseconds for a lease, by round.
    costs: Vec<f64>,
}

/// What is measured.
enum Pair {
    Plain(Redis),
    Nothing(Redis),
    Lease { redis: Redis, batch: usize, site: Option<Site>, cooldown: Duration },
}

#[tokio::main]
async fn main() {
    let server = Arc::new(Server::start(&[]));
    let plain = Redis::on(server.clone()).await;
    for nth in 0..MEMBERS {
        plain.send::<()>(&format!("ZADD {} {nth} {}", plain.key("ready"), id(nth))).await;
    }
    let nothing = Redis::on(server.clone()).await;
    let mut rows = vec![
        Row::new("plain three-key pair", Pair::Plain(plain)),
        Row::new("two scripts that read the time", Pair::Nothing(nothing)),
    ];
    let (default, site) = (PoolConfig::default, Site::parse("a.example"));
    for (name, config, members, besides, site, cooldown) in [
        ("earliest", default(), MEMBERS, 0, None, 0),
        ("earliest, 1,000,000 ids", default(), 1_000_000, 0, None, 0),
        ("earliest, 200 more leased", default(), MEMBERS, 200, None, 0),
        ("earliest, cooling 1 ms", default(), MEMBERS, 0, None, 1),
        ("earliest, for a site", default(), MEMBERS, 0, site, 0),
        (
            "earliest, no failover hold",
            with(|config| config.failover_hold = false),
            MEMBERS,
            0,
            None,
            0,
        ),
        (
            "least assigned",
            with(|config| config.policy = Policy::LeastAssigned),
            MEMBERS,
            0,
            None,
            0,
        ),
        ("random", with(|config| config.policy = Policy::Random), MEMBERS, 0, None, 0),
        ("shared", with(|config| config.mode = Mode::Shared), MEMBERS, 0, None, 0),
    ] {
        let redis = Redis::on(server.clone()).await;
        set_up(&redis, config, members, besides).await;
        for batch in [1, MAX_BATCH] {
            let redis = Redis::named(server.clone(), redis.namespace.clone()).await;
            let cooldown = Duration::from_millis(cooldown);
            let pair = Pair::Lease { redis, batch, site: site.clone(), cooldown };
            rows.push(Row::new(&format!("{name} x{batch}"), pair));
        }
    }
    for _ in 0..ROUNDS {
        for row in &mut rows {
            row.round().await;
        }
    }
    let plain = rows[0].cost();
    for row in &mut rows {
        let cost = row.cost();
        println!("{:32} {cost:6.1} us, {:.2} of plain", row.name, cost / plain);
    }
}

fn with(change: impl Fn(&mut PoolConfig)) -> PoolConfig {
    let mut config = PoolConfig::default();
    change(&mut config);
    config
}

async fn set_up(redis: &Redis, config: PoolConfig, members: usize, leased: usize) {
    let members = (0..members).map(|nth| Member::new(id(nth))).collect();
    for order in [Order::Init(config.into()), Order::Add(members)] {
        redis.store.administer(AdminRequest::new(redis.pool(), order)).await.unwrap();
    }
    for _ in 0..leased {
        acquire(redis, 1, None).await;
    }
}

impl Row {
    fn new(name: &str, pair: Pair) -> Self {
        Self { name: name.to_owned(), pair, costs: Vec::new() }
    }

    async fn round(&mut self) {
        let (redis, batch) = match &self.pair {
            Pair::Plain(redis) | Pair::Nothing(redis) => (redis, 1),
            Pair::Lease { redis, batch, .. } => (redis, *batch),
        };
        self.pair.once().await;
        let before = spent(redis).await;
        let turns = LEASES / batch / AT_ONCE;
        let worker = || async {
            for _ in 0..turns {
                self.pair.once().await;
            }
        };
        join_all((0..AT_ONCE).map(|_| worker())).await;
        let spent = spent(redis).await - before;
        self.costs.push(spent as f64 / (turns * AT_ONCE * batch) as f64);
    }

    fn cost(&mut self) -> f64 {
        self.costs.sort_by(f64::total_cmp);
        self.costs[self.costs.len() / 10]
    }
}

impl Pair {
    async fn once(&self) {
        match self {
            Self::Plain(redis) => plain(redis).await,
            Self::Nothing(redis) => {
                for _ in 0..2 {
                    let time: Vec<String> = call(redis, NOTHING, &["0", "60000"]).await;
                    assert_eq!(time.len(), 2);
                }
            }
            Self::Lease { redis, batch, site, cooldown } => {
                let grants = acquire(redis, *batch, site.as_ref()).await;
                let verdict = Verdict::cooldown(*cooldown).with_strike(Strike::Reset);
                let release =
                    |grant: &Grant| Release::new(grant.claim(), verdict.clone(), site.clone());
                let releases = grants.iter().map(release).collect();
                redis.store.release(ReleaseRequest::new(redis.pool(), releases)).await.unwrap();
            }
        }
    }
}

async fn acquire(redis: &Redis, batch: usize, site: Option<&Site>) -> Vec<Grant> {
    let mut request = AcquireRequest::new(redis.pool(), Token::random(), Duration::from_secs(600));
    request.tokens = (0..batch).map(|_| Token::random()).collect();
    request.site = site.cloned();
    let reply = redis.store.acquire(request).await.unwrap();
    let AcquireReply::Granted(grants) = reply else { panic!("{reply:?}") };
    assert_eq!(grants.len(), batch);
    grants
}

async fn plain(redis: &Redis) {
    let token = "0123456789abcdef0123456789abcdef";
    let taken: Vec<String> = call(redis, TAKE, &[token, "60000"]).await;
    let given: Vec<String> = call(redis, GIVE, &[&taken[1], token]).await;
    assert_eq!(given, ["released"]);
}

async fn call(redis: &Redis, script: &str, args: &[&str]) -> Vec<String> {
    let script = redis::Script::new(script);
    let keys = ["ready", "leases", "owners"].map(|name| redis.key(name));
    script.key(&keys).arg(args).invoke_async(&mut redis.connection.clone()).await.unwrap()
}

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
