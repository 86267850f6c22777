//! Leases of endpoints under suspicion are kept, but not through a wait.

use reqwest_lease::{Budget, Budgets};
use tokio::time::Instant;

use super::*;
use crate::support::SOON;
use crate::support::client::pool_of;
use crate::support::fault::{Fault, FaultProxy};

#[tokio::test]
async fn requests_do_not_wait_for_each_others_suspects() {
    let proxies = [
        FaultProxy::start(Fault::RefusesCredentials).await,
        FaultProxy::start(Fault::RefusesCredentials).await,
    ];
    let pool = pool_of(&proxies.each_ref().map(FaultProxy::url)).await;
    let client = client(LeaseMiddleware::builder(pool.clone()));
    let started = Instant::now();
    let requests = [client.get(url("/1")).send(), client.get(url("/2")).send()];
    for refused in futures_util::future::join_all(requests).await {
        assert_eq!(kind(&refused.unwrap_err()), Kind::CredentialsRefused);
    }
    assert!(started.elapsed() < SOON / 2, "{:?}", started.elapsed());
}

#[tokio::test]
async fn no_suspect_is_kept_through_a_wait_for_the_budget() {
    let proxies = [
        FaultProxy::start(Fault::RefusesCredentials).await,
        FaultProxy::start(Fault::RefusesCredentials).await,
    ];
    let pool = pool_of(&proxies.each_ref().map(FaultProxy::url)).await;
    let budgets = Budgets::builder().default(Budget::per_second(1)).build().unwrap();
    let client = client(LeaseMiddleware::builder(pool.clone()).budgets(budgets));
    let request = tokio::spawn(client.get(url("/")).send());
    let mut grants = 0;
    while !request.is_finished() {
        let counts = pool.counts();
        if counts.grants == 1 && counts.releases == 1 {
            grants = 1;
        }
        tokio::time::sleep(millis(5)).await;
    }
    assert_eq!(kind(&request.await.unwrap().unwrap_err()), Kind::CredentialsRefused);
    assert_eq!(grants, 1, "the first one was given back before the second was leased");
}
