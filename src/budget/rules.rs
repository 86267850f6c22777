//! Which rule a URL falls under: host and port, host, longest suffix, default.

use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;

use super::queue::Queue;
use super::rate::{Budget, Pace};
use crate::site::Site;

/// The rules, each with the queue of its bucket; the default has a bucket for each site.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) hosts: HashMap<Site, HostRules>,
    pub(super) suffixes: HashMap<CompactString, Arc<Queue>>,
    pub(super) default: Option<(Budget, Pace)>,
}

#[derive(Default)]
pub(super) struct HostRules {
    pub(super) any_port: Option<Arc<Queue>>,
    pub(super) ports: Vec<(u16, Arc<Queue>)>,
}

/// The rule that a URL falls under.
pub(super) enum Rule<'a> {
    Port(u16, &'a Arc<Queue>),
    Host(&'a Arc<Queue>),
    Suffix(&'a str, &'a Arc<Queue>),
    Default(&'a (Budget, Pace)),
    None,
}

impl Rules {
    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.suffixes.is_empty() && self.default.is_none()
    }

    /// The most specific rule: one probe for the host and one for each of its labels.
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
        self.find_by_suffix(site).unwrap_or(match &self.default {
            Some(limit) => Rule::Default(limit),
            None => Rule::None,
        })
    }

    fn find_by_suffix<'a>(&'a self, site: &'a Site) -> Option<Rule<'a>> {
        if self.suffixes.is_empty() {
            return None;
        }
        let mut rest = site.as_str();
        while let Some((_, suffix)) = rest.split_once('.') {
            if let Some(queue) = self.suffixes.get(suffix) {
                return Some(Rule::Suffix(suffix, queue));
            }
            rest = suffix;
        }
        None
    }
}
