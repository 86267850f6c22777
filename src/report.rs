//! What is told of one request while it goes on and once it is over: its span and its times.

use std::time::Duration;

use tracing::Span;
use tracing::field::{Empty, display};

use crate::id::EndpointId;
use crate::options::Trip;
use crate::outcome::Outcome;
use crate::pool::Pool;
use crate::site::Site;
use crate::telemetry::Stopwatch;
use crate::transport::Failure;

/// The span of a request and what else is told of it, by the pool that it leases from.
pub(crate) struct Report {
    span: Span,
    since: Stopwatch,
    /// What the span shows; kept only if somebody looks.
    shown: Option<(EndpointId, usize)>,
}

impl Report {
    pub(crate) fn begin(pool: &Pool, site: &Site) -> Self {
        let span = tracing::debug_span!(
            "lease.request",
            pool = %pool.name(),
            %site,
            endpoint = Empty,
            attempt = Empty,
            lease_wait_ms = Empty,
            budget_wait_ms = Empty,
            outcome = Empty,
            code = Empty,
        );
        Self { span, since: Stopwatch::start(), shown: None }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// The request goes out through this endpoint, the nth that is tried.
    pub(crate) fn attempt(&mut self, endpoint: &EndpointId, nth: usize) {
        let is_shown = |(shown, at): &(EndpointId, usize)| shown == endpoint && *at == nth;
        if self.span.is_disabled() || self.shown.as_ref().is_some_and(is_shown) {
            return;
        }
        self.span
            .record("endpoint", display(endpoint))
            .record("attempt", i64::try_from(nth).unwrap_or(i64::MAX));
        self.shown = Some((endpoint.clone(), nth));
    }

    /// No more waits will come.
    pub(crate) fn waited(&self, pool: &Pool, trip: &Trip) {
        pool.times().lease_wait.record(trip.lease_wait);
        pool.times().budget_wait.record(trip.budget_wait);
        if !self.span.is_disabled() {
            self.span.record("lease_wait_ms", milliseconds(trip.lease_wait));
            self.span.record("budget_wait_ms", milliseconds(trip.budget_wait));
        }
    }

    /// The exchange has ended; what is still to be logged belongs to the span.
    pub(crate) fn ended(self, pool: &Pool, outcome: Outcome) -> Span {
        pool.times().request.record(outcome.as_str(), self.since);
        self.span.record("outcome", outcome.as_str());
        self.span
    }

    /// The request has come to no response.
    pub(crate) fn failed<E>(self, pool: &Pool, failure: &Failure<E>, trip: &Trip) {
        match failure {
            Failure::Exchange(_, info) => drop(self.ended(pool, info.outcome)),
            Failure::Lease(error) => {
                self.waited(pool, trip);
                pool.counters().requests_failed.add_one(error.kind().as_str());
                self.span.record("code", error.kind().as_str());
            }
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
