//! Waiting for a lease, first in, first out.

use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use super::alone::Alone;
use super::answers::Tokens;
use super::asker::Flight;
use super::question::{Doubt, Patience, UNANSWERED, Unanswered};
use super::queue::{Place, Plan, Queue, Told};
use super::wants::{Later, Wants};
use super::{Lease, Pool};
use crate::error::Error;
use crate::random;

/// The pool's queue in this process, and what wakes whoever puts its questions.
pub(super) struct Waiting {
    queue: Mutex<Queue>,
    /// For those who wait: the asker is gone, maybe with its runtime.
    orphaned: Notify,
    /// Grows when something may have come free, so that nothing between a question and the
    /// waiting for the next one is missed.
    changes: AtomicU64,
    /// Those who wait, so that nobody overtakes them.
    queued: AtomicUsize,
    lots: AtomicU64,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            orphaned: Notify::new(),
            changes: AtomicU64::new(0),
            queued: AtomicUsize::new(0),
            lots: AtomicU64::new(random::number()),
        }
    }
}

impl Waiting {
    /// Works on the queue. Leases must not be dropped in here: giving one back wakes who waits.
    pub(super) fn with_queue<T>(&self, work: impl FnOnce(&mut Queue) -> T) -> T {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let done = work(&mut queue);
        self.queued.store(queue.patient(), Ordering::SeqCst);
        done
    }

    /// What this asker is to ask now.
    pub(super) fn plan(&self, asker: u64) -> Plan {
        self.with_queue(|queue| queue.plan(asker, Instant::now(), self.changes()))
    }

    /// Has the asker look at the queue.
    pub(super) fn look(&self) {
        self.with_queue(|queue| queue.attendance.call());
    }

    /// An asker is gone.
    pub(super) fn orphan(&self, asker: u64) {
        self.with_queue(|queue| queue.attendance.leave(asker, std::thread::panicking()));
        self.orphaned.notify_waiters();
    }

    /// Sends everybody away.
    pub(super) fn close(&self, error: &Error) {
        self.with_queue(|queue| queue.close(error));
        self.look();
    }

    /// Resolves when nobody asks any more.
    pub(super) async fn is_left(&self) {
        loop {
            let orphaned = self.orphaned.notified();
            if self.with_queue(|queue| queue.attendance.is_vacant()) {
                return;
            }
            orphaned.await;
        }
    }

    /// How often something may have come free so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// How many wait.
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
    }

    /// Wakes whoever waits for an endpoint here.
    pub(super) fn something_came_free(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        // Whoever queues from now on asks after this change.
        if self.queued() > 0 {
            self.look();
        }
    }

    /// A number for policies that draw lots; it need not be a secret.
    pub(super) fn lot(&self) -> u64 {
        // From a start that differs between processes.
        random::mix(self.lots.fetch_add(random::STEP, Ordering::Relaxed))
    }
}

/// What a question without a wait comes to.
pub(crate) enum Now {
    Lease(Lease),
    /// There is none; a token in doubt is for the wait that follows.
    Later(Option<Doubt>),
}

impl Pool {
    /// Waits for a lease, at most so long, and says how long it was.
    ///
    /// # Cancel safety
    /// The place in the queue is given up; a lease that the store granted, or may still grant,
    /// goes to the next in the queue or is cancelled in the background.
    pub(crate) async fn lease(
        &self,
        wants: Wants,
        patience: impl Into<Patience>,
    ) -> Result<(Lease, Duration), Error> {
        self.lease_after(wants, patience, None).await
    }

    /// The same for one whose first question was not answered.
    pub(crate) async fn lease_after(
        &self,
        wants: Wants,
        patience: impl Into<Patience>,
        doubt: Option<Doubt>,
    ) -> Result<(Lease, Duration), Error> {
        let patience = patience.into();
        let started = Instant::now();
        let core = &self.0.core;
        if core.at_once && core.waiting.queued() == 0 && doubt.is_none() {
            match self.take(&wants, patience).await? {
                Ok(lease) => return Ok((lease, started.elapsed())),
                Err((later, _)) if patience.wait.is_zero() || later.is_hopeless(&wants) => {
                    return Err(later.into());
                }
                Err(_) => {}
            }
        }
        let waiter = Waiter::enter(self, wants, patience, true, doubt)?;
        // Most requests need not wait, and should not carry a waiter's state with them.
        match Box::pin(waiter.wait()).await {
            Told::Lease(lease) => Ok((lease, started.elapsed())),
            Told::Later(later, _) => Err(later.into()),
            Told::Failed(error) => Err(error),
        }
    }

    /// Takes a lease if nobody waits for one and the store grants it at the first question, and
    /// says how long the store took.
    ///
    /// Those who want the same at the same moment are asked for together.
    ///
    /// # Cancel safety
    /// A lease that the store granted, or may still grant, is cancelled in the background.
    pub(crate) async fn lease_now(
        &self,
        wants: Wants,
        patience: impl Into<Patience>,
    ) -> Result<(Now, Duration), Error> {
        let patience = patience.into();
        let core = &self.0.core;
        if core.waiting.queued() > 0 {
            return Ok((Now::Later(None), Duration::ZERO));
        }
        if core.at_once {
            let now = match self.take(&wants, patience).await? {
                Ok(lease) => Now::Lease(lease),
                Err((_, doubt)) => Now::Later(doubt),
            };
            return Ok((now, Duration::ZERO));
        }
        Box::pin(self.lease_together(wants, patience)).await
    }

    async fn lease_together(
        &self,
        wants: Wants,
        patience: Patience,
    ) -> Result<(Now, Duration), Error> {
        let mut waiter = Waiter::enter(self, wants, patience, false, None)?;
        let started = waiter.started;
        let told = match self.launch_alone(waiter.arrival) {
            Some(alone) => tokio::select! {
                biased;
                () = alone.fly() => None,
                // The pool has been closed.
                told = &mut waiter.told => Some(told.unwrap_or_else(|_| unanswered())),
                () = patience.over() => Some(unanswered()),
            },
            None => None,
        };
        let told = match told {
            Some(told) => told,
            None => waiter.wait().await,
        };
        let took = started.elapsed();
        match told {
            Told::Lease(lease) => Ok((Now::Lease(lease), took)),
            Told::Later(later, _) if later.is_unanswered() && took >= patience.wait => {
                Err(later.into())
            }
            Told::Later(_, doubt) => Ok((Now::Later(doubt), took)),
            Told::Failed(error) => Err(error),
        }
    }
}

impl Pool {
    /// Begins to ask for one who has just come and need not wait for anybody else's question.
    fn launch_alone(&self, arrival: u64) -> Option<Arc<Alone>> {
        let waiting = &self.0.core.waiting;
        let launch = |queue: &mut Queue| queue.launch_alone(arrival, waiting.changes());
        let launch = waiting.with_queue(launch)?;
        let number = launch.number;
        let alone = Alone::new(Box::pin(Flight::new(self, launch).fly()));
        waiting.with_queue(|queue| queue.taken_over_by(number, &alone));
        Some(alone)
    }
}

/// A request in the queue.
struct Waiter<'a> {
    pool: &'a Pool,
    wants: Arc<Wants>,
    arrival: u64,
    told: oneshot::Receiver<Told>,
    started: Instant,
    patience: Patience,
    until: Instant,
}

impl<'a> Waiter<'a> {
    fn enter(
        pool: &'a Pool,
        wants: Wants,
        patience: Patience,
        patient: bool,
        doubt: Option<Doubt>,
    ) -> Result<Self, Error> {
        let (started, (tell, told)) = (Instant::now(), oneshot::channel());
        let (wants, until) = (Arc::new(wants), patience.until(started));
        // One that is of no use here is given up, as is all of it at a closed pool.
        let mut doubt = doubt.filter(|doubt| doubt.is_for(pool, &wants));
        let place = Place { wants: wants.clone(), until, patient, tell };
        let arrival = pool.0.core.waiting.with_queue(|queue| {
            // Whoever closes the pool sends those away who are in the queue then.
            if pool.is_closed() {
                return Err(pool.closed());
            }
            let doubtful = doubt.take().and_then(Doubt::into_token).into_iter().collect();
            queue.doubt(&wants, Tokens { doubtful, unanswered: true });
            Ok(queue.enter(place))
        });
        arrival.map(|arrival| Self { pool, wants, arrival, told, started, patience, until })
    }

    async fn wait(mut self) -> Told {
        let waiting = &self.pool.0.core.waiting;
        let mut end = self.until;
        let mut has_come = true;
        loop {
            let mut orphaned = pin!(waiting.orphaned.notified());
            // Told already, most who asked for themselves are.
            if let Ok(told) = self.told.try_recv() {
                return told;
            }
            let check = Instant::now() + self.pool.attend(mem::take(&mut has_come));
            tokio::select! {
                biased;
                told = &mut self.told => return told.unwrap_or_else(|_| unanswered()),
                () = &mut orphaned => continue,
                () = sleep_until(end.min(check)) => {}
            }
            if Instant::now() < end {
                continue;
            }
            let (over, reason) = waiting.with_queue(|queue| {
                end = queue.end_of(&self.wants, self.started, self.until);
                end = self.patience.cut(end);
                let reason = queue.reason(self.pool, &self.wants, self.started);
                (Instant::now() >= end, reason)
            });
            if over {
                // Or somebody has told it just now.
                return self.told.try_recv().unwrap_or(Told::Failed(reason));
            }
        }
    }
}

fn unanswered() -> Told {
    Told::Later(Later::new(Error::store_unavailable(UNANSWERED)), None)
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let waiting = &self.pool.0.core.waiting;
        let given_up = waiting.with_queue(|queue| {
            let left = queue.remove(self.arrival);
            left.map(|_| queue.tidy())
        });
        if let Some(tokens) = given_up {
            drop(Unanswered::new(self.pool, tokens));
            // What it kept from being asked may be asked now, or nobody is left to ask for.
            waiting.look();
        }
    }
}
