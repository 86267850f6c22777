//! Pools in which calls have much to do or little, every call, and the state to compare.

use std::collections::BTreeMap;

use super::*;
use crate::site::Site;
use crate::store::{AuditRequest, Claim, ListRequest, Mode, Policy, Setup};
use crate::verdict::{QuarantineCode, Strike};

/// A pool with a grant of it.
pub(super) struct Scene {
    pub(super) redis: Redis,
    pub(super) held: Grant,
}

/// One for each way that scripts take.
pub(super) async fn all() -> Vec<(&'static str, Scene)> {
    let by_share = PoolConfig { policy: Policy::LeastAssigned, ..PoolConfig::default() };
    let weighted = calm(by_share).await;
    let heavy = Member::new(id("e5")).with_weight(2);
    order(&weighted.redis, Order::Add(vec![heavy])).await.unwrap();
    let moved = calm(PoolConfig::default()).await;
    let meta = moved.redis.key("meta");
    moved.redis.send::<()>(&format!("HSET {meta} identity another")).await;
    let random = PoolConfig { policy: Policy::Random, ..PoolConfig::default() };
    let shared = || PoolConfig { mode: Mode::Shared, ..PoolConfig::default() };
    vec![
        ("busy", busy(PoolConfig::default()).await),
        ("busy shared", busy(shared()).await),
        ("calm", calm(PoolConfig::default()).await),
        ("calm shared", calm(shared()).await),
        ("random", calm(random).await),
        ("weighted", weighted),
        ("moved", moved),
        ("loading", loading().await),
    ]
}

/// A pool in which every call has something to write: an expired lease, an endpoint past its
/// cooldown, a lapsed tombstone, a valid lease, parked and ordered endpoints.
pub(super) async fn busy(config: PoolConfig) -> Scene {
    let redis = Redis::new().await;
    let shared = config.mode == Mode::Shared;
    set_up(&redis, config, 8).await;
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
    if !shared {
        renew(&redis, &held).await.unwrap();
    }
    shun(&redis, "e6").await;
    redis.advance(TTL / 2).await;
    Scene { redis, held }
}

/// A pool in which nothing is due, so that calls do no more than they must.
pub(super) async fn calm(config: PoolConfig) -> Scene {
    let redis = Redis::new().await;
    set_up(&redis, config, 8).await;
    let held = grant(&redis).await;
    order(&redis, Order::Disable(vec![id("e3"), id("e4")])).await.unwrap();
    shun(&redis, "e6").await;
    Scene { redis, held }
}

/// A pool that is not open yet, and a grant that it never made.
async fn loading() -> Scene {
    let held = calm(PoolConfig::default()).await.held;
    let redis = Redis::new().await;
    let config = PoolConfig { policy: Policy::LeastAssigned, ..PoolConfig::default() };
    order(&redis, Order::Init(Setup::new(config).loading())).await.unwrap();
    let members = (0..8).map(|nth| Member::new(id(&format!("e{nth}")))).collect();
    order(&redis, Order::Load(members)).await.unwrap();
    order(&redis, Order::Disable(vec![id("e3"), id("e4")])).await.unwrap();
    shun(&redis, "e6").await;
    Scene { redis, held }
}

/// Lets an endpoint rest for the site, so that its key is there.
async fn shun(redis: &Redis, endpoint: &str) {
    let till = "4000000000000000";
    redis.send::<()>(&format!("ZADD {} {till} {endpoint}", redis.key("shun:a.example"))).await;
}

/// The call of this number; nothing behind the last one.
///
/// Together they run every script, which a test checks.
pub(super) async fn call(
    store: &RedisStore,
    pool: &PoolName,
    held: &Grant,
    nth: usize,
) -> Option<Result<(), Error>> {
    let site = Site::parse("a.example").unwrap();
    let token = held.term.map_or(Token::from_bytes([7; 16]), |term| term.token);
    let with = |token| AcquireRequest::new(pool.clone(), token, TTL);
    let admin =
        async |order| store.administer(AdminRequest::new(pool.clone(), order)).await.map(drop);
    let give_back = async |verdict: Verdict, claim: Claim| {
        let releases = vec![Release { claim, verdict, site: Some(site.clone()) }];
        store.release(ReleaseRequest::new(pool.clone(), releases)).await.map(drop)
    };
    let cancel = async |token| {
        let request = CancelRequest { pool: pool.clone(), token, tombstone: TTL };
        store.cancel(request).await.map(drop)
    };
    let ids = || vec![id("e2"), id("e6")];
    let struck = Verdict::cooldown(TTL).with_strike(Strike::Add);
    Some(match nth {
        0 => store.acquire(with(Token::random())).await.map(drop),
        1 => store.acquire(with(token)).await.map(drop),
        2 => {
            let mut request = with(Token::random());
            (request.site, request.prefer) = (Some(site), Some(id("e7")));
            request.exclude = ids();
            request.tokens.extend([Token::random(), Token::random()]);
            store.acquire(request).await.map(drop)
        }
        3 => {
            let request = RenewRequest { pool: pool.clone(), token, ttl: TTL };
            store.renew(request).await.map(drop)
        }
        4 => give_back(struck, held.claim()).await,
        5 => give_back(Verdict::default(), held.claim()).await,
        6 => give_back(struck.with_shun(TTL), held.claim()).await,
        7 => give_back(Verdict::quarantine(QuarantineCode::Credentials), held.claim()).await,
        8 => {
            // A claim of the other mode is nobody's.
            let claim = Claim::Assignment { endpoint: held.endpoint.clone(), fence: held.fence };
            give_back(struck, claim).await
        }
        9 => cancel(token).await,
        10 => cancel(Token::random()).await,
        11 => store.reap(ReapRequest { pool: pool.clone() }).await.map(drop),
        12 => admin(Order::Add(vec![Member::new(id("new")).with_weight(3)])).await,
        13 => admin(Order::Remove(ids())).await,
        14 => admin(Order::Remove(vec![held.endpoint.clone()])).await,
        15 => admin(Order::Disable(ids())).await,
        16 => admin(Order::Drain(vec![held.endpoint.clone()])).await,
        17 => admin(Order::Enable(vec![id("e3"), id("e4")])).await,
        18 => admin(Order::Quarantine(ids(), QuarantineCode::Probe)).await,
        19 => admin(Order::Pause).await,
        20 => admin(Order::Resume).await,
        21 => admin(Order::EndHold).await,
        22 => admin(Order::Init(PoolConfig::default().into())).await,
        23 => store.status(pool).await.map(drop),
        24 => {
            let request = ListRequest { pool: pool.clone(), after: None, limit: 9 };
            store.list(request).await.map(drop)
        }
        25 => store.check(pool).await.map(drop),
        26 => store.audit(AuditRequest::new(pool.clone(), None, 9)).await.map(drop),
        27 => admin(Order::Load(vec![Member::new(id("new")).with_weight(3)])).await,
        28 => admin(Order::Open).await,
        29 => admin(Order::DestroyPool).await,
        30 => store.repair(pool, None).await.map(drop),
        31 => store.report(pool).await.map(drop),
        32 => store.rights(pool).await.map(drop),
        33 => store.remains(pool).await.map(drop),
        34 => store.forget_trail(pool).await.map(drop),
        35 => admin(Order::EndQuarantine(vec![id("e3")], QuarantineCode::Probe)).await,
        36 => store.settings(pool).await.map(drop),
        _ => return None,
    })
}

/// The call that sets a pool up.
pub(super) const INIT: usize = 22;
/// Calls that answer also for a pool that is not there: the trail outlasts it, and what is left can
/// be erased.
pub(super) const OUTLAST: [usize; 7] = [26, 29, 31, 32, 33, 34, 36];
/// Those of them that read nothing of the layout.
pub(super) const ASIDE: [usize; 5] = [31, 32, 33, 34, 36];

impl Scene {
    pub(super) async fn call(&self, nth: usize) -> Option<Result<(), Error>> {
        call(&self.redis.store, &self.redis.pool(), &self.held, nth).await
    }

    /// All keys of the pool with what they hold, as they can be put back.
    pub(super) async fn everything(&self) -> BTreeMap<String, Vec<u8>> {
        everything(&self.redis).await
    }

    /// The same as it can be compared: what a hash looks like in a dump depends on its past.
    pub(super) async fn content(&self) -> BTreeMap<String, Vec<String>> {
        content(&self.redis).await
    }

    pub(super) async fn restore(&self, state: &BTreeMap<String, Vec<u8>>) {
        let mut pipe = redis::pipe();
        for key in keys(&self.redis).await {
            pipe.del(key);
        }
        for (key, held) in state {
            pipe.cmd("RESTORE").arg(key).arg(0).arg(held);
        }
        let mut connection = self.redis.connection.clone();
        let restored: redis::RedisResult<()> = pipe.query_async(&mut connection).await;
        restored.unwrap();
    }
}

pub(super) async fn everything(redis: &Redis) -> BTreeMap<String, Vec<u8>> {
    let keys = keys(redis).await;
    let mut pipe = redis::pipe();
    for key in &keys {
        pipe.cmd("DUMP").arg(key);
    }
    let held: Vec<Vec<u8>> = pipe.query_async(&mut redis.connection.clone()).await.unwrap();
    keys.into_iter().zip(held).collect()
}

pub(super) async fn content(redis: &Redis) -> BTreeMap<String, Vec<String>> {
    let keys = keys(redis).await;
    let mut pipe = redis::pipe();
    for key in &keys {
        pipe.cmd("EVAL").arg(CONTENT).arg(1).arg(key);
    }
    let held: Vec<Vec<String>> = pipe.query_async(&mut redis.connection.clone()).await.unwrap();
    let sorted = |(key, mut held): (String, Vec<String>)| {
        held.sort();
        (key, held)
    };
    keys.into_iter().zip(held).map(sorted).collect()
}

/// What a key holds, as texts in no order.
const CONTENT: &str = r"
local key, kind = KEYS[1], redis.call('TYPE', KEYS[1]).ok
local all, told = {}, {kind}
if kind == 'hash' then
  all = redis.call('HGETALL', key)
elseif kind == 'zset' then
  all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
elseif kind == 'stream' then
  for _, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do
    told[#told + 1] = entry[1] .. ' ' .. table.concat(entry[2], ' ')
  end
elseif kind == 'string' then
  told[2] = redis.call('GET', key)
end
for nth = 1, #all, 2 do
  told[#told + 1] = all[nth] .. ' ' .. all[nth + 1]
end
return told
";

async fn keys(redis: &Redis) -> Vec<String> {
    redis.send(&format!("KEYS {}*", redis.key(""))).await
}
