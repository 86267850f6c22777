//! Whose 407 it is, when a forwarding proxy and the site behind it look alike.
//!
//! A proxy that forwards plain http answers 407 when it refuses its credentials (RFC 9110
//! section 15.5.8), but nothing keeps a site from sending a 407 of its own. Believed at once, one
//! such site would put a whole pool into quarantine.

use crate::endpoint::Endpoint;
use crate::hold::Hold;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::site::Site;

/// The leases of one request that were answered with a 407, until it is known why.
#[derive(Default)]
pub(crate) struct Suspects {
    held: Vec<Suspect>,
    /// Of leases that were given back before it was known.
    gone: Vec<Record>,
}

/// A lease, with what is known of the endpoint as it was used.
struct Suspect {
    hold: Hold,
    record: Record,
    fingerprint: u64,
}

impl Suspect {
    /// Gives the lease back. What a reload has changed meanwhile is not blamed for what it was
    /// before.
    fn finish(self, outcome: Outcome) {
        let is_current = self.hold.endpoint().fingerprint() == self.fingerprint;
        self.hold.finish(if is_current { outcome } else { Outcome::LocalFault });
    }
}

impl Suspects {
    /// Takes a lease in; one whose refusal is certain is judged at once.
    pub(crate) fn add(&mut self, hold: Hold, used: &Endpoint, record: &Record, site: &Site) {
        if record.refused(site) {
            hold.finish(Outcome::CredentialsRefused);
        } else {
            let fingerprint = used.fingerprint();
            self.held.push(Suspect { hold, record: record.clone(), fingerprint });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Gives the leases back in doubt, for what comes next may take long.
    pub(crate) fn let_go(&mut self) {
        for suspect in self.held.drain(..) {
            let record = suspect.record.clone();
            suspect.finish(record.doubt());
            self.gone.push(record);
        }
    }

    /// The site has given another endpoint another answer, so it was the endpoints that refused.
    /// For one whose credentials have worked before, that is not enough: a site can answer as it
    /// likes.
    pub(crate) fn cleared_the_site(&mut self) {
        for suspect in self.held.drain(..) {
            let outcome = match suspect.record.has_worked() {
                true => suspect.record.doubt(),
                false => Outcome::CredentialsRefused,
            };
            suspect.finish(outcome);
        }
        // Too late for a verdict on these, but the next 407 will be certain.
        self.gone.drain(..).for_each(|record| record.blame());
    }

    /// Nothing but 407 came, to the last endpoint too. What that says of the last one, and
    /// whether the 407 is to be taken for the site's answer: it is when credentials that have
    /// worked before were refused.
    pub(crate) fn conclude(&mut self, last: &Record, site: &Site) -> (Outcome, bool) {
        let others = || self.held.iter().map(|suspect| &suspect.record).chain(&self.gone);
        let worked = others().chain([last]).any(Record::has_worked);
        let is_the_sites = worked && others().next().is_some();
        let doubt = |record: &Record| if is_the_sites { Outcome::Unknown } else { record.doubt() };
        let certain = last.refused(site);
        for suspect in self.held.drain(..) {
            let outcome = doubt(&suspect.record);
            suspect.finish(outcome);
        }
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
