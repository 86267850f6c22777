//! What a probe is asked for, and what it tells.

use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;

use crate::id::{EndpointId, PoolName};
use crate::outcome::Outcome;
use crate::store::State;
use crate::verdict::QuarantineCode;

/// How an endpoint is probed. Without more a probe only looks.
#[derive(Debug, Clone)]
#[must_use]
pub struct ProbeOptions {
    pub(super) pool: Option<PoolName>,
    pub(super) timeout: Duration,
    pub(super) end_quarantine: bool,
    pub(super) quarantine: bool,
}

impl ProbeOptions {
    /// A look, of at most 10 s.
    pub const fn new() -> Self {
        let timeout = Duration::from_secs(10);
        Self { pool: None, timeout, end_quarantine: false, quarantine: false }
    }

    /// An endpoint of this pool. Default: the client's first.
    pub fn pool(mut self, pool: PoolName) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Time for lease, request and body together. Default 10 s.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether a probe that [passed](ProbeReport::passed) ends a quarantine. Default no.
    ///
    /// It ends neither one by an administrator's word
    /// ([`QuarantineCode::Administrator`](crate::QuarantineCode::Administrator)) nor an order to
    /// disable or drain.
    pub const fn end_quarantine(mut self, end: bool) -> Self {
        self.end_quarantine = end;
        self
    }

    /// Whether a probe that [failed](ProbeReport::failed) starts a quarantine. Default no.
    pub const fn quarantine(mut self, start: bool) -> Self {
        self.quarantine = start;
        self
    }
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// What a probe has seen and done.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProbeReport {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Where it was before.
    pub state: State,
    /// What became of the exchange.
    pub outcome: Outcome,
    /// The answer's status, if there was an answer.
    pub status: Option<StatusCode>,
    /// Time to the answer's head, or to the failure, without the wait for a lease or the site's
    /// budget.
    pub latency: Duration,
    /// The address that the target saw, if its answer names one: an IP literal as the whole body,
    /// or a JSON string `ip` or `origin`, of whose list the last one counts.
    pub exit_address: Option<IpAddr>,
    /// Whether TLS with an https target went well; `None` when it did not come to that.
    pub tls: Option<bool>,
    /// What was ordered because of it.
    pub change: Option<ProbeChange>,
}

/// What was ordered because of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProbeChange {
    /// Its quarantine was ended.
    QuarantineEnded,
    /// It was put into quarantine, a leased one when its lease ends.
    Quarantined,
}

impl ProbeReport {
    /// Whether the endpoint brought the target's answer, and that one was 2xx.
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Success && self.status.is_some_and(|status| status.is_success())
    }

    /// Whether it could not be reached or refused its credentials. A probe that neither passed nor
    /// failed says nothing certain of the endpoint.
    pub fn failed(&self) -> bool {
        self.outcome.is_against() && !self.outcome.is_weak()
    }

    /// What is to be ordered because of it, asked for or not: for those who probe many endpoints,
    /// and give one order for all when they have seen how many failed.
    ///
    /// A probe that [passed](Self::passed) ends a quarantine, but for one by an administrator's
    /// word; one that [failed](Self::failed) starts one where there is none.
    pub fn due(&self) -> Option<ProbeChange> {
        match self.state {
            State::Quarantined(QuarantineCode::Administrator) => None,
            State::Quarantined(_) => self.passed().then_some(ProbeChange::QuarantineEnded),
            _ => self.failed().then_some(ProbeChange::Quarantined),
        }
    }
}

/// The address that a body names.
pub(super) fn address(body: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(body).ok()?;
    text.trim().parse().ok().or_else(|| field(text, "\"ip\"")).or_else(|| field(text, "\"origin\""))
}

/// The last address in the first string field of this quoted name.
fn field(text: &str, name: &str) -> Option<IpAddr> {
    let (_, rest) = text.split_once(name)?;
    let value = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    value.split_once('"')?.0.rsplit(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_where_a_service_puts_it() {
        for (body, expected) in [
            ("203.0.113.7\n", Some("203.0.113.7")),
            ("2001:db8::1", Some("2001:db8::1")),
            (r#"{"ip":"203.0.113.7"}"#, Some("203.0.113.7")),
            ("{\n \"origin\" : \"198.51.100.1, 203.0.113.7\"\n}", Some("203.0.113.7")),
            (r#"{"country":"VN","ip":"2001:db8::1"}"#, Some("2001:db8::1")),
            ("<p>203.0.113.7", None),
            (r#"{"ip":7}"#, None),
            (r#"{"ip":"none""#, None),
            ("", None),
        ] {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(address(body.as_bytes()), expected, "{body}");
        }
        assert_eq!(address(b"\xff"), None);
    }
}
