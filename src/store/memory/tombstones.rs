//! Tokens that were given up.

use std::collections::{BTreeSet, HashMap};

use super::MAX_SWEEP;
use super::moment::Moment;
use crate::secret::Token;

/// Tokens that are not granted until their moment has come.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    until: HashMap<Token, Moment>,
    by_end: BTreeSet<(Moment, Token)>,
}

impl Tombstones {
    /// Bars a token; a longer bar that stands is kept.
    pub(super) fn add(&mut self, token: Token, until: Moment) {
        match self.until.get(&token) {
            Some(standing) if *standing >= until => return,
            Some(standing) => {
                self.by_end.remove(&(*standing, token));
            }
            None => {}
        }
        self.until.insert(token, until);
        self.by_end.insert((until, token));
    }

    /// Forgets some of those whose moment has come.
    pub(super) fn sweep(&mut self, now: Moment) {
        for _ in 0..MAX_SWEEP {
            match self.by_end.first() {
                Some((until, token)) if *until <= now => {
                    self.until.remove(token);
                    self.by_end.pop_first();
                }
                _ => return,
            }
        }
    }

    pub(super) fn bars(&self, token: &Token, now: Moment) -> bool {
        !self.until.is_empty() && self.until.get(token).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u8) -> Token {
        Token::from_bytes([number; 16])
    }

    #[test]
    fn a_longer_bar_is_not_shortened() {
        let mut tombstones = Tombstones::default();
        tombstones.add(token(1), Moment(9));
        tombstones.add(token(1), Moment(5));
        assert!(tombstones.bars(&token(1), Moment(8)));
        tombstones.add(token(1), Moment(12));
        assert!(tombstones.bars(&token(1), Moment(11)));
        assert_eq!(tombstones.by_end.len(), 1);
    }

    #[test]
    fn a_sweep_takes_a_bounded_number() {
        let mut tombstones = Tombstones::default();
        (0..200).for_each(|number| tombstones.add(token(number), Moment(1)));
        tombstones.sweep(Moment(1));
        assert_eq!(tombstones.until.len(), 200 - MAX_SWEEP);
        assert!(!tombstones.bars(&token(199), Moment(1)));
        (0..3).for_each(|_| tombstones.sweep(Moment(1)));
        assert!(tombstones.until.is_empty() && tombstones.by_end.is_empty());
    }
}
