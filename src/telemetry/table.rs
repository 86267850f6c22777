//! Every metric, declared once.
#![cfg_attr(
    not(feature = "metrics"),
    allow(dead_code, unreachable_pub, reason = "nobody is told of them")
)]

use std::fmt;

/// A metric of this crate, as it goes to the recorder of the `metrics` facade.
///
/// Labels are bounded: the pool's name, and words of closed sets. No metric tells a site, an
/// endpoint or a token.
///
/// Counters and times are of this process; add them up. Gauges of a pool's state are the same in
/// all processes that share it; take the largest. They are NaN where the state is not known: after
/// two looks at it have failed, and when the pool has ended in this process.
///
/// | label | values |
/// |---|---|
/// | `pool` | [`PoolName`](crate::PoolName) |
/// | `outcome` | [`Outcome::as_str`](crate::Outcome::as_str) |
/// | `code` | [`Kind::as_str`](crate::Kind::as_str) |
/// | `reason` | a word that the metric's help names |
///
/// # Examples
/// ```
/// use reqwest_lease::Metric;
///
/// for metric in Metric::ALL {
///     assert!(metric.name().starts_with("reqwest_lease_"));
///     println!("{metric}: {}", metric.help());
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    name: &'static str,
    kind: MetricKind,
    unit: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
}

/// What can be done with a [`Metric`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricKind {
    /// It only grows, from zero at the start of the process.
    Counter,
    /// The value at the last look.
    Gauge,
    /// A distribution.
    Histogram,
}

impl Metric {
    /// The name, which dashboards and alert rules go by.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Counter, gauge or histogram.
    pub const fn kind(&self) -> MetricKind {
        self.kind
    }

    /// `count` or `seconds`.
    pub const fn unit(&self) -> &'static str {
        self.unit
    }

    /// The labels, in order.
    pub const fn labels(&self) -> &'static [&'static str] {
        self.labels
    }

    /// What it tells, in one sentence.
    pub const fn help(&self) -> &'static str {
        self.help
    }

    /// Tells the recorder units and help of all metrics.
    ///
    /// Building a pool does it too, so it is only needed when the recorder is installed later.
    #[cfg(feature = "metrics")]
    pub fn describe_all() {
        for metric in Self::ALL {
            let unit = match metric.unit {
                SECONDS => metrics::Unit::Seconds,
                _ => metrics::Unit::Count,
            };
            match metric.kind {
                MetricKind::Counter => metrics::describe_counter!(metric.name, unit, metric.help),
                MetricKind::Gauge => metrics::describe_gauge!(metric.name, unit, metric.help),
                MetricKind::Histogram => {
                    metrics::describe_histogram!(metric.name, unit, metric.help);
                }
            }
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const COUNT: &str = "count";
const SECONDS: &str = "seconds";

macro_rules! metrics {
    ($($metric:ident $kind:ident $name:literal $unit:ident [$($label:literal)*] $help:literal;)+) => {
        $(pub(crate) const $metric: Metric = Metric {
            name: concat!("reqwest_lease_", $name),
            kind: MetricKind::$kind,
            unit: $unit,
            labels: &[$($label),*],
            help: $help,
        };)+

        impl Metric {
            /// All of them.
            pub const ALL: &'static [Self] = &[$($metric),+];
        }
    };
}

metrics! {
    READY Gauge "endpoints_ready" COUNT ["pool"]
        "Endpoints that can be granted now.";
    COOLING Gauge "endpoints_cooling" COUNT ["pool"]
        "Endpoints whose cooldown goes on.";
    PARKED Gauge "endpoints_parked" COUNT ["pool" "reason"]
        "Endpoints taken out: disabled by an administrator, or quarantined.";
    LEASED Gauge "leases_valid" COUNT ["pool"]
        "Leases before their deadline.";
    EXPIRED Gauge "leases_expired" COUNT ["pool"]
        "Leases past their deadline that nobody has taken back yet.";
    WITHHELD Gauge "grants_withheld" COUNT ["pool" "reason"]
        "Whether the whole pool grants nothing: paused, loading, or hold after a failover. 1 or 0.";
    STATUS_AT Gauge "status_timestamp_seconds" SECONDS ["pool"]
        "When this process last learned the pool's state, in seconds since 1970; 0 for never.";
    WAITERS Gauge "waiters" COUNT ["pool"]
        "Requests of this process that wait for a lease.";
    STALE Gauge "inventory_stale" COUNT ["pool"]
        "Whether this process goes on with an old inventory, for its last reload failed. 1 or 0.";

    GRANTS Counter "grants_total" COUNT ["pool"]
        "Leases granted.";
    RELEASES Counter "releases_total" COUNT ["pool" "outcome"]
        "Leases given back and accepted, by what was seen.";
    RELEASES_REPEATED Counter "releases_repeated_total" COUNT ["pool"]
        "Releases that were sent again because the store had not answered.";
    RELEASES_NOT_OWNER Counter "releases_not_owner_total" COUNT ["pool"]
        "Releases with a token that no longer held the lease.";
    RELEASES_FAILED Counter "releases_failed_total" COUNT ["pool"]
        "Releases that were given up; the lease's deadline ends it.";
    PANICS Counter "panics_total" COUNT ["pool"]
        "Panics of judge, classifier, store or body that were caught where others would have suffered.";
    BRAKES Counter "brakes_total" COUNT ["pool"]
        "Times that so many endpoints failed that verdicts were braked.";
    EXPIRATIONS Counter "expirations_total" COUNT ["pool"]
        "Leases that ran out in the middle of an exchange.";
    RENEWALS_FAILED Counter "renewals_failed_total" COUNT ["pool"]
        "Renewals that failed for good.";
    CANCELS Counter "cancels_total" COUNT ["pool"]
        "Acquires given up with an unknown result, and cancelled in the store.";
    CANCELS_FAILED Counter "cancels_failed_total" COUNT ["pool"]
        "Cancels that were given up; the lease's deadline ends it.";
    HINTS Counter "hints_total" COUNT ["pool"]
        "Hints from elsewhere that had those who wait asked for.";
    UNKNOWN_ENDPOINTS Counter "unknown_endpoints_total" COUNT ["pool"]
        "Grants of endpoints that the inventory here does not have, given back unused.";
    RETRIES Counter "retries_total" COUNT ["pool" "outcome"]
        "Requests tried again on another endpoint, by what was seen on the one before.";
    REQUESTS_FAILED Counter "requests_failed_total" COUNT ["pool" "code"]
        "Requests that ended with an error of this crate instead of a response.";
    STORE_ERRORS Counter "store_errors_total" COUNT ["pool" "code"]
        "Calls to the store that failed, those included that were not answered in time.";
    RELOADS Counter "inventory_reloads_total" COUNT ["pool"]
        "Reloads of the inventory, whether they changed anything or not.";
    RELOADS_FAILED Counter "inventory_reloads_failed_total" COUNT ["pool"]
        "Reloads that failed and left the inventory as it was.";
    BUDGET_PAUSES Counter "budget_pauses_total" COUNT []
        "Pauses that sites asked for.";
    BUDGET_STORE_ERRORS Counter "budget_store_errors_total" COUNT ["code"]
        "Calls of shared budgets that failed, or were not made while the store did not answer.";
    BUDGET_FALLBACKS Counter "budget_fallbacks_total" COUNT []
        "Slots of shared budgets that this process took without the store.";
    BUDGET_REFUSALS Counter "budget_refusals_total" COUNT ["reason"]
        "Requests refused by a budget: too_long a wait, crowded_out, or refused_by_site.";

    LEASE_WAIT Histogram "lease_wait_seconds" SECONDS ["pool"]
        "Time that a request waited for leases, over all hops and attempts, also if it was dropped meanwhile.";
    BUDGET_WAIT Histogram "budget_wait_seconds" SECONDS ["pool"]
        "Time that a request waited for budgets, over all hops, also if it was dropped meanwhile.";
    HOLD Histogram "lease_held_seconds" SECONDS ["pool" "outcome"]
        "Time from asking for a lease to giving it back.";
    REQUEST Histogram "request_seconds" SECONDS ["pool" "outcome"]
        "Time from a request's begin to its end or that of its body, waits included, by what was seen last; without those that failed before they were sent.";
}
