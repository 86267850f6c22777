//! A rule as the user wrote it, and what it becomes.

use std::fmt;
use std::sync::Arc;

use compact_str::{CompactString, format_compact};

use super::limit::{Common, Limit};
use super::queue::Queue;
use super::rate::Budget;
use super::rules::{Rules, Scope};
#[cfg(feature = "redis")]
use super::shared::Sharing;
use crate::error::{Error, Kind};
use crate::site::Site;

/// A rule as the user wrote it.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) target: String,
    pub(super) form: Form,
    pub(super) budget: Option<Budget>,
}

/// Which names a rule is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
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

impl Written {
    /// Checks the rule and adds it to the others, of which it is the `nth`.
    pub(super) fn add_to(
        &self,
        rules: &mut Rules,
        nth: usize,
        common: &Arc<Common>,
    ) -> Result<(), Error> {
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

/// The limit of what is called `name`; its buckets carry `prefix` where they are shared.
pub(super) fn limit(
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

pub(super) fn twice(name: &str) -> Error {
    config(format!("there are two budgets for {name}"))
}

pub(super) fn config(message: String) -> Error {
    Error::new(Kind::Config, message)
}
