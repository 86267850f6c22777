//! What is done about an outcome.

mod evidence;
mod judge;
mod steps;

use std::time::Duration;

pub use evidence::{Evidence, Others};
pub use judge::{DefaultJudge, Judge};
pub use steps::Steps;

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
