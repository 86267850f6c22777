//! Budgets: how fast each site may be asked, whichever endpoint asks.
//!
//! Each site has one first-in-first-out queue, and only its head talks to the limiter. The head
//! reserves the next slot and sleeps to it, so a late wake-up does not push the schedule, nobody
//! overtakes, and a slot whose waiter is cancelled passes to the next one.
//!
//! | file | what |
//! |---|---|
//! | `builder`, `written`, `rate`, `rules`, `domain`, `explain` | what the user says, and which rule is for what |
//! | `sites`, `limit` | buckets by name, bounded; what they share |
//! | `gate`, `entry`, `place`, `turn`, `stay` | one request: its buckets, entering, waiting, going out |
//! | `queue`, `line`, `schedule`, `pause` | one bucket: what it grants now, its waiters, its books |
//! | `local`, `remote` | the limiter that is asked for slots |
//! | `answer`, `retry_after`, `hints` | what the site says of its limits |

mod answer;
mod builder;
mod clock;
#[cfg(feature = "psl")]
mod domain;
mod entry;
mod explain;
mod gate;
mod hints;
mod limit;
mod line;
mod local;
mod pause;
mod place;
mod queue;
mod rate;
mod remote;
mod retry_after;
mod rules;
mod schedule;
#[cfg(feature = "redis")]
mod shared;
mod sites;
mod stay;
mod turn;
mod written;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

pub use builder::BudgetsBuilder;
pub use explain::Explanation;
pub(crate) use gate::Gate;
pub use limit::BudgetCounts;
pub use pause::Pauses;
pub use rate::Budget;
#[cfg(feature = "redis")]
pub use shared::{SharedCounts, SharedLimits};
pub(crate) use turn::{Passage, Turn};

use crate::site::Site;
use clock::At;
use limit::{Common, Limit};
use queue::Queue;
use rules::Rule;
use schedule::By;
use sites::{Kind, Sites};

/// How fast each site may be asked, over all endpoints of this process. Clones share it.
///
/// The most specific rule wins: host with port, host, longest suffix or domain, default. Every
/// request that goes out is charged to its own site, each redirect hop too, and to the
/// [keys](crate::LeaseOptions::charge) that it names; it passes all of them or charges none.
/// Waiting is first in, first out, and a wait that would be too long fails at once. A site that
/// answers 429 or 503 is [paused](Pauses).
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
    common: Arc<Common>,
    /// Of sites without a limit, while they are paused or slowed.
    open: Arc<Limit>,
    rules: rules::Rules,
    sites: Sites,
}

impl Budgets {
    /// No limit for any site, until [`slow`](Self::slow) or a pause sets one.
    pub fn unlimited() -> Self {
        let common = Arc::new(Common::new(Pauses::new(), DEFAULT_MOST_WAITING));
        let (rules, sites) = (Default::default(), Sites::new(DEFAULT_MAX_SITES));
        Self(Arc::new(Inner { open: Limit::unlimited(&common), common, rules, sites }))
    }

    /// Starts with no rule at all.
    pub fn builder() -> BudgetsBuilder {
        BudgetsBuilder::new()
    }

    /// Which rule is for a URL, and why.
    pub fn explain(&self, url: &Url) -> Explanation {
        Explanation::of(self, url)
    }

    /// What these budgets did so far.
    pub fn counts(&self) -> BudgetCounts {
        self.0.common.counters.snapshot(self.0.sites.len())
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
        self.0.slow(site, None, By::User, delay, how_long);
    }

    /// The buckets that a request has to pass: the site's, and those of the keys.
    pub(crate) fn gate<'a>(
        &self,
        site: &'a Site,
        port: Option<u16>,
        keys: &'a [Box<str>],
    ) -> Gate<'a> {
        let inner = &*self.0;
        if inner.rules.is_empty() && keys.is_empty() && !inner.common.is_watched() {
            return Gate::open(site, At::default());
        }
        let now = inner.common.epoch.now();
        let queue = inner.find(site, port, now);
        if !keys.is_empty() {
            return Gate::new(site, queue, keys, |key| inner.find_key(key, now), now);
        }
        match queue {
            Some(queue) => Gate::of_site(site, queue, now),
            None => Gate::open(site, now),
        }
    }

    /// Goes through all that a request which need not wait goes through, for benchmarks.
    #[cfg(feature = "test-util")]
    #[doc(hidden)]
    pub fn pass(&self, site: &Site, port: Option<u16>) -> bool {
        self.gate(site, port, &[]).try_pass().is_some()
    }
}

impl Inner {
    /// The bucket that a request has to pass; `None` if it has none.
    fn find(&self, site: &Site, port: Option<u16>, now: At) -> Option<Arc<Queue>> {
        let queue = match self.rules.find(site, port) {
            Rule::Default(limit, of) => {
                return Some(self.sites.find_or_make(Kind::Site, of, limit, now));
            }
            Rule::Port(_, queue)
            | Rule::Host(queue)
            | Rule::Suffix(_, queue)
            | Rule::Domain(_, queue) => {
                let limited = queue.limit.budget.is_some() || self.common.is_watched();
                limited.then(|| Arc::clone(queue))?
            }
            Rule::None if self.common.is_watched() => self.sites.find(Kind::Site, site.as_str())?,
            Rule::None => return None,
        };
        (!queue.is_open(now)).then_some(queue)
    }

    /// The bucket of a key; `None` if no rule is for it.
    fn find_key(&self, key: &str, now: At) -> Option<Arc<Queue>> {
        match self.rules.keys.get(key) {
            Some(queue) => Some(Arc::clone(queue)),
            None => {
                let limit = self.rules.default_key.as_ref()?;
                Some(self.sites.find_or_make(Kind::Key, key, limit, now))
            }
        }
    }

    /// The bucket of a site, made if it has none.
    fn bucket(&self, site: &Site, port: Option<u16>) -> Arc<Queue> {
        let (limit, of) = match self.rules.find(site, port) {
            Rule::Port(_, queue)
            | Rule::Host(queue)
            | Rule::Suffix(_, queue)
            | Rule::Domain(_, queue) => return Arc::clone(queue),
            Rule::Default(limit, of) => (limit, of),
            Rule::None => (&self.open, site.as_str()),
        };
        self.sites.find_or_make(Kind::Site, of, limit, self.common.epoch.now())
    }

    /// Slows the bucket of a site, and without a port those of all ports of the host.
    fn slow(&self, site: &Site, port: Option<u16>, by: By, delay: Duration, how_long: Duration) {
        self.common.watch();
        if port.is_none()
            && let Some(host) = self.rules.hosts.get(site)
        {
            host.ports.iter().for_each(|(_, queue)| queue.slow(by, delay, how_long));
        }
        self.bucket(site, port).slow(by, delay, how_long);
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets").finish_non_exhaustive()
    }
}

/// More hosts than one process crawls at a time, in some 40 MB, or up to 100 MB where they are shared.
const DEFAULT_MAX_SITES: usize = 100_000;

/// More than one process has requests under way.
const DEFAULT_MOST_WAITING: usize = 100_000;

#[cfg(test)]
mod tests;
