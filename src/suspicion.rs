//! Whose 407 it is, when a forwarding proxy and the site behind it look alike.
//!
//! A proxy that forwards plain http answers 407 when it refuses its credentials (RFC 9110
//! section 15.5.8), but nothing keeps a site from sending a 407 of its own. Believed at once, one
//! such site would put a whole pool into quarantine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::hold::Hold;
use crate::outcome::Outcome;
use crate::site::Site;

/// What is known of an endpoint's credentials, kept with its client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// Something was answered through the endpoint that was no 407.
    accepted: bool,
    /// Where the last 407 came from, with no other answer since.
    refused_at: Option<Site>,
}

impl Record {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer other than 407 came through the endpoint.
    pub(crate) fn accepted(&self) {
        let mut known = self.known();
        known.accepted = true;
        known.refused_at = None;
    }

    /// A 407 came; whether that is certain, because another site was refused before.
    fn refused(&self, site: &Site) -> bool {
        let before = self.known().refused_at.replace(site.clone());
        before.is_some_and(|before| before != *site)
    }
}

/// The leases of one request that were answered with a 407, until it is known why.
#[derive(Default)]
pub(crate) struct Suspects(Vec<(Hold, Record)>);

impl Suspects {
    /// Takes a lease in; one that was refused at another site too is judged at once.
    pub(crate) fn add(&mut self, hold: Hold, record: &Record, site: &Site) {
        if record.refused(site) {
            hold.finish(Outcome::CredentialsRefused);
        } else {
            self.0.push((hold, record.clone()));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives the leases back in doubt, for what comes next may take long.
    pub(crate) fn let_go(&mut self) {
        for (hold, _) in self.0.drain(..) {
            hold.finish(Outcome::CredentialsDoubted);
        }
    }

    /// The site has given another endpoint another answer, so it was the endpoints that refused.
    /// For one whose credentials have worked before, that is not enough: a site can answer as it
    /// likes.
    pub(crate) fn cleared_the_site(&mut self) {
        for (hold, record) in self.0.drain(..) {
            let worked = record.known().accepted;
            hold.finish(match worked {
                true => Outcome::CredentialsDoubted,
                false => Outcome::CredentialsRefused,
            });
        }
    }

    /// Nothing but 407 came, to the last endpoint too. What that says of the last one, and
    /// whether the 407 is to be taken for the site's answer: it is when credentials that have
    /// worked before were refused.
    pub(crate) fn conclude(&mut self, last: &Record, site: &Site) -> (Outcome, bool) {
        let records = || self.0.iter().map(|(_, record)| record).chain([last]);
        let worked = records().any(|record| record.known().accepted);
        let others = if worked && !self.0.is_empty() {
            Outcome::Unclear
        } else {
            Outcome::CredentialsDoubted
        };
        self.0.drain(..).for_each(|(hold, _)| hold.finish(others));
        match last.refused(site) {
            true => (Outcome::CredentialsRefused, false),
            false => (others, worked),
        }
    }
}

impl Drop for Suspects {
    fn drop(&mut self) {
        self.let_go();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_certain_at_the_second_site_in_a_row() {
        let site = |host| Site::parse(host).unwrap();
        let record = Record::default();
        assert!(!record.refused(&site("a.test")));
        assert!(!record.refused(&site("a.test")));
        record.accepted();
        assert!(!record.refused(&site("b.test")), "it has worked in between");
        assert!(record.refused(&site("a.test")));
    }
}
