//! Telling which rule is for a URL.

use std::fmt;
use std::time::Duration;

use url::Url;

use super::Budgets;
use super::rate::Budget;
use super::rules::Rule;
use crate::site::Site;

/// Which budget a URL falls under and why; made by [`Budgets::explain`].
///
/// ```
/// use reqwest_lease::{Budget, Budgets};
///
/// let budgets = Budgets::builder().suffix("example.org", Budget::per_minute(30)).build()?;
/// let why = budgets.explain(&"https://www.example.org/a".parse().unwrap());
/// assert_eq!(
///     why.to_string(),
///     "www.example.org: 30/min, burst 1, shared by all of *.example.org",
/// );
/// # Ok::<(), reqwest_lease::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    site: Option<Site>,
    budget: Option<Budget>,
    reason: Reason,
    paused: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    NoSite,
    NoRule,
    /// With what has the bucket, if that is not the host.
    Default(Option<String>),
    Host,
    Port(u16),
    Suffix(String),
    Domain(String),
}

impl Explanation {
    pub(super) fn of(budgets: &Budgets, url: &Url) -> Self {
        let Some(site) = Site::of(url) else {
            return Self { site: None, budget: None, reason: Reason::NoSite, paused: None };
        };
        let (budget, reason) = match budgets.0.rules.find(&site, url.port_or_known_default()) {
            Rule::Port(port, queue) => (queue.limit.budget, Reason::Port(port)),
            Rule::Host(queue) => (queue.limit.budget, Reason::Host),
            Rule::Suffix(domain, queue) => (queue.limit.budget, Reason::Suffix(domain.into())),
            Rule::Domain(domain, queue) => (queue.limit.budget, Reason::Domain(domain.into())),
            Rule::Default(limit, of) => {
                let domain = (of != site.as_str()).then(|| of.to_owned());
                (limit.budget, Reason::Default(domain))
            }
            Rule::None => (None, Reason::NoRule),
        };
        let paused = budgets.0.paused(&site, url.port_or_known_default());
        Self { site: Some(site), budget, reason, paused }
    }

    /// The site of the URL; `None` if it has none and cannot be asked for.
    pub fn site(&self) -> Option<&Site> {
        self.site.as_ref()
    }

    /// The budget; `None` for no limit. What [`Budgets::slow`] adds is not part of it.
    pub fn budget(&self) -> Option<Budget> {
        self.budget
    }

    /// How long the site's present pause still lasts; `None` without one.
    pub fn paused(&self) -> Option<Duration> {
        self.paused
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(site) = &self.site else { return f.write_str("not a site that can be asked") };
        match self.budget {
            Some(budget) => write!(f, "{site}: {budget}, ")?,
            None => write!(f, "{site}: unlimited, ")?,
        }
        match &self.reason {
            Reason::Port(port) => write!(f, "by the rule for port {port} of this host"),
            Reason::Host => f.write_str("by the rule for this host"),
            Reason::Suffix(domain) => write!(f, "shared by all of *.{domain}"),
            Reason::Domain(domain) => write!(f, "shared by {domain} and all below it"),
            Reason::Default(None) => f.write_str("by the default, in a bucket of its own"),
            Reason::Default(Some(domain)) => {
                write!(f, "by the default, shared by {domain} and all below it")
            }
            Reason::NoRule | Reason::NoSite => f.write_str("as no rule is for it"),
        }?;
        match self.paused {
            Some(left) => write!(f, "; paused by the site for another {left:.1?}"),
            None => Ok(()),
        }
    }
}
