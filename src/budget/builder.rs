//! From what a user writes to checked rules.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use compact_str::{CompactString, format_compact};

use super::limit::{Common, Limit};
use super::pause::Pauses;
use super::queue::Queue;
use super::rate::Budget;
use super::rules::{self, Rules, Scope};
#[cfg(feature = "redis")]
use super::shared::{SharedLimits, Sharing};
use super::sites::Sites;
use super::{Budgets, DEFAULT_MAX_SITES, DEFAULT_MOST_WAITING, Inner};
use crate::error::{Error, Kind};
use crate::site::Site;

/// Makes [`Budgets`]; the order of the calls does not matter.
///
/// - default budget: none, sites without a rule are not limited
/// - budgets of keys: none, keys without a rule are not limited
/// - pauses: as [`Pauses::new`] says
/// - most sites: 100,000, some 40 MB, and up to 100 MB where budgets are shared
/// - most waiting before one bucket: 100,000
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

/// A rule as the user wrote it.
#[derive(Clone)]
struct Written {
    target: String,
    form: Form,
    budget: Option<Budget>,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Host,
    Suffix,
    #[cfg(feature = "psl")]
    Domain,
}

/// Without the target, which may be a URL with a password in it before it is checked.
impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("form", &self.form)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// What a rule is for.
enum Target {
    Host(Site, Option<u16>),
    Suffix(CompactString),
    #[cfg(feature = "psl")]
    Domain(CompactString),
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
    /// [`Kind::Config`] for a host, domain or key that cannot be one, two rules for the same
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

impl Written {
    fn add_to(&self, rules: &mut Rules, nth: usize, common: &Arc<Common>) -> Result<(), Error> {
        // The text itself may be a URL with a password in it, so it is counted and not shown.
        let target = self.target().map_err(|expected| {
            config(format!("site rule {} of the budgets is no {expected}", nth + 1))
        })?;
        let name = target.name();
        let (bucket, prefix) = target.bucket();
        let queue = Queue::new(&bucket, limit(&name, self.budget, prefix, common)?);
        if target.put(rules, Arc::new(queue)) { Ok(()) } else { Err(twice(&name)) }
    }

    fn target(&self) -> Result<Target, &'static str> {
        match self.form {
            Form::Host => {
                let (host, port) = split_port(&self.target);
                let site = Site::parse(host).filter(|site| !site.as_str().contains('*'));
                Ok(Target::Host(site.ok_or("host, host:port or IP address")?, port))
            }
            Form::Suffix => {
                let domain = self.target.strip_prefix("*.").unwrap_or(&self.target);
                suffix(domain).map(Target::Suffix).ok_or("domain")
            }
            #[cfg(feature = "psl")]
            Form::Domain => suffix(&self.target)
                .filter(|domain| super::domain::registrable(domain) == Some(domain))
                .map(Target::Domain)
                .ok_or("registrable domain"),
        }
    }
}

impl Target {
    fn name(&self) -> CompactString {
        match self {
            Self::Host(site, None) => site.as_str().into(),
            Self::Host(site, Some(port)) => format_compact!("{site}:{port}"),
            Self::Suffix(domain) => format_compact!("*.{domain}"),
            #[cfg(feature = "psl")]
            Self::Domain(domain) => format_compact!("{domain} and all below it"),
        }
    }

    /// What its bucket is called where it is shared, and what tells it from a host's.
    fn bucket(&self) -> (CompactString, &'static str) {
        match self {
            #[cfg(feature = "psl")]
            Self::Domain(domain) => (domain.clone(), Scope::Domain.prefix()),
            _ => (self.name(), Scope::Host.prefix()),
        }
    }

    /// Adds the queue; false if there is one for this target.
    fn put(self, rules: &mut Rules, queue: Arc<Queue>) -> bool {
        match self {
            Self::Suffix(domain) => rules.suffixes.insert(domain, queue).is_none(),
            #[cfg(feature = "psl")]
            Self::Domain(domain) => rules.domains.insert(domain, queue).is_none(),
            Self::Host(site, None) => {
                let any_port = &mut rules.hosts.entry(site).or_default().any_port;
                any_port.replace(queue).is_none()
            }
            Self::Host(site, Some(port)) => {
                let ports = &mut rules.hosts.entry(site).or_default().ports;
                let free = ports.iter().all(|(ruled, _)| *ruled != port);
                ports.push((port, queue));
                free
            }
        }
    }
}

/// A domain as a suffix rule names it; an IP address has no subdomains.
fn suffix(domain: &str) -> Option<CompactString> {
    let site = Site::parse(domain)?;
    let text = site.as_str();
    let is_address = text.starts_with('[') || text.parse::<std::net::Ipv4Addr>().is_ok();
    (!is_address && !text.contains('*')).then(|| text.into())
}

fn split_port(target: &str) -> (&str, Option<u16>) {
    match target.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host, Some(port)),
        _ => (target, None),
    }
}

fn limit(
    name: &str,
    budget: Option<Budget>,
    prefix: &'static str,
    common: &Arc<Common>,
) -> Result<Arc<Limit>, Error> {
    let pace = budget.map(|budget| budget.pace()).transpose();
    let pace = pace.map_err(|fault| config(format!("the budget for {name} has {fault}")))?;
    #[cfg(feature = "redis")]
    let sharing = match &common.shared {
        Some(limits) if budget.is_some_and(|budget| !budget.is_local()) => {
            Some(Sharing::new(limits, prefix))
        }
        _ => None,
    };
    #[cfg(not(feature = "redis"))]
    let _ = prefix;
    Ok(Arc::new(Limit {
        budget,
        pace: pace.unwrap_or_default(),
        common: Arc::clone(common),
        #[cfg(feature = "redis")]
        sharing,
    }))
}

/// Before the names of keys' buckets.
const KEY: &str = "key/";

fn twice(name: &str) -> Error {
    config(format!("there are two budgets for {name}"))
}

fn config(message: String) -> Error {
    Error::new(Kind::Config, message)
}
