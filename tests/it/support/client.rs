//! Clients through a [`Web`], and what they ask.

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use reqwest::{Body, Client, Proxy, Request};
use reqwest_lease::{
    Endpoint, EndpointId, Error, Inventory, Kind, LeaseBuilder, LeaseMiddleware, Pool, PoolName,
};
use reqwest_middleware::ClientWithMiddleware;

use super::SOON;
use super::origin::{Answer, text};
use super::web::{Asked, Web, moved};

pub(crate) fn stream(text: &'static str) -> Body {
    let (one, other) = text.split_at(text.len() / 2);
    let chunks = [one, other].map(|chunk| Ok::<_, std::io::Error>(Bytes::from(chunk)));
    Body::wrap_stream(futures_util::stream::iter(chunks))
}

/// reqwest itself through this proxy, with its own redirects.
pub(crate) fn plain(web: &Web, url: &str) -> Client {
    Client::builder()
        .no_proxy()
        .proxy(Proxy::all(url).unwrap())
        .tls_backend_preconfigured(web.authority().client_config())
        .timeout(SOON)
        .build()
        .unwrap()
}

/// A pool of one endpoint with this URL.
pub(crate) async fn pool_of(urls: &[String]) -> Pool {
    let endpoints = urls.iter().zip('a'..).map(|(url, name)| {
        Endpoint::new(EndpointId::new(name.to_string()).unwrap(), url, None).unwrap()
    });
    let inventory = Inventory::from_endpoints(endpoints).unwrap();
    Pool::builder(PoolName::new("test").unwrap(), inventory).build().await.unwrap()
}

/// A client of ours through this web.
pub(crate) async fn leased(
    web: &Web,
    url: String,
    choose: impl FnOnce(LeaseBuilder) -> LeaseBuilder,
) -> ClientWithMiddleware {
    let pool = pool_of(&[url]).await;
    let builder = LeaseMiddleware::builder(pool).tls(web.authority().client_config()).timeout(SOON);
    choose(builder).build().unwrap().into_client()
}

/// Redirects along these, and ends at what is not among the firsts.
pub(crate) fn chain(hops: &'static [(&'static str, &'static str)]) -> impl Fn(&Asked) -> Answer {
    move |asked| match hops.iter().find(|(from, _)| *from == asked.url) {
        Some((_, to)) => moved(307, to.as_bytes()),
        None => text(StatusCode::OK, "arrived"),
    }
}

pub(crate) fn get(url: &str, headers: &[(&'static str, &'static str)]) -> Request {
    let mut request = Request::new(Method::GET, url.parse().unwrap());
    for (name, value) in headers {
        request.headers_mut().insert(*name, HeaderValue::from_static(value));
    }
    request
}

pub(crate) async fn failure(client: &ClientWithMiddleware, url: &str) -> Kind {
    let error = client.execute(get(url, &[])).await.unwrap_err();
    Error::find_in(&error).unwrap_or_else(|| panic!("{error:?}")).kind()
}
