//! Several pools in one client.

use reqwest_lease::{LeaseInfo, LeaseOptions};

use super::*;
use crate::support::SOON;

async fn two_pools(taps: &[Tap]) -> (Pool, Pool, ClientWithMiddleware) {
    let pool = |name: &str, taps: &[Tap]| {
        Pool::builder(PoolName::new(name).unwrap(), inventory(taps)).build()
    };
    let first = pool("first", &taps[..1]).await.unwrap();
    let second = pool("second", &taps[1..]).await.unwrap();
    let client = client(LeaseMiddleware::builder(first.clone()).also(second.clone()));
    (first, second, client)
}

fn through(pool: &str) -> LeaseOptions {
    LeaseOptions::new().pool(PoolName::new(pool).unwrap())
}

#[tokio::test]
async fn a_request_names_its_pool_or_takes_the_first() {
    let taps = taps(2).await;
    let (_, second, client) = two_pools(&taps).await;
    let held = LeaseOptions::new().held(&second.hold().await.unwrap());
    let ways = [(LeaseOptions::new(), "first"), (through("first"), "first"), (held, "second")];
    for (options, pool) in ways {
        let request = client.get(url("/drops/1")).with_extension(options);
        let response = request.send().await.unwrap();
        let info = response.extensions().get::<LeaseInfo>().unwrap();
        assert_eq!((info.pool().as_str(), info.endpoint().as_str()), (pool, "a"));
    }
    let request = client.get(url("/drops/1")).with_extension(through("second"));
    request.send().await.unwrap();
    assert_eq!((taps[0].asked().len(), taps[1].asked().len()), (2, 2));
}

#[tokio::test]
async fn an_unknown_pool_is_named_and_nothing_is_sent() {
    let taps = taps(2).await;
    let (.., client) = two_pools(&taps).await;
    let request = client.get(url("/drops/1")).with_extension(through("third"));
    let error = request.send().await.unwrap_err();
    assert_eq!(kind(&error), Kind::UnknownPool);
    assert!(error.to_string().contains("third"), "{error}");
    assert!(taps.iter().all(|tap| tap.asked().is_empty()));
}

#[tokio::test]
async fn a_closed_pool_lets_bodies_end_and_refuses_all_others() {
    let taps = taps(2).await;
    let (first, _, client) = two_pools(&taps).await;
    let response = client.get(url("/drops/50")).send().await.unwrap();
    let waiting = [client.get(url("/drops/1")).send(), client.get(url("/drops/1")).send()];
    let waiting = futures_util::future::join_all(waiting);
    let close = async {
        tokio::time::sleep(millis(5)).await;
        first.shutdown().await;
    };
    let (refused, ()) =
        tokio::time::timeout(SOON, async { tokio::join!(waiting, close) }).await.unwrap();
    for refused in refused {
        assert_eq!(kind(&refused.unwrap_err()), Kind::PoolClosed);
    }
    assert_eq!(response.bytes().await.unwrap().len(), 50);
    assert_eq!(in_use(&first).await, 0);
    let late = client.get(url("/drops/1")).send().await.unwrap_err();
    assert_eq!(kind(&late), Kind::PoolClosed);
    client.get(url("/drops/1")).with_extension(through("second")).send().await.unwrap();
}
