//! A lease for several requests.

use super::*;
use crate::outcome::Outcome;

/// Remembers what it was asked about.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Outcome>>>);

impl Judge for Notes {
    fn judge(&self, evidence: Evidence) -> Verdict {
        self.0.lock().unwrap().push(evidence.outcome);
        Verdict::default()
    }
}

async fn noting_pool() -> (Pool, Notes) {
    let notes = Notes::default();
    let (pool, _) = pool_of(&["a"], |builder| builder.judge(notes.clone())).await;
    (pool, notes)
}

#[tokio::test(start_paused = true)]
async fn the_last_clone_gives_it_back_with_the_worst_that_was_seen() {
    let (pool, notes) = noting_pool().await;
    let held = pool.hold().await.unwrap();
    let clone = held.clone();
    for outcome in [Outcome::Success, Outcome::ProxyUnreachable, Outcome::Success] {
        held.note(outcome, None);
    }
    drop(held);
    settle().await;
    assert_eq!(pool.status().await.unwrap().leased, 1);
    assert!(notes.0.lock().unwrap().is_empty());
    clone.note(Outcome::Unknown, None);
    drop(clone);
    settle().await;
    assert_eq!(pool.status().await.unwrap().leased, 0);
    assert_eq!(*notes.0.lock().unwrap(), [Outcome::ProxyUnreachable]);
}

#[tokio::test(start_paused = true)]
async fn one_that_nobody_used_counts_as_unused() {
    let (pool, notes) = noting_pool().await;
    drop(pool.hold().await.unwrap());
    assert_eq!(*notes.0.lock().unwrap(), [Outcome::Unused]);
}

#[tokio::test(start_paused = true)]
async fn it_is_renewed_until_its_last_clone_is_gone() {
    let (pool, wire) = pool_of(&["a"], |builder| builder.ttl(seconds(2))).await;
    let held = pool.hold().await.unwrap();
    sleep(seconds(60)).await;
    assert!(held.is_valid());
    let renewals = wire.made(Call::Renew).len();
    assert!(renewals > 30, "{renewals}");
    drop(held);
    sleep(seconds(60)).await;
    assert_eq!(wire.made(Call::Renew).len(), renewals);
}

#[tokio::test(start_paused = true)]
async fn it_waits_in_the_queue_of_all() {
    let (pool, _) = pool_of(&["a"], |builder| builder.poll_every(HOUR)).await;
    let first = lease(&pool).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| order.lock().unwrap().push(name);
    let before = async {
        let _lease = lease(&pool).await;
        note("before");
    };
    let held = async {
        let _held = pool.hold().await.unwrap();
        note("held");
    };
    let after = async {
        let _lease = lease(&pool).await;
        note("after");
    };
    let free = async {
        settle().await;
        drop(first);
    };
    tokio::join!(before, held, after, free);
    assert_eq!(*order.lock().unwrap(), ["before", "held", "after"]);
}
