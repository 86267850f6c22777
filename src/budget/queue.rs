//! The queue before one site: first in, first out, and only its head asks the limiter.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep_until;

use super::clock::{At, Epoch};
use super::local::{Limiter, Local};
use super::rate::{Budget, Pace};
use super::schedule::Schedule;
use crate::error::{Error, Kind};

/// One bucket and those who wait for it.
pub(super) struct Queue {
    /// `None` where there is no limit; such a queue is only entered while the site is slowed.
    pub(super) budget: Option<Budget>,
    pub(super) limiter: Option<Local>,
    epoch: Epoch,
    schedule: Mutex<Schedule>,
    /// One permit, which is being the head. It is handed on in the order of arrival.
    head: Semaphore,
    /// Those in the queue, the head among them.
    waiting: AtomicUsize,
}

impl Queue {
    /// A queue for a budget with its checked numbers, or for no limit.
    pub(super) fn new(epoch: Epoch, limit: Option<(Budget, Pace)>) -> Self {
        let pace = limit.map(|(_, pace)| pace).unwrap_or_default();
        Self {
            budget: limit.map(|(budget, _)| budget),
            limiter: Local::new(pace.interval, pace.burst),
            epoch,
            schedule: Mutex::new(Schedule::new(pace)),
            head: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits to become the head, unless the wait for a slot would be longer than allowed.
    pub(super) async fn join(
        self: Arc<Self>,
        max_wait: Duration,
        site: &str,
    ) -> Result<Place, Error> {
        let now = self.now();
        let mut place = Place::new(self, now);
        place.admit(now, max_wait, site)?;
        if !place.try_lead() {
            // The semaphore is never closed.
            if let Ok(permit) = place.queue.head.acquire().await {
                permit.forget();
                place.leads = true;
            }
            place.waited = place.queue.now().since(now);
        }
        Ok(place)
    }

    /// Becomes the head if nobody is queued.
    pub(super) fn try_join(self: Arc<Self>) -> Option<Place> {
        let now = self.now();
        let mut place = Place::new(self, now);
        place.try_lead().then_some(place)
    }

    pub(super) fn slow(&self, delay: Duration, how_long: Duration) {
        let now = self.now();
        self.schedule().slow(delay, now, now.after(how_long));
    }

    /// Whether requests need not queue here at this moment.
    pub(super) fn is_open(&self) -> bool {
        self.budget.is_none() && !self.schedule().is_slow(self.now())
    }

    pub(super) fn now(&self) -> At {
        self.epoch.now()
    }

    pub(super) fn is_fresh(&self, now: At) -> bool {
        self.schedule().is_fresh(now)
    }

    /// How many are in the queue, and whether being the head is free.
    #[cfg(test)]
    pub(super) fn idle(&self) -> (usize, usize) {
        (self.waiting.load(Ordering::Relaxed), self.head.available_permits())
    }

    pub(super) fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a queue; dropping it leaves the queue and makes the next one the head.
pub(super) struct Place {
    pub(super) queue: Arc<Queue>,
    joined: At,
    /// How many were ahead on arrival.
    ahead: usize,
    leads: bool,
    waited: Duration,
}

impl Place {
    fn new(queue: Arc<Queue>, joined: At) -> Self {
        let ahead = queue.waiting.fetch_add(1, Ordering::Relaxed);
        Self { queue, joined, ahead, leads: false, waited: Duration::ZERO }
    }

    /// Judges the wait from the rate, the queue and the last slot.
    fn admit(&self, now: At, max_wait: Duration, site: &str) -> Result<(), Error> {
        let longest = self.queue.budget.and_then(|budget| budget.longest_wait());
        let max_wait = longest.map_or(max_wait, |longest| longest.min(max_wait));
        let wait = self.queue.schedule().forecast(now, self.ahead).since(now);
        if wait <= max_wait {
            return Ok(());
        }
        let message = format!("the wait for {site} is longer than the {max_wait:.1?} allowed");
        Err(Error::new(Kind::BudgetExceeded, message).with_retry_after(wait))
    }

    fn try_lead(&mut self) -> bool {
        let Ok(permit) = self.queue.head.try_acquire() else { return false };
        permit.forget();
        self.leads = true;
        true
    }

    /// Takes over the kept slot or reserves the next one, and sleeps to it.
    pub(super) async fn slot(&mut self) -> Result<(), Error> {
        let began = self.queue.now();
        let mut due = self.reserve(began).await?;
        let mut now = began;
        while now < due {
            sleep_until(self.queue.epoch.instant(due)).await;
            now = self.queue.now();
            due = self.queue.schedule().keep(due);
        }
        self.waited += now.since(began);
        Ok(())
    }

    async fn reserve(&self, now: At) -> Result<At, Error> {
        let from = {
            let mut schedule = self.queue.schedule();
            if let Some(kept) = schedule.kept(now) {
                return Ok(kept);
            }
            schedule.from(self.joined, now)
        };
        let slot = match &self.queue.limiter {
            Some(limiter) => limiter.reserve(from).await?,
            None => from,
        };
        Ok(self.queue.schedule().reserved(slot))
    }

    /// Takes a slot only if one is due now.
    pub(super) fn try_slot(&mut self) -> bool {
        let now = self.queue.now();
        let mut schedule = self.queue.schedule();
        if let Some(kept) = schedule.kept(now) {
            return kept <= now;
        }
        let from = schedule.from(self.joined, now);
        if from > now {
            return false;
        }
        let slot = match &self.queue.limiter {
            Some(limiter) => limiter.try_reserve(from, now),
            None => Some(from),
        };
        slot.map(|slot| schedule.reserved(slot)).is_some()
    }

    pub(super) fn grace(&self) -> Duration {
        self.queue.schedule().grace()
    }

    pub(super) fn waited(&self) -> Duration {
        self.waited
    }

    /// Uses the slot up.
    pub(super) fn spend(self) {
        let epoch = self.queue.epoch;
        self.queue.schedule().spend(|| epoch.now());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
        if self.leads {
            self.queue.head.add_permits(1);
        }
    }
}
