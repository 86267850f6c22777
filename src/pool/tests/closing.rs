//! Leases on their way back, over a wire that takes its time.

use super::*;
use crate::store::{MAX_BATCH, ReleaseRequest, State};

fn many(number: usize) -> Vec<String> {
    (0..number).map(|number| format!("e{number:04}")).collect()
}

async fn pool_of_many(number: usize) -> (Pool, Wire) {
    let ids = many(number);
    pool_of(&ids.iter().map(String::as_str).collect::<Vec<_>>(), |builder| builder).await
}

async fn lease_all(pool: &Pool, number: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    for _ in 0..number {
        leases.push(lease(pool).await);
    }
    leases
}

#[tokio::test(start_paused = true)]
async fn leases_go_back_in_the_background_and_in_batches() {
    let (pool, wire) = pool_of_many(40).await;
    let leases = lease_all(&pool, 40).await;
    wire.always(Call::Release, Fault::Late(millis(100)));
    let started = Instant::now();
    drop(leases);
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(leased(&wire).await, 40, "nobody waits for it");
    pool.shutdown().await;
    assert_eq!(leased(&wire).await, 0, "but the end of the pool does");
    let batches: Vec<_> = wire.made(Call::Release).iter().map(|made| made.batch).collect();
    assert_eq!((batches.iter().max(), batches.iter().sum()), (Some(&MAX_BATCH), 40));
    assert!(batches.len() <= 4, "{batches:?}");
    assert_eq!((pool.counts().grants, pool.counts().releases), (40, 40));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_counted_and_blocks_nobody() {
    let (pool, wire) = pool_of_many(1100).await;
    let leases = lease_all(&pool, 1100).await;
    wire.always(Call::Release, Fault::Late(seconds(1)));
    drop(leases);
    let failed = pool.counts().releases_failed;
    assert_eq!(failed, 1100 - 1024);
    pool.shutdown().await;
    assert_eq!(pool.counts().releases, 1100 - failed - pool.counts().not_owner);
    sleep(TTL).await;
    assert_eq!(leased(&wire).await, 0, "the deadline ends what could not be given back");
}

#[tokio::test(start_paused = true)]
async fn a_failed_release_is_counted_and_ends_with_its_deadline() {
    let (pool, wire) = pool_of(&["a"], |builder| builder.expiry_cooldown(seconds(30))).await;
    wire.always(Call::Release, Fault::Unsent);
    let started = Instant::now();
    drop(lease(&pool).await);
    pool.shutdown().await;
    assert!(started.elapsed() < seconds(8), "{:?}", started.elapsed());
    let counts = pool.counts();
    assert_eq!((counts.releases_failed, counts.releases), (1, 0));
    assert!((4..20).contains(&counts.releases_repeated), "{counts:?}");
    let made = wire.made(Call::Release).len() as u64;
    assert_eq!(counts.releases_repeated, made - 1, "all but the first one");
    assert_eq!(leased(&wire).await, 1);
    tokio::time::sleep_until(started + TTL + seconds(7)).await;
    let member = pool.list().await.unwrap().remove(0);
    assert!(matches!(member.state, State::Cooling(rest) if rest > seconds(20)), "{member:?}");
}

#[tokio::test(start_paused = true)]
async fn a_release_is_repeated_until_the_store_answers() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Release, &[Fault::Unsent; 5]);
    drop(lease(&pool).await);
    sleep(seconds(5)).await;
    assert_eq!(leased(&wire).await, 0);
    let counts = pool.counts();
    assert_eq!((counts.releases, counts.releases_repeated), (1, 5));
    assert_eq!((counts.not_owner, counts.releases_failed), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_release_that_had_taken_place_is_no_wrong_token() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Release, &[Fault::Lost]);
    drop(lease(&pool).await);
    pool.shutdown().await;
    assert_eq!(wire.made(Call::Release).len(), 2);
    let counts = pool.counts();
    assert_eq!((counts.releases, counts.not_owner, counts.releases_repeated), (1, 0, 1));
}

/// The twin: one that was sent once and finds the lease ended is counted.
#[tokio::test(start_paused = true)]
async fn a_first_release_of_an_ended_lease_is_a_wrong_token() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    let late = lease(&pool).await;
    let request = ReleaseRequest::new(name(), vec![late.as_released()]);
    wire.memory.release(request).await.unwrap();
    drop(late);
    pool.shutdown().await;
    assert_eq!((pool.counts().releases, pool.counts().not_owner), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_release_is_repeated_no_longer_than_its_lease_lasts() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Release, Fault::Unsent);
    drop(lease(&pool).await);
    sleep(TTL + seconds(3)).await;
    let made = wire.made(Call::Release).len();
    assert!((30..80).contains(&made), "{made} tries, 2 s apart at most");
    assert_eq!(pool.counts().releases_failed, 1);
    sleep(HOUR).await;
    assert_eq!(wire.made(Call::Release).len(), made);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_waits_for_the_release_of_its_token_and_is_repeated_too() {
    let (pool, wire) = pool_of(&["a"], |builder| builder.judge(Rests(seconds(30)))).await;
    wire.next(Call::Acquire, &[Fault::Stray(millis(20))]);
    wire.next(Call::Release, &[Fault::Unsent; 3]);
    wire.next(Call::Cancel, &[Fault::Unsent; 2]);
    drop(lease(&pool).await);
    sleep(seconds(2)).await;
    let counts = pool.counts();
    assert_eq!((counts.releases, counts.cancels, counts.cancels_failed), (1, 1, 0));
    let member = pool.list().await.unwrap().remove(0);
    assert!(matches!(member.state, State::Cooling(_)), "with its verdict: {member:?}");
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_may_go_before_the_release_is_made() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    let lease = lease(&pool).await;
    wire.always(Call::Release, Fault::Late(seconds(1)));
    drop(pool);
    drop(lease);
    sleep(seconds(2)).await;
    assert_eq!(leased(&wire).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_outlives_the_end_of_its_pool() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    let lease = lease(&pool).await;
    pool.shutdown().await;
    assert!(lease.is_trusted());
    drop(lease);
    settle().await;
    assert_eq!(leased(&wire).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_given_back_too_late_is_counted_and_harms_nobody() {
    let (pool, wire) = pool_of(&["a"], |builder| builder.expiry_cooldown(Duration::ZERO)).await;
    let late = lease(&pool).await;
    sleep(TTL).await;
    assert!(!late.is_trusted());
    let next = lease(&pool).await;
    late.finish(crate::outcome::Outcome::CredentialsRefused);
    settle().await;
    assert_eq!(pool.counts().not_owner, 1);
    assert_eq!(leased(&wire).await, 1);
    assert!(next.is_trusted());
}

#[test]
fn a_release_after_the_end_of_its_runtime_is_counted_and_blocks_nobody() {
    let home = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (pool, lease) = home.block_on(async {
        let pool = pool_of(&["a"], |builder| builder).await.0;
        (pool.clone(), lease(&pool).await)
    });
    drop(home);
    drop(lease);
    assert_eq!(pool.counts().releases_failed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_keeps_no_pool_from_ending() {
    for call in [Call::Release, Call::Cancel] {
        let (pool, wire) = pool_of(&["a", "b"], |builder| builder).await;
        wire.always(call, Fault::Hangs);
        drop(lease(&pool).await);
        pool.cancel(crate::secret::Token::random());
        let started = Instant::now();
        pool.shutdown().await;
        assert!(started.elapsed() <= seconds(6), "{:?}", started.elapsed());
        let counts = pool.counts();
        assert_eq!(
            counts.releases_failed + counts.cancels_failed,
            if call == Call::Release { 2 } else { 1 }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_hangs_is_repeated() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Release, &[Fault::Hangs]);
    drop(lease(&pool).await);
    sleep(seconds(10)).await;
    assert_eq!((leased(&wire).await, pool.counts().releases), (0, 1));
}

#[test]
fn what_the_end_of_the_runtime_leaves_in_the_queue_is_counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pool = runtime.block_on(async {
        let (pool, wire) = pool_of_many(3).await;
        wire.always(Call::Release, Fault::Hangs);
        drop(lease(&pool).await);
        // It is on its way.
        settle().await;
        drop(lease_all(&pool, 2).await);
        pool
    });
    assert_eq!(pool.counts().releases_failed, 0);
    drop(runtime);
    assert_eq!(pool.counts().releases_failed, 3);
}
