//! `reap`: taking back what has run out.

use reqwest_lease::{LeaseStore as _, PoolName, ReapRequest, RedisStore};
use serde_json::json;

use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::output::{Report, count};

pub(crate) async fn run(context: &Context) -> Result<Code, Failure> {
    let pool = context.pool()?;
    let store = context.store().await?;
    let (reclaimed, promoted) = all(&store, &pool).await?;
    let json = json!({"pool": pool.as_str(), "reclaimed": reclaimed, "promoted": promoted});
    context.print(&Report::new(json).line(format!(
        "took back {}, readied {}",
        count(reclaimed, "lease"),
        count(promoted, "endpoint")
    )))?;
    Ok(Code::DONE)
}

/// Reaps until nothing is left: leases taken back, endpoints readied.
pub(crate) async fn all(store: &RedisStore, pool: &PoolName) -> Result<(usize, usize), Failure> {
    let (mut reclaimed, mut promoted) = (0, 0);
    loop {
        let reply = store.reap(ReapRequest::new(pool.clone())).await?;
        reclaimed += reply.reclaimed;
        promoted += reply.promoted;
        if !reply.more {
            return Ok((reclaimed, promoted));
        }
    }
}
