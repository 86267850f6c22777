//! What was seen at the end of a lease.

use std::fmt;

/// What became of an exchange through an endpoint: facts, not yet a judgement.
///
/// The judgement is a [`Verdict`](crate::Verdict).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The exchange went to its end; the endpoint did its work.
    Success,
    /// The endpoint could not be reached, or broke off before the target could see anything.
    ProxyUnreachable,
    /// The endpoint refused its user name or password.
    CredentialsRefused,
    /// A 407 that may be the endpoint's or the site's own.
    CredentialsDoubted,
    /// The exchange failed in a way that says nothing certain about the endpoint.
    Unclear,
    /// The caller gave up, or the caller's own part failed.
    Cancelled,
    /// The lease was given back without having been used.
    Unused,
    /// The lease ran out while the exchange went on.
    Expired,
}

impl Outcome {
    /// The word for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ProxyUnreachable => "proxy_unreachable",
            Self::CredentialsRefused => "credentials_refused",
            Self::CredentialsDoubted => "credentials_doubted",
            Self::Unclear => "unclear",
            Self::Cancelled => "cancelled",
            Self::Unused => "unused",
            Self::Expired => "expired",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
