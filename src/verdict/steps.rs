//! How long an endpoint rests, by its failures in a row.

use std::borrow::Cow;
use std::time::Duration;

/// A table of rests: the first for an endpoint without strikes, the last for all beyond its end.
///
/// ```
/// use std::time::Duration;
/// use reqwest_lease::Steps;
///
/// let steps = Steps::doubling(Duration::from_secs(1), Duration::from_secs(10));
/// let seconds: Vec<_> = (0..6).map(|strikes| steps.at(strikes).as_secs()).collect();
/// assert_eq!(seconds, [1, 2, 4, 8, 10, 10]);
///
/// let steps = Steps::new([Duration::from_secs(5), Duration::from_secs(60)]);
/// assert_eq!(steps.at(7), Duration::from_secs(60));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps(Cow<'static, [Duration]>);

impl Steps {
    /// These rests; without any there is none.
    pub fn new(rests: impl Into<Vec<Duration>>) -> Self {
        Self(Cow::Owned(rests.into()))
    }

    /// Twice as long with each strike, from the first to the last.
    pub fn doubling(first: Duration, last: Duration) -> Self {
        let doubled = |rest: &Duration| Some(rest.saturating_mul(2));
        let below = |rest: &Duration| *rest < last && !rest.is_zero();
        let rests = std::iter::successors(Some(first), doubled).take_while(below);
        Self(rests.chain([last]).collect())
    }

    /// The rest of an endpoint with so many strikes.
    pub fn at(&self, strikes: u32) -> Duration {
        let nth = usize::try_from(strikes).unwrap_or(usize::MAX).min(self.0.len().max(1) - 1);
        self.0.get(nth).copied().unwrap_or_default()
    }

    /// The same, up to a quarter longer, so that endpoints that failed together do not come back
    /// together.
    pub(super) fn jittered(&self, strikes: u32) -> Duration {
        let rest = self.at(strikes);
        let mut byte = [0];
        // A missing random source costs only the spread.
        let _ = getrandom::fill(&mut byte);
        rest.saturating_add(rest / 1024 * u32::from(byte[0]))
    }

    /// 1 s to 10 min.
    pub(super) const fn long() -> Self {
        Self(Cow::Borrowed(LONG))
    }

    /// 1 s to 30 s.
    pub(super) const fn mild() -> Self {
        Self(Cow::Borrowed(MILD))
    }
}

const fn seconds<const N: usize>(seconds: [u64; N]) -> [Duration; N] {
    let mut rests = [Duration::ZERO; N];
    let mut nth = 0;
    while nth < N {
        rests[nth] = Duration::from_secs(seconds[nth]);
        nth += 1;
    }
    rests
}

const LONG: &[Duration] = &seconds([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600]);
const MILD: &[Duration] = &seconds([1, 2, 4, 8, 16, 30]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_steps_double() {
        let doubling = |last| Steps::doubling(Duration::from_secs(1), Duration::from_secs(last));
        assert_eq!(Steps::long(), doubling(600));
        assert_eq!(Steps::mild(), doubling(30));
        assert_eq!(Steps::long().at(u32::MAX), Duration::from_secs(600));
    }

    #[test]
    fn odd_tables_have_an_answer_too() {
        assert_eq!(Steps::new([]).at(3), Duration::ZERO);
        assert_eq!(Steps::doubling(Duration::ZERO, Duration::MAX).at(0), Duration::MAX);
        assert_eq!(Steps::doubling(Duration::MAX, Duration::ZERO).at(9), Duration::ZERO);
        assert_eq!(Steps::new([Duration::MAX]).jittered(0), Duration::MAX);
    }

    #[test]
    fn jitter_only_lengthens_and_by_at_most_a_quarter() {
        for _ in 0..100 {
            let (rest, first) = (Steps::long().jittered(0), Duration::from_secs(1));
            assert!(rest >= first && rest <= first * 5 / 4, "{rest:?}");
        }
    }
}
