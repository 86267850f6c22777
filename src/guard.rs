//! What keeps a pool from being emptied by evidence that may be wrong.

use std::time::Duration;

/// When the trouble is hardly the endpoints', and how many of them rest at most.
///
/// Both go by what this process has seen: workers that share a pool brake each for itself, and the
/// floor holds for the rests that each of them gives.
///
/// - The **brake** goes on when more than a share of the pool's endpoints, and at least three, have
///   failed within a time without a success since. Then the trouble is taken to be ours or the
///   site's: nothing costs a strike but doubted credentials, and what is
///   [weak](crate::Outcome::is_weak) costs nothing at all. It is told by
///   [`Pool::is_braked`](crate::Pool::is_braked), counted and logged once, and goes off when no
///   more than half of that share fails.
/// - The **floor** is a share of the endpoints, and at least one, that weak evidence never lets
///   rest all at once; the same holds for the endpoints it keeps from one site.
///
/// ```
/// use std::time::Duration;
/// use reqwest_lease::Guard;
///
/// let guard = Guard::new().brake_above(0.3).within(Duration::from_secs(120)).floor(0.8);
/// assert_ne!(guard, Guard::new());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct Guard {
    pub(crate) brake_above: f64,
    pub(crate) within: Duration,
    pub(crate) floor: f64,
}

impl Guard {
    /// Brakes above half of the endpoints within a minute, with a floor of half.
    pub const fn new() -> Self {
        Self { brake_above: 0.5, within: Duration::from_secs(60), floor: 0.5 }
    }

    /// No brake and no floor: every verdict is carried out.
    pub const fn off() -> Self {
        Self { brake_above: 1.0, floor: 0.0, ..Self::new() }
    }

    /// Share of the endpoints above which the brake goes on, 0 to 1. Default 0.5; 1 is never.
    pub const fn brake_above(mut self, share: f64) -> Self {
        self.brake_above = share;
        self
    }

    /// How long a failure counts, and how long others' word on a site does. Default 1 min.
    pub const fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// Share of the endpoints that weak evidence leaves alone, 0 to 1. Default 0.5; 0 is no floor.
    pub const fn floor(mut self, share: f64) -> Self {
        self.floor = share;
        self
    }

    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        match (is_share(self.brake_above), is_share(self.floor), self.within.is_zero()) {
            (false, _, _) => Some("the guard's brake is no share"),
            (_, false, _) => Some("the guard's floor is no share"),
            (_, _, true) => Some("the guard's time is zero"),
            _ => None,
        }
    }

    /// Whether the brake is on when so many fail; one that is on stays so for longer.
    pub(crate) fn brakes(&self, failing: usize, members: usize, is_on: bool) -> bool {
        let most = share(self.brake_above, members);
        match is_on {
            true => failing as f64 > most / 2.0,
            // After a reload more may fail than there are members.
            false => self.brake_above < 1.0 && failing >= FEW && failing as f64 > most,
        }
    }

    /// How many endpoints may rest at once by weak evidence.
    pub(crate) fn most_resting(&self, members: usize) -> usize {
        match self.floor > 0.0 {
            true => members.saturating_sub((share(self.floor, members).ceil() as usize).max(1)),
            false => usize::MAX,
        }
    }
}

impl Default for Guard {
    fn default() -> Self {
        Self::new()
    }
}

/// Fewer endpoints than these may well fail by chance.
const FEW: usize = 3;

fn share(share: f64, members: usize) -> f64 {
    share * members as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brake_goes_on_above_half_and_off_at_a_quarter() {
        let guard = Guard::new();
        let on = |failing| guard.brakes(failing, 10, false);
        assert_eq!([5, 6].map(on), [false, true]);
        let stays = |failing| guard.brakes(failing, 10, true);
        assert_eq!([2, 3].map(stays), [false, true]);
        assert!(!guard.brakes(2, 2, false), "by chance, perhaps");
        assert!(guard.brakes(3, 3, false));
        assert!(!Guard::off().brakes(10, 10, false));
        assert!(!Guard::off().brakes(10, 3, false), "also of members that a reload took away");
    }

    #[test]
    fn the_floor_leaves_at_least_one() {
        let most = |members| Guard::new().most_resting(members);
        assert_eq!([0, 1, 2, 3, 10, 11].map(most), [0, 0, 1, 1, 5, 5]);
        assert_eq!(Guard::new().floor(0.01).most_resting(10), 9);
        assert_eq!(Guard::new().floor(1.0).most_resting(10), 0);
        assert!(Guard::off().most_resting(3) >= 10, "also of members that a reload took away");
    }

    #[test]
    fn what_is_no_share_is_told() {
        assert_eq!(Guard::new().fault(), None);
        assert!(Guard::new().floor(f64::NAN).fault().is_some());
        assert!(Guard::new().brake_above(1.5).fault().is_some());
        assert!(Guard::new().within(Duration::ZERO).fault().is_some());
    }
}
