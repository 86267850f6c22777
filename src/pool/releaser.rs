//! Giving leases back without anybody waiting for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, mpsc};

use super::Core;
use crate::error::Error;
use crate::secret::Token;
use crate::store::{CancelRequest, MAX_BATCH, Release, ReleaseReply, ReleaseRequest};

/// Releases that may wait for the store; beyond that a lease is left to its deadline.
const QUEUE: usize = 1024;

/// How long a late grant to a cancelled token is refused.
const TOMBSTONE: Duration = Duration::from_secs(60);

/// The way out for leases and for tokens that were given up.
pub(super) struct Releaser {
    queue: mpsc::Sender<Job>,
    pending: Arc<Pending>,
}

enum Job {
    Release(Release),
    Cancel(Token),
}

/// Jobs accepted and not yet done.
#[derive(Default)]
struct Pending {
    jobs: AtomicUsize,
    done: Notify,
}

impl Pending {
    fn finish(&self, jobs: usize) {
        if self.jobs.fetch_sub(jobs, Ordering::AcqRel) == jobs {
            self.done.notify_waiters();
        }
    }
}

/// Jobs that are done when it is dropped.
struct Done<'a> {
    pending: &'a Pending,
    jobs: usize,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.pending.finish(self.jobs);
    }
}

/// The receiving half, before the pool that it works for exists.
pub(super) struct Worker {
    queue: mpsc::Receiver<Job>,
    pending: Arc<Pending>,
}

impl Releaser {
    pub(super) fn new() -> (Self, Worker) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let pending = Arc::new(Pending::default());
        (Self { queue: sender, pending: pending.clone() }, Worker { queue: receiver, pending })
    }

    /// Hands a release on; never blocks.
    pub(super) fn release(&self, core: &Core, release: Release) {
        if core.store.answers_at_once() {
            let request = ReleaseRequest { pool: core.name.clone(), releases: vec![release] };
            let late = || Err(Error::store_unavailable("a store that answers at once did not"));
            core.released(1, core.store.release(request).now_or_never().unwrap_or_else(late));
        } else if !self.enqueue(Job::Release(release)) {
            core.counters.releases_failed.add_one();
            tracing::warn!(pool = %core.name, "release queue is full; the lease's deadline ends it");
        }
    }

    /// Hands a cancel on; never blocks.
    pub(super) fn cancel(&self, core: &Core, token: Token) {
        if !self.enqueue(Job::Cancel(token)) {
            core.counters.cancels_failed.add_one();
            tracing::warn!(pool = %core.name, "release queue is full; the lease's deadline ends it");
        }
    }

    fn enqueue(&self, job: Job) -> bool {
        self.pending.jobs.fetch_add(1, Ordering::AcqRel);
        let accepted = self.queue.try_send(job).is_ok();
        if !accepted {
            self.pending.finish(1);
        }
        accepted
    }

    /// Resolves when nothing is under way.
    pub(super) async fn drained(&self) {
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
        let mut jobs = Vec::with_capacity(MAX_BATCH);
        while self.queue.recv_many(&mut jobs, MAX_BATCH).await > 0 {
            // Also when the store panics, or a shutdown would wait for ever.
            let _done = Done { pending: &self.pending, jobs: jobs.len() };
            core.give_back(jobs.drain(..)).await;
        }
    }
}

impl Core {
    async fn give_back(&self, jobs: impl Iterator<Item = Job>) {
        let (mut releases, mut cancels) = (Vec::with_capacity(MAX_BATCH), Vec::new());
        for job in jobs {
            match job {
                Job::Release(release) => releases.push(release),
                Job::Cancel(token) => cancels.push(token),
            }
        }
        if !releases.is_empty() {
            let count = releases.len();
            let request = ReleaseRequest { pool: self.name.clone(), releases };
            self.released(count, self.store.release(request).await);
        }
        // A token may be in both, and a cancel would take the release's verdict away.
        for token in cancels {
            self.cancel(token).await;
        }
    }

    async fn cancel(&self, token: Token) {
        let request = CancelRequest { pool: self.name.clone(), token, tombstone: TOMBSTONE };
        match self.store.cancel(request).await {
            Ok(_) => self.counters.cancels.add_one(),
            Err(error) => {
                self.counters.cancels_failed.add_one();
                tracing::warn!(pool = %self.name, code = %error.kind(), "cancel failed");
            }
        }
        self.waiting.something_came_free();
    }

    fn released(&self, count: usize, replies: Result<Vec<ReleaseReply>, Error>) {
        match replies {
            Ok(replies) => {
                for reply in replies {
                    match reply {
                        ReleaseReply::Released => self.counters.releases.add_one(),
                        ReleaseReply::NotOwner => self.counters.not_owner.add_one(),
                    }
                }
            }
            Err(error) => {
                (0..count).for_each(|_| self.counters.releases_failed.add_one());
                tracing::warn!(pool = %self.name, code = %error.kind(), count, "release failed");
            }
        }
        self.waiting.something_came_free();
    }
}
