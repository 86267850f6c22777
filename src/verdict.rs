//! What is done about an outcome.

use std::time::Duration;

use crate::outcome::Outcome;

/// What a release asks the pool to do with the endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Verdict {
    /// Time before the endpoint may be leased again. Default zero.
    pub cooldown: Duration,
    /// Time for which the endpoint is not leased for this site. Default none.
    pub shun: Option<Duration>,
    /// Takes the endpoint out until an administrator enables it. Default none.
    pub quarantine: Option<QuarantineCode>,
    /// What happens to the count of failures in a row. Default: it stays.
    pub strike: Strike,
}

impl Verdict {
    /// The endpoint rests this long.
    pub fn cooldown(cooldown: Duration) -> Self {
        Self { cooldown, ..Self::default() }
    }

    /// The endpoint goes to quarantine.
    pub fn quarantine(code: QuarantineCode) -> Self {
        Self { quarantine: Some(code), ..Self::default() }
    }

    /// With this effect on the strikes.
    pub fn with_strike(mut self, strike: Strike) -> Self {
        self.strike = strike;
        self
    }

    /// With a rest of this (endpoint, site) pair.
    pub fn with_shun(mut self, shun: Duration) -> Self {
        self.shun = Some(shun);
        self
    }
}

/// What happens to the count of failures in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Strike {
    /// It stays as it is.
    #[default]
    Keep,
    /// One more, unless a strike was added after this lease was granted: holders at once in a
    /// shared pool fail at once, and that is one failure.
    Add,
    /// Back to zero, unless a strike was added after this lease was granted.
    Reset,
}

/// Why an endpoint is in quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum QuarantineCode {
    /// It refused its user name or password.
    Credentials,
    /// A probe under the administrator's role failed.
    Probe,
    /// An administrator's word.
    Administrator,
}

impl QuarantineCode {
    /// The word for logs, metrics and stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::Probe => "probe",
            Self::Administrator => "administrator",
        }
    }
}

/// Turns what was seen into what is done.
///
/// ```
/// use std::time::Duration;
/// use reqwest_lease::{Evidence, Judge, Outcome, Verdict};
///
/// /// Rests each endpoint for a second after use.
/// struct Gentle;
///
/// impl Judge for Gentle {
///     fn judge(&self, _: Evidence) -> Verdict {
///         Verdict::cooldown(Duration::from_secs(1))
///     }
/// }
///
/// let verdict = Gentle.judge(Evidence::new(Outcome::Success, 0));
/// assert_eq!(verdict.cooldown, Duration::from_secs(1));
/// ```
pub trait Judge: Send + Sync + 'static {
    /// The verdict on one lease.
    fn judge(&self, evidence: Evidence) -> Verdict;
}

/// What a [`Judge`] goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// What was seen.
    pub outcome: Outcome,
    /// Failures in a row of this endpoint before this one.
    pub strikes: u32,
}

impl Evidence {
    /// Evidence of one lease.
    pub const fn new(outcome: Outcome, strikes: u32) -> Self {
        Self { outcome, strikes }
    }
}

/// The verdicts that hold unless you say otherwise.
///
/// | outcome | verdict |
/// |---|---|
/// | success | cooldown after use, strikes reset |
/// | proxy unreachable, credentials doubted | cooldown doubling with strikes, 1 s to 10 min, up to a quarter longer at random; one strike |
/// | credentials refused | quarantine |
/// | all others | cooldown after use |
#[derive(Debug, Clone)]
pub struct DefaultJudge {
    after_use: Duration,
}

impl DefaultJudge {
    /// With this cooldown after use. Default zero: a clean release is ready at once.
    pub const fn new(after_use: Duration) -> Self {
        Self { after_use }
    }
}

impl Default for DefaultJudge {
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

impl Judge for DefaultJudge {
    fn judge(&self, evidence: Evidence) -> Verdict {
        match evidence.outcome {
            Outcome::Success => Verdict::cooldown(self.after_use).with_strike(Strike::Reset),
            Outcome::ProxyUnreachable | Outcome::CredentialsDoubted => {
                Verdict::cooldown(jittered(step(evidence.strikes))).with_strike(Strike::Add)
            }
            Outcome::CredentialsRefused => Verdict::quarantine(QuarantineCode::Credentials),
            Outcome::Unused => Verdict::default(),
            _ => Verdict::cooldown(self.after_use),
        }
    }
}

const FIRST_STEP: Duration = Duration::from_secs(1);
const LAST_STEP: Duration = Duration::from_secs(600);

fn step(strikes: u32) -> Duration {
    FIRST_STEP.saturating_mul(1_u32.checked_shl(strikes).unwrap_or(u32::MAX)).min(LAST_STEP)
}

/// Up to a quarter longer, so that endpoints that failed together do not come back together.
fn jittered(step: Duration) -> Duration {
    let mut byte = [0];
    // A missing random source costs only the spread.
    let _ = getrandom::fill(&mut byte);
    step + step * u32::from(byte[0]) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cooldown_doubles_from_one_second_to_ten_minutes() {
        let seconds: Vec<_> = (0..12).map(|strikes| step(strikes).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(step(u32::MAX), LAST_STEP);
    }

    #[test]
    fn jitter_only_lengthens_and_by_at_most_a_quarter() {
        for _ in 0..100 {
            let rest = jittered(FIRST_STEP);
            assert!(rest >= FIRST_STEP && rest <= FIRST_STEP * 5 / 4, "{rest:?}");
        }
    }

    #[test]
    fn refused_credentials_go_to_quarantine_and_nothing_else_does() {
        let judge = DefaultJudge::default();
        for outcome in [
            Outcome::Success,
            Outcome::ProxyUnreachable,
            Outcome::Unknown,
            Outcome::Cancelled,
            Outcome::Unused,
            Outcome::Expired,
        ] {
            assert_eq!(judge.judge(Evidence::new(outcome, 50)).quarantine, None, "{outcome}");
        }
        let refused = judge.judge(Evidence::new(Outcome::CredentialsRefused, 0));
        assert_eq!(refused.quarantine, Some(QuarantineCode::Credentials));
    }

    #[test]
    fn an_unknown_end_costs_the_endpoint_nothing() {
        let verdict = DefaultJudge::default().judge(Evidence::new(Outcome::Unknown, 3));
        assert_eq!(verdict, Verdict::default());
    }
}
