//! Giving leases back without anybody waiting for it.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

use super::Core;
use crate::error::{Error, Kind};
use crate::outcome::Outcome;
use crate::random;
use crate::secret::Token;
use crate::store::{CancelRequest, MAX_BATCH, Release, ReleaseReply, ReleaseRequest};

/// Releases that may wait for the store; beyond that a lease is left to its deadline.
const QUEUE: usize = 1024;

/// How long a late grant to a cancelled token is refused.
const TOMBSTONE: Duration = Duration::from_secs(60);

/// Between tries at a store that does not answer, doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long one call may take; the end of a pool waits for no longer one.
const LONGEST_CALL: Duration = LAST_TRIES;

const NO_RUNTIME: &str = "the runtime that the pool was built on has ended";

/// How long a pool that ends goes on with a store that does not answer.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// The way out for leases and for tokens that were given up.
pub(super) struct Releaser {
    queue: mpsc::Sender<Job>,
    pending: Arc<Pending>,
}

/// Something to give back; after `until` the store has taken it back by itself.
struct Job {
    what: What,
    until: Instant,
    /// A call with it has failed.
    tried: bool,
    /// A call with it was not answered, and may have taken place.
    repeated: bool,
}

enum What {
    /// With what was seen, to be counted by.
    Release(Release, Outcome),
    Cancel(Token),
}

/// Jobs accepted and not yet done.
#[derive(Default)]
struct Pending {
    jobs: AtomicUsize,
    done: Notify,
    /// The pool ends.
    ending: AtomicBool,
    ends: Notify,
}

impl Pending {
    fn finish(&self, jobs: usize) {
        if self.jobs.fetch_sub(jobs, Ordering::AcqRel) == jobs {
            self.done.notify_waiters();
        }
    }
}

/// The receiving half, before the pool that it works for exists.
pub(super) struct Worker {
    queue: mpsc::Receiver<Job>,
    pending: Arc<Pending>,
    /// Those in hand, oldest first; counted as done when they leave, or the worker does.
    jobs: VecDeque<Job>,
    /// Whom it works for, once it does.
    core: Option<Arc<Core>>,
}

impl Releaser {
    pub(super) fn new() -> (Self, Worker) {
        let (sender, queue) = mpsc::channel(QUEUE);
        let pending = Arc::new(Pending::default());
        let jobs = VecDeque::with_capacity(MAX_BATCH);
        (
            Self { queue: sender, pending: pending.clone() },
            Worker { queue, pending, jobs, core: None },
        )
    }

    /// Hands a release on, to be repeated until `until`; never blocks.
    pub(super) fn release(&self, core: &Core, release: Release, outcome: Outcome, until: Instant) {
        if core.at_once {
            let late = || Err(Error::store_unavailable("a store that answers at once did not"));
            let request = core.release_of(vec![release]);
            let call = core.called(async { core.store.release(request).await });
            match core.noted(call.now_or_never().unwrap_or_else(late)) {
                Ok(replies) => {
                    replies.into_iter().for_each(|reply| core.released(reply, outcome, false));
                }
                Err(error) => core.not_released(1, error.kind().as_str()),
            }
            core.waiting.something_came_free();
        } else if let Err(why) = self.enqueue(What::Release(release, outcome), until) {
            core.counters.releases_failed.add_one();
            tracing::warn!(pool = %core.name, why, "not given back; the lease's deadline ends it");
        }
    }

    /// Hands a cancel on, to be repeated until `until`; never blocks.
    pub(super) fn cancel(&self, core: &Core, token: Token, until: Instant) {
        if let Err(why) = self.enqueue(What::Cancel(token), until) {
            core.counters.cancels_failed.add_one();
            tracing::warn!(pool = %core.name, why, "not cancelled; the lease's deadline ends it");
        }
    }

    /// Why it was not accepted, if so.
    fn enqueue(&self, what: What, until: Instant) -> Result<(), &'static str> {
        self.pending.jobs.fetch_add(1, Ordering::AcqRel);
        let accepted = self.queue.try_send(Job { what, until, tried: false, repeated: false });
        accepted.map_err(|refused| {
            self.pending.finish(1);
            match refused {
                TrySendError::Full(_) => "the release queue is full",
                TrySendError::Closed(_) => NO_RUNTIME,
            }
        })
    }

    /// Resolves when nothing is under way. A store that does not answer is given up after a while.
    pub(super) async fn drained(&self) {
        self.pending.ending.store(true, Ordering::Release);
        self.pending.ends.notify_one();
        loop {
            let done = self.pending.done.notified();
            tokio::pin!(done);
            done.as_mut().enable();
            if self.pending.jobs.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await;
        }
    }
}

impl Worker {
    /// Works until the pool is gone and its queue is empty.
    pub(super) async fn run(mut self, core: Arc<Core>) {
        self.core = Some(core.clone());
        let mut failing = Failing::default();
        while self.take_in().await {
            let began = Instant::now();
            if self.give_back(&core).await {
                failing = Failing::default();
            } else {
                failing.again(began);
                self.rest(&core, &failing).await;
            }
        }
    }

    /// Fills the hand; `false` when nothing more will come.
    async fn take_in(&mut self) -> bool {
        if self.jobs.is_empty() {
            self.jobs.extend(self.queue.recv().await);
        }
        while self.jobs.len() < MAX_BATCH
            && let Ok(job) = self.queue.try_recv()
        {
            self.jobs.push_back(job);
        }
        !self.jobs.is_empty()
    }

    /// Gives back what is in hand; `false` when some of it must be repeated.
    async fn give_back(&mut self, core: &Core) -> bool {
        // A token may be in both, and a cancel would take the release's verdict away.
        self.release(core).await && self.cancel(core).await
    }

    async fn release(&mut self, core: &Core) -> bool {
        let releases: Vec<_> = self.jobs.iter().filter_map(Job::release).collect();
        if releases.is_empty() {
            return true;
        }
        let again = self.jobs.iter().filter(|job| job.is_release() && job.tried).count();
        core.counters.releases_repeated.add(again);
        let request = core.release_of(releases);
        let call = core.timely(async { core.store.release(request).await });
        let replies = core.noted(call.await);
        if let Err(error) = &replies
            && error.is_of_an_outage()
        {
            tracing::debug!(pool = %core.name, code = %error.kind(), "release was not answered");
            for job in self.jobs.iter_mut().filter(|job| job.is_release()) {
                job.tried = true;
                job.repeated |= error.may_have_run();
            }
            return false;
        }
        let (done, left): (VecDeque<_>, _) = self.jobs.drain(..).partition(Job::is_release);
        self.jobs = left;
        match replies {
            Ok(replies) => {
                let each = replies.into_iter().zip(&done);
                each.for_each(|(reply, job)| core.released(reply, job.outcome(), job.repeated));
            }
            Err(error) => core.not_released(done.len(), error.kind().as_str()),
        }
        self.pending.finish(done.len());
        core.waiting.something_came_free();
        true
    }

    async fn cancel(&mut self, core: &Core) -> bool {
        while let Some(Job { what: What::Cancel(token), .. }) = self.jobs.front() {
            let cancel = CancelRequest::new(core.name.clone(), *token, TOMBSTONE);
            let call = core.timely(async { core.store.cancel(cancel).await });
            match core.noted(call.await) {
                Err(error) if error.is_of_an_outage() => return false,
                Err(error) => core.not_cancelled(error.kind().as_str()),
                Ok(_) => core.counters.cancels.add_one(),
            }
            self.jobs.pop_front();
            self.pending.finish(1);
            core.waiting.something_came_free();
        }
        true
    }

    /// Waits before the next try, and gives up what need not be tried any more.
    async fn rest(&mut self, core: &Core, failing: &Failing) {
        let ends = self.pending.ends.notified();
        if !self.is_at_its_end(failing) {
            let _ = timeout_at(Instant::now() + failing.pause(), ends).await;
        }
        let (now, all) = (Instant::now(), self.is_at_its_end(failing));
        if all {
            while let Ok(job) = self.queue.try_recv() {
                self.jobs.push_back(job);
            }
        }
        let is_over = |job: &Job| all || now >= job.until;
        let (over, left): (VecDeque<_>, _) = self.jobs.drain(..).partition(is_over);
        self.jobs = left;
        let releases = over.iter().filter(|job| job.is_release()).count();
        core.not_released(releases, Kind::StoreUnavailable.as_str());
        (releases..over.len()).for_each(|_| core.not_cancelled(Kind::StoreUnavailable.as_str()));
        self.pending.finish(over.len());
    }

    /// Whether the pool ends, and the store has not answered for so long that it may.
    fn is_at_its_end(&self, failing: &Failing) -> bool {
        let since = failing.since.is_some_and(|since| since.elapsed() >= LAST_TRIES);
        since && self.pending.ending.load(Ordering::Acquire)
    }
}

impl Drop for Worker {
    /// Also when its runtime ends, or a shutdown would wait for ever.
    fn drop(&mut self) {
        self.queue.close();
        self.jobs.extend(std::iter::from_fn(|| self.queue.try_recv().ok()));
        if let Some(core) = &self.core {
            let releases = self.jobs.iter().filter(|job| job.is_release()).count();
            core.left_behind(releases, self.jobs.len() - releases);
        }
        self.pending.finish(self.jobs.len());
    }
}

impl Job {
    fn is_release(&self) -> bool {
        matches!(self.what, What::Release(..))
    }

    fn release(&self) -> Option<Release> {
        match &self.what {
            What::Release(release, _) => Some(release.clone()),
            What::Cancel(_) => None,
        }
    }

    fn outcome(&self) -> Outcome {
        match &self.what {
            What::Release(_, outcome) => *outcome,
            What::Cancel(_) => Outcome::Cancelled,
        }
    }
}

/// Tries in a row that the store left without an answer.
#[derive(Default)]
struct Failing {
    tries: u32,
    since: Option<Instant>,
}

impl Failing {
    fn again(&mut self, began: Instant) {
        self.tries += 1;
        self.since.get_or_insert(began);
    }

    /// Doubling, and a random half of it, so that workers do not come back in step.
    fn pause(&self) -> Duration {
        let longest = FIRST_PAUSE * (1 << self.tries.saturating_sub(1).min(10));
        let longest = longest.min(LONGEST_PAUSE);
        longest / 2 + longest / 2 * u32::from(random::number().to_le_bytes()[0]) / 255
    }
}

impl Core {
    /// A call that is repeated when it has not been answered in time.
    pub(super) async fn timely<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let late = |_| Err(Error::store_unavailable("the store has not answered in time"));
        timeout(LONGEST_CALL, self.called(call)).await.unwrap_or_else(late)
    }

    fn release_of(&self, releases: Vec<Release>) -> ReleaseRequest {
        ReleaseRequest::new(self.name.clone(), releases).with_hint(self.hints)
    }

    /// Counts a release. One that is repeated finds its lease ended by the first call.
    fn released(&self, reply: ReleaseReply, outcome: Outcome, repeated: bool) {
        match reply {
            ReleaseReply::NotOwner if !repeated => self.counters.not_owner.add_one(),
            _ => self.counters.releases.add_one(outcome.as_str()),
        }
    }

    fn not_released(&self, count: usize, code: &str) {
        if count > 0 {
            self.counters.releases_failed.add(count);
            tracing::warn!(pool = %self.name, code, count, "release failed");
        }
    }

    /// Counts what the end of the runtime has left in the queue.
    fn left_behind(&self, releases: usize, cancels: usize) {
        self.counters.releases_failed.add(releases);
        self.counters.cancels_failed.add(cancels);
        if releases + cancels > 0 {
            tracing::warn!(pool = %self.name, why = NO_RUNTIME, releases, cancels, "not given back");
        }
    }

    fn not_cancelled(&self, code: &str) {
        self.counters.cancels_failed.add_one();
        tracing::warn!(pool = %self.name, code, "cancel failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closed_queue_is_not_said_to_be_full() {
        let (releaser, worker) = Releaser::new();
        let cancel = || releaser.enqueue(What::Cancel(Token::random()), Instant::now());
        assert!((0..QUEUE).all(|_| cancel().is_ok()));
        assert_eq!(cancel(), Err("the release queue is full"));
        drop(worker);
        assert_eq!(cancel(), Err("the runtime that the pool was built on has ended"));
    }
}
