//! Several requests on one lease.

use http::StatusCode;
use reqwest_lease::{LeaseInfo, LeaseOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::support::eventually;

#[tokio::test]
async fn requests_after_and_beside_each_other_go_through_one_endpoint() {
    let taps = taps(3).await;
    let (pool, client) = leased(&taps, |builder| builder).await;
    let held = pool.hold().await.unwrap();
    let options = LeaseOptions::new().held(&held);
    let fetch = || async {
        let request = client.get(url("/drops/10")).with_extension(options.clone());
        let response = request.send().await.unwrap();
        let info = response.extensions().get::<LeaseInfo>().unwrap();
        assert_eq!((info.endpoint(), info.fence()), (held.endpoint(), held.fence()));
        response.bytes().await.unwrap();
    };
    fetch().await;
    fetch().await;
    futures_util::future::join_all((0..8).map(|_| fetch())).await;
    let asked: Vec<_> = taps.iter().map(|tap| tap.asked().len()).collect();
    assert_eq!(asked, [10, 0, 0]);
    assert!(taps[0].most() > 1);
    assert_eq!(pool.counts().grants, 1);

    // Neither handle alone gives it back.
    drop(held);
    assert_eq!(in_use(&pool).await, 1);
    drop(options);
    assert_eq!(in_use(&pool).await, 0);
}

#[tokio::test]
async fn a_body_keeps_a_held_lease() {
    let taps = taps(1).await;
    let (pool, client) = leased(&taps, |builder| builder).await;
    let held = pool.hold().await.unwrap();
    let request = client.get(url("/endless")).with_extension(LeaseOptions::new().held(&held));
    let response = request.send().await.unwrap();
    drop(held);
    assert_eq!(in_use(&pool).await, 1);
    drop(response);
    assert_eq!(in_use(&pool).await, 0);
}

#[tokio::test]
async fn nothing_is_sent_on_a_held_lease_that_has_run_out() {
    let taps = taps(1).await;
    let ttl = millis(300);
    let (pool, client) =
        leased(&taps, |builder| builder.ttl(ttl).largest_ttl(ttl).largest_lifetime(ttl)).await;
    let held = pool.hold().await.unwrap();
    assert!(held.is_valid());
    eventually("the lease runs out", || (!held.is_valid()).then_some(())).await;
    let request = client.get(url("/drops/1")).with_extension(LeaseOptions::new().held(&held));
    assert_eq!(kind(&request.send().await.unwrap_err()), Kind::LeaseExpired);
    assert!(taps[0].asked().is_empty());
    drop(held);
    assert_eq!(pool.counts().expirations, 1);
}

#[tokio::test]
async fn a_connection_is_taken_over_under_a_held_lease_only() {
    let taps = taps(1).await;
    let (pool, client) = leased(&taps, |builder| builder).await;
    let upgrade =
        || client.get(url("/upgrade")).header("connection", "upgrade").header("upgrade", "echo");
    let refused = upgrade().send().await.unwrap_err();
    assert_eq!(kind(&refused), Kind::UnsupportedRequest);
    assert!(taps[0].asked().is_empty());

    let held = pool.hold().await.unwrap();
    let request = upgrade().with_extension(LeaseOptions::new().held(&held));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut echo = response.upgrade().await.unwrap();
    echo.write_all(b"hello").await.unwrap();
    let mut heard = [0; 5];
    echo.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hello");
    assert_eq!(in_use(&pool).await, 1, "it is held for as long as its holder wants");
}
