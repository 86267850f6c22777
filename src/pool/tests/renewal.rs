//! Leases that are kept.

use super::*;
use crate::outcome::Outcome;
use crate::store::{CancelRequest, Policy};

async fn kept(
    ttl: Duration,
    choose: impl FnOnce(PoolBuilder) -> PoolBuilder,
) -> (Pool, Wire, Lease) {
    let (pool, wire) = pool_of(&["a"], choose).await;
    let mut lease = pool.lease(Wants { ttl, ..wants() }, seconds(1)).await.unwrap().0;
    lease.keep_alive();
    (pool, wire, lease)
}

#[tokio::test(start_paused = true)]
async fn a_kept_lease_lives_on_whatever_its_ttl() {
    for ttl in [millis(50), millis(300), millis(700), seconds(1), seconds(60)] {
        let (pool, wire, lease) = kept(ttl, |builder| builder).await;
        for _ in 0..200 {
            sleep(ttl / 10).await;
            assert!(lease.is_trusted(), "lost with a ttl of {ttl:?}");
            assert_eq!(leased(&wire).await, 1);
        }
        assert_eq!(pool.counts().renewals_failed, 0);
        let renewals = wire.made(Call::Renew).len();
        assert!((20..=100).contains(&renewals), "{renewals} renewals in 20 ttls of {ttl:?}");
    }
}

/// The twin.
#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_keeps_ends() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    let lease = lease(&pool).await;
    sleep(TTL).await;
    assert!(!lease.is_trusted());
    assert!(wire.made(Call::Renew).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_repeated_while_the_trust_lasts() {
    for ttl in [millis(300), seconds(1), seconds(60)] {
        let (pool, wire, lease) = kept(ttl, |builder| builder).await;
        wire.next(Call::Renew, &[Fault::Unsent, Fault::Lost]);
        sleep(ttl * 5).await;
        assert!(lease.is_trusted(), "lost with a ttl of {ttl:?}");
        assert_eq!(pool.counts().renewals_failed, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_is_repeated_while_the_trust_lasts() {
    let (_pool, wire, lease) = kept(seconds(60), |builder| builder).await;
    wire.next(Call::Renew, &[Fault::Hangs]);
    sleep(seconds(300)).await;
    assert!(lease.is_trusted());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_ends_the_trust_and_not_sooner() {
    let (pool, wire, lease) = kept(seconds(60), |builder| builder).await;
    let until = lease.trusted_until().unwrap();
    wire.always(Call::Renew, Fault::Unsent);
    tokio::time::sleep_until(until - millis(1)).await;
    assert!(lease.is_trusted());
    assert!(wire.made(Call::Renew).len() > 10);
    sleep(seconds(1)).await;
    assert!(!lease.is_trusted());
    assert_eq!(pool.counts().renewals_failed, 1);
}

/// As the body of a response does, before the renewal wakes to find the trust over.
#[tokio::test(start_paused = true)]
async fn what_ends_with_the_trust_is_told_as_a_failed_renewal() {
    for (keeps, failed) in [(true, 1), (false, 0)] {
        let (pool, wire) = pool_of(&["a"], |builder| builder).await;
        let mut lease = lease(&pool).await;
        if keeps {
            lease.keep_alive();
        }
        wire.always(Call::Renew, Fault::Unsent);
        tokio::time::sleep_until(lease.trusted_until().unwrap()).await;
        lease.finish(Outcome::Expired);
        sleep(seconds(5)).await;
        let counts = pool.counts();
        assert_eq!((counts.renewals_failed, counts.expirations), (failed, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn not_owner_is_final() {
    let (pool, wire, lease) = kept(seconds(60), |builder| builder).await;
    let token = wire.made(Call::Acquire)[0].token.unwrap();
    wire.memory.cancel(CancelRequest { pool: name(), token, tombstone: TTL }).await.unwrap();
    sleep(seconds(200)).await;
    assert_eq!(wire.made(Call::Renew).len(), 1);
    assert_eq!(pool.counts().renewals_failed, 1);
    assert!(!lease.is_trusted());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_known_to_be_lost_is_not_relied_on() {
    let (_pool, wire, lease) = kept(seconds(60), |builder| builder).await;
    let token = wire.made(Call::Acquire)[0].token.unwrap();
    wire.memory.cancel(CancelRequest { pool: name(), token, tombstone: TTL }).await.unwrap();
    sleep(seconds(31)).await;
    assert_eq!(wire.made(Call::Renew).len(), 1);
    assert!(!lease.is_trusted(), "somebody else may have it");
}

#[tokio::test(start_paused = true)]
async fn no_renewal_follows_a_release() {
    let (pool, wire, lease) = kept(seconds(1), |builder| builder).await;
    sleep(seconds(10)).await;
    let before = wire.made(Call::Renew).len();
    assert!(before > 5);
    drop(lease);
    sleep(seconds(10)).await;
    assert_eq!(wire.made(Call::Renew).len(), before);
    assert_eq!(pool.counts().renewals_failed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_largest_lifetime_ends_what_is_kept() {
    let pool = Pool::builder(name(), inventory(&["a"]))
        .policy(Policy::LeastAssigned)
        .ttl(seconds(10))
        .largest_ttl(seconds(10))
        .largest_lifetime(seconds(45))
        .build()
        .await
        .unwrap();
    let started = Instant::now();
    let held = pool.hold().await.unwrap();
    while held.is_valid() {
        sleep(millis(10)).await;
    }
    let lived = started.elapsed();
    assert!(lived > seconds(44) && lived < seconds(45), "{lived:?}");
    sleep(seconds(2)).await;
    assert_eq!(pool.status().await.unwrap().leased, 0);
}
