//! One request through a lease, against a site and a proxy on loopback.

use reqwest_lease::{
    BoxError, Budget, Budgets, Endpoint, EndpointId, Inventory, LeaseInfo, LeaseMiddleware, Pool,
    PoolName,
};

#[path = "local/mod.rs"]
mod local;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let site = local::site::Site::start().await?;
    let proxy = local::proxy::ForwardProxy::start(Default::default()).await?;

    let endpoint = Endpoint::new(EndpointId::new("vn-a01")?, &proxy.url(), None)?;
    let inventory = Inventory::from_endpoints([endpoint])?;
    let pool = Pool::builder(PoolName::new("vn")?, inventory).build().await?;
    let budgets = Budgets::builder().default(Budget::per_second(2)).build()?;
    let client = LeaseMiddleware::builder(pool.clone()).budgets(budgets).build()?.into_client();

    let response = client.get(site.url("/")).send().await?;
    if let Some(info) = response.extensions().get::<LeaseInfo>() {
        println!("{} through {}", response.status(), info.endpoint());
    }
    println!("{} bytes", response.bytes().await?.len());
    pool.shutdown().await;
    Ok(())
}
