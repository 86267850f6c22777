//! What a request under way counts for until its body ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::clock::At;
use super::line::Line;
use super::local::Admission;
use super::pause::{Pause, Probe};
use super::queue::{Limits, Queue, State, wake};

/// The requests under way.
#[derive(Default)]
pub(super) struct Flights {
    pub(super) count: u32,
    /// How long they last, over the last ten or so, in milliseconds.
    pub(super) mean_ms: u32,
}

/// What an exchange holds on to until its body ends. Dropping it gives it back.
pub(crate) struct Stay {
    pub(super) queue: Arc<Queue>,
    pub(super) since: At,
    pub(super) counted: bool,
    /// It is the probe of the pause that began then.
    pub(super) probe: Option<At>,
    /// The server's name for its place.
    pub(super) place: Option<u64>,
    /// While it lasts its bucket is not forgotten, so that an answer is told to who knows this.
    pub(super) admission: Option<Admission>,
}

impl Stay {
    /// How a server admitted it, if it is this bucket's.
    pub(super) fn admission(&self, queue: &Arc<Queue>) -> Option<Admission> {
        self.admission.filter(|_| Arc::ptr_eq(&self.queue, queue))
    }

    /// Whether it is a probe that was never answered: then the next one is the probe.
    fn is_unanswered(&self, state: &mut State) -> bool {
        match (self.probe, state.pause.as_deref_mut()) {
            (Some(began), Some(pause))
                if pause.probe == Probe::Out && pause.began == Some(began) =>
            {
                pause.probe = Probe::Due;
                true
            }
            _ => false,
        }
    }

    pub(super) fn instant(&self, at: At) -> Instant {
        self.queue.limit.common.epoch.instant(at)
    }

    /// Whether it is the probe of this pause.
    pub(super) fn probes(&self, queue: &Arc<Queue>, pause: &Pause) -> bool {
        Arc::ptr_eq(&self.queue, queue) && self.probe.is_some() && self.probe == pause.began
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let (Some(place), Limits::Remote(limiter)) = (self.place, &self.queue.limiter) {
            limiter.left(place);
        }
        let now = self.queue.now();
        let (unanswered, waker) = {
            let mut state = self.queue.state();
            if self.counted {
                state.flights.land(now.since(self.since));
            }
            if self.place.is_some() {
                state.ask_again();
            }
            let unanswered = self.is_unanswered(&mut state);
            (unanswered, state.line.as_deref_mut().and_then(Line::signal))
        };
        if let Limits::Remote(limiter) = &self.queue.limiter
            && let Some(probe) = self.admission.filter(|admission| unanswered && admission.probe)
        {
            limiter.unanswered(probe);
        }
        wake(waker);
    }
}

impl Flights {
    fn land(&mut self, lasted: Duration) {
        self.count -= 1;
        let lasted = u32::try_from(lasted.as_millis()).unwrap_or(u32::MAX);
        self.mean_ms = match self.mean_ms {
            0 => lasted,
            mean => mean - mean / 8 + lasted / 8,
        };
    }
}
