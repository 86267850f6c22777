//! Bodies longer than a lease.

use reqwest_lease::LeaseOptions;
use tokio::time::Instant;

use super::*;

const TTL: Duration = Duration::from_secs(1);

/// Reads until the lease ends, or for this long.
async fn flows(client: &ClientWithMiddleware, options: LeaseOptions, most: Duration) -> Duration {
    let started = Instant::now();
    let request = client.get(url("/endless")).with_extension(options);
    let mut response = request.send().await.unwrap();
    while started.elapsed() < most {
        match response.chunk().await {
            Ok(chunk) => assert!(chunk.is_some()),
            Err(error) => {
                assert_eq!(Error::find(&error).map(Error::kind), Some(Kind::LeaseExpired));
                break;
            }
        }
    }
    started.elapsed()
}

#[tokio::test]
async fn a_renewed_body_flows_on_and_any_other_is_cut() {
    let taps = taps(1).await;
    let (plain, client) = leased(&taps, |builder| builder.ttl(TTL)).await;
    let (_, renewing) = leased(&taps, |builder| builder.ttl(TTL).renew(true)).await;
    let (new, long) = (LeaseOptions::new, millis(2500));
    let (asked, set, cut, refused) = tokio::join!(
        flows(&client, new().renew(true), long),
        flows(&renewing, new(), long),
        async {
            let (_, client) = leased(&taps, |builder| builder.ttl(TTL)).await;
            flows(&client, new(), long).await
        },
        async {
            let (_, client) = leased(&taps, |builder| builder.ttl(TTL).renew(true)).await;
            flows(&client, new().renew(false), long).await
        },
    );
    assert!(asked >= long && set >= long, "{asked:?} {set:?}");
    assert!(cut < TTL && refused < TTL, "{cut:?} {refused:?}");
    assert_eq!(plain.counts().renewals_failed, 0);
    assert_eq!(in_use(&plain).await, 0);
}

#[tokio::test]
async fn a_largest_lifetime_ends_the_longest_body() {
    let taps = taps(1).await;
    let lifetime = millis(2500);
    let (pool, client) = leased(&taps, |builder| {
        builder.ttl(TTL).largest_ttl(TTL).largest_lifetime(lifetime).renew(true)
    })
    .await;
    let lasted = flows(&client, LeaseOptions::new(), lifetime * 2).await;
    assert!(lasted > lifetime * 3 / 4 && lasted < lifetime, "{lasted:?}");
    taps[0].is_left_alone().await;
    assert_eq!(pool.counts().expirations, 1);
}
