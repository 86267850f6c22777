//! Nothing goes on once the lease is not to be relied on any more.

use std::pin::pin;

use reqwest_lease::{LeaseInfo, Mode};
use tokio::time::Instant;

use super::*;

/// With it the trust ends after 750 ms.
const TTL: Duration = Duration::from_secs(1);
const TRUST: Duration = Duration::from_millis(750);

fn at_the_end_of_trust(started: Instant) {
    let lasted = started.elapsed();
    // The exact moment is tested on paused time.
    assert!(lasted >= TRUST && lasted < TTL * 2, "{lasted:?}");
}

/// The endpoint is free at once: its connection is closed, and the lease was given back in time.
async fn is_free(pool: &Pool, taps: &[Tap], client: &ClientWithMiddleware) {
    assert_eq!(in_use(pool).await, 0);
    let counts = pool.counts();
    assert_eq!((counts.expirations, counts.releases + counts.not_owner), (1, 1));
    taps[0].is_left_alone().await;
    client.get(url("/drops/1")).send().await.unwrap();
}

#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let taps = taps(1).await;
    let (pool, client) = leased(&taps, |builder| builder.ttl(TTL).expiry_cooldown(millis(1))).await;
    let started = Instant::now();
    let error = client.get(url("/stall")).send().await.unwrap_err();
    at_the_end_of_trust(started);
    assert_eq!(kind(&error), Kind::LeaseExpired);
    is_free(&pool, &taps, &client).await;
}

#[tokio::test]
async fn a_body_that_flows_is_cut() {
    let taps = taps(1).await;
    let (pool, client) = leased(&taps, |builder| builder.ttl(TTL).expiry_cooldown(millis(1))).await;
    let started = Instant::now();
    let mut response = client.get(url("/endless")).send().await.unwrap();
    let error = loop {
        match response.chunk().await {
            Ok(chunk) => assert!(chunk.is_some(), "a cut body must not look complete"),
            Err(error) => break error,
        }
    };
    at_the_end_of_trust(started);
    assert_eq!(Error::find(&error).map(Error::kind), Some(Kind::LeaseExpired));
    is_free(&pool, &taps, &client).await;
}

#[tokio::test]
async fn a_reader_that_waits_is_woken_at_the_end() {
    let taps = taps(1).await;
    let (pool, client) = leased(&taps, |builder| builder.ttl(TTL).expiry_cooldown(millis(1))).await;
    let started = Instant::now();
    let response = client.get(url("/quiet")).send().await.unwrap();
    let error = response.bytes().await.unwrap_err();
    at_the_end_of_trust(started);
    assert_eq!(Error::find(&error).map(Error::kind), Some(Kind::LeaseExpired));
    is_free(&pool, &taps, &client).await;
}

#[tokio::test]
async fn a_body_that_nobody_reads_is_closed_too() {
    let taps = taps(1).await;
    let (pool, client) = leased(&taps, |builder| builder.ttl(TTL).expiry_cooldown(millis(1))).await;
    let started = Instant::now();
    let response = client.get(url("/endless")).send().await.unwrap();
    taps[0].is_left_alone().await;
    at_the_end_of_trust(started);
    is_free(&pool, &taps, &client).await;
    let error = response.bytes().await.unwrap_err();
    assert_eq!(Error::find(&error).map(Error::kind), Some(Kind::LeaseExpired));
}

/// The twin: what has no deadline flows on.
#[tokio::test]
async fn a_shared_body_has_no_deadline() {
    let taps = taps(1).await;
    let (_pool, client) = leased(&taps, |builder| builder.ttl(TTL).mode(Mode::Shared)).await;
    let started = Instant::now();
    let mut response = client.get(url("/endless")).send().await.unwrap();
    while started.elapsed() < TTL {
        response.chunk().await.unwrap().unwrap();
    }
    assert_eq!(taps[0].exchanges(), 1);
}

#[tokio::test]
async fn a_hop_late_in_a_lease_takes_another_one() {
    let taps = taps(1).await;
    let (pool, client) = leased(&taps, |builder| builder.ttl(TTL).expiry_cooldown(millis(1))).await;
    let response = client.get(url("/late")).send().await.unwrap();
    assert_eq!(response.extensions().get::<LeaseInfo>().unwrap().hops(), 1);
    assert_eq!(response.text().await.unwrap(), "x");
    assert_eq!((pool.counts().grants, pool.counts().expirations), (2, 0));
}

#[tokio::test]
async fn whoever_waits_gets_the_endpoint_of_a_lease_that_ran_out() {
    let taps = taps(1).await;
    let (_pool, client) =
        leased(&taps, |builder| builder.ttl(TTL).expiry_cooldown(millis(1))).await;
    let started = Instant::now();
    let _unread = client.get(url("/endless")).send().await.unwrap();
    let waiter = pin!(client.get(url("/drops/1")).send());
    waiter.await.unwrap();
    at_the_end_of_trust(started);
}
