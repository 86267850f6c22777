//! Requests as spans of OpenTelemetry, printed instead of sent to a collector.
//!
//! Each request is a span `lease.request` at debug, a child of the span that it is made in. It
//! lasts until the response's body has been read, and says which endpoint served it, how long it
//! waited, and what came of it.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use reqwest_lease::{BoxError, Endpoint, EndpointId, Inventory, LeaseMiddleware, Pool, PoolName};
use tracing::Instrument as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[path = "local/mod.rs"]
mod local;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let provider = SdkTracerProvider::builder()
        // A batch exporter to a collector takes its place.
        .with_simple_exporter(opentelemetry_stdout::SpanExporter::default())
        .build();
    tracing_subscriber::registry()
        .with(EnvFilter::new("warn,otel=info,reqwest_lease=debug"))
        .with(tracing_opentelemetry::layer().with_tracer(provider.tracer("crawler")))
        .init();

    let site = local::site::Site::start().await?;
    let proxy = local::proxy::ForwardProxy::start(Default::default()).await?;
    let endpoint = Endpoint::new(EndpointId::new("vn-a01")?, &proxy.url(), None)?;
    let inventory = Inventory::from_endpoints([endpoint])?;
    let pool = Pool::builder(PoolName::new("vn")?, inventory).build().await?;
    let client = LeaseMiddleware::builder(pool.clone()).build()?.into_client();

    let page = async {
        let response = client.get(site.url("/")).send().await?;
        response.bytes().await.map_err(BoxError::from)
    };
    page.instrument(tracing::info_span!("page")).await?;
    pool.shutdown().await;
    provider.shutdown()?;
    Ok(())
}
