//! From what a user writes to checked rules.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use compact_str::format_compact;

use super::limit::{Common, Limit};
use super::pause::Pauses;
use super::queue::Queue;
use super::rate::Budget;
use super::rules::{self, Rules, Scope};
#[cfg(feature = "redis")]
use super::shared::SharedLimits;
use super::sites::Sites;
use super::written::{Form, Written, config, limit, twice};
use super::{Budgets, DEFAULT_MAX_SITES, DEFAULT_MOST_WAITING, Inner};
use crate::error::Error;

/// Makes [`Budgets`]; the order of the calls does not matter.
///
/// - default budget: none, sites without a rule are not limited
/// - budgets of keys: none, keys without a rule are not limited
/// - pauses: as [`Pauses::new`] says
/// - most sites: 100,000, some 40 MB, and up to 100 MB where budgets are shared
/// - most waiting before one bucket: 100,000
///
/// ```
/// use reqwest_lease::{Budget, Budgets};
///
/// let budgets = Budgets::builder()
///     .default(Budget::per_second(2))
///     .site("shop.example", Budget::per_minute(20))
///     .suffix("news.example", Budget::per_second(1)) // and all below it
///     .unlimited("127.0.0.1")
///     .build()?;
/// # let _ = budgets;
/// assert!(Budgets::builder().default(Budget::per_second(0)).build().is_err());
/// # Ok::<(), reqwest_lease::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct BudgetsBuilder {
    default: Vec<(Budget, Scope)>,
    rules: Vec<Written>,
    keys: Vec<(Box<str>, Budget)>,
    default_key: Vec<Budget>,
    pauses: Pauses,
    max_sites: usize,
    most_waiting: usize,
    #[cfg(feature = "redis")]
    shared: Option<SharedLimits>,
}

impl BudgetsBuilder {
    pub(super) fn new() -> Self {
        Self {
            default: Vec::new(),
            rules: Vec::new(),
            keys: Vec::new(),
            default_key: Vec::new(),
            pauses: Pauses::new(),
            max_sites: DEFAULT_MAX_SITES,
            most_waiting: DEFAULT_MOST_WAITING,
            #[cfg(feature = "redis")]
            shared: None,
        }
    }

    /// Makes all budgets those of all processes that share them through the same Redis: rate,
    /// most in flight, and the pauses of sites and keys that have a budget. Default: budgets are
    /// each process's own.
    ///
    /// A budget that is to stay this process's own says [`local`](Budget::local). Pauses of sites
    /// without a budget, what [`slow`](Budgets::slow) and a site's hints add, the longest wait
    /// and its forecast are each process's own: a wait that other processes make longer ends by
    /// the request's own patience.
    #[cfg(feature = "redis")]
    pub fn shared(mut self, limits: SharedLimits) -> Self {
        self.shared = Some(limits);
        self
    }

    /// The budget of every host that no other rule is for. Each has a bucket of its own.
    pub fn default(mut self, budget: Budget) -> Self {
        self.default.push((budget, Scope::Host));
        self
    }

    /// The budget of every registrable domain that no other rule is for: `a.example.co.uk` and
    /// `b.example.co.uk` share the bucket of `example.co.uk`.
    ///
    /// The public suffix list is the one compiled into the `psl` crate. Only suffixes of
    /// registries count, its ICANN section: `a.github.io` and `b.github.io` share a bucket, for
    /// they are one service. A host that has no registrable domain has a bucket of its own: an
    /// IP address, `localhost`, a public suffix itself.
    #[cfg(feature = "psl")]
    pub fn default_by_domain(mut self, budget: Budget) -> Self {
        self.default.push((budget, Scope::Domain));
        self
    }

    /// One budget that a registrable domain (`example.co.uk`) and all its subdomains share.
    ///
    /// What is no registrable domain is refused when built, a public suffix (`co.uk`), a
    /// subdomain and an IP address among them. Which suffixes count, see
    /// [`default_by_domain`](Self::default_by_domain).
    #[cfg(feature = "psl")]
    pub fn domain(self, domain: impl Into<String>, budget: Budget) -> Self {
        self.rule(domain.into(), Form::Domain, Some(budget))
    }

    /// The budget of one key that requests are [charged](crate::LeaseOptions::charge) to besides
    /// their site, whatever it stands for: an account, a customer, a kind of page.
    pub fn key(mut self, key: impl Into<Box<str>>, budget: Budget) -> Self {
        self.keys.push((key.into(), budget));
        self
    }

    /// The budget of every key that has none of its own. Each has a bucket of its own.
    pub fn default_key(mut self, budget: Budget) -> Self {
        self.default_key.push(budget);
        self
    }

    /// How the sites' own "not now" is heeded.
    pub fn pauses(mut self, pauses: Pauses) -> Self {
        self.pauses = pauses;
        self
    }

    /// The budget of one host (`example.com`) or IP address (`127.0.0.1`, `[::1]`).
    ///
    /// With a port (`example.com:8080`) it is for that port alone, which then has a bucket of
    /// its own; without, for all ports that have no rule.
    pub fn site(self, host: impl Into<String>, budget: Budget) -> Self {
        self.rule(host.into(), Form::Host, Some(budget))
    }

    /// One budget that all subdomains of a domain share: `example.org`, or `*.example.org`.
    ///
    /// The domain itself is not among them; give it a [`site`](Self::site) rule. The longest
    /// suffix wins, and labels are never cut: `badexample.org` is no subdomain.
    pub fn suffix(self, domain: impl Into<String>, budget: Budget) -> Self {
        self.rule(domain.into(), Form::Suffix, Some(budget))
    }

    /// No limit for a host or IP address, with or without port, or for `*.example.org`.
    pub fn unlimited(self, host: impl Into<String>) -> Self {
        let host = host.into();
        let form = if host.starts_with("*.") { Form::Suffix } else { Form::Host };
        self.rule(host, form, None)
    }

    /// How many sites and keys without a rule of their own are remembered, 100,000 if not given,
    /// at most some 400 bytes each, and 1,000 where budgets are [shared](Self::shared). Rounded up
    /// to a multiple of 16.
    ///
    /// Beyond it, sites that have rested until their bucket is full are forgotten, which changes
    /// nothing for them. Others never are: where no room is left, newcomers share one bucket,
    /// with a warning, and [`BudgetCounts::overflowed`](crate::BudgetCounts::overflowed) counts
    /// them. They share its pauses too: one site of them that asks for one holds all of them up.
    /// Where budgets are shared, newcomers of all processes share that bucket.
    pub fn max_sites(mut self, max_sites: usize) -> Self {
        self.max_sites = max_sites;
        self
    }

    /// How many requests may wait before one bucket; the next one fails at once. 100,000 if not
    /// given.
    pub fn most_waiting(mut self, most_waiting: usize) -> Self {
        self.most_waiting = most_waiting;
        self
    }

    fn rule(mut self, target: String, form: Form, budget: Option<Budget>) -> Self {
        self.rules.push(Written { target, form, budget });
        self
    }

    /// Checks everything and makes the budgets.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`](crate::Kind::Config) for a host, domain or key that cannot be one, two rules for the same
    /// target, a rate, burst, most in flight or longest wait of zero, an interval below 1 µs, a
    /// burst that takes more than 35 years to come back, a jitter that is no fraction, a budget
    /// without any limit, a longest pause of zero, and no room for sites or waiters.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_lease::{Budget, Budgets};
    ///
    /// let twice = Budgets::builder()
    ///     .site("example.com", Budget::per_second(1))
    ///     .unlimited("EXAMPLE.com.");
    /// let error = twice.build().unwrap_err();
    /// assert_eq!(error.to_string(), "there are two budgets for example.com");
    /// ```
    pub fn build(self) -> Result<Budgets, Error> {
        if self.max_sites == 0 {
            return Err(config("room for at least one site is needed".into()));
        }
        if self.most_waiting == 0 {
            return Err(config("room for at least one waiting request is needed".into()));
        }
        self.pauses.check().map_err(|fault| config(fault.into()))?;
        let common = Common::new(self.pauses, self.most_waiting);
        #[cfg(feature = "redis")]
        let common = common.shared(self.shared.clone())?;
        let common = Arc::new(common);
        let mut rules = Rules {
            default: self.default_rule(&common)?,
            keys: self.key_rules(&common)?,
            default_key: self.default_key_rule(&common)?,
            ..Rules::default()
        };
        for (nth, written) in self.rules.iter().enumerate() {
            written.add_to(&mut rules, nth, &common)?;
        }
        let open = Limit::unlimited(&common);
        let sites = Sites::new(self.max_sites);
        Ok(Budgets(Arc::new(Inner { common, open, rules, sites })))
    }

    fn default_rule(&self, common: &Arc<Common>) -> Result<Option<rules::Default>, Error> {
        let Some((budget, scope)) = once("other sites", &self.default)? else { return Ok(None) };
        let limit = limit("other sites", Some(*budget), scope.prefix(), common)?;
        Ok(Some(rules::Default { limit, scope: *scope }))
    }

    fn default_key_rule(&self, common: &Arc<Common>) -> Result<Option<Arc<Limit>>, Error> {
        let budget = once("other keys", &self.default_key)?;
        budget.map(|budget| limit("other keys", Some(*budget), KEY, common)).transpose()
    }

    fn key_rules(&self, common: &Arc<Common>) -> Result<HashMap<Box<str>, Arc<Queue>>, Error> {
        let mut keys = HashMap::with_capacity(self.keys.len());
        for (key, budget) in &self.keys {
            if key.is_empty() {
                return Err(config("the key of a budget is empty".into()));
            }
            let name = format_compact!("key {key}");
            let queue = Queue::new(key, limit(&name, Some(*budget), KEY, common)?);
            if keys.insert(key.clone(), Arc::new(queue)).is_some() {
                return Err(twice(&name));
            }
        }
        Ok(keys)
    }
}

/// The one that was given, if any.
fn once<'a, T>(name: &str, given: &'a [T]) -> Result<Option<&'a T>, Error> {
    match given {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(twice(name)),
    }
}

impl fmt::Debug for BudgetsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetsBuilder").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}

/// Before the names of keys' buckets.
const KEY: &str = "key/";
