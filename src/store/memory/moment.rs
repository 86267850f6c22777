//! Points in time, in eight bytes.

use std::time::Duration;

use tokio::time::Instant;

/// Nanoseconds since a pool was set up, on tokio's monotonic clock. The last moment, after
/// 584 years, stands for "never".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(pub(super) u64);

impl Moment {
    pub(super) fn now(epoch: Instant) -> Self {
        Self(nanoseconds(epoch.elapsed()))
    }

    pub(super) fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(wait)))
    }

    /// Time from `now` to here, zero when it has come.
    pub(super) fn from(self, now: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(now.0))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_too_long_to_count_ends_at_the_last_moment() {
        assert_eq!(Moment(5).after(Duration::MAX), Moment(u64::MAX));
        assert_eq!(Moment(5).from(Moment(7)), Duration::ZERO);
        assert_eq!(Moment(7).from(Moment(5)), Duration::from_nanos(2));
    }
}
