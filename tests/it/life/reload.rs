//! An inventory that changes under requests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use reqwest_lease::{InventorySource, LeaseOptions, Snapshot};

use super::*;

/// A source that a test rewrites.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<(&'static str, String)>>>);

impl Page {
    fn write(&self, endpoints: &[(&'static str, &Tap)]) {
        *self.0.lock().unwrap() = endpoints.iter().map(|(id, tap)| (*id, tap.url())).collect();
    }
}

#[async_trait]
impl InventorySource for Page {
    async fn load(&self) -> Result<Snapshot, Error> {
        let endpoints = self.0.lock().unwrap().clone();
        Snapshot::new(endpoints.iter().map(|(id, url)| endpoint(id, url)), None)
    }
}

async fn written(endpoints: &[(&'static str, &Tap)]) -> (Pool, ClientWithMiddleware, Page) {
    let page = Page::default();
    page.write(endpoints);
    let inventory = Inventory::open(page.clone()).await.unwrap();
    let pool = Pool::builder(PoolName::new("test").unwrap(), inventory).build().await.unwrap();
    let client = client(LeaseMiddleware::builder(pool.clone()));
    (pool, client, page)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_after_a_reload_uses_an_old_address() {
    let taps = taps(2).await;
    let (pool, client, page) = written(&[("a", &taps[0])]).await;
    let held = pool.hold().await.unwrap();
    let lent = LeaseOptions::new().held(&held);
    let fetch = |path: &'static str, options: Option<LeaseOptions>| {
        let options = options.unwrap_or_else(|| LeaseOptions::new().max_wait(millis(5000)));
        let request = client.get(url(path)).with_extension(options);
        async move { request.send().await.unwrap().bytes().await.unwrap() }
    };
    fetch("/drops/1", Some(lent.clone())).await;
    let waiting = tokio::spawn(fetch("/drops/1", None));
    let old = taps[0].asked().len();

    page.write(&[("a", &taps[1])]);
    pool.reload().await.unwrap();
    fetch("/drops/1", Some(lent.clone())).await;
    drop((held, lent));
    waiting.await.unwrap();
    for _ in 0..10 {
        fetch("/drops/1", None).await;
    }
    assert_eq!((taps[0].asked().len(), taps[1].asked().len()), (old, 12));
    taps[0].is_left_alone().await;
}

#[tokio::test]
async fn a_removed_endpoint_serves_its_last_body_to_the_end() {
    let taps = taps(2).await;
    let (pool, client, page) = written(&[("a", &taps[0]), ("b", &taps[1])]).await;
    let response = client.get(url("/drops/50")).send().await.unwrap();
    page.write(&[("b", &taps[1])]);
    pool.reload().await.unwrap();
    client.get(url("/drops/1")).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(pool.list().await.unwrap().len(), 2, "it is still in use");
    assert_eq!(response.bytes().await.unwrap().len(), 50);
    let left = pool.list().await.unwrap();
    assert_eq!(left.iter().map(|member| member.endpoint.as_str()).collect::<Vec<_>>(), ["b"]);
    client.get(url("/drops/1")).send().await.unwrap().bytes().await.unwrap();
    assert_eq!((taps[0].asked().len(), taps[1].asked().len()), (1, 2));
}

#[tokio::test]
async fn an_added_endpoint_serves_whoever_waits() {
    let taps = taps(2).await;
    let (pool, client, page) = written(&[("a", &taps[0])]).await;
    let _busy = client.get(url("/endless")).send().await.unwrap();
    let waiting = tokio::spawn(client.get(url("/drops/1")).send());
    page.write(&[("a", &taps[0]), ("b", &taps[1])]);
    tokio::task::yield_now().await;
    pool.reload().await.unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(taps[1].asked().len(), 1);
}
