//! From what a user writes to checked rules.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use compact_str::{CompactString, format_compact};

use super::clock::Epoch;
use super::queue::Queue;
use super::rate::{Budget, Pace};
use super::rules::Rules;
use super::sites::Sites;
use super::{Budgets, DEFAULT_MAX_SITES, Inner};
use crate::error::{Error, Kind};
use crate::site::Site;

/// Makes [`Budgets`]; the order of the calls does not matter.
///
/// - default budget: none, sites without a rule are not limited
/// - most sites: 100,000, some 35 MB
#[derive(Clone)]
#[must_use]
pub struct BudgetsBuilder {
    default: Option<Budget>,
    rules: Vec<Written>,
    max_sites: usize,
}

/// A rule as the user wrote it.
#[derive(Clone)]
struct Written {
    target: String,
    suffix: bool,
    budget: Option<Budget>,
}

/// Without the target, which may be a URL with a password in it before it is checked.
impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("suffix", &self.suffix)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// What a rule is for.
enum Target {
    Host(Site, Option<u16>),
    Suffix(CompactString),
}

impl BudgetsBuilder {
    pub(super) fn new() -> Self {
        Self { default: None, rules: Vec::new(), max_sites: DEFAULT_MAX_SITES }
    }

    /// The budget of every site that no other rule is for. Each has a bucket of its own.
    pub fn default(mut self, budget: Budget) -> Self {
        self.default = Some(budget);
        self
    }

    /// The budget of one host (`example.com`) or IP address (`127.0.0.1`, `[::1]`).
    ///
    /// With a port (`example.com:8080`) it is for that port alone, which then has a bucket of
    /// its own; without, for all ports that have no rule.
    pub fn site(self, host: impl Into<String>, budget: Budget) -> Self {
        self.rule(host.into(), false, Some(budget))
    }

    /// One budget that all subdomains of a domain share: `example.org`, or `*.example.org`.
    ///
    /// The domain itself is not among them; give it a [`site`](Self::site) rule. The longest
    /// suffix wins, and labels are never cut: `badexample.org` is no subdomain.
    pub fn suffix(self, domain: impl Into<String>, budget: Budget) -> Self {
        self.rule(domain.into(), true, Some(budget))
    }

    /// No limit for a host or IP address, with or without port, or for `*.example.org`.
    pub fn unlimited(self, host: impl Into<String>) -> Self {
        let host = host.into();
        let suffix = host.starts_with("*.");
        self.rule(host, suffix, None)
    }

    /// How many sites without a rule of their own are remembered, 100,000 if not given.
    ///
    /// Beyond it, sites that have rested until their bucket is full are forgotten, which changes
    /// nothing for them. Others never are, so the cap is a soft one.
    pub fn max_sites(mut self, max_sites: usize) -> Self {
        self.max_sites = max_sites;
        self
    }

    fn rule(mut self, target: String, suffix: bool, budget: Option<Budget>) -> Self {
        self.rules.push(Written { target, suffix, budget });
        self
    }

    /// Checks everything and makes the budgets.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a host that cannot be one, two rules for the same target, a rate,
    /// burst or longest wait of zero, an interval below 1 µs, a burst that takes more than
    /// 35 years to come back, and no room for sites.
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
        let epoch = Epoch::start();
        let default = self.default.map(|budget| checked("other sites", budget)).transpose()?;
        let mut rules = Rules { default, ..Rules::default() };
        for (nth, written) in self.rules.iter().enumerate() {
            written.add_to(&mut rules, nth, epoch)?;
        }
        let sites = Sites::new(self.max_sites);
        let slowed = AtomicBool::new(false);
        Ok(Budgets(Arc::new(Inner { epoch, rules, sites, slowed })))
    }
}

impl fmt::Debug for BudgetsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetsBuilder").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}

impl Written {
    fn add_to(&self, rules: &mut Rules, nth: usize, epoch: Epoch) -> Result<(), Error> {
        // The text itself may be a URL with a password in it, so it is counted and not shown.
        let target = self.target().map_err(|expected| {
            config(format!("site rule {} of the budgets is no {expected}", nth + 1))
        })?;
        let name = target.name();
        let limit = self.budget.map(|budget| checked(&name, budget)).transpose()?;
        if target.put(rules, Arc::new(Queue::new(epoch, limit))) {
            return Ok(());
        }
        Err(config(format!("there are two budgets for {name}")))
    }

    fn target(&self) -> Result<Target, &'static str> {
        if self.suffix {
            let domain = self.target.strip_prefix("*.").unwrap_or(&self.target);
            return suffix(domain).map(Target::Suffix).ok_or("domain");
        }
        let (host, port) = split_port(&self.target);
        let site = Site::parse(host).filter(|site| !site.as_str().contains('*'));
        Ok(Target::Host(site.ok_or("host, host:port or IP address")?, port))
    }
}

impl Target {
    fn name(&self) -> CompactString {
        match self {
            Self::Host(site, None) => site.as_str().into(),
            Self::Host(site, Some(port)) => format_compact!("{site}:{port}"),
            Self::Suffix(domain) => format_compact!("*.{domain}"),
        }
    }

    /// Adds the queue; false if there is one for this target.
    fn put(self, rules: &mut Rules, queue: Arc<Queue>) -> bool {
        match self {
            Self::Suffix(domain) => rules.suffixes.insert(domain, queue).is_none(),
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

fn checked(name: &str, budget: Budget) -> Result<(Budget, Pace), Error> {
    let pace = budget.pace();
    let pace = pace.map_err(|fault| config(format!("the budget for {name} has {fault}")))?;
    Ok((budget, pace))
}

fn config(message: String) -> Error {
    Error::new(Kind::Config, message)
}
