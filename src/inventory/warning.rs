//! What an inventory may do and better would not.

use std::fmt;

use crate::endpoint::Scheme;
use crate::id::EndpointId;

/// Something in the inventory that is allowed and yet better done otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The endpoint, or the `id` of the entry that sessions are made from.
    pub endpoint: EndpointId,
    /// What is the matter.
    pub concern: Concern,
    /// The line in the file, counted from 1; `None` when it did not come from one.
    pub line: Option<usize>,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "endpoint {}: {}", self.endpoint, self.concern)
    }
}

/// What a [`Warning`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Concern {
    /// The password is written in the inventory itself.
    InlinePassword,
    /// Credentials are part of the URL.
    CredentialsInUrl,
    /// `socks5` resolves names at the worker, where others can see them; `socks5h` does not.
    Socks5ResolvesLocally,
    /// `socks4` resolves names at the worker, where others can see them; `socks4a` does not.
    Socks4ResolvesLocally,
}

impl Concern {
    const ALL: [Self; 4] = [
        Self::InlinePassword,
        Self::CredentialsInUrl,
        Self::Socks5ResolvesLocally,
        Self::Socks4ResolvesLocally,
    ];

    pub(super) fn of_scheme(scheme: Scheme) -> Option<Self> {
        match scheme {
            Scheme::Socks5 => Some(Self::Socks5ResolvesLocally),
            Scheme::Socks4 => Some(Self::Socks4ResolvesLocally),
            _ => None,
        }
    }
}

impl fmt::Display for Concern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InlinePassword => {
                "the password is written in the inventory; \
                 { env = \"NAME\" } or { file = \"path\" } keeps it out"
            }
            Self::CredentialsInUrl => {
                "credentials are in the url; `username` and `password` take them in plain"
            }
            Self::Socks5ResolvesLocally => {
                "socks5 resolves names at the worker; socks5h leaves that to the proxy"
            }
            Self::Socks4ResolvesLocally => {
                "socks4 resolves names at the worker; socks4a leaves that to the proxy"
            }
        })
    }
}

/// Logs what is new since the last load: one event for each concern, however many endpoints.
pub(super) fn log(now: &[Warning], before: &[Warning]) {
    let known: std::collections::HashSet<_> =
        before.iter().map(|warning| (&warning.endpoint, warning.concern)).collect();
    for concern in Concern::ALL {
        let mut fresh = now.iter().filter(|warning| {
            warning.concern == concern && !known.contains(&(&warning.endpoint, concern))
        });
        if let Some(first) = fresh.next() {
            let others = fresh.count();
            tracing::warn!(endpoint = %first.endpoint, line = first.line, others, "{concern}");
        }
    }
}
