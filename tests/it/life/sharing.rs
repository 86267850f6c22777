//! Who is on an endpoint at one moment.

use std::collections::BTreeMap;
use std::pin::pin;

use reqwest_lease::{Error, Judge, Kind, LeaseInfo, Mode, Verdict};

use super::*;
use crate::support::SOON;
use crate::support::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_requests_are_never_on_one_exclusive_endpoint() {
    let taps = taps(3).await;
    let (pool, client) = leased(&taps, |builder| builder).await;
    let tasks: Vec<_> = (0..64).map(|task| fetch(&client, 1 + task % 8)).collect();
    for task in tasks {
        task.await.unwrap();
    }
    for tap in &taps {
        assert_eq!(tap.most(), 1);
        assert!(tap.asked().len() > 20, "each had its part");
    }
    let counts = pool.counts();
    assert_eq!((counts.grants, counts.releases), (128, 128));
}

/// The twin: without the reservation they are seen to overlap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_are_on_a_shared_endpoint_at_once() {
    let taps = taps(3).await;
    let (_pool, client) = leased(&taps, |builder| builder.mode(Mode::Shared)).await;
    let tasks: Vec<_> = (0..64).map(|task| fetch(&client, 1 + task % 8)).collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(taps.iter().all(|tap| tap.most() > 3));
}

/// Two requests one after the other, read to the end.
fn fetch(client: &ClientWithMiddleware, drops: usize) -> tokio::task::JoinHandle<()> {
    let client = client.clone();
    tokio::spawn(async move {
        for _ in 0..2 {
            let response = client.get(url(&format!("/drops/{drops}"))).send().await.unwrap();
            assert_eq!(response.bytes().await.unwrap().len(), drops);
        }
    })
}

#[tokio::test]
async fn a_second_request_waits_for_the_first_ones_body() {
    for end in ["read", "dropped", "expired"] {
        let taps = taps(1).await;
        let (pool, client) = leased(&taps, |builder| builder.ttl(millis(1000))).await;
        let path = if end == "read" { "/drops/20" } else { "/endless" };
        let first = client.get(url(path)).send().await.unwrap();
        let mut second = pin!(client.get(url("/drops/1")).send());
        assert!(tokio::time::timeout(millis(20), &mut second).await.is_err(), "it did not wait");
        assert_eq!(taps[0].asked().len(), 1);
        match end {
            "read" => assert_eq!(first.bytes().await.unwrap().len(), 20),
            "dropped" => drop(first),
            _ => {
                let error = first.bytes().await.unwrap_err();
                assert_eq!(Error::find(&error).map(Error::kind), Some(Kind::LeaseExpired));
            }
        }
        let second = tokio::time::timeout(SOON, second).await.expect(end).unwrap();
        let info = second.extensions().get::<LeaseInfo>().unwrap();
        assert!(info.lease_wait() >= millis(20), "{end}");
        assert_eq!(second.text().await.unwrap(), "x");
        assert_eq!(in_use(&pool).await, 0);
    }
}

#[tokio::test]
async fn a_shared_pool_spreads_its_requests_evenly() {
    let taps = taps(4).await;
    let (pool, client) = leased(&taps, |builder| builder.mode(Mode::Shared)).await;
    let endless = client.get(url("/endless")).send().await.unwrap();
    let mut seen = BTreeMap::<String, usize>::new();
    for _ in 1..100 {
        let response = client.get(url("/drops/1")).send().await.unwrap();
        let info = response.extensions().get::<LeaseInfo>().unwrap();
        *seen.entry(info.endpoint().to_string()).or_default() += 1;
    }
    let counts: Vec<_> = taps.iter().map(|tap| tap.asked().len()).collect();
    assert_eq!(counts, [25; 4], "the one under way counts too: {seen:?}");
    drop(endless);
    eventually("all is given back", || (pool.counts().releases == 100).then_some(())).await;
}

/// An endpoint that was used rests.
struct Rests;

impl Judge for Rests {
    fn judge(&self, _: reqwest_lease::Evidence) -> Verdict {
        Verdict::cooldown(millis(400))
    }
}

#[tokio::test]
async fn a_cooldown_of_a_shared_endpoint_is_for_all() {
    let taps = taps(1).await;
    let (pool, client) = leased(&taps, |builder| builder.mode(Mode::Shared).judge(Rests)).await;
    let [long, short] = [client.get(url("/endless")), client.get(url("/drops/1"))];
    let long = long.send().await.unwrap();
    let started = tokio::time::Instant::now();
    short.send().await.unwrap().bytes().await.unwrap();
    assert_eq!(pool.status().await.unwrap().cooling, 1);
    client.get(url("/drops/1")).send().await.unwrap();
    assert!(started.elapsed() >= millis(400));
    assert_eq!(taps[0].exchanges(), 1, "whoever was there already may stay");
    drop(long);
}
