//! Through proxies that fail in one way each.

use reqwest_lease::Outcome::{self, *};

use super::scene::{LOGIN, Target, Targets, Watched};
use crate::support::fault::{Fault, FaultProxy};
use crate::support::socks_fault::{SocksFault, SocksFaultProxy};
use Fault::{BadGateway, Closes, DiesAfter, Drops, RefusesCredentials, Says, Stalls, Tunnels};

/// An HTTP proxy's fault, and the outcomes over http and over https.
pub(super) const CASES: &[(Fault, Outcome, Outcome)] = &[
    // It took the connection; whether it took the request cannot be seen.
    (Closes, Unknown, TunnelCut),
    (Drops, Unknown, TunnelCut),
    (Stalls, Stalled, Stalled),
    (RefusesCredentials, CredentialsDoubted, CredentialsRefused),
    (BadGateway, Unknown, TunnelRefused),
    (DiesAfter(100), BodyCut, Unknown),
    (Says("HTTP/1.1 204 No Content\r\n\r\n"), Success, TunnelRefused),
    (Says("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), Success, TunnelRefused),
    (Says("HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n"), Throttled, TunnelRefused),
    (Says("HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n"), Throttled, TunnelRefused),
    (Says("HTTP/1.1 504 Timeout\r\nContent-Length: 0\r\n\r\n"), Unknown, TunnelRefused),
    (
        Says("HTTP/1.1 502 Bad\r\nProxy-Status: p; error=dns_error\r\nContent-Length: 0\r\n\r\n"),
        TargetUnreachable,
        TunnelRefused,
    ),
    (
        Says(
            "HTTP/1.1 502 Bad\r\nProxy-Status: p; error=tls_certificate_error\r\n\
             Content-Length: 0\r\n\r\n",
        ),
        TargetTls,
        TunnelRefused,
    ),
    (
        Says(
            "HTTP/1.1 403 No\r\nProxy-Status: p; error=http_request_denied\r\n\
             Content-Length: 0\r\n\r\n",
        ),
        ProxyDenied,
        TunnelRefused,
    ),
    (
        Says(
            "HTTP/1.1 500 Oh\r\nProxy-Status: p; error=proxy_internal_error\r\n\
             Content-Length: 0\r\n\r\n",
        ),
        Unknown,
        TunnelRefused,
    ),
    (
        Says("HTTP/1.1 502 Bad\r\nVia: 1.1 squid\r\nContent-Length: 0\r\n\r\n"),
        Unknown,
        TunnelRefused,
    ),
    (Says("no HTTP at all\r\n\r\n"), Unknown, TunnelRefused),
    (Says("HTTP/1.1 200 OK\r\n"), Unknown, TunnelCut),
    (Says("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"), BodyCut, Unknown),
    (Says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"), BodyCut, Unknown),
    (Says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello"), BodyCut, Unknown),
    (Tunnels(""), Stalled, Unknown),
    (Tunnels("HTTP/1.1 502 Bad Gateway\r\n\r\n"), Stalled, Unknown),
];

/// A SOCKS proxy's fault, and the outcome over both schemes.
pub(super) const SOCKS: &[(SocksFault, Outcome)] = &[
    (SocksFault::Closes, TunnelCut),
    (SocksFault::Greets(&[5, 0xff]), CredentialsRefused),
    (SocksFault::Greets(&[4, 0]), ProxyUnreachable),
    (SocksFault::Greets(b"HTTP/1.1 400 Bad Request\r\n\r\n"), ProxyUnreachable),
    (SocksFault::Login(1), CredentialsRefused),
    (SocksFault::Replies(1), TunnelRefused),
    (SocksFault::Replies(2), ProxyDenied),
    (SocksFault::Replies(3), TargetUnreachable),
    (SocksFault::Replies(4), TargetUnreachable),
    (SocksFault::Replies(5), TargetUnreachable),
    (SocksFault::Replies(6), TargetUnreachable),
    (SocksFault::Replies(7), TunnelRefused),
    (SocksFault::Replies(8), TunnelRefused),
    (SocksFault::Replies(99), ProxyUnreachable),
    (SocksFault::Stalls, Stalled),
    (SocksFault::Cuts, Unknown),
];

async fn seen(targets: &Targets, url: &str, https: bool, stalls: bool) -> Outcome {
    let watched = Watched::endpoint(url, Some(LOGIN)).await;
    let seen = watched.fetch(targets, (https, Target::Fine), stalls, || ()).await;
    watched.check(seen).await;
    seen
}

#[tokio::test]
async fn every_fault_of_an_http_proxy_is_told() {
    let (targets, mut wrong) = (Targets::start().await, Vec::new());
    for &(fault, http, https) in CASES {
        for (https, expected) in [(false, http), (true, https)] {
            let proxy = FaultProxy::start(fault).await;
            // Without TLS nobody speaks first in the tunnel.
            let stalls = fault == Stalls || matches!(fault, Tunnels(_)) && !https;
            let found = seen(&targets, &proxy.url(), https, stalls).await;
            if found != expected {
                wrong.push(format!("{fault:?} https={https}: {found}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn every_fault_of_a_socks_proxy_is_told() {
    let (targets, mut wrong) = (Targets::start().await, Vec::new());
    for &(fault, expected) in SOCKS {
        for https in [false, true] {
            let proxy = SocksFaultProxy::start(fault).await;
            let found = seen(&targets, &proxy.url(), https, fault == SocksFault::Stalls).await;
            if found != expected {
                wrong.push(format!("{fault:?} https={https}: {found}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
