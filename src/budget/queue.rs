//! The queue before one site: first in, first out, and only its head asks the limiter.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::clock::{At, Epoch};
use super::local::{Limiter, Local, Reply, Reservation};
use super::rate::{Budget, Pace};
use super::schedule::Schedule;
use crate::error::{Error, Kind};

/// One bucket and those who wait for it.
pub(super) struct Queue {
    /// `None` where there is no limit; such a queue is only entered while the site is slowed.
    pub(super) budget: Option<Budget>,
    pub(super) limiter: Option<Local>,
    epoch: Epoch,
    state: Mutex<State>,
    /// One permit, which is being the head. It is handed on in the order of arrival.
    head: Semaphore,
}

pub(super) struct State {
    pub(super) schedule: Schedule,
    /// Those in the queue, the head among them.
    waiting: usize,
}

impl Queue {
    /// A queue for a budget with its checked numbers, or for no limit.
    pub(super) fn new(epoch: Epoch, limit: Option<(Budget, Pace)>) -> Self {
        let pace = limit.map(|(_, pace)| pace).unwrap_or_default();
        Self {
            budget: limit.map(|(budget, _)| budget),
            limiter: Local::new(pace.interval, pace.burst),
            epoch,
            state: Mutex::new(State { schedule: Schedule::new(pace), waiting: 0 }),
            head: Semaphore::new(1),
        }
    }

    /// Waits to become the head, unless the wait for a slot would be longer than allowed.
    pub(super) async fn join(
        self: Arc<Self>,
        max_wait: Duration,
        site: &str,
    ) -> Result<Place, Error> {
        let now = self.now();
        self.enter(now, max_wait).map_err(|refused| refused.for_site(site))?;
        let mut place = Place::new(self, now);
        if !place.try_lead() {
            // Boxed as are all waits here: the futures of those who need not wait stay small.
            Box::pin(place.wait_to_lead()).await;
        }
        Ok(place)
    }

    /// Whether nobody is queued and a slot is due now.
    pub(super) fn would_pass(&self) -> bool {
        let now = self.now();
        let state = self.state();
        state.waiting == 0 && state.schedule.forecast(now, 0) <= now
    }

    /// Uses up a slot if nobody is queued and one is due now; tells how long the slot is good.
    ///
    /// Nobody is the head meanwhile, for who enters has to take the same lock.
    pub(super) fn try_pass(&self) -> Option<Instant> {
        let now = self.now();
        let mut state = self.state();
        if state.waiting > 0 || !self.has_slot(&mut state.schedule, now, now) {
            return None;
        }
        let good_until = state.schedule.good_until();
        state.schedule.spend(|| now);
        Some(self.epoch.instant(good_until))
    }

    /// Whether a slot is kept or taken that is due now.
    fn has_slot(&self, schedule: &mut Schedule, joined: At, now: At) -> bool {
        self.known_slot(schedule, joined, now).is_ok_and(|slot| slot <= now)
    }

    /// The slot that is kept, or one that is due already; else from when to reserve.
    fn known_slot(&self, schedule: &mut Schedule, joined: At, now: At) -> Result<At, At> {
        if let Some(kept) = schedule.kept(now) {
            return Ok(kept);
        }
        let from = schedule.from(joined, now);
        if from > now || !schedule.is_due(now) {
            return Err(from);
        }
        let slot = match &self.limiter {
            Some(limiter) => limiter.try_reserve(from, now).ok_or(from)?,
            None => from,
        };
        Ok(schedule.reserved(slot))
    }

    /// Counts a newcomer in, unless it would wait too long by the rate, the queue and the last
    /// slot.
    fn enter(&self, now: At, max_wait: Duration) -> Result<(), TooLong> {
        let longest = self.budget.and_then(|budget| budget.longest_wait());
        let max_wait = longest.map_or(max_wait, |longest| longest.min(max_wait));
        let mut state = self.state();
        let wait = state.schedule.forecast(now, state.waiting).since(now);
        if wait > max_wait {
            return Err(TooLong { wait, max_wait });
        }
        state.waiting += 1;
        Ok(())
    }

    pub(super) fn slow(&self, delay: Duration, how_long: Duration) {
        let now = self.now();
        self.state().schedule.slow(delay, now, now.after(how_long));
    }

    /// Whether requests need not queue here at this moment.
    pub(super) fn is_open(&self) -> bool {
        self.budget.is_none() && !self.state().schedule.is_slow(self.now())
    }

    pub(super) fn now(&self) -> At {
        self.epoch.now()
    }

    pub(super) fn is_fresh(&self, now: At) -> bool {
        self.state().schedule.is_fresh(now)
    }

    /// How many are in the queue, and whether being the head is free.
    #[cfg(test)]
    pub(super) fn idle(&self) -> (usize, usize) {
        (self.state().waiting, self.head.available_permits())
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wait that is longer than allowed.
struct TooLong {
    wait: Duration,
    max_wait: Duration,
}

impl TooLong {
    fn for_site(self, site: &str) -> Error {
        let max_wait = self.max_wait;
        let message = format!("the wait for {site} is longer than the {max_wait:.1?} allowed");
        Error::new(Kind::BudgetExceeded, message).with_retry_after(self.wait)
    }
}

/// A place in a queue; dropping it leaves the queue and makes the next one the head.
pub(super) struct Place {
    queue: Arc<Queue>,
    joined: At,
    leads: bool,
    spent: bool,
}

impl Place {
    /// The place of one who has entered.
    fn new(queue: Arc<Queue>, joined: At) -> Self {
        Self { queue, joined, leads: false, spent: false }
    }

    fn try_lead(&mut self) -> bool {
        let Ok(permit) = self.queue.head.try_acquire() else { return false };
        permit.forget();
        self.leads = true;
        true
    }

    async fn wait_to_lead(&mut self) {
        // The semaphore is never closed.
        if let Ok(permit) = self.queue.head.acquire().await {
            permit.forget();
            self.leads = true;
        }
    }

    /// Takes over the kept slot or reserves the next one, and sleeps to it.
    pub(super) async fn slot(&mut self) -> Result<(), Error> {
        let now = self.queue.now();
        let known = self.queue.known_slot(&mut self.queue.state().schedule, self.joined, now);
        match known {
            Ok(slot) if slot <= now => Ok(()),
            slot => Box::pin(self.wait_for(slot, now)).await,
        }
    }

    /// Sleeps to a slot, or to one that is reserved from a moment on.
    async fn wait_for(&self, slot: Result<At, At>, began: At) -> Result<(), Error> {
        let mut due = match slot {
            Ok(slot) => slot,
            Err(from) => self.reserve(from).await?,
        };
        let mut now = began;
        while now < due {
            sleep_until(self.queue.epoch.instant(due)).await;
            now = self.queue.now();
            due = self.queue.state().schedule.keep(due);
        }
        Ok(())
    }

    async fn reserve(&self, from: At) -> Result<At, Error> {
        let slot = match &self.queue.limiter {
            Some(limiter) => match limiter.reserve(from) {
                Reservation::Now(slot) => slot.at,
                Reservation::Asked(reply) => match reply.await? {
                    Reply::Slot(slot) => slot.at,
                    Reply::Full { again } => again,
                    Reply::Paused { until, .. } => until,
                },
            },
            None => from,
        };
        Ok(self.queue.state().schedule.reserved(slot))
    }

    /// Takes a slot only if one is due now.
    pub(super) fn try_slot(&mut self) -> bool {
        let now = self.queue.now();
        self.queue.has_slot(&mut self.queue.state().schedule, self.joined, now)
    }

    #[cfg(test)]
    pub(super) fn grace(&self) -> Duration {
        self.queue.state().schedule.grace()
    }

    /// Until when the slot is good for the site that has not seen what used it.
    pub(super) fn good_until(&self) -> Instant {
        self.queue.epoch.instant(self.queue.state().schedule.good_until())
    }

    /// Uses the slot up.
    pub(super) fn spend(mut self) {
        self.spent = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.waiting -= 1;
        if self.spent {
            state.schedule.spend(|| self.queue.now());
        }
        drop(state);
        if self.leads {
            self.queue.head.add_permits(1);
        }
    }
}
