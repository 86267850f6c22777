//! The time that budgets count in: nanoseconds of tokio's clock since the budgets were made.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::{Clock, Reference};
use governor::nanos::Nanos;
use tokio::time::Instant;

/// A moment, in nanoseconds since the [`Epoch`]; arithmetic saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct At(u64);

impl At {
    pub(super) const NEVER: Self = Self(u64::MAX);

    pub(super) fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }

    pub(super) fn plus(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    pub(super) fn minus(self, nanos: u64) -> Self {
        Self(self.0.saturating_sub(nanos))
    }

    /// The nanoseconds from `earlier` to this moment, zero if it is not earlier.
    pub(super) fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The time from `earlier` to this moment, zero if it is not earlier.
    pub(super) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for At {
    type Output = Self;

    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.as_u64()))
    }
}

impl Reference for At {
    fn duration_since(&self, earlier: Self) -> Nanos {
        self.0.saturating_sub(earlier.0).into()
    }

    fn saturating_sub(&self, span: Nanos) -> Self {
        Self(self.0.checked_sub(span.as_u64()).unwrap_or(self.0))
    }
}

/// The instant that moments are counted from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Epoch(Instant);

impl Epoch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> At {
        At(nanos(Instant::now().saturating_duration_since(self.0)))
    }

    /// The instant of a moment, cut to what a timer can take.
    pub(super) fn instant(self, at: At) -> Instant {
        const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
        self.0 + Duration::from_nanos(at.0).min(FAR)
    }
}

/// A clock that shows what it was set to, so that governor can be asked about a later moment.
#[derive(Debug, Default)]
pub(super) struct SetClock(AtomicU64);

impl SetClock {
    pub(super) fn set(&self, at: At) {
        self.0.store(at.0, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    type Instant = At;

    fn now(&self) -> At {
        At(self.0.load(Ordering::Relaxed))
    }
}

/// Whole nanoseconds, in 64 bits all the way: this is asked for every request.
pub(super) fn nanos(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000_000_000).saturating_add(span.subsec_nanos().into())
}
