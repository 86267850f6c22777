//! The marks by which a forwarding proxy's own answers are told from the site's.
//!
//! A site can send all of them.

use http::header::SERVER;
use http::{HeaderMap, StatusCode};
use sfv::{List, ListEntry, Parser};

/// What a marked answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Credentials are asked for.
    Credentials,
    /// The proxy's rules forbid the target.
    Denied,
    /// The target could not be reached, or did not answer.
    Target,
    /// TLS with the target failed.
    TargetTls,
    /// The answer is a proxy's own, for another reason.
    Other,
}

/// The mark of an error answer, if it bears one.
pub(super) fn mark(status: StatusCode, headers: &HeaderMap, credentials: bool) -> Option<Mark> {
    proxy_status(headers)
        .or_else(|| squid(headers))
        .or_else(|| tinyproxy(status, headers, credentials))
}

/// RFC 9209: the last member of the list is the nearest proxy, and section 2.1.1 says that it
/// made the answer itself when it names an error.
fn proxy_status(headers: &HeaderMap) -> Option<Mark> {
    let last = headers.get_all("proxy-status").iter().next_back()?;
    let list: List = Parser::new(last.as_bytes()).parse().ok()?;
    let parameters = match list.last()? {
        ListEntry::Item(item) => &item.params,
        ListEntry::InnerList(list) => &list.params,
    };
    Some(match parameters.get("error")?.as_token()?.as_str() {
        "dns_timeout"
        | "dns_error"
        | "destination_not_found"
        | "destination_unavailable"
        | "destination_ip_unroutable"
        | "connection_refused"
        | "connection_terminated"
        | "connection_timeout"
        | "connection_read_timeout"
        | "connection_write_timeout"
        | "http_response_incomplete"
        | "http_response_timeout" => Mark::Target,
        "tls_protocol_error" | "tls_certificate_error" | "tls_alert_received" => Mark::TargetTls,
        "destination_ip_prohibited" | "http_request_denied" => Mark::Denied,
        _ => Mark::Other,
    })
}

/// Squid names its error pages.
fn squid(headers: &HeaderMap) -> Option<Mark> {
    let page = headers.get("x-squid-error")?.to_str().ok()?.split(' ').next()?;
    Some(match page {
        "ERR_CONNECT_FAIL"
        | "ERR_DNS_FAIL"
        | "ERR_CANNOT_FORWARD"
        | "ERR_READ_TIMEOUT"
        | "ERR_READ_ERROR"
        | "ERR_WRITE_ERROR"
        | "ERR_LIFETIME_EXP"
        | "ERR_ZERO_SIZE_OBJECT" => Mark::Target,
        "ERR_SECURE_CONNECT_FAIL" => Mark::TargetTls,
        "ERR_ACCESS_DENIED" | "ERR_FORWARDING_DENIED" => Mark::Denied,
        _ => Mark::Other,
    })
}

/// tinyproxy names itself as the server of its own answers and of no others. It answers wrong
/// credentials with 401 and missing ones with 407.
fn tinyproxy(status: StatusCode, headers: &HeaderMap, credentials: bool) -> Option<Mark> {
    if !headers.get(SERVER)?.as_bytes().starts_with(b"tinyproxy") {
        return None;
    }
    Some(match status {
        StatusCode::UNAUTHORIZED if credentials => Mark::Credentials,
        StatusCode::FORBIDDEN => Mark::Denied,
        StatusCode::INTERNAL_SERVER_ERROR
        | StatusCode::BAD_GATEWAY
        | StatusCode::GATEWAY_TIMEOUT => Mark::Target,
        _ => Mark::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(name: &'static str, value: &str) -> Option<Mark> {
        let headers =
            HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())]);
        mark(StatusCode::BAD_GATEWAY, &headers, true)
    }

    #[test]
    fn the_nearest_proxys_error_counts_and_no_other() {
        let status = |value| marked("proxy-status", value);
        assert_eq!(status("p; error=connection_refused"), Some(Mark::Target));
        assert_eq!(
            status("cdn; error=dns_error, \"near by\"; error=http_request_denied"),
            Some(Mark::Denied)
        );
        assert_eq!(status("p; error=tls_certificate_error; details=\"x\""), Some(Mark::TargetTls));
        assert_eq!(status("p; error=proxy_internal_error"), Some(Mark::Other));
        assert_eq!(status("cdn; error=dns_error, p"), None, "p passed it on");
        assert_eq!(status("p; received-status=502"), None);
        for broken in
            ["", "p; error=", "p; error=\"connection_refused\"", "p;;error=dns_error", "\u{7f}"]
        {
            let headers = HeaderMap::from_iter(
                http::HeaderValue::from_bytes(broken.as_bytes())
                    .ok()
                    .map(|value| (http::HeaderName::from_static("proxy-status"), value)),
            );
            assert_eq!(mark(StatusCode::BAD_GATEWAY, &headers, true), None, "{broken}");
        }
    }

    #[test]
    fn the_marks_of_known_proxies() {
        assert_eq!(marked("x-squid-error", "ERR_DNS_FAIL 0"), Some(Mark::Target));
        assert_eq!(marked("x-squid-error", "ERR_SECURE_CONNECT_FAIL 71"), Some(Mark::TargetTls));
        assert_eq!(marked("x-squid-error", "ERR_INVALID_URL 0"), Some(Mark::Other));
        assert_eq!(marked("server", "tinyproxy/1.11.1"), Some(Mark::Target));
        assert_eq!(marked("server", "nginx"), None);
        assert_eq!(marked("via", "1.1 tinyproxy (tinyproxy/1.11.1)"), None);
    }

    #[test]
    fn a_401_of_tinyproxys_is_about_credentials_that_were_sent() {
        let headers = HeaderMap::from_iter([(SERVER, "tinyproxy/1.11.1".parse().unwrap())]);
        assert_eq!(mark(StatusCode::UNAUTHORIZED, &headers, true), Some(Mark::Credentials));
        assert_eq!(mark(StatusCode::UNAUTHORIZED, &headers, false), Some(Mark::Other));
    }
}
