//! Whose 407 it is, when a forwarding proxy and the site behind it look alike.
//!
//! A proxy that forwards plain http answers 407 when it refuses its credentials (RFC 9110
//! section 15.5.8), but nothing keeps a site from sending a 407 of its own. Believed at once, one
//! such site would put a whole pool into quarantine.

use crate::hold::Hold;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::site::Site;

/// The leases of one request that were answered with a 407, until it is known why.
#[derive(Default)]
pub(crate) struct Suspects {
    held: Vec<(Hold, Record)>,
    /// Of leases that were given back before it was known.
    gone: Vec<Record>,
}

impl Suspects {
    /// Takes a lease in; one whose refusal is certain is judged at once.
    pub(crate) fn add(&mut self, hold: Hold, record: &Record, site: &Site) {
        if record.refused(site) {
            hold.finish(Outcome::CredentialsRefused);
        } else {
            self.held.push((hold, record.clone()));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Gives the leases back in doubt, for what comes next may take long.
    pub(crate) fn let_go(&mut self) {
        for (hold, record) in self.held.drain(..) {
            hold.finish(record.doubt());
            self.gone.push(record);
        }
    }

    /// The site has given another endpoint another answer, so it was the endpoints that refused.
    /// For one whose credentials have worked before, that is not enough: a site can answer as it
    /// likes.
    pub(crate) fn cleared_the_site(&mut self) {
        for (hold, record) in self.held.drain(..) {
            hold.finish(match record.has_worked() {
                true => record.doubt(),
                false => Outcome::CredentialsRefused,
            });
        }
        // Too late for a verdict on these, but the next 407 will be certain.
        self.gone.drain(..).for_each(|record| record.blame());
    }

    /// Nothing but 407 came, to the last endpoint too. What that says of the last one, and
    /// whether the 407 is to be taken for the site's answer: it is when credentials that have
    /// worked before were refused.
    pub(crate) fn conclude(&mut self, last: &Record, site: &Site) -> (Outcome, bool) {
        let others = || self.held.iter().map(|(_, record)| record).chain(&self.gone);
        let worked = others().chain([last]).any(Record::has_worked);
        let is_the_sites = worked && others().next().is_some();
        let doubt = |record: &Record| if is_the_sites { Outcome::Unknown } else { record.doubt() };
        let certain = last.refused(site);
        self.held.drain(..).for_each(|(hold, record)| hold.finish(doubt(&record)));
        match certain {
            true => (Outcome::CredentialsRefused, false),
            false => (doubt(last), worked),
        }
    }
}

impl Drop for Suspects {
    fn drop(&mut self) {
        self.let_go();
    }
}
