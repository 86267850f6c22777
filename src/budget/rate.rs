//! How fast a site may be asked.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// A rate, a burst and a longest wait for one site.
///
/// Requests are spread evenly: 2 a second are one every 500 ms. The interval is rounded up to
/// whole microseconds. Nothing is checked here, but all of it by [`BudgetsBuilder::build`].
///
/// - burst: 1, so that no two requests are closer together than the interval
/// - longest wait: none of its own; a request's own wait decides
///
/// [`BudgetsBuilder::build`]: crate::BudgetsBuilder::build
///
/// ```
/// use reqwest_lease::Budget;
///
/// let budget = Budget::per_minute(30).burst(3);
/// assert_eq!(budget.to_string(), "30/min, burst 3");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    count: u32,
    per: Per,
    burst: u32,
    max_wait: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Per {
    Second,
    Minute,
    Hour,
    Day,
}

impl Budget {
    /// At most `count` requests a second.
    pub const fn per_second(count: u32) -> Self {
        Self::new(count, Per::Second)
    }

    /// At most `count` requests a minute.
    pub const fn per_minute(count: u32) -> Self {
        Self::new(count, Per::Minute)
    }

    /// At most `count` requests an hour.
    pub const fn per_hour(count: u32) -> Self {
        Self::new(count, Per::Hour)
    }

    /// At most `count` requests a day.
    pub const fn per_day(count: u32) -> Self {
        Self::new(count, Per::Day)
    }

    const fn new(count: u32, per: Per) -> Self {
        Self { count, per, burst: 1, max_wait: None }
    }

    /// How many requests may go at once to a site that has rested.
    pub const fn burst(mut self, burst: u32) -> Self {
        self.burst = burst;
        self
    }

    /// The longest wait for this site, judged on arrival: a request that would wait longer fails
    /// at once, even if it has more time itself. Default none.
    pub const fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = Some(max_wait);
        self
    }

    pub(super) fn longest_wait(&self) -> Option<Duration> {
        self.max_wait
    }

    /// Checks the numbers; the error completes "the budget of x has ...".
    pub(super) fn pace(&self) -> Result<Pace, &'static str> {
        // 2^50 µs is about 35 years, well below what a double holds exactly.
        const LONGEST_RECOVERY_US: u64 = 1 << 50;
        if self.count == 0 {
            return Err("a rate of zero");
        }
        let burst = NonZeroU32::new(self.burst).ok_or("a burst of zero")?;
        let (period_us, count) = (self.per.as_micros(), u64::from(self.count));
        if count > period_us {
            return Err("an interval below 1 µs");
        }
        let interval_us = period_us.div_ceil(count);
        if interval_us.saturating_mul(u64::from(self.burst)) > LONGEST_RECOVERY_US {
            return Err("a burst that takes more than 35 years to come back");
        }
        if self.max_wait.is_some_and(|wait| wait.is_zero()) {
            return Err("a longest wait of zero");
        }
        Ok(Pace { interval: Duration::from_micros(interval_us), burst })
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, burst {}", self.count, self.per.as_str(), self.burst)?;
        match self.max_wait {
            Some(wait) => write!(f, ", longest wait {wait:?}"),
            None => Ok(()),
        }
    }
}

impl Per {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
            Self::Day => "day",
        }
    }

    const fn as_micros(self) -> u64 {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        };
        seconds * 1_000_000
    }
}

/// A checked rate; an interval of zero is no limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) interval: Duration,
    pub(super) burst: NonZeroU32,
}

impl Pace {
    /// How far ahead of an even spread a burst may run.
    pub(super) fn tolerance(&self) -> Duration {
        self.interval.saturating_mul(self.burst.get() - 1)
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self { interval: Duration::ZERO, burst: NonZeroU32::MIN }
    }
}
