//! Repairs of a damaged pool while workers use it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest_lease::conformance::Fixture as _;
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminRequest, EndpointId, LeaseStore as _, Member, Order,
    PoolConfig, Release, ReleaseReply, ReleaseRequest, Setup, Token, Verdict,
};

use crate::support::redis::Redis;

const ENDPOINTS: usize = 256;
const TASKS: usize = 64;

/// What workers saw that must not be.
#[derive(Default)]
struct Seen {
    held: Mutex<HashMap<EndpointId, Token>>,
    grants: AtomicUsize,
    twice: AtomicUsize,
    lost: AtomicUsize,
    over: AtomicBool,
}

impl Seen {
    /// Takes leases and gives them back, each after some turns of the others.
    async fn work(self: Arc<Self>, redis: Arc<Redis>) {
        while !self.over.load(Ordering::Relaxed) {
            let token = Token::random();
            let request = AcquireRequest::new(redis.pool(), token, TTL);
            let AcquireReply::Granted(grants) = redis.store.acquire(request).await.unwrap() else {
                tokio::task::yield_now().await;
                continue;
            };
            let id = grants[0].endpoint.clone();
            self.grants.fetch_add(1, Ordering::Relaxed);
            let before = self.held.lock().unwrap().insert(id.clone(), token);
            self.twice.fetch_add(usize::from(before.is_some()), Ordering::Relaxed);
            for _ in 0..16 {
                tokio::task::yield_now().await;
            }
            self.held.lock().unwrap().remove(&id);
            let releases =
                grants.iter().map(|it| Release::new(it.claim(), Verdict::default(), None));
            let request = ReleaseRequest::new(redis.pool(), releases.collect());
            let replies = redis.store.release(request).await.unwrap();
            let lost = replies.iter().filter(|reply| **reply == ReleaseReply::NotOwner).count();
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }
}

const TTL: Duration = Duration::from_secs(60);

async fn set_up() -> Arc<Redis> {
    let redis = Arc::new(Redis::new().await);
    let mut config = PoolConfig::default();
    config.largest_ttl = TTL;
    let ids = (0..ENDPOINTS).map(|nth| EndpointId::new(format!("e{nth}")).unwrap());
    let members = ids.map(Member::new).collect();
    for order in [Order::Init(Setup::new(config)), Order::Add(members)] {
        redis.store.administer(AdminRequest::new(redis.pool(), order)).await.unwrap();
    }
    redis
}

/// Damage that takes no lease away and makes nothing free that is leased.
const DAMAGE: [&str; 11] = [
    "ZREM ready ID",
    "ZADD cooling inf ID",
    "ZADD uses -5 ID",
    "ZREM uses ID",
    "ZADD members 7 ID",
    "HSET strikes ID many",
    "HSET weights stranger 5",
    "HSET requests @stranger 1",
    "HSET requests 00000000000000000000000000000000 0:2:3:ID",
    "ZADD cancelled 1 00000000000000000000000000000000",
    "HSET meta due 4000000000000000",
];

async fn plant(redis: &Redis, nth: usize) {
    let words: Vec<_> = DAMAGE[nth % DAMAGE.len()].splitn(3, ' ').collect();
    let rest = words[2].replace("ID", &format!("e{}", nth * 7 % ENDPOINTS));
    let _: i64 = redis.send(&format!("{} {} {rest}", words[0], redis.key(words[1]))).await;
}

/// Runs workers while a pool is damaged and repaired over and over.
async fn run(repair: impl AsyncFn(&Redis)) -> (Arc<Redis>, Arc<Seen>) {
    let (redis, seen) = (set_up().await, Arc::<Seen>::default());
    let work = |_| tokio::spawn(seen.clone().work(redis.clone()));
    let tasks: Vec<_> = (0..TASKS).map(work).collect();
    for nth in 0..5 * DAMAGE.len() {
        plant(&redis, nth).await;
        // Two administrators at once do not harm each other.
        tokio::join!(repair(&redis), repair(&redis));
    }
    seen.over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    (redis, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_takes_no_lease_away_and_grants_nothing_twice() {
    let repair = async |redis: &Redis| {
        redis.store.repair(&redis.pool(), None).await.unwrap();
    };
    let (redis, seen) = run(repair).await;
    let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    assert!(count(&seen.grants) > TASKS, "workers were at work");
    assert_eq!((count(&seen.twice), count(&seen.lost)), (0, 0), "granted twice, and lost");
    let found = redis.store.check(&redis.pool()).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
    let status = redis.store.status(&redis.pool()).await.unwrap();
    assert_eq!((status.members(), status.leased, status.expired), (ENDPOINTS, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_readies_all_that_seems_lost_grants_twice() {
    let repair = async |redis: &Redis| {
        let script = redis::Script::new(
            "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
               redis.call('ZADD', KEYS[2], 'NX', 1, id)
             end",
        );
        let mut call = script.key(redis.key("members"));
        call.key(redis.key("ready"));
        let done: redis::RedisResult<()> = call.invoke_async(&mut redis.connection.clone()).await;
        done.unwrap();
    };
    let (_redis, seen) = run(repair).await;
    assert!(seen.twice.load(Ordering::Relaxed) > 0);
}
