//! Setting up a pool that processes share.

use reqwest_lease::{BoxError, Kind, Member, Order, Pool, PoolConfig};

/// Sets the pool up unless somebody has, and adds this inventory's endpoints.
pub(crate) async fn set_up(pool: &Pool) -> Result<(), BoxError> {
    match pool.status().await {
        Ok(_) => {}
        Err(error) if error.kind() == Kind::PoolUninitialised => {
            match pool.administer(Order::Init(PoolConfig::default())).await {
                // Another process was faster.
                Err(error) if error.kind() == Kind::InvalidCall => {}
                done => drop(done?),
            }
        }
        Err(error) => return Err(error.into()),
    }
    let inventory = pool.inventory().snapshot();
    let members = inventory
        .iter()
        .map(|endpoint| Member::new(endpoint.id().clone()).with_weight(endpoint.labels().weight));
    pool.administer(Order::Add(members.collect())).await?;
    Ok(())
}
