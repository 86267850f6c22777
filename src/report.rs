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
    /// Through which endpoint it went last, the nth that was tried; kept only if somebody looks.
    attempt: Option<(EndpointId, usize)>,
    /// What the last exchange came to; nothing was sent before there is one.
    seen: Option<Outcome>,
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
            hops = Empty,
            outcome = Empty,
            code = Empty,
        );
        Self { span, since: Stopwatch::start(), attempt: None, seen: None }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// The request goes out through this endpoint, the nth that is tried.
    pub(crate) fn attempt(&mut self, endpoint: &EndpointId, nth: usize) {
        if !self.span.is_disabled() {
            self.attempt = Some((endpoint.clone(), nth));
        }
    }

    /// What was sent came to this.
    pub(crate) fn saw(&mut self, outcome: Outcome) {
        self.seen = Some(outcome);
    }

    /// No more waits and no other attempts will come. Only then are they recorded: a field that is
    /// recorded again is there twice in OpenTelemetry.
    pub(crate) fn settled(&self, pool: &Pool, trip: &Trip) {
        pool.times().lease_wait.record(trip.lease_wait);
        pool.times().budget_wait.record(trip.budget_wait);
        if self.span.is_disabled() {
            return;
        }
        self.span.record("lease_wait_ms", milliseconds(trip.lease_wait));
        self.span.record("budget_wait_ms", milliseconds(trip.budget_wait));
        self.span.record("hops", count(trip.hops));
        if let Some((endpoint, nth)) = &self.attempt {
            self.span.record("endpoint", display(endpoint)).record("attempt", count(*nth));
        }
    }

    /// The exchange has ended; what is still to be logged belongs to the span.
    pub(crate) fn ended(self, pool: &Pool, outcome: Outcome) -> Span {
        pool.times().request.record(outcome.as_str(), self.since);
        self.span.record("outcome", outcome.as_str());
        self.span
    }

    /// Nobody waits for the response any more.
    pub(crate) fn dropped(self, pool: &Pool, trip: &Trip) {
        self.settled(pool, trip);
        drop(self.ended(pool, Outcome::Cancelled));
    }

    /// The request has come to no response.
    pub(crate) fn failed<E>(self, pool: &Pool, failure: &Failure<E>, trip: &Trip) {
        match failure {
            Failure::Exchange(_, info) => {
                self.settled(pool, &info.trip);
                drop(self.ended(pool, info.outcome));
            }
            Failure::Lease(error) => {
                self.settled(pool, trip);
                pool.counters().requests_failed.add_one(error.kind().as_str());
                self.span.record("code", error.kind().as_str());
                if let Some(seen) = self.seen {
                    drop(self.ended(pool, seen));
                }
            }
        }
    }
}

fn count(of: usize) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
