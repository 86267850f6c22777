//! A worker's metrics, served for Prometheus.
//!
//! Without an argument it makes some requests through two proxies, one of which dies, asks itself
//! for `/metrics` and prints the page. With an address, as `127.0.0.1:9100`, it goes on with both
//! until it is stopped. `examples/monitoring/` has a Grafana board and alert rules for them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use local::proxy::{ForwardProxy, Manners};
use local::site::Site;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use reqwest_lease::{BoxError, Endpoint, EndpointId, Inventory, LeaseMiddleware, Pool, PoolName};
use reqwest_middleware::ClientWithMiddleware;
use tokio::net::TcpListener;

#[path = "local/mod.rs"]
mod local;

/// From what a store in memory takes to the longest waits. Without them the exporter makes
/// summaries, which cannot be added up over processes.
const BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?
        .install_recorder()?;
    let address = std::env::args().nth(1).map(|address| address.parse()).transpose()?;
    let listener = listen(address).await?;
    let page = format!("http://{}/metrics", listener.local_addr()?);
    tokio::spawn(serve(listener, handle));

    let site = Site::start().await?;
    let mortal = ForwardProxy::start(Manners { dies_after: Some(3), ..Manners::default() }).await?;
    let steady = ForwardProxy::start(Manners::default()).await?;
    let inventory = Inventory::from_endpoints([
        Endpoint::new(EndpointId::new("a-mortal")?, &mortal.url(), None)?,
        Endpoint::new(EndpointId::new("b-steady")?, &steady.url(), None)?,
    ])?;
    let pool = Pool::builder(PoolName::new("vn")?, inventory)
        .gauges_every(Duration::from_secs(5))
        .build()
        .await?;
    let client = LeaseMiddleware::builder(pool.clone()).build()?.into_client();

    crawl(&client, &site).await;
    if address.is_some() {
        println!("serving {page}");
        tokio::select! {
            () = crawl_on(&client, &site) => {}
            stopped = tokio::signal::ctrl_c() => stopped?,
        }
    } else {
        let plain = reqwest::Client::builder().no_proxy().build()?;
        println!("{}", plain.get(page).send().await?.text().await?);
    }
    pool.shutdown().await;
    Ok(())
}

/// Some requests; the first one after the proxy's death fails, for the site may have seen it.
async fn crawl(client: &ClientWithMiddleware, site: &Site) {
    for _ in 0..12 {
        if let Ok(response) = client.get(site.url("/")).send().await {
            let _ = response.bytes().await;
        }
    }
}

async fn crawl_on(client: &ClientWithMiddleware, site: &Site) {
    loop {
        crawl(client, site).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn listen(address: Option<SocketAddr>) -> Result<TcpListener, BoxError> {
    let address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    Ok(TcpListener::bind(address).await?)
}

/// Answers every path; a page asked for is a page rendered.
async fn serve(listener: TcpListener, handle: PrometheusHandle) {
    // What was recorded is folded away also while nobody asks.
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            upkeep.run_upkeep();
        }
    });
    while let Ok((stream, _)) = listener.accept().await {
        let handle = handle.clone();
        let answer = service_fn(move |_| {
            let page = Response::builder()
                .status(StatusCode::OK)
                .header(CONTENT_TYPE, "text/plain; version=0.0.4")
                .body(handle.render());
            async move { Ok::<_, Infallible>(page.unwrap_or_default()) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}
