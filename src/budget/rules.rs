//! Which rule a URL or a key falls under: host and port, host, longest suffix or domain, default.

use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;

use super::limit::Limit;
use super::queue::Queue;
use crate::site::Site;

/// The rules, each with its bucket; a default has a bucket for each site, domain or key.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) hosts: HashMap<Site, HostRules>,
    /// Of all subdomains.
    pub(super) suffixes: HashMap<CompactString, Arc<Queue>>,
    /// Of domains and their subdomains.
    pub(super) domains: HashMap<CompactString, Arc<Queue>>,
    pub(super) default: Option<Default>,
    pub(super) keys: HashMap<Box<str>, Arc<Queue>>,
    pub(super) default_key: Option<Arc<Limit>>,
}

#[derive(Default)]
pub(super) struct HostRules {
    pub(super) any_port: Option<Arc<Queue>>,
    pub(super) ports: Vec<(u16, Arc<Queue>)>,
}

/// The rule for sites that have none of their own.
pub(super) struct Default {
    pub(super) limit: Arc<Limit>,
    pub(super) scope: Scope,
}

/// What has a bucket of its own under the default rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Host,
    #[cfg(feature = "psl")]
    Domain,
}

/// The rule that a URL falls under.
pub(super) enum Rule<'a> {
    Port(u16, &'a Arc<Queue>),
    Host(&'a Arc<Queue>),
    Suffix(&'a str, &'a Arc<Queue>),
    Domain(&'a str, &'a Arc<Queue>),
    /// With what the bucket is of.
    Default(&'a Arc<Limit>, &'a str),
    None,
}

impl Rules {
    /// Whether no site has a rule.
    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
            && self.suffixes.is_empty()
            && self.domains.is_empty()
            && self.default.is_none()
    }

    /// The most specific rule: one probe for the host and up to two for each of its labels.
    pub(super) fn find<'a>(&'a self, site: &'a Site, port: Option<u16>) -> Rule<'a> {
        if let Some(host) = self.hosts.get(site) {
            let of_port = host.ports.iter().find(|(ruled, _)| Some(*ruled) == port);
            if let Some((port, queue)) = of_port {
                return Rule::Port(*port, queue);
            }
            if let Some(queue) = &host.any_port {
                return Rule::Host(queue);
            }
        }
        self.find_by_suffix(site.as_str()).unwrap_or(match &self.default {
            Some(default) => Rule::Default(&default.limit, default.scope.of(site.as_str())),
            None => Rule::None,
        })
    }

    fn find_by_suffix<'a>(&'a self, site: &'a str) -> Option<Rule<'a>> {
        if self.suffixes.is_empty() && self.domains.is_empty() {
            return None;
        }
        let mut rest = site;
        loop {
            if rest.len() < site.len()
                && let Some(queue) = self.suffixes.get(rest)
            {
                return Some(Rule::Suffix(rest, queue));
            }
            if let Some(queue) = self.domains.get(rest) {
                return Some(Rule::Domain(rest, queue));
            }
            rest = rest.split_once('.')?.1;
        }
    }
}

impl Scope {
    /// Before the name of its buckets where they are shared.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Host => "",
            #[cfg(feature = "psl")]
            Self::Domain => "domain/",
        }
    }

    /// What has the bucket that a host falls under.
    fn of(self, host: &str) -> &str {
        match self {
            Self::Host => host,
            #[cfg(feature = "psl")]
            Self::Domain => super::domain::registrable(host).unwrap_or(host),
        }
    }
}
