//! Setting up a pool that processes share.

use std::time::Duration;

use reqwest_lease::{BoxError, Kind, Member, Order, Pool, PoolConfig};

/// Sets the pool up, or adds this inventory's endpoints to one that somebody has set up.
pub(crate) async fn set_up(pool: &Pool) -> Result<(), BoxError> {
    match pool.set_up(PoolConfig::default()).await {
        Err(error) if error.kind() == Kind::InvalidCall => {}
        done => return Ok(done.map(drop)?),
    }
    // Another process may still be at it.
    while pool.status().await?.loading {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let inventory = pool.inventory().snapshot();
    let members = inventory
        .iter()
        .map(|endpoint| Member::new(endpoint.id().clone()).with_weight(endpoint.labels().weight));
    pool.administer(Order::Add(members.collect())).await?;
    Ok(())
}
