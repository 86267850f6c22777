//! What a probe of one endpoint came to.

use reqwest_lease::{EndpointId, Kind, Outcome, ProbeReport};

/// What became of one endpoint.
pub(super) struct Finding {
    pub(super) id: EndpointId,
    pub(super) seen: Seen,
}

/// What was seen of it.
pub(super) enum Seen {
    Probed(Box<ProbeReport>),
    /// Somebody else had it all the time.
    Busy,
    /// It was at rest all the time.
    Rests,
    /// The inventory here lacks it.
    Unknown,
    /// It has left the pool.
    Gone,
    /// The request was not made, or not to its end.
    Refused(Kind),
}

impl Finding {
    pub(super) fn report(&self) -> Option<&ProbeReport> {
        match &self.seen {
            Seen::Probed(report) => Some(report),
            _ => None,
        }
    }

    pub(super) fn passed(&self) -> bool {
        self.report().is_some_and(ProbeReport::passed)
    }

    pub(super) fn failed(&self) -> bool {
        self.report().is_some_and(ProbeReport::failed)
    }

    /// Whether it did not come free in time.
    pub(super) fn is_late(&self) -> bool {
        matches!(self.seen, Seen::Busy | Seen::Rests)
    }

    /// The result in a word, for programs.
    pub(super) fn word(&self) -> &'static str {
        match &self.seen {
            Seen::Probed(report) if report.passed() => "passed",
            Seen::Probed(report) if report.outcome == Outcome::Success => "bad_status",
            Seen::Probed(report) => report.outcome.as_str(),
            Seen::Busy => "busy",
            Seen::Rests => "at_rest",
            Seen::Unknown => "not_in_inventory",
            Seen::Gone => "not_in_pool",
            Seen::Refused(kind) => kind.as_str(),
        }
    }

    /// The same for people.
    pub(super) fn told(&self) -> String {
        match self.report().and_then(|report| report.status) {
            Some(status) if self.word() == "bad_status" => format!("status {}", status.as_u16()),
            _ => self.word().replace('_', " "),
        }
    }
}
