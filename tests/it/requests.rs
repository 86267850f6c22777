//! One request after the other: what is leased, sent and given back.

use http::StatusCode;
use reqwest_lease::{Endpoint, EndpointId, Inventory, LeaseInfo, LeaseMiddleware, Pool, PoolName};
use reqwest_middleware::ClientWithMiddleware;

use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::direct_connections;
use crate::support::origin::{Origin, text};

/// A pool of these proxies, named a, b, c, ..., and a client for it.
pub(crate) async fn leased(proxies: &[&ForwardProxy]) -> (Pool, ClientWithMiddleware) {
    let pool = pool(proxies).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    (pool, client)
}

/// A pool of these proxies, named a, b, c, ...
pub(crate) async fn pool(proxies: &[&ForwardProxy]) -> Pool {
    Pool::builder(PoolName::new("test").unwrap(), inventory(proxies)).build().await.unwrap()
}

/// These proxies, named a, b, c, ...
pub(crate) fn inventory(proxies: &[&ForwardProxy]) -> Inventory {
    let endpoints = proxies.iter().zip('a'..).map(|(proxy, name)| {
        let id = EndpointId::new(name.to_string()).unwrap();
        Endpoint::new(id, &proxy.url(), None).unwrap()
    });
    Inventory::from_endpoints(endpoints).unwrap()
}

#[tokio::test]
async fn a_request_goes_through_its_endpoint_and_gives_it_back() {
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let (pool, client) = leased(&[&proxy]).await;

    let response = client.get(origin.url("/page?q#f")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        response.url().as_str(),
        origin.url("/page?q"),
        "without fragment, as reqwest has it"
    );
    assert_eq!(response.content_length(), Some(5));
    let info = response.extensions().get::<LeaseInfo>().unwrap().clone();
    assert_eq!((info.endpoint().as_str(), info.attempts(), info.hops()), ("a", 1, 0));
    assert_eq!(pool.status().await.unwrap().leased, 1, "the body holds the lease");
    assert_eq!(response.text().await.unwrap(), "hello");
    assert_eq!(pool.status().await.unwrap().leased, 0);

    assert_eq!(origin.visits().len(), 1);
    assert!(direct_connections(&origin, &[&proxy]).is_empty());
}
