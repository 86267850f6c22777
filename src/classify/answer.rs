//! What the head of a response says.

use http::StatusCode;

use super::Answer;
use super::marks::{Mark, mark};
use crate::outcome::Outcome;

pub(super) fn outcome(answer: &Answer<'_>) -> Outcome {
    match own_mark(answer) {
        Some(Mark::Credentials) => Outcome::CredentialsDoubted,
        Some(Mark::Denied) => Outcome::ProxyDenied,
        Some(Mark::Target) => Outcome::TargetUnreachable,
        Some(Mark::TargetTls) => Outcome::TargetTls,
        Some(Mark::Other) => Outcome::Unknown,
        None => unmarked(answer),
    }
}

fn unmarked(answer: &Answer<'_>) -> Outcome {
    match answer.status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Outcome::Throttled,
        // A gateway's words: the endpoint's or one in front of the site.
        StatusCode::INTERNAL_SERVER_ERROR
        | StatusCode::BAD_GATEWAY
        | StatusCode::GATEWAY_TIMEOUT
            if answer.route.forwards() =>
        {
            Outcome::Unknown
        }
        _ => Outcome::Success,
    }
}

/// What the endpoint may have said itself. Through a tunnel every answer is the site's.
pub(super) fn own_mark(answer: &Answer<'_>) -> Option<Mark> {
    match answer.status {
        _ if !answer.route.forwards() => None,
        // RFC 9110 section 15.5.8.
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Some(Mark::Credentials),
        status if status.is_client_error() || status.is_server_error() => {
            mark(status, answer.headers, answer.route.credentials)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::super::Route;
    use super::*;
    use crate::endpoint::Scheme;
    use crate::site::Site;

    const FORWARD: Route = Route::new(Scheme::Http, false);
    const TUNNEL: Route = Route::new(Scheme::Http, true);
    const SOCKS: Route = Route::new(Scheme::Socks5h, false);

    const SQUID: (&str, &str) = ("x-squid-error", "ERR_CONNECT_FAIL 111");
    const DENIED: (&str, &str) = ("x-squid-error", "ERR_ACCESS_DENIED 0");
    const TINY: (&str, &str) = ("server", "tinyproxy/1.11.1");
    const STATUS: (&str, &str) = ("proxy-status", "origin.test, edge; error=dns_timeout");
    const VIA: (&str, &str) = ("via", "1.1 squid.test (squid/5.7)");

    /// Answers as (status, header, over http, outcome) and what a tunnel makes of the same.
    type Row = (u16, Option<(&'static str, &'static str)>, Outcome, Outcome);

    const TABLE: &[Row] = &[
        (200, None, Outcome::Success, Outcome::Success),
        (200, Some(SQUID), Outcome::Success, Outcome::Success),
        (304, None, Outcome::Success, Outcome::Success),
        (401, None, Outcome::Success, Outcome::Success),
        (401, Some(TINY), Outcome::CredentialsDoubted, Outcome::Success),
        (403, None, Outcome::Success, Outcome::Success),
        (403, Some(TINY), Outcome::ProxyDenied, Outcome::Success),
        (403, Some(DENIED), Outcome::ProxyDenied, Outcome::Success),
        (403, Some(VIA), Outcome::Success, Outcome::Success),
        (404, None, Outcome::Success, Outcome::Success),
        (407, None, Outcome::CredentialsDoubted, Outcome::Success),
        (429, None, Outcome::Throttled, Outcome::Throttled),
        (429, Some(VIA), Outcome::Throttled, Outcome::Throttled),
        (500, None, Outcome::Unknown, Outcome::Success),
        (500, Some(TINY), Outcome::TargetUnreachable, Outcome::Success),
        (502, None, Outcome::Unknown, Outcome::Success),
        (502, Some(STATUS), Outcome::TargetUnreachable, Outcome::Success),
        (503, None, Outcome::Throttled, Outcome::Throttled),
        (503, Some(VIA), Outcome::Throttled, Outcome::Throttled),
        (503, Some(SQUID), Outcome::TargetUnreachable, Outcome::Throttled),
        (504, None, Outcome::Unknown, Outcome::Success),
        (504, Some(STATUS), Outcome::TargetUnreachable, Outcome::Success),
    ];

    #[test]
    fn an_answer_is_the_proxys_only_when_it_forwards_and_is_marked() {
        let site = Site::parse("a.test").unwrap();
        for (status, header, forwarded, tunnelled) in TABLE {
            let parse = |(name, value): &(&str, &str)| -> (http::HeaderName, http::HeaderValue) {
                (name.parse().unwrap(), value.parse().unwrap())
            };
            let headers: HeaderMap = header.iter().map(parse).collect();
            let status = StatusCode::from_u16(*status).unwrap();
            for (route, expected) in [(FORWARD, forwarded), (TUNNEL, tunnelled), (SOCKS, tunnelled)]
            {
                let route = route.with_credentials(true);
                let answer = Answer::new(status, &headers, route, &site);
                assert_eq!(outcome(&answer), *expected, "{status} {header:?} {route:?}");
                if status == StatusCode::SERVICE_UNAVAILABLE {
                    assert_eq!(answer.is_the_sites(), *expected == Outcome::Throttled);
                }
            }
        }
    }

    /// Whatever a site sends, over http or https: its answers take no endpoint out, and count
    /// none of them as a failure of the endpoint.
    #[test]
    fn no_answer_rests_a_verdict_against_the_endpoint_on_what_a_site_can_send() {
        let site = Site::parse("a.test").unwrap();
        for status in (200..600).filter_map(|status| StatusCode::from_u16(status).ok()) {
            for (name, value) in [SQUID, DENIED, TINY, STATUS, VIA] {
                let mut headers = HeaderMap::new();
                headers.insert(name, value.parse().unwrap());
                for route in [FORWARD, TUNNEL, SOCKS] {
                    let seen = outcome(&Answer::new(status, &headers, route, &site));
                    let harmful = [Outcome::CredentialsRefused, Outcome::ProxyUnreachable];
                    assert!(!harmful.contains(&seen), "{status} {name}");
                }
            }
        }
    }
}
