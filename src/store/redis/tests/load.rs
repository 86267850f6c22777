//! Large inventories.

use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::store::{AuditRequest, Setup};

/// A pool to be loaded on a server of its own, which notes calls above 10 ms.
async fn closed() -> Redis {
    let redis = Redis::on(Arc::new(Server::start(&[]))).await;
    let setup = Setup::new(PoolConfig::default()).loading();
    order(&redis, Order::Init(setup)).await.unwrap();
    redis.send::<()>("CONFIG SET slowlog-log-slower-than 10000").await;
    redis.send::<()>("CONFIG SET slowlog-max-len 10000").await;
    redis.send::<()>("SLOWLOG RESET").await;
    redis
}

/// Loads members `from` to `to` in an order that is not theirs, one call at a time; how many were
/// new, and the longest call in milliseconds of the server's processor.
async fn load(redis: &Redis, from: usize, to: usize) -> (usize, f64) {
    // Products modulo a prime: each comes once.
    let member =
        |nth: usize| Member::new(id(&format!("gw-{:09}", (nth * 7_654_321) % 100_000_007)));
    let (mut changed, mut longest) = (0, 0.0_f64);
    for first in (from..to).step_by(CALL) {
        let members = (first..to.min(first + CALL)).map(member).collect();
        let before = taken(redis).await;
        changed += order(redis, Order::Load(members)).await.unwrap();
        longest = longest.max(taken(redis).await - before);
    }
    (changed, longest)
}

/// Members that the store loads by one call.
const CALL: usize = 100;

/// Milliseconds of a processor that the server's main thread has taken.
async fn taken(redis: &Redis) -> f64 {
    let told: String = redis.send("INFO cpu").await;
    let of = |name: &str| {
        let seconds = told.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        seconds.parse::<f64>().unwrap() * 1000.0
    };
    of("used_cpu_user_main_thread:") + of("used_cpu_sys_main_thread:")
}

async fn loads_in_short_calls(members: usize) {
    let redis = closed().await;
    let begun = Instant::now();
    let (first, one) = load(&redis, 0, members / 2).await;
    // It broke off and is run again from the start.
    let (second, other) = load(&redis, 0, members).await;
    assert_eq!((first, second), (members / 2, members - members / 2));
    order(&redis, Order::Open).await.unwrap();
    let slow: usize = redis.send("SLOWLOG LEN").await;
    let (longest, calls) = (one.max(other), (members + members / 2) / CALL);
    println!("{members} in {:?}: at most {longest:.1} ms, {slow} above 10", begun.elapsed());
    assert!(longest < 10.0, "a call took {longest} ms");
    // The log goes by wall time: on a busy machine a call is put off now and then.
    assert!(slow <= 2 + calls / 20, "{slow} of {calls} calls above 10 ms");
    assert_eq!(redis.store.status(&redis.pool()).await.unwrap().ready, members);
    grant(&redis).await;
    let newest = redis.store.audit(AuditRequest::new(redis.pool(), None, 1)).await.unwrap();
    assert_eq!(newest[0].order, "open");
    // Erasing it takes no longer either.
    redis.send::<()>("SLOWLOG RESET").await;
    order(&redis, Order::Pause).await.unwrap();
    order(&redis, Order::DestroyPool).await.unwrap();
    let slow: usize = redis.send("SLOWLOG LEN").await;
    assert!(slow <= 1, "{slow} calls above 10 ms");
}

/// `REQWEST_LEASE_LONG=1` loads a million.
#[tokio::test]
async fn a_large_inventory_holds_nobody_up() {
    let long = std::env::var_os("REQWEST_LEASE_LONG").is_some_and(|long| long == "1");
    loads_in_short_calls(if long { 1_000_000 } else { 20_000 }).await;
}

#[tokio::test]
async fn what_was_loaded_is_as_if_it_had_been_added() {
    use crate::store::{Mode, Policy};
    let member = |nth: u32| {
        let member = Member::new(id(&format!("e{nth:03}"))).with_weight(nth % 4 + 1);
        member.with_assignments(u64::from(nth % 7))
    };
    let members = || (0..200).map(member).collect();
    for (mode, policy) in [
        (Mode::Exclusive, Policy::Earliest),
        (Mode::Exclusive, Policy::LeastAssigned),
        (Mode::Exclusive, Policy::Random),
        (Mode::Shared, Policy::Earliest),
    ] {
        let config = PoolConfig { mode, policy, ..PoolConfig::default() };
        let mut grants = Vec::new();
        for loading in [true, false] {
            let redis = Redis::new().await;
            let setup = Setup { loading, ..Setup::new(config.clone()) };
            order(&redis, Order::Init(setup)).await.unwrap();
            let load = if loading { Order::Load(members()) } else { Order::Add(members()) };
            assert_eq!(order(&redis, load).await.unwrap(), 200);
            order(&redis, Order::Open).await.unwrap();
            in_order(&redis).await;
            let mut granted = Vec::new();
            for _ in 0..50 {
                granted.push(grant(&redis).await.endpoint);
            }
            grants.push(granted);
            in_order(&redis).await;
        }
        assert_eq!(grants[0], grants[1], "{mode:?} {policy:?}");
    }
}
