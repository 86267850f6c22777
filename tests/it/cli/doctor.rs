//! The doctor finds what is planted, and nothing where nothing is.

use std::collections::HashMap;
use std::time::Duration;

use reqwest_lease::conformance::Fixture as _;
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminRequest, AuditRequest, EndpointId, Grant, LeaseStore as _,
    ListRequest, Order, RedisRole, Token,
};
use serde_json::Value;

use super::Rig;
use crate::support::redis::Server;

async fn lease(rig: &Rig) -> Grant {
    let request = AcquireRequest::new(rig.redis.pool(), Token::random(), Duration::from_secs(60));
    match rig.store().acquire(request).await.unwrap() {
        AcquireReply::Granted(mut grants) => grants.remove(0),
        other => panic!("a grant expected, not {other:?}"),
    }
}

/// The checks whose findings are faults.
async fn found(rig: &Rig, more: &str) -> Vec<String> {
    let line = format!("doctor --inventory proxies.toml --output json {more}");
    let ended = rig.words(&line).await;
    let json: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
    let faults = json["findings"].as_array().unwrap().iter().filter(|f| f["level"] != "note");
    for fault in faults.clone() {
        assert!(fault["mend"].as_str().is_some_and(|mend| !mend.is_empty()), "{fault}");
        assert!(fault["what"].as_str().unwrap().len() > 15, "{fault}");
    }
    let mut checks: Vec<_> =
        faults.map(|fault| fault["check"].as_str().unwrap().to_owned()).collect();
    checks.dedup();
    assert_eq!(ended.code, if checks.is_empty() { 0 } else { 6 }, "{ended:?}");
    checks
}

/// A pool of `e0` to `e3`, of which `e0` is leased and `e3` disabled.
async fn pool() -> Rig {
    let rig = Rig::new().await;
    rig.set_up(4).await;
    lease(&rig).await;
    rig.good("disable e3").await;
    assert_eq!(found(&rig, "--role administrator").await, [""; 0]);
    rig
}

/// What is planted, which check finds it, and whether a repair mends it.
const PLANTED: [(&str, &str, bool); 64] = [
    ("CONFIG SET appendonly no {}", "persistence", false),
    ("CONFIG SET maxmemory-policy allkeys-lru {}", "eviction", false),
    ("CONFIG SET maxmemory USED {}", "memory", false),
    ("CONFIG SET maxmemory 1 {}", "memory", false),
    ("CONFIG SET min-replicas-to-write 1 {}", "replication", false),
    ("HSET {meta} schema 9", "layout", false),
    ("HSET {meta} schema 0", "layout", false),
    ("HSET {meta} schema one", "layout", false),
    ("DEL {meta}", "leftovers", false),
    ("HDEL {meta} schema", "leftovers", false),
    (HALF_DESTROYED, "leftovers", false),
    ("HSET {meta} loading 1", "loading", false),
    ("HSET {meta} hold_until 4000000000000000", "hold", false),
    ("HSET {meta} hold_until never", "settings", false),
    ("HSET {meta} fence -1", "settings", false),
    ("HDEL {meta} mode", "settings", false),
    ("HSET {meta} largest_ttl long", "settings", false),
    ("HSET {orders} * pause", "paused", false),
    ("DEL {orders}", "orders", false),
    ("SET {meta} other", "types", false),
    ("SET {cooling} other", "types", false),
    ("SET {requests} other", "types", false),
    ("SET {orders} other", "types", false),
    ("SET {audit} other", "types", false),
    ("HSET {parked} e3 quarantined:probe", "quarantine", false),
    ("ZREM {ready} e1", "state", true),
    ("ZADD {cooling} 1 e1", "state", true),
    ("ZREM {uses} e1", "state", true),
    ("HSET {orders} e1 disable", "state", true),
    ("HDEL {orders} e3", "state", true),
    ("HDEL {requests} @e0", "state", true),
    ("HSET {requests} @e0 1", "state", true),
    ("HSET {requests} 1 1:2:3:e0", "state", true),
    ("DEL {requests}", "state", true),
    ("DEL {leases}", "state", true),
    ("ZADD {leases} 4000000000000000 e0", "state", true),
    ("ZADD {leases} inf e0", "state", true),
    ("ZADD {ready} 1 stranger", "state", false),
    ("HSET {requests} @stranger 1", "state", true),
    ("HSET {meta} due 4000000000000000", "state", true),
    ("HSET {meta} due soon", "state", true),
    ("HSET {meta} weighted 3", "state", true),
    ("HSET {meta} failover_hold maybe", "state", true),
    ("HDEL {meta} note", "state", true),
    ("HDEL {requests} note", "state", true),
    ("HSET {strikes} e1 many", "state", true),
    ("HSET {strikes} e1 2:", "state", true),
    ("HSET {strikes} stranger 1:2", "state", true),
    ("ZADD {cancelled} 1 1", "state", true),
    ("ZREM {ready} e1; ZADD {cooling} inf e1", "state", true),
    ("ZREM {ready} e1; ZADD {cooling} -inf e1", "state", true),
    ("ZADD {ready} -inf e1", "state", true),
    ("ZADD {uses} -5 e1", "state", true),
    ("ZADD {members} 7 e1", "state", true),
    ("HSET {orders} e1 nonsense", "state", true),
    ("HSET {orders} stranger disable", "state", true),
    ("HSET {parked} e3 whatever", "state", true),
    ("HSET {parked} e3 disabled.", "state", true),
    ("HSET {weights} stranger 5", "state", true),
    ("HSET {weights} e1 heavy", "state", true),
    ("HSET {former} e1 5", "state", true),
    ("HSET {former} stranger inf", "state", true),
    ("HSET {weights} e1 7", "inventory", false),
    ("HSET {meta} config_version 9", "inventory", false),
];

/// Only tokens are left.
const HALF_DESTROYED: &str = "DEL {meta}; DEL {ready}; DEL {members}; DEL {uses}; DEL {parked}; \
    DEL {orders}; DEL {leases}";

#[tokio::test]
async fn each_planted_fault_is_found_and_most_can_be_mended() {
    // One server a fault would take long; a pool's keys are all there is to put back.
    for (fault, check, mends) in PLANTED {
        let rig = pool().await;
        if fault.starts_with("CONFIG") {
            let info: String = rig.redis.send("INFO memory").await;
            let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
            let little_more = used.unwrap().trim().parse::<u64>().unwrap() + 50_000;
            let command = fault.trim_end_matches(" {}").replace("USED", &little_more.to_string());
            rig.redis.send::<()>(&command).await;
        } else {
            for command in fault.split("; ") {
                rig.plant(command).await;
            }
        }
        let checks = found(&rig, "").await;
        assert!(checks.iter().any(|found| found == check), "{fault}: {checks:?}");
        if mends {
            assert_eq!(checks, [check], "{fault}");
            let repaired = rig.good("doctor --repair --inventory proxies.toml").await;
            assert!(repaired.out.contains("mended: "), "{fault}: {repaired:?}");
            assert_eq!(found(&rig, "").await, [""; 0], "{fault}");
            let trail = rig.json("audit --limit 1").await;
            let repair = (trail[0]["order"].as_str(), trail[0]["by"].as_str());
            assert_eq!(repair, (Some("repair"), Some("kim@example.net")), "{fault}");
        }
    }
}

#[tokio::test]
async fn leases_that_no_worker_takes_back_are_found_after_a_while() {
    let rig = pool().await;
    rig.plant("ZADD {leases} 1 e0").await;
    rig.plant("HSET {meta} due 0").await;
    assert_eq!(found(&rig, "").await, ["expired"]);
    let repaired = rig.good("doctor --repair --inventory proxies.toml").await;
    assert!(repaired.out.contains("mended: took back 1 lease"), "{repaired:?}");
    assert_eq!(found(&rig, "").await, [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_used_at_all_is_not_repaired_by_half() {
    for fault in ["SET {strikes} other", "HSET {meta} fence much"] {
        let rig = pool().await;
        rig.plant("ZREM {ready} e1").await;
        rig.plant("HSET {meta} due soon").await;
        rig.plant(fault).await;
        let trail = rig.json("audit").await;
        let ended = rig.words("doctor --repair --inventory proxies.toml").await;
        assert_eq!(ended.code, 6, "{ended:?}");
        assert!(ended.out.contains("init --after-loss"), "{ended:?}");
        assert_eq!(rig.json("audit").await, trail);
    }
}

#[tokio::test]
async fn a_repair_by_who_may_do_half_of_it_does_nothing() {
    let rig = pool().await;
    rig.plant("ZADD {leases} 1 e0").await;
    rig.plant("ZREM {ready} e1").await;
    for role in [RedisRole::Worker, RedisRole::Observer] {
        rig.redis.send::<()>(&role.set_user("lee", &rig.redis.namespace)).await;
        rig.redis.send::<()>(&format!("ACL SETUSER lee >{}-lee", super::CANARY)).await;
        let url = rig.url().replace("kim", "lee");
        let mut program = rig.program();
        let ended =
            Rig::end(program.env("LEASE_REDIS_URL", url).args(["doctor", "--repair"])).await;
        assert_eq!(ended.code, 4, "{role:?}: {ended:?}");
        assert!(ended.err.contains("a repair is an administrator's"), "{ended:?}");
        let leases = format!("ZRANGE {} 0 -1", rig.redis.key("leases"));
        assert_eq!(rig.redis.send::<Vec<String>>(&leases).await, ["e0"]);
    }
}

#[tokio::test]
async fn a_stranger_is_taken_in_disabled_and_then_it_is_for_sync() {
    let rig = pool().await;
    rig.plant("ZADD {ready} 1 stranger").await;
    let repaired = rig.words("doctor --repair --inventory proxies.toml").await;
    assert_eq!(repaired.code, 6, "{repaired:?}");
    assert!(repaired.out.contains("not in the inventory"), "{repaired:?}");
    let listed = rig.json("list --state disabled").await;
    assert_eq!(listed[1]["id"], "stranger");
    rig.good("sync --inventory proxies.toml --yes").await;
    assert_eq!(found(&rig, "").await, [""; 0]);
}

#[tokio::test]
async fn what_differs_from_the_inventory_is_found() {
    let rig = pool().await;
    rig.file("proxies.toml", super::inventory(5));
    assert_eq!(found(&rig, "").await, ["inventory"]);
    rig.file("proxies.toml", super::inventory(3));
    assert_eq!(found(&rig, "").await, ["inventory"]);
    rig.file("proxies.toml", "[[endpoint]]\n");
    let doctor = rig.json("doctor --inventory proxies.toml").await;
    assert!(doctor["findings"].to_string().contains("the inventory cannot be read"), "{doctor}");
}

#[tokio::test]
async fn a_user_with_other_rights_than_its_role_is_found() {
    let rig = pool().await;
    assert_eq!(found(&rig, "--role worker").await, ["user"]);
    let rig = rig.login(RedisRole::Worker, "lee").await;
    assert_eq!(found(&rig, "--role worker").await, [""; 0]);
    assert_eq!(found(&rig, "--role administrator").await, ["user"]);
    rig.redis.send::<()>("ACL SETUSER lee -eval_ro -evalsha_ro").await;
    let doctor = rig.json("doctor").await;
    assert!(doctor["unknown"].to_string().contains("what this user may do"), "{doctor}");
    rig.redis.send::<()>("ACL SETUSER lee -@all").await;
    let doctor = rig.words("doctor").await;
    assert_eq!(doctor.code, 4, "{doctor:?}");
    assert!(doctor.out.contains("mend: run the command of `reqwest-lease acl"), "{doctor:?}");
}

#[tokio::test]
async fn what_could_not_be_looked_at_is_not_taken_for_sound() {
    let rig = pool().await;
    rig.redis.send::<()>("ACL SETUSER kim -zscore").await;
    assert_eq!(found(&rig, "").await, ["check"]);
}

#[tokio::test]
async fn a_server_that_cannot_save_is_found() {
    let rig = pool().await;
    let directory: Vec<String> = rig.redis.send("CONFIG GET dir").await;
    std::fs::create_dir(std::path::Path::new(&directory[1]).join("dump.rdb")).unwrap();
    let _: redis::RedisResult<()> =
        redis::cmd("SAVE").query_async(&mut rig.redis.connection.clone()).await;
    rig.redis.send::<String>("BGSAVE").await;
    let failed = async || {
        let info: String = rig.redis.send("INFO persistence").await;
        info.contains("rdb_last_bgsave_status:err")
    };
    let patience = std::time::Instant::now() + super::RUNS_WITHIN;
    while !failed().await {
        assert!(std::time::Instant::now() < patience, "the snapshot did not fail");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(found(&rig, "").await, ["saving"]);
}

#[tokio::test]
async fn a_replica_is_named_as_the_trouble() {
    let rig = pool().await;
    let address = rig.redis.server.url();
    let (host, port) = address.trim_start_matches("redis://").split_once(':').unwrap();
    let replica = Server::start(&["--replicaof", host, port]);
    let mut program = rig.program();
    let ended = Rig::end(program.env("LEASE_REDIS_URL", replica.url()).arg("doctor")).await;
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.out.contains("is a replica"), "{ended:?}");
    assert!(ended.out.contains("mend: put the primary's address"), "{ended:?}");
}

/// Milliseconds of processor time that the server has had for its users.
async fn server_time(rig: &Rig) -> f64 {
    let info: String = rig.redis.send("INFO cpu").await;
    let field = |name: &str| -> f64 {
        info.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
    };
    (field("used_cpu_user_main_thread:") + field("used_cpu_sys_main_thread:")) * 1000.0
}

#[tokio::test]
async fn a_sound_pool_of_a_hundred_thousand_has_no_findings_and_no_call_takes_long() {
    let rig = Rig::new().await;
    rig.set_up(100_000).await;
    for _ in 0..500 {
        lease(&rig).await;
    }
    let before = server_time(&rig).await;
    let mut timed = tokio::process::Command::new("bash");
    timed.args([
        "-c",
        "TIMEFORMAT='%U %S'; time \"$@\"",
        "bash",
        super::PROGRAM,
        "doctor",
        "--inventory",
        "proxies.toml",
        "--role",
        "administrator",
        "--output",
        "json",
    ]);
    let ready = rig.program();
    for (name, value) in ready.as_std().get_envs() {
        timed.env(name, value.unwrap_or_default());
    }
    let ended = Rig::end(timed.current_dir(rig.path())).await;
    let took = server_time(&rig).await - before;
    let json: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_eq!((ended.code, &json["sound"]), (0, &Value::Bool(true)), "{json}");
    assert_eq!(json["findings"], Value::Array(Vec::new()));
    let own: f64 =
        ended.err.split_whitespace().map(|seconds| seconds.parse::<f64>().unwrap()).sum();
    eprintln!("the server took {took:.0} ms, the program {own:.2} s of an unoptimised build");
    assert!(took < 2000.0, "the server took {took} ms");

    let aside = (0..20_000).map(|nth| EndpointId::new(format!("e{nth}")).unwrap()).collect();
    let disable = AdminRequest::new(rig.redis.pool(), Order::Disable(aside));
    rig.store().administer(disable).await.unwrap();
    let before = rig.redis.calls("evalsha_ro").await;
    let longest = longest_call(&rig).await;
    let calls = (rig.redis.calls("evalsha_ro").await - before) / LOOKS;
    eprintln!("{calls} calls show the pool, each within {longest} us");
    // By pages of at most 100 to be checked, 250 to be listed, some 250 orders and 500 parked.
    assert!(calls > 1000 + 400 + 60 + 30, "{calls}");
    assert!(longest < 10_000, "{longest} us");
}

/// Everything that shows a pool.
async fn look(rig: &Rig) {
    let (store, pool) = (rig.store(), rig.redis.pool());
    store.check(&pool).await.unwrap();
    store.status(&pool).await.unwrap();
    store.settings(&pool).await.unwrap();
    store.remains(&pool).await.unwrap();
    store.report(&pool).await.unwrap();
    store.rights(&pool).await.unwrap();
    let mut after = None;
    loop {
        let page = store.list(ListRequest::new(pool.clone(), after, 1000)).await.unwrap();
        after = page.last().map(|member| member.endpoint.clone());
        if page.len() < 1000 {
            break;
        }
    }
    store.audit(AuditRequest::new(pool, None, 1000)).await.unwrap();
}

/// The longest of these calls, by the server's clock: of what each takes in some looks the least,
/// for a busy machine lets any of them wait.
async fn longest_call(rig: &Rig) -> u64 {
    rig.redis.send::<()>("CONFIG SET slowlog-max-len 100000").await;
    rig.redis.send::<()>(&format!("CONFIG SET slowlog-log-slower-than {QUICK}")).await;
    let mut slow: HashMap<Vec<String>, Vec<u64>> = HashMap::new();
    for _ in 0..LOOKS {
        rig.redis.send::<()>("SLOWLOG RESET").await;
        look(rig).await;
        let calls: Vec<Vec<redis::Value>> = rig.redis.send("SLOWLOG GET -1").await;
        for call in &calls {
            let words: Vec<String> = redis::from_redis_value(call[3].clone()).unwrap();
            let micros: u64 = redis::from_redis_value(call[2].clone()).unwrap();
            slow.entry(words).or_default().push(micros);
        }
    }
    // One that is not logged each time was quick once.
    let always = slow.into_values().filter(|took| took.len() >= LOOKS as usize);
    always.filter_map(|took| took.into_iter().min()).max().unwrap_or(QUICK)
}

const LOOKS: u64 = 5;

/// Microseconds of a call that need not be logged.
const QUICK: u64 = 500;
