//! What a request holds between asking for its budgets and going out.

use std::sync::Arc;

use smallvec::SmallVec;

use super::clock::At;
use super::local::Admission;
use super::place::{Place, Readiness};
use super::queue::{Queue, Stay};
use crate::error::{Error, Kind};

/// Places before all buckets of a request: those of its keys, and the site's as the last.
///
/// Dropping it passes the places on, and slots that were reserved with them.
#[must_use]
pub(crate) struct Turn {
    pub(super) places: SmallVec<[Place; 1]>,
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
            match self.places[nth].ready(nth > 0).await? {
                Readiness::Ready => nth += 1,
                Readiness::Far if self.far(nth).await? => nth += 1,
                // All that it gave up it gets back first.
                Readiness::Far => nth = 0,
            }
        }
        Ok(())
    }

    /// Waits for one bucket holding no other; whether the earlier ones can then go as well.
    async fn far(&mut self, nth: usize) -> Result<bool, Error> {
        let (earlier, rest) = self.places.split_at_mut(nth);
        let Some(far) = rest.first_mut() else { return Ok(true) };
        earlier.iter_mut().for_each(Place::step_aside);
        far.ready(false).await?;
        let now = far.now();
        let all = earlier.iter_mut().all(|place| place.try_ready(now));
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

    /// The request goes out now; the next waiters become the heads.
    pub(crate) fn spend(self) -> Passage {
        let Some(now) = self.places.first().map(Place::now) else { return Passage::unlimited() };
        let good_until = self.places.iter().map(Place::good_until).min();
        let stays = self.places.into_iter().filter_map(|place| place.spend(now)).collect();
        Passage { sent: now, good_until, stays }
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
    /// `None` where there is no limit.
    good_until: Option<At>,
    /// What goes back when the exchange has ended.
    stays: Vec<Stay>,
}

impl Passage {
    pub(super) fn unlimited() -> Self {
        // Earlier than any pause.
        Self::without_limit(At::default())
    }

    pub(super) fn without_limit(sent: At) -> Self {
        Self { sent, good_until: None, stays: Vec::new() }
    }

    pub(super) fn until(sent: At, good_until: At, stays: Vec<Stay>) -> Self {
        Self { sent, good_until: Some(good_until), stays }
    }

    /// How a server admitted it to this bucket, if one did.
    pub(super) fn admission(&self, queue: &Arc<Queue>) -> Option<Admission> {
        self.stays.iter().find_map(|stay| stay.admission(queue))
    }

    /// Whether another attempt may still use its slots, if the site has not seen this one.
    ///
    /// Slots of attempts that failed together would else be spent together.
    pub(super) fn is_good_at(&self, now: At) -> bool {
        self.good_until.is_none_or(|until| now <= until)
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
