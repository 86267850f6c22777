//! What was seen at the end of a lease.

use std::fmt;

use crate::id::EndpointId;

/// What became of an exchange through an endpoint: facts, not yet a judgement.
///
/// The judgement is a [`Verdict`](crate::Verdict). What cannot be told with certainty is
/// [`Unknown`](Self::Unknown). A site can say whatever a proxy can: over plain http its 407 may be
/// taken for the endpoint's, which is why it is doubted first
/// ([`CredentialsDoubted`](Self::CredentialsDoubted)).
///
/// ```
/// use reqwest_lease::Outcome;
///
/// for outcome in Outcome::ALL {
///     println!("{outcome}: {}; {}", outcome.meaning(), outcome.default_verdict());
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The exchange went to its end; the endpoint did its work.
    ///
    /// That is any answer of the site with a whole body, a 404 too, but not those that have
    /// outcomes of their own.
    Success,
    /// The endpoint could not be reached: its name, its port, its TLS, a dial that timed out, or
    /// what it said was not its protocol.
    ProxyUnreachable,
    /// The endpoint refused its user name or password: a 407 to CONNECT, a refused SOCKS login,
    /// or a forwarded request whose refusal can only be the endpoint's.
    CredentialsRefused,
    /// A refusal of credentials that may be the endpoint's or the site's own.
    CredentialsDoubted,
    /// The endpoint's own rules forbid the target: SOCKS reply 2, or a 403 to a forwarded request
    /// with the marks of a proxy.
    ProxyDenied,
    /// The endpoint refused a tunnel without telling why: any answer to CONNECT but 200 and 407,
    /// or SOCKS reply 1.
    TunnelRefused,
    /// The endpoint hung up instead of answering CONNECT or a SOCKS request, so the target has seen
    /// nothing. Many do so when they cannot reach the target.
    TunnelCut,
    /// The endpoint told that it could not reach the target: refused, name unknown, timed out.
    TargetUnreachable,
    /// TLS with the target failed: a certificate that is not trusted, a version nobody shares.
    TargetTls,
    /// The site asked for fewer requests: 429, or 503 without the marks of a proxy (RFC 6585
    /// section 4, RFC 9110 section 15.6.4).
    Throttled,
    /// An answer that the classifier takes for a ban of the endpoint by the site. The default
    /// classifier takes none for it before it is told which.
    Banned,
    /// The response's body, or its connection, broke off in the middle.
    BodyCut,
    /// A time limit was up while the exchange waited for an answer: the handshake through the
    /// endpoint, the response's head, or more of its body. A dial that is certainly the
    /// endpoint's is `ProxyUnreachable`.
    Stalled,
    /// The caller's own part failed: its request's stream, or a request that cannot be sent.
    LocalFault,
    /// The caller gave up: the request's future or the response was dropped.
    Cancelled,
    /// The lease was given back without having been used.
    Unused,
    /// The lease ran out while the exchange went on.
    Expired,
    /// The exchange failed in a way that says nothing certain about anybody.
    Unknown,
}

impl Outcome {
    /// All of them, as tables list them.
    pub const ALL: &'static [Self] = &[
        Self::Success,
        Self::ProxyUnreachable,
        Self::CredentialsRefused,
        Self::CredentialsDoubted,
        Self::ProxyDenied,
        Self::TunnelRefused,
        Self::TunnelCut,
        Self::TargetUnreachable,
        Self::TargetTls,
        Self::Throttled,
        Self::Banned,
        Self::BodyCut,
        Self::Stalled,
        Self::LocalFault,
        Self::Cancelled,
        Self::Unused,
        Self::Expired,
        Self::Unknown,
    ];

    /// The word for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// What was seen, in a few words.
    pub const fn meaning(self) -> &'static str {
        self.row().1
    }

    /// What [`DefaultJudge`](crate::DefaultJudge) does about it, in a few words.
    pub const fn default_verdict(self) -> &'static str {
        self.row().2
    }

    /// Whether it may as well be the site's doing as the endpoint's, so that one of it proves
    /// nothing: neither strikes nor rests of the whole endpoint follow from one site's word.
    ///
    /// [Brake and floor](crate::Guard) are for what is weak.
    pub const fn is_weak(self) -> bool {
        matches!(
            self,
            Self::ProxyDenied
                | Self::TunnelRefused
                | Self::TunnelCut
                | Self::BodyCut
                | Self::Stalled
                | Self::Unknown
        )
    }

    /// Whether it is a failure that may be the endpoint's, weak or not: what the brake counts.
    pub(crate) const fn is_against(self) -> bool {
        self.is_weak()
            || matches!(
                self,
                Self::ProxyUnreachable | Self::CredentialsRefused | Self::CredentialsDoubted
            )
    }

    /// The one table: word, meaning, default verdict. The README's is checked against it.
    const fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Success => {
                ("success", "the exchange went to its end", "cooldown after use; strikes reset")
            }
            Self::ProxyUnreachable => {
                ("proxy_unreachable", "the endpoint could not be reached", RESTS)
            }
            Self::CredentialsRefused => (
                "credentials_refused",
                "the endpoint refused its user name or password",
                "quarantine until an administrator enables it",
            ),
            Self::CredentialsDoubted => (
                "credentials_doubted",
                "refused credentials, by the endpoint or by the site itself",
                RESTS,
            ),
            Self::ProxyDenied => {
                ("proxy_denied", "the endpoint's own rules forbid the target", UNTOLD)
            }
            Self::TunnelRefused => {
                ("tunnel_refused", "the endpoint refused a tunnel and told no cause", UNTOLD)
            }
            Self::TunnelCut => {
                ("tunnel_cut", "the endpoint hung up instead of opening a tunnel", WEAK)
            }
            Self::TargetUnreachable => (
                "target_unreachable",
                "the endpoint told that it could not reach the target",
                AFTER_USE,
            ),
            Self::TargetTls => ("target_tls", "TLS with the target failed", AFTER_USE),
            Self::Throttled => {
                ("throttled", "the site asked for fewer requests (429, 503)", AFTER_USE)
            }
            Self::Banned => ("banned", "the site's answer bore a mark of a ban", BANNED),
            Self::BodyCut => ("body_cut", "the body broke off in the middle", WEAK),
            Self::Stalled => ("stalled", "a time limit was up in handshake, head or body", WEAK),
            Self::LocalFault => ("local_fault", "the caller's own part failed", AFTER_USE),
            Self::Cancelled => ("cancelled", "the caller gave up", AFTER_USE),
            Self::Unused => ("unused", "the lease was not used", "ready at once"),
            Self::Expired => ("expired", "the lease ran out while the exchange went on", AFTER_USE),
            Self::Unknown => ("unknown", "a failure that says nothing certain", MILD),
        }
    }
}

const AFTER_USE: &str = "cooldown after use";
const RESTS: &str = "one strike; rests 1 s, doubling with strikes to 10 min";
const UNTOLD: &str = "kept from the site for 1 min; if others reach it, cooldown of 1 s to 30 s and \
                      a strike at repetition";
const WEAK: &str = "kept from the site for 1 min; cooldown of 1 s to 30 s, a strike at repetition";
const MILD: &str = "cooldown of 1 s if another site saw failures too";
const BANNED: &str = "kept from the site for 10 min";

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One endpoint that was tried, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub(crate) endpoint: EndpointId,
    pub(crate) outcome: Outcome,
}

impl Attempt {
    /// The endpoint.
    pub fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }

    /// What was seen.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.endpoint, self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_outcome_is_listed_once_with_a_word_of_its_own() {
        let words: HashSet<_> = Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
        assert_eq!(words.len(), Outcome::ALL.len());
        for outcome in Outcome::ALL {
            // The compiler asks for a line here when there is a new one.
            match outcome {
                Outcome::Success
                | Outcome::ProxyUnreachable
                | Outcome::CredentialsRefused
                | Outcome::CredentialsDoubted
                | Outcome::ProxyDenied
                | Outcome::TunnelRefused
                | Outcome::TunnelCut
                | Outcome::TargetUnreachable
                | Outcome::TargetTls
                | Outcome::Throttled
                | Outcome::Banned
                | Outcome::BodyCut
                | Outcome::Stalled
                | Outcome::LocalFault
                | Outcome::Cancelled
                | Outcome::Unused
                | Outcome::Expired
                | Outcome::Unknown => {}
            }
        }
    }
}
