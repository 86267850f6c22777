//! One member of a pool.

use crate::id::EndpointId;
use crate::secret::Token;
use crate::store::{Member, StandingOrder};
use crate::verdict::{QuarantineCode, Strike};

/// A member and all that is known of it, in two cache lines.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Slot {
    pub(super) id: EndpointId,
    /// Unlike the index, never used again.
    pub(super) serial: u64,
    /// Grows with the id: compares as the ids do, without a look at them.
    pub(super) label: u64,
    pub(super) weight: u32,
    pub(super) assignments: u64,
    pub(super) strikes: u32,
    /// The pool's last fence when the last strike was added.
    pub(super) struck_at: u64,
    pub(super) order: Option<StandingOrder>,
    /// An order to quarantine it when its lease ends, beside one to disable it.
    pub(super) late: Option<QuarantineCode>,
    /// The pool's last fence when it was last enabled.
    pub(super) enabled_at: u64,
    pub(super) place: Place,
}

/// The one place in which a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Ready(Rank),
    Cooling(Rank),
    Leased(Token),
    Disabled,
    Quarantined(QuarantineCode),
}

/// What a member is ordered by, and what decides between equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(pub(super) u64, pub(super) u64);

impl Slot {
    pub(super) fn new(member: &Member, assignments: u64) -> Self {
        Self {
            id: member.endpoint.clone(),
            serial: 0,
            label: 0,
            weight: member.weight,
            assignments,
            strikes: 0,
            struck_at: 0,
            order: None,
            late: None,
            enabled_at: 0,
            place: Place::Disabled,
        }
    }

    /// The rank by assignments for the weight, ties by id.
    ///
    /// It is (assignments + 1/2) / weight: plain assignments / weight grants an endpoint of
    /// weight 1 as early as one of weight 100, and leaves heavy endpoints behind by up to
    /// n * w / W. With the half (Webster's divisors) counts stay within one of the ideal, unless one
    /// endpoint outweighs many light ones.
    /// IEEE division rounds equal fractions alike, and unequal ones differ while counts are
    /// within [`MAX_ASSIGNMENTS`](crate::MAX_ASSIGNMENTS); positive floats order as their bits.
    pub(super) fn share(&self) -> Rank {
        let share = (self.assignments as f64 + 0.5) / f64::from(self.weight);
        Rank(share.to_bits(), self.label)
    }

    /// Applies a verdict's strike from the grant with this fence, `last` being the pool's last.
    pub(super) fn strike(&mut self, strike: Strike, fence: u64, last: u64) {
        match strike {
            Strike::Keep => {}
            // Holders at once in a shared pool fail at once: that is one failure.
            Strike::Add if self.struck_at < fence => {
                self.strikes = self.strikes.saturating_add(1);
                self.struck_at = last;
            }
            Strike::Reset if self.struck_at < fence => self.strikes = 0,
            Strike::Add | Strike::Reset => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(assignments: u64, weight: u32) -> Rank {
        let member = Member::new(EndpointId::new("a").unwrap()).with_weight(weight);
        Slot::new(&member, assignments).share()
    }

    #[test]
    fn equal_fractions_rank_alike_and_unequal_ones_do_not() {
        assert_eq!(share(0, 1), share(1, 3));
        assert_eq!(share(2, 5), share(12, 25));
        let many = crate::MAX_ASSIGNMENTS;
        assert!(share(many - 1, 1000) < share(many, 1000));
        assert!(share(many - 1, 999) > share(many, 1000));
    }

    #[test]
    fn a_strike_after_the_grant_outlives_its_success() {
        let mut slot = Slot::new(&Member::new(EndpointId::new("a").unwrap()), 0);
        slot.strike(Strike::Add, 1, 2);
        slot.strike(Strike::Reset, 2, 2);
        assert_eq!(slot.strikes, 1);
        slot.strike(Strike::Reset, 3, 3);
        assert_eq!(slot.strikes, 0);
    }
}
