//! Judging a newcomer: whether it may wait, and for how long it would.

use std::time::Duration;

use super::clock::At;
use super::place::NEAR;
use super::queue::{Queue, State};
use super::turn::Cause;
use crate::error::{Error, Kind};

/// Why a request may not wait.
pub(super) enum Refusal {
    /// `max_wait` is `None` where it has waited that long already.
    TooLong {
        wait: Duration,
        max_wait: Option<Duration>,
        cause: Cause,
    },
    Crowded {
        wait: Duration,
        most: usize,
    },
    Refuses {
        wait: Duration,
        pauses: u32,
    },
}

impl Refusal {
    pub(super) fn of(self, name: &str) -> Error {
        let (kind, message, wait) = match self {
            Self::TooLong { wait, max_wait: Some(max_wait), cause } => {
                let what = cause.of(name);
                let message = format!("{what} is longer than the {max_wait:.1?} allowed");
                (Kind::BudgetExceeded, message, wait)
            }
            Self::TooLong { wait, max_wait: None, cause } => {
                (Kind::BudgetExceeded, format!("{} lasted too long", cause.of(name)), wait)
            }
            Self::Crowded { wait, most } => {
                (Kind::BudgetExceeded, format!("{most} requests wait for {name} already"), wait)
            }
            Self::Refuses { wait, pauses } => {
                let message = format!("{name} refused again after {pauses} pauses in a row");
                (Kind::SiteRefuses, message, wait)
            }
        };
        Error::new(kind, message).with_retry_after(wait)
    }
}

impl Queue {
    /// Counts a newcomer in, unless it would wait too long or too many wait already.
    ///
    /// When it may go on, as far as can be said, and whether it counts for nobody until the
    /// buckets before this one, at `comes`, let it come.
    pub(super) fn enter(
        &self,
        now: At,
        max_wait: Duration,
        comes: At,
    ) -> Result<(At, bool), Refusal> {
        let common = &self.limit.common;
        let longest = self.limit.budget.and_then(|budget| budget.longest_wait());
        let max_wait = longest.map_or(max_wait, |longest| longest.min(max_wait));
        let mut state = self.state();
        let ahead = state.queued() as usize;
        if let Some(pause) = state.pause.as_deref().filter(|p| p.gives_up(now, common.pauses.most))
        {
            return Err(self.refuses(pause.until.since(now)));
        }
        let (at, cause) = self.forecast(&state, now, ahead);
        let no_wait = max_wait.is_zero() && cause == Cause::InFlight;
        if at.since(now) > max_wait || no_wait {
            common.counters.too_long.add_one();
            let (wait, cause) = self.wait(&state, now, ahead);
            return Err(Refusal::TooLong { wait, max_wait: Some(max_wait), cause });
        }
        if ahead >= common.most_waiting {
            common.counters.crowded_out.add_one();
            return Err(Refusal::Crowded { wait: at.since(now), most: common.most_waiting });
        }
        let aside = comes.nanos_since(at) > NEAR;
        state.waiting += 1;
        state.aside += u32::from(aside);
        // A place in flight, say, comes free nobody knows when.
        let is_told = cause == Cause::Rate || at > now;
        Ok((if is_told { at } else { At::NEVER }, aside))
    }

    /// How long a wait would be, and what for: what can be said of it.
    pub(super) fn wait(&self, state: &State, now: At, ahead: usize) -> (Duration, Cause) {
        let (at, cause) = self.forecast(state, now, ahead);
        let at = match cause {
            Cause::InFlight => at.max(self.guess(state, now, ahead)),
            Cause::Rate | Cause::Pause => at,
        };
        (at.since(now), cause)
    }

    pub(super) fn refuses(&self, wait: Duration) -> Refusal {
        self.limit.common.counters.refused_by_site.add_one();
        Refusal::Refuses { wait, pauses: self.limit.common.pauses.most }
    }
}
