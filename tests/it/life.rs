//! The life of a lease, from the queue to its end, as proxies see it.

mod doubt;
mod held;
mod keeping;
mod reload;
mod several;
mod sharing;
mod storm;
mod trust;

use std::time::Duration;

use reqwest_lease::{
    Endpoint, EndpointId, Error, Inventory, Kind, LeaseBuilder, LeaseMiddleware, Pool, PoolBuilder,
    PoolName,
};
use reqwest_middleware::ClientWithMiddleware;

use crate::support::tap::Tap;

const SITE: &str = "http://site.test";

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn url(path: &str) -> String {
    format!("{SITE}{path}")
}

fn endpoint(name: &str, url: &str) -> Endpoint {
    Endpoint::new(EndpointId::new(name).unwrap(), url, None).unwrap()
}

/// These taps, named a, b, c, ...
fn inventory(taps: &[Tap]) -> Inventory {
    let named = taps.iter().zip('a'..);
    let endpoints = named.map(|(tap, name)| endpoint(&name.to_string(), &tap.url()));
    Inventory::from_endpoints(endpoints).unwrap()
}

async fn taps(number: usize) -> Vec<Tap> {
    let mut taps = Vec::new();
    for _ in 0..number {
        taps.push(Tap::start().await);
    }
    taps
}

/// A pool of these taps, and a client for it.
async fn leased(
    taps: &[Tap],
    choose: impl FnOnce(PoolBuilder) -> PoolBuilder,
) -> (Pool, ClientWithMiddleware) {
    let builder = Pool::builder(PoolName::new("test").unwrap(), inventory(taps));
    let pool = choose(builder).build().await.unwrap();
    let client = client(LeaseMiddleware::builder(pool.clone()));
    (pool, client)
}

fn client(builder: LeaseBuilder) -> ClientWithMiddleware {
    builder.build().unwrap().into_client()
}

fn kind(error: &reqwest_middleware::Error) -> Kind {
    Error::find_in(error).unwrap_or_else(|| panic!("{error:?}")).kind()
}

async fn in_use(pool: &Pool) -> usize {
    let status = pool.status().await.unwrap();
    status.leased + status.expired
}
