//! Tracing, then retries, then the lease: each retry takes a new lease and a new turn.
//!
//! The first endpoint hangs up on the request. Whether the site has seen it is unclear, so the
//! lease does not try again by itself; the retry middleware does, and gets the other endpoint.

use local::proxy::{ForwardProxy, Manners};
use reqwest_lease::{
    BoxError, Endpoint, EndpointId, Inventory, LeaseInfo, LeaseMiddleware, LeaseRetryStrategy,
    Pool, PoolName,
};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_tracing::TracingMiddleware;
use std::time::Duration;
use tracing_subscriber::fmt::format::FmtSpan;

#[path = "local/mod.rs"]
mod local;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_span_events(FmtSpan::CLOSE)
        .with_env_filter("info")
        .init();
    let site = local::site::Site::start().await?;
    let mortal = ForwardProxy::start(Manners { dies_after: Some(0), ..Manners::default() }).await?;
    let steady = ForwardProxy::start(Manners::default()).await?;

    let inventory = Inventory::from_endpoints([
        Endpoint::new(EndpointId::new("a-mortal")?, &mortal.url(), None)?,
        Endpoint::new(EndpointId::new("b-steady")?, &steady.url(), None)?,
    ])?;
    let pool = Pool::builder(PoolName::new("vn")?, inventory).build().await?;
    let policy = ExponentialBackoff::builder()
        .retry_bounds(Duration::from_millis(50), Duration::from_secs(1))
        .build_with_max_retries(3);
    let retry = RetryTransientMiddleware::new_with_policy_and_strategy(policy, LeaseRetryStrategy);
    let client = LeaseMiddleware::builder(pool.clone())
        .build()?
        .into_client_with(|builder| builder.with(TracingMiddleware::default()).with(retry));

    let response = client.get(site.url("/")).send().await?;
    if let Some(info) = response.extensions().get::<LeaseInfo>() {
        println!("{} through {}", response.status(), info.endpoint());
    }
    drop(response);
    pool.shutdown().await;
    Ok(())
}
