//! Pairs of endpoint and site that rest.

use std::collections::{BTreeSet, HashMap};

use super::MAX_SWEEP;
use super::moment::Moment;
use crate::site::Site;

/// Resting pairs, by the serial number of the member, each until its moment.
#[derive(Debug, Default)]
pub(super) struct Shuns {
    until: HashMap<(u64, Site), Moment>,
    by_end: BTreeSet<(Moment, u64, Site)>,
}

impl Shuns {
    /// Lets a pair rest; a longer rest that stands is kept. Forgets some that have ended.
    pub(super) fn add(&mut self, serial: u64, site: Site, until: Moment, now: Moment) {
        self.sweep(now);
        let key = (serial, site);
        match self.until.get(&key) {
            Some(standing) if *standing >= until => return,
            Some(standing) => {
                self.by_end.remove(&(*standing, serial, key.1.clone()));
            }
            None => {}
        }
        self.by_end.insert((until, serial, key.1.clone()));
        self.until.insert(key, until);
    }

    /// Forgets some of those that have ended.
    pub(super) fn sweep(&mut self, now: Moment) {
        for _ in 0..MAX_SWEEP {
            match self.by_end.first() {
                Some((until, ..)) if *until <= now => {}
                _ => return,
            }
            if let Some((_, serial, site)) = self.by_end.pop_first() {
                self.until.remove(&(serial, site));
            }
        }
    }

    /// When the rest of this pair ends, if it goes on.
    pub(super) fn until(&self, pair: &(u64, Site), now: Moment) -> Option<Moment> {
        self.until.get(pair).copied().filter(|until| *until > now)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(host: &str) -> Site {
        Site::parse(host).unwrap()
    }

    #[test]
    fn a_sweep_forgets_what_has_ended() {
        let mut shuns = Shuns::default();
        shuns.add(1, site("a.example"), Moment(9), Moment(0));
        shuns.add(2, site("a.example"), Moment(10), Moment(0));
        assert_eq!(shuns.until(&(1, site("a.example")), Moment(9)), None);
        shuns.sweep(Moment(9));
        assert_eq!(shuns.until(&(2, site("a.example")), Moment(9)), Some(Moment(10)));
        assert_eq!((shuns.until.len(), shuns.by_end.len()), (1, 1));
    }

    #[test]
    fn a_longer_rest_is_not_shortened() {
        let mut shuns = Shuns::default();
        shuns.add(1, site("a.example"), Moment(9), Moment(0));
        shuns.add(1, site("a.example"), Moment(5), Moment(0));
        assert_eq!(shuns.until(&(1, site("a.example")), Moment(6)), Some(Moment(9)));
        assert_eq!(shuns.by_end.len(), 1);
    }
}
