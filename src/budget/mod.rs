//! Budgets: how fast each site may be asked, whichever endpoint asks.
//!
//! Each site has one first-in-first-out queue, and only its head talks to the limiter. The head
//! reserves the next slot and sleeps to it, so a late wake-up does not push the schedule, nobody
//! overtakes, and a slot whose waiter is cancelled passes to the next one.

mod builder;
mod clock;
mod explain;
mod local;
mod queue;
mod rate;
mod rules;
mod schedule;
#[cfg(feature = "redis")]
mod shared;
mod sites;
mod turn;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use url::Url;

pub use builder::BudgetsBuilder;
pub use explain::Explanation;
pub use rate::Budget;
#[cfg(feature = "redis")]
pub use shared::{SharedCounts, SharedLimits};
pub(crate) use turn::{Passage, Turn};

use crate::error::Error;
use crate::site::Site;
use clock::Epoch;
use queue::Queue;
use rules::Rule;
use sites::Sites;

/// How fast each site may be asked, over all endpoints of this process. Clones share it.
///
/// The most specific rule wins: host with port, host, longest suffix, default. Every request
/// that goes out is charged to its own site, each redirect hop too. Waiting is first in, first
/// out, and a wait that would be too long fails at once.
///
/// Slots are exact; a request goes out later than its slot when the timer wakes it late, when it
/// waits for a lease, for which a slot is kept until another is due, and when another endpoint is
/// tried with it, within one interval and at most a second. So one request more than rate and
/// burst allow may go out in a window, and for sites faster than 500 a second as many as fall
/// into 2 ms.
///
/// ```
/// use std::time::Duration;
/// use reqwest_lease::{Budget, Budgets};
///
/// let budgets = Budgets::builder()
///     .default(Budget::per_second(2))
///     .site("example.com", Budget::per_second(5).burst(2))
///     .site("[::1]:8080", Budget::per_second(50))
///     .suffix("example.org", Budget::per_minute(30).max_wait(Duration::from_secs(10)))
///     .unlimited("intranet.test")
///     .build()?;
/// let of = |url: &str| budgets.explain(&url.parse().unwrap()).budget();
/// assert_eq!(of("https://example.com/"), Some(Budget::per_second(5).burst(2)));
/// assert_eq!(of("https://example.org/"), Some(Budget::per_second(2)));
/// assert_eq!(of("https://intranet.test/"), None);
/// # Ok::<(), reqwest_lease::Error>(())
/// ```
#[derive(Clone)]
pub struct Budgets(Arc<Inner>);

struct Inner {
    epoch: Epoch,
    rules: rules::Rules,
    sites: Sites,
    /// Whether a site without a limit was ever slowed.
    slowed: AtomicBool,
}

impl Budgets {
    /// No limit for any site, until [`slow`](Self::slow) sets one.
    pub fn unlimited() -> Self {
        let (epoch, sites) = (Epoch::start(), Sites::new(DEFAULT_MAX_SITES));
        Self(Arc::new(Inner { epoch, rules: Default::default(), sites, slowed: false.into() }))
    }

    /// Starts with no rule at all.
    pub fn builder() -> BudgetsBuilder {
        BudgetsBuilder::new()
    }

    /// Which rule is for a URL, and why.
    pub fn explain(&self, url: &Url) -> Explanation {
        Explanation::of(self, url)
    }

    /// Leaves at least `delay` between the starts of a site's requests for the next `how_long`.
    ///
    /// For the `Crawl-delay` of a robots.txt, say. It never raises a rate, holds for requests
    /// that wait already, and for sites without a limit. A later call replaces an earlier one.
    /// All buckets of the host are slowed, whatever their port; a bucket that a suffix rule
    /// shares is slowed as a whole.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use reqwest_lease::{Budgets, Site};
    ///
    /// let (budgets, site) = (Budgets::unlimited(), Site::parse("example.com").unwrap());
    /// budgets.slow(&site, Duration::from_secs(10), Duration::from_secs(24 * 3600));
    /// let why = budgets.explain(&"http://example.com".parse().unwrap());
    /// assert_eq!(why.budget(), None, "it shows what is configured");
    /// ```
    pub fn slow(&self, site: &Site, delay: Duration, how_long: Duration) {
        let slow = |queue: &Queue| {
            queue.slow(delay, how_long);
            if queue.budget.is_none() {
                self.0.slowed.store(true, Ordering::Release);
            }
        };
        if let Some(host) = self.0.rules.hosts.get(site) {
            host.ports.iter().for_each(|(_, queue)| slow(queue));
        }
        match self.0.rules.find(site, None) {
            Rule::Port(_, queue) | Rule::Host(queue) | Rule::Suffix(_, queue) => slow(queue),
            Rule::Default(limit) => slow(&self.0.queue(site, Some(*limit))),
            Rule::None => slow(&self.0.queue(site, None)),
        }
    }

    /// Joins the site's queue and returns as its head.
    ///
    /// The wait is judged on arrival, by the rate, the queue and the last slot.
    ///
    /// # Errors
    ///
    /// [`Kind::BudgetExceeded`] at once if the wait would be longer than `max_wait`, with the
    /// time that it would take; nothing is charged.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue; nothing is charged.
    pub(crate) async fn turn(
        &self,
        site: &Site,
        port: Option<u16>,
        max_wait: Duration,
    ) -> Result<Turn, Error> {
        if self.is_free() {
            return Ok(Turn::unlimited());
        }
        match self.0.find(site, port) {
            Some(queue) => Ok(Turn::at(queue.join(max_wait, site.as_str()).await?)),
            None => Ok(Turn::unlimited()),
        }
    }

    /// Whether nobody is queued for the site and a slot is free now.
    pub(crate) fn would_pass(&self, site: &Site, port: Option<u16>) -> bool {
        self.is_free() || self.0.find(site, port).is_none_or(|queue| queue.would_pass())
    }

    /// Takes a slot of the site if nobody is queued and one is free now.
    pub(crate) fn try_pass(&self, site: &Site, port: Option<u16>) -> Option<Passage> {
        if self.is_free() {
            return Some(Passage::unlimited());
        }
        match self.0.find(site, port) {
            None => Some(Passage::unlimited()),
            Some(queue) => queue.try_pass().map(Passage::until),
        }
    }

    /// Goes through a whole turn, for benchmarks.
    #[cfg(feature = "test-util")]
    #[doc(hidden)]
    pub async fn admit(&self, url: &Url, max_wait: Duration) -> Result<(), Error> {
        let site = Site::of(url).ok_or_else(|| {
            Error::new(crate::Kind::UnsupportedRequest, "the url has no site to ask")
        })?;
        let mut turn = self.turn(&site, url.port_or_known_default(), max_wait).await?;
        turn.slot().await?;
        drop(turn.spend());
        Ok(())
    }

    fn is_free(&self) -> bool {
        self.0.rules.is_empty() && !self.0.slowed.load(Ordering::Acquire)
    }
}

impl Inner {
    /// The queue that a request has to go through; `None` if it need not queue.
    fn find(&self, site: &Site, port: Option<u16>) -> Option<Arc<Queue>> {
        let queue = match self.rules.find(site, port) {
            Rule::Port(_, queue) | Rule::Host(queue) | Rule::Suffix(_, queue) => {
                let limited = queue.budget.is_some() || self.slowed.load(Ordering::Acquire);
                limited.then(|| Arc::clone(queue))?
            }
            Rule::Default(limit) => self.queue(site, Some(*limit)),
            Rule::None if self.slowed.load(Ordering::Acquire) => self.sites.find(site)?,
            Rule::None => return None,
        };
        (!queue.is_open()).then_some(queue)
    }

    fn queue(&self, site: &Site, limit: Option<(Budget, rate::Pace)>) -> Arc<Queue> {
        self.sites.find_or(site, || Queue::new(self.epoch, limit))
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets").finish_non_exhaustive()
    }
}

/// More hosts than one process crawls at a time, in some 35 MB.
const DEFAULT_MAX_SITES: usize = 100_000;

#[cfg(test)]
mod tests;
