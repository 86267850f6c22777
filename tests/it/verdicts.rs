//! What outcomes do to a pool, in both stores and both modes.

mod bans;
mod credentials;
mod day;
mod few;
mod late;
mod poison;
mod stores;

use std::time::Duration;

use reqwest_lease::conformance::Fixture as _;
use reqwest_lease::{
    DefaultJudge, Endpoint, EndpointId, Evidence, Inventory, Judge, LeaseInfo, Mode, Outcome, Pool,
    PoolBuilder, PoolConfig, PoolName, RedisStore, Steps, Strike, Verdict,
};
use reqwest_middleware::ClientWithMiddleware;

use crate::support::SOON;
use crate::support::redis::Redis;

/// Where a pool is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Memory,
    Redis,
}

/// Every store in every mode.
const EVERYWHERE: [(Kept, Mode); 4] = [
    (Kept::Memory, Mode::Exclusive),
    (Kept::Memory, Mode::Shared),
    (Kept::Redis, Mode::Exclusive),
    (Kept::Redis, Mode::Shared),
];

/// A pool, and the server that it is kept on.
pub(crate) struct Kit {
    pub(crate) pool: Pool,
    _redis: Option<Redis>,
}

impl Kit {
    /// A pool of endpoints with these URLs, named e00, e01 and so on.
    pub(crate) async fn new(
        (kept, mode): (Kept, Mode),
        urls: &[String],
        choose: impl FnOnce(PoolBuilder) -> PoolBuilder,
    ) -> Self {
        let endpoints = urls.iter().enumerate().map(|(nth, url)| {
            Endpoint::new(EndpointId::new(name(nth)).unwrap(), url, None).unwrap()
        });
        let inventory = Inventory::from_endpoints(endpoints).unwrap();
        if kept == Kept::Memory {
            let builder = Pool::builder(PoolName::new("test").unwrap(), inventory).mode(mode);
            return Self { pool: choose(builder).build().await.unwrap(), _redis: None };
        }
        let redis = Redis::new().await;
        let store = RedisStore::builder(redis.server.url()).namespace(&redis.namespace);
        let builder = Pool::builder(redis.pool(), inventory).store(store.build().await.unwrap());
        let pool = choose(builder).build().await.unwrap();
        let mut config = PoolConfig::default();
        config.mode = mode;
        pool.set_up(config).await.unwrap();
        Self { pool, _redis: Some(redis) }
    }

    /// Waits until everything that was granted has been given back.
    pub(crate) async fn quiet(&self) {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let counts = self.pool.counts();
            if counts.releases + counts.not_owner == counts.grants {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{counts:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn name(nth: usize) -> String {
    format!("e{nth:02}")
}

/// Fetches a page to its end, and tells by which endpoint.
async fn served(client: &ClientWithMiddleware, url: &str) -> Option<(String, u16)> {
    let response = client.get(url).send().await.ok()?;
    let info = response.extensions().get::<LeaseInfo>().unwrap();
    let (endpoint, status) = (info.endpoint().to_string(), response.status().as_u16());
    response.bytes().await.ok()?;
    Some((endpoint, status))
}

/// The judge that every twin has: to it a failure is a failure.
struct AllAlike(Steps);

impl AllAlike {
    fn new(second: Duration) -> Self {
        Self(Steps::doubling(second, 600 * second))
    }
}

impl Judge for AllAlike {
    fn judge(&self, evidence: Evidence<'_>) -> Verdict {
        match evidence.outcome {
            Outcome::Success | Outcome::Unused => DefaultJudge::default().judge(evidence),
            _ => Verdict::cooldown(self.0.at(evidence.strikes)).with_strike(Strike::Add),
        }
    }
}
