//! Code that is not ours and panics.

use super::*;
use crate::outcome::Outcome;
use crate::store::State;

/// Panics at one outcome.
struct Panics(Outcome);

impl Judge for Panics {
    fn judge(&self, evidence: Evidence) -> Verdict {
        assert!(evidence.outcome != self.0, "the judge's own fault");
        Verdict::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_panics_leaves_the_default_verdict() {
    let judge = Panics(Outcome::CredentialsRefused);
    let (pool, wire) = pool_of(&["a"], |builder| builder.judge(judge)).await;
    lease(&pool).await.finish(Outcome::CredentialsRefused);
    settle().await;
    assert_eq!((leased(&wire).await, pool.counts().panics), (0, 1));
    let member = pool.list().await.unwrap().remove(0);
    assert!(matches!(member.state, State::Quarantined(_)), "{member:?}");
}

/// A second panic while the first unwinds would abort the process.
#[tokio::test(start_paused = true)]
async fn a_judge_may_panic_while_its_lease_is_dropped_by_a_panic() {
    let (pool, wire) = pool_of(&["a"], |builder| builder.judge(Panics(Outcome::Stalled))).await;
    let mut lease = lease(&pool).await;
    lease.note(Outcome::Stalled);
    let task = tokio::spawn(async move {
        let _lease = lease;
        panic!("the request's own");
    });
    assert!(task.await.unwrap_err().is_panic());
    settle().await;
    assert_eq!((leased(&wire).await, pool.counts().panics), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn releases_and_cancels_that_panic_are_repeated() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Release, &[Fault::Panics; 3]);
    drop(lease(&pool).await);
    sleep(seconds(2)).await;
    assert_eq!((leased(&wire).await, pool.counts().releases), (0, 1));
    wire.next(Call::Cancel, &[Fault::Panics; 3]);
    pool.cancel(crate::secret::Token::random());
    sleep(seconds(2)).await;
    assert_eq!((pool.counts().cancels, pool.counts().panics), (1, 6));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_panics_is_repeated_at_leisure() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Acquire, &[Fault::Panics; 3]);
    assert!(matches!(pool.lease_now(wants(), TTL).await.unwrap().0, Now::Later(Some(_))));
    drop(lease(&pool).await);
    assert_eq!(pool.counts().panics, 3);
    wire.always(Call::Acquire, Fault::Panics);
    let (error, waited) = refusal(&pool, seconds(2)).await;
    assert_eq!((error.kind(), waited), (Kind::StoreUnavailable, seconds(2)));
    let panics = pool.counts().panics;
    assert!((20..60).contains(&panics), "{panics} in 2 s");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_or_a_reap_that_panics_is_not_the_last() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.next(Call::Renew, &[Fault::Panics; 2]);
    wire.next(Call::Reap, &[Fault::Panics; 2]);
    let mut lease = lease(&pool).await;
    lease.keep_alive();
    sleep(TTL * 2).await;
    assert!(lease.is_trusted());
    assert!(wire.made(Call::Reap).len() > 10);
    assert_eq!(pool.counts().panics, 4);
}

#[tokio::test(start_paused = true)]
async fn hints_that_panic_end_and_nothing_else_does() {
    let (pool, _) = pool_of(&["a"], |builder| builder).await;
    let core = pool.0.core.clone();
    let hints = futures_util::stream::poll_fn(|_| panic!("once"));
    core.listen(Box::pin(hints)).await;
    assert_eq!(pool.counts().panics, 1);
}

/// Streams need not be asked after their end, and some panic.
#[tokio::test(start_paused = true)]
async fn hints_are_not_asked_for_after_their_end() {
    let (pool, _) = pool_of(&["a"], |builder| builder).await;
    let _held = lease(&pool).await;
    let mut waits = Box::pin(pool.lease(wants(), HOUR));
    assert!(futures_util::poll!(&mut waits).is_pending());
    let mut left = 2;
    let hints = futures_util::stream::poll_fn(move |_| {
        left -= 1;
        assert!(left >= 0, "asked after the end");
        std::task::Poll::Ready((left > 0).then_some(()))
    });
    pool.0.core.clone().listen(Box::pin(hints)).await;
    assert_eq!((pool.counts().hints, pool.counts().panics), (1, 0));
}
