//! What is known of an endpoint's credentials, kept beside its client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::outcome::Outcome;
use crate::site::Site;

/// A shared record of one endpoint, as long as its address and credentials stay the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// Something was answered through the endpoint that was no 407.
    has_worked: bool,
    /// Where the last 407 came from, with no other answer since.
    refused_at: Option<Site>,
    /// How many came in a row.
    refusals: u32,
    /// Whether they came from several sites.
    elsewhere: bool,
    /// A site that refused this endpoint has served another one.
    blamed: bool,
}

/// Refusals in a row by one site.
const MANY: u32 = 3;

impl Record {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_worked(&self) -> bool {
        self.known().has_worked
    }

    /// An answer other than 407 came through the endpoint.
    pub(crate) fn accepted(&self) {
        let mut known = self.known();
        if !known.has_worked || known.refusals > 0 {
            *known = Known { has_worked: true, ..Known::default() };
        }
    }

    /// A site that refused this endpoint has served another one.
    pub(crate) fn blame(&self) {
        self.known().blamed = true;
    }

    /// A 407 came; whether that is certain, for another site was refused before or this one has
    /// served another endpoint. It never is for credentials that have worked: whoever owns two
    /// sites could then take out all endpoints.
    pub(crate) fn refused(&self, site: &Site) -> bool {
        let mut known = self.known();
        let before = known.refused_at.replace(site.clone());
        known.elsewhere |= before.is_some_and(|before| before != *site);
        known.refusals = known.refusals.saturating_add(1);
        !known.has_worked && (known.blamed || known.elsewhere)
    }

    /// What a 407 says of the endpoint while it is not certain. Credentials that have worked are
    /// doubted when another site refuses them too, or one again and again: wrong logins may close
    /// an account, and one site's word alone costs an endpoint nothing.
    pub(crate) fn doubt(&self) -> Outcome {
        let known = self.known();
        match known.has_worked && !known.elsewhere && known.refusals < MANY {
            true => Outcome::Unknown,
            false => Outcome::CredentialsDoubted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(host: &str) -> Site {
        Site::parse(host).unwrap()
    }

    #[test]
    fn a_refusal_is_certain_at_the_second_site() {
        let record = Record::default();
        assert!(!record.refused(&site("a.test")));
        assert!(!record.refused(&site("a.test")));
        assert!(record.refused(&site("b.test")));
    }

    #[test]
    fn a_refusal_is_certain_once_the_site_has_served_another() {
        let record = Record::default();
        assert!(!record.refused(&site("a.test")));
        record.blame();
        assert!(record.refused(&site("a.test")));
    }

    #[test]
    fn what_has_worked_is_doubted_at_a_second_site_or_a_third_refusal_in_a_row() {
        let record = Record::default();
        let says = |host| {
            assert!(!record.refused(&site(host)));
            record.doubt()
        };
        record.accepted();
        assert_eq!([says("a.test"), says("a.test")], [Outcome::Unknown; 2]);
        assert_eq!(says("a.test"), Outcome::CredentialsDoubted);
        record.accepted();
        assert_eq!(says("a.test"), Outcome::Unknown, "it has worked again");
        assert_eq!(says("b.test"), Outcome::CredentialsDoubted);
    }

    #[test]
    fn what_has_never_worked_is_doubted_at_once() {
        let record = Record::default();
        record.refused(&site("a.test"));
        assert_eq!(record.doubt(), Outcome::CredentialsDoubted);
    }

    #[test]
    fn no_number_of_sites_is_certain_of_what_has_worked() {
        let record = Record::default();
        record.accepted();
        record.blame();
        for host in ["a.test", "b.test", "c.test"] {
            assert!(!record.refused(&site(host)));
        }
    }
}
