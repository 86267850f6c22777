//! What an admission by a shared budget costs a Redis server, in microseconds by its own count,
//! beside a plain generic cell rate script in the same run. It starts a server of its own;
//! `REDIS_SERVER` names another program.
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
use reqwest_lease::SharedLimits;

use support::redis::{Redis, Server};

const CALLS: usize = 32_768;
const AT_ONCE: usize = 16;
const ROUNDS: usize = 5;
const INTERVAL: Duration = Duration::from_micros(10);

/// The least that a reservation takes.
const PLAIN: &str = r"#!lua
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local tat = tonumber(call('GET', KEYS[1])) or now
if tat < now then tat = now end
local slot = math.max(now, tat - (burst - 1) * interval)
tat = tat + interval
call('SET', KEYS[1], string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000) + 1000)
return {'reserved', string.format('%.0f', slot - now)}
";

#[tokio::main]
async fn main() {
    let server = Arc::new(Server::start(&[]));
    let redis = Redis::on(server).await;
    let limits = SharedLimits::new(redis.store.connection());
    let script = redis::Script::new(PLAIN);
    let plain = async |nth: usize| {
        let mut connection = redis.connection.clone();
        let key = format!("plain:{}", nth % SITES);
        let call = script.key(key).arg(10).arg(1).invoke_async(&mut connection).await;
        let _: Vec<String> = call.unwrap();
    };
    let rate = async |nth: usize| {
        limits.charge(&site(nth), INTERVAL, 1, None).await.unwrap();
    };
    let places = async |nth: usize| {
        limits.charge(&site(nth), Duration::from_micros(1), 1, Some(1_000_000)).await.unwrap();
    };
    let (mut plains, mut rates, mut flights) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plains.push(cost(&redis, plain).await);
        rates.push(cost(&redis, rate).await);
        flights.push(cost(&redis, places).await);
    }
    let plain = median(plains);
    println!("{:34} {plain:6.1} us", "plain script");
    for (name, costs) in [("rate and pause", rates), ("rate, pause and place in flight", flights)] {
        let cost = median(costs);
        println!("{name:34} {cost:6.1} us, {:.2} of plain", cost / plain);
    }
}

const SITES: usize = 64;

fn site(nth: usize) -> String {
    format!("site-{}.example", nth % SITES)
}

fn median(mut costs: Vec<f64>) -> f64 {
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// Server time in microseconds for one call, some at once so that the server is kept at work.
async fn cost(redis: &Redis, call: impl AsyncFn(usize)) -> f64 {
    redis.send::<()>("FLUSHDB").await;
    call(0).await;
    let before = spent(redis).await;
    let turns = CALLS / AT_ONCE;
    let worker = |nth: usize| {
        let call = &call;
        async move {
            for turn in 0..turns {
                call(nth + turn * AT_ONCE).await;
            }
        }
    };
    join_all((0..AT_ONCE).map(worker)).await;
    (spent(redis).await - before) as f64 / (turns * AT_ONCE) as f64
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
