//! How fast a site may be asked.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// How fast one site, or whatever a key stands for, may be asked: rate, burst, most in flight,
/// jitter and longest wait.
///
/// Requests are spread evenly: 2 a second are one every 500 ms. The interval is rounded up to
/// whole microseconds. Nothing is checked here, but all of it by [`BudgetsBuilder::build`].
///
/// - burst: 1, so that no two requests are closer together than the interval
/// - most in flight: no limit
/// - jitter: none, slots are exact
/// - longest wait: none of its own; a request's own wait decides
///
/// [`BudgetsBuilder::build`]: crate::BudgetsBuilder::build
///
/// ```
/// use reqwest_lease::Budget;
///
/// let budget = Budget::per_minute(30).burst(3).in_flight(2);
/// assert_eq!(budget.to_string(), "30/min, burst 3, at most 2 in flight");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    count: u32,
    per: Per,
    burst: u32,
    in_flight: Option<u32>,
    /// In millionths of the interval.
    jitter: u32,
    max_wait: Option<Duration>,
    local: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Per {
    Second,
    Minute,
    Hour,
    Day,
    /// No rate.
    Unpaced,
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

    /// No rate, for a limit on what is [in flight](Self::in_flight) alone.
    pub const fn unpaced() -> Self {
        Self::new(1, Per::Unpaced)
    }

    const fn new(count: u32, per: Per) -> Self {
        Self { count, per, burst: 1, in_flight: None, jitter: 0, max_wait: None, local: false }
    }

    /// How many requests may go at once to a site that has rested.
    pub const fn burst(mut self, burst: u32) -> Self {
        self.burst = burst;
        self
    }

    /// At most this many requests under way, from their start until their bodies have ended.
    /// Default no limit.
    ///
    /// A response that is kept unread keeps its place; dropping it gives the place back.
    pub const fn in_flight(mut self, most: u32) -> Self {
        self.in_flight = Some(most);
        self
    }

    /// Lets requests that wait for their turn start up to this fraction of the interval late, at
    /// random and never early. Default 0; at most 1.
    ///
    /// The next slot is counted from the late one, so the rate stays a bound, and on average is
    /// lower by half of the fraction.
    pub const fn jitter(mut self, fraction: f64) -> Self {
        // What is no fraction saturates, NaN apart, and is refused when built.
        self.jitter = if fraction >= 0.0 { (fraction * MILLION as f64) as u32 } else { u32::MAX };
        self
    }

    /// The longest wait for this site, judged on arrival: a request that would wait longer fails
    /// at once, even if it has more time itself. Default none.
    pub const fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = Some(max_wait);
        self
    }

    /// For this process alone, where the others are
    /// [shared](crate::BudgetsBuilder::shared).
    pub const fn local(mut self) -> Self {
        self.local = true;
        self
    }

    #[cfg(feature = "redis")]
    pub(super) fn is_local(&self) -> bool {
        self.local
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
        let in_flight = self.in_flight.unwrap_or(u32::MAX);
        if in_flight == 0 {
            return Err("no place in flight");
        }
        if self.jitter > MILLION {
            return Err("a jitter that is not between 0 and 1");
        }
        if self.max_wait.is_some_and(|wait| wait.is_zero()) {
            return Err("a longest wait of zero");
        }
        let Some(period_us) = self.per.as_micros() else {
            let alone = self.burst == 1 && self.jitter == 0 && self.in_flight.is_some();
            let pace = Pace { in_flight, ..Pace::default() };
            return if alone {
                Ok(pace)
            } else {
                Err("no rate, so it takes a most in flight alone")
            };
        };
        let count = u64::from(self.count);
        if count > period_us {
            return Err("an interval below 1 µs");
        }
        let interval_us = period_us.div_ceil(count);
        if interval_us.saturating_mul(u64::from(self.burst)) > LONGEST_RECOVERY_US {
            return Err("a burst that takes more than 35 years to come back");
        }
        let interval = interval_us * 1_000;
        let jitter = interval / u64::from(MILLION) * u64::from(self.jitter);
        Ok(Pace { interval, burst, in_flight, jitter })
    }
}

const MILLION: u32 = 1_000_000;

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.per {
            Per::Unpaced => f.write_str("no rate")?,
            per => write!(f, "{}/{}, burst {}", self.count, per.as_str(), self.burst)?,
        }
        if let Some(most) = self.in_flight {
            write!(f, ", at most {most} in flight")?;
        }
        if self.jitter > 0 {
            let percent = f64::from(self.jitter) / f64::from(MILLION) * 100.0;
            write!(f, ", jitter up to {percent} %")?;
        }
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
            Self::Unpaced => "",
        }
    }

    const fn as_micros(self) -> Option<u64> {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Unpaced => return None,
        };
        Some(seconds * 1_000_000)
    }
}

/// A checked budget, in nanoseconds; an interval of zero is no rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) interval: u64,
    pub(super) burst: NonZeroU32,
    pub(super) in_flight: u32,
    /// How late a slot may be drawn.
    pub(super) jitter: u64,
}

impl Pace {
    /// How far ahead of an even spread a burst may run.
    pub(super) fn tolerance(&self) -> u64 {
        self.interval.saturating_mul(u64::from(self.burst.get() - 1))
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self { interval: 0, burst: NonZeroU32::MIN, in_flight: u32::MAX, jitter: 0 }
    }
}
