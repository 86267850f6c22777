//! What a judge goes by.

use crate::outcome::Outcome;
use crate::site::Site;

/// What a [`Judge`](super::Judge) goes by: the outcome, and what this process knows around it.
///
/// All but the strikes is knowledge of this process alone: workers that share a pool judge each by
/// what they have seen themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence<'a> {
    /// What was seen.
    pub outcome: Outcome,
    /// Whether the caller gave up what the endpoint had served: it had an answer that was a success as
    /// far as it went, and did not wait for more of it.
    pub served: bool,
    /// Failures in a row of this endpoint before this one, by all processes.
    pub strikes: u32,
    /// The site that was asked; `None` when a lease ended before it was used for one.
    pub site: Option<&'a Site>,
    /// What other endpoints have seen of the site lately.
    pub others: Others,
    /// Weak failures ([`Outcome::is_weak`]) of this endpoint before this one, since its last
    /// success. Those do not count that came while others failed at the same site too.
    pub weak: u32,
    /// Whether one of them was at another site.
    pub elsewhere: bool,
    /// Whether the pool's brake is on: so many endpoints fail that it is hardly their doing.
    pub braked: bool,
    /// Whether weak evidence may let this endpoint rest: neither brake nor floor forbids it.
    pub may_rest: bool,
    /// Whether weak evidence may let it rest for the site.
    pub may_shun: bool,
}

impl<'a> Evidence<'a> {
    /// Evidence of one lease, with nothing known around it.
    pub const fn new(outcome: Outcome, strikes: u32) -> Self {
        Self {
            outcome,
            served: false,
            strikes,
            site: None,
            others: Others::Unknown,
            weak: 0,
            elsewhere: false,
            braked: false,
            may_rest: true,
            may_shun: true,
        }
    }

    /// The same about this site.
    pub const fn at(mut self, site: Option<&'a Site>) -> Self {
        self.site = site;
        self
    }
}

/// What other endpoints have seen of a site: the last word of any of them within a minute, or what
/// [`Guard::within`](crate::Guard::within) says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Others {
    /// None has been there.
    #[default]
    Unknown,
    /// One had an answer of the site.
    Reach,
    /// One failed there too.
    Fail,
}
