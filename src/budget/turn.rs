//! What a request holds between asking for its budgets and going out.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::time::sleep_until;

use super::clock::At;
use super::local::Admission;
use super::pause::Pause;
use super::place::{Holding, Place, Readiness};
use super::queue::Queue;
use super::stay::Stay;
use crate::error::{Error, Kind};

/// Places before all buckets of a request: those of its keys, and the site's as the last.
///
/// Dropping it passes the places on, and slots that were reserved with them.
#[must_use]
pub(crate) struct Turn {
    pub(super) places: SmallVec<[Place; 1]>,
    /// When its buckets were last looked for.
    pub(super) looked: At,
}

impl Turn {
    /// Takes over slots that were left reserved or reserves the next ones, and sleeps to them.
    ///
    /// A bucket is held only while it waits for a later one for a moment: for its slot, not for
    /// a pause or a long queue. Buckets are waited for in one order, so that no two requests
    /// hold what the other one waits for. It may be called again when slots have been kept
    /// longer than the grace.
    ///
    /// # Cancel safety
    ///
    /// Slots stay reserved for their queues: this turn or the next ones take them over.
    pub(crate) async fn slot(&mut self) -> Result<(), Error> {
        let mut nth = 0;
        while nth < self.places.len() {
            let holding = if nth == 0 { Holding::Nothing } else { Holding::Buckets };
            match self.places[nth].ready(holding).await? {
                Readiness::Ready => nth += 1,
                Readiness::Far if self.far(nth).await? => nth += 1,
                // All that it gave up it gets back first.
                Readiness::Far => nth = 0,
            }
        }
        Ok(())
    }

    /// Waits for one bucket holding no other, and then keeps its slot for a moment while it gets
    /// the earlier ones back; whether it has them all.
    async fn far(&mut self, nth: usize) -> Result<bool, Error> {
        let (earlier, rest) = self.places.split_at_mut(nth);
        let Some(far) = rest.first_mut() else { return Ok(true) };
        earlier.iter_mut().for_each(Place::step_aside);
        far.ready(Holding::Nothing).await?;
        let mut all = true;
        for place in &mut *earlier {
            all = all && place.ready(Holding::FarSlot).await? == Readiness::Ready;
        }
        let all = all && far.try_ready(far.now());
        if !all {
            far.step_aside();
            earlier.iter_mut().for_each(Place::step_aside);
        }
        Ok(all)
    }

    /// Takes slots only if they are due now, without sleeping.
    pub(crate) fn try_slot(&mut self) -> bool {
        let Some(now) = self.places.first().map(Place::now) else { return true };
        self.places.iter_mut().all(|place| place.try_ready(now))
    }

    /// Gives slots back that a server keeps for it, each as it lapses, with its place in flight;
    /// it never ends. For the time in which a lease is waited for.
    pub(crate) async fn let_go(&mut self) -> Infallible {
        while let Some(next) = self.places.iter().filter_map(Place::lapses).min() {
            sleep_until(next).await;
            self.places.iter_mut().for_each(Place::lapse);
        }
        pending().await
    }

    /// Has all slots, for one that holds a lease, if that takes no longer than a server's answer;
    /// else the lease goes back before [`slot`](Self::slot) is called again.
    ///
    /// # Cancel safety
    ///
    /// As [`slot`](Self::slot).
    pub(crate) async fn slot_at_once(&mut self) -> Result<bool, Error> {
        if self.try_slot() {
            return Ok(true);
        }
        if !self.places.iter().any(Place::is_remote) {
            return Ok(false);
        }
        for place in &mut self.places {
            if place.ready(Holding::Lease).await? == Readiness::Far {
                return Ok(false);
            }
        }
        Ok(self.try_slot())
    }

    /// The request goes out now; the next waiters become the heads.
    pub(crate) fn spend(self) -> Passage {
        let good_until = self.places.iter().map(Place::good_until).min();
        let (Some(first), Some(good_until)) = (self.places.first(), good_until) else {
            return Passage::without_limit(self.looked);
        };
        let (now, buckets) = (first.now(), self.places.len());
        let stays = self.places.into_iter().filter_map(|place| place.spend(now)).collect();
        Passage::of(buckets, now, good_until, stays)
    }

    /// What it waits for, and for how long it still would.
    pub(crate) fn overdue(&self) -> Error {
        let last = self.places.iter().max_by_key(|place| place.forecast());
        last.map_or_else(
            || Error::new(Kind::BudgetExceeded, "the budgets gave no turn in time"),
            Place::overdue,
        )
    }

    /// How many pauses were met.
    pub(crate) fn pauses(&self) -> usize {
        self.places.iter().map(|place| place.pauses).sum()
    }

    /// How long a slot may be kept while waiting for a lease.
    #[cfg(test)]
    pub(super) fn grace(&self) -> Option<std::time::Duration> {
        self.places.first().map(Place::grace)
    }
}

/// A request that has gone out, held until its body ends.
#[must_use]
pub(crate) struct Passage {
    /// When it went out.
    pub(super) sent: At,
    /// Until when another attempt may use its slots, if the site has not seen this one: slots of
    /// attempts that failed together would else be spent together.
    pub(super) good_until: At,
    /// How many buckets it has passed.
    pub(super) buckets: usize,
    /// What goes back when the exchange has ended.
    stays: Vec<Stay>,
}

impl Passage {
    pub(super) fn without_limit(sent: At) -> Self {
        Self::of(0, sent, At::NEVER, Vec::new())
    }

    pub(super) fn of(buckets: usize, sent: At, good_until: At, stays: Vec<Stay>) -> Self {
        Self { sent, good_until, buckets, stays }
    }

    /// How a server admitted it to this bucket, if one did.
    pub(super) fn admission(&self, queue: &Arc<Queue>) -> Option<Admission> {
        self.stays.iter().find_map(|stay| stay.admission(queue))
    }

    /// Gives places in flight and the probe back when its slots are no good any more, and then
    /// has passed nothing; it never ends if it has none.
    pub(crate) async fn give_back(&mut self) {
        let Some(stay) = self.stays.first() else { return pending().await };
        sleep_until(stay.instant(self.good_until)).await;
        self.stays.clear();
        self.buckets = 0;
    }

    /// Whether it is the one that finds out whether this bucket's pause is over.
    pub(super) fn probes(&self, queue: &Arc<Queue>, pause: &Pause) -> bool {
        self.stays.iter().any(|stay| stay.probes(queue, pause))
    }
}

/// Why a request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Rate,
    InFlight,
    Pause,
}

impl Cause {
    /// The wait at a site or for a key.
    pub(super) fn of(self, name: &str) -> String {
        match self {
            Self::Rate => format!("the wait for {name} by its rate"),
            Self::InFlight => format!("the wait for {name} by what is in flight there"),
            Self::Pause => format!("the wait for {name} by a pause it asked for"),
        }
    }
}
