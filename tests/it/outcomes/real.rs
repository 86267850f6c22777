//! Through Debian's tinyproxy, squid, microsocks and dante.

use reqwest_lease::Outcome::{self, *};

use super::scene::{DENIED, LOGIN, Target, Targets, WRONG, Watched};
use crate::support::dante::Dante;
use crate::support::microsocks::Microsocks;
use crate::support::program::Program;
use crate::support::squid::Squid;
use crate::support::tinyproxy::Tinyproxy;
use Proxy::{Dante as D, Microsocks as M, Squid as S, Tinyproxy as T};
use Target::*;

/// Whose proxy it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proxy {
    Tinyproxy,
    Squid,
    Microsocks,
    Dante,
}

/// What is wrong on the proxy's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// It wants a password and gets another one.
    WrongPassword,
    /// It wants a password and gets none.
    NoPassword,
    /// It is killed before the request.
    Dead,
    /// It is killed in the middle of the body.
    Killed,
    /// It is stopped before the request.
    Stopped,
}
use Trouble::{Dead, Killed, NoPassword, Stopped, WrongPassword};
const FINE: Trouble = Trouble::None;

/// Proxy, its trouble, target, and the outcomes over http and over https.
type Case = (Proxy, Trouble, Target, [Option<Outcome>; 2]);

const fn both(proxy: Proxy, trouble: Trouble, target: Target, outcome: Outcome) -> Case {
    (proxy, trouble, target, [Some(outcome), Some(outcome)])
}

const fn each(
    proxy: Proxy,
    trouble: Trouble,
    target: Target,
    http: Outcome,
    https: Outcome,
) -> Case {
    (proxy, trouble, target, [Some(http), Some(https)])
}

const fn https(proxy: Proxy, trouble: Trouble, target: Target, outcome: Outcome) -> Case {
    (proxy, trouble, target, [None, Some(outcome)])
}

pub(super) const CASES: &[Case] = &[
    both(T, FINE, Fine, Success),
    both(T, FINE, Status(404), Success),
    both(T, FINE, Status(403), Success),
    each(T, FINE, Status(502), Unknown, Success),
    both(T, FINE, Status(429), Throttled),
    both(T, FINE, Status(503), Throttled),
    each(T, FINE, Refuses, TargetUnreachable, TunnelRefused),
    each(T, FINE, Unnamed, TargetUnreachable, TunnelRefused),
    both(T, FINE, Silent, Stalled),
    both(T, FINE, Full, Stalled),
    both(T, FINE, HangsUp, Unknown),
    each(T, FINE, Denied, ProxyDenied, TunnelRefused),
    https(T, FINE, Untrusted, TargetTls),
    https(T, FINE, Plain, Unknown),
    each(T, WrongPassword, Fine, CredentialsDoubted, TunnelRefused),
    each(T, NoPassword, Fine, CredentialsDoubted, CredentialsRefused),
    both(T, Dead, Fine, ProxyUnreachable),
    both(T, Killed, Large, BodyCut),
    both(T, Stopped, Fine, Stalled),
    both(S, FINE, Fine, Success),
    both(S, FINE, Status(404), Success),
    both(S, FINE, Status(403), Success),
    each(S, FINE, Status(502), Unknown, Success),
    both(S, FINE, Status(429), Throttled),
    both(S, FINE, Status(503), Throttled),
    each(S, FINE, Refuses, TargetUnreachable, TunnelRefused),
    each(S, FINE, Unnamed, TargetUnreachable, TunnelRefused),
    both(S, FINE, Silent, Stalled),
    both(S, FINE, Full, Stalled),
    each(S, FINE, HangsUp, TargetUnreachable, Unknown),
    each(S, FINE, Denied, ProxyDenied, TunnelRefused),
    https(S, FINE, Untrusted, TargetTls),
    https(S, FINE, Plain, Unknown),
    each(S, WrongPassword, Fine, CredentialsDoubted, CredentialsRefused),
    each(S, NoPassword, Fine, CredentialsDoubted, CredentialsRefused),
    both(S, Dead, Fine, ProxyUnreachable),
    both(S, Killed, Large, BodyCut),
    both(S, Stopped, Fine, Stalled),
    both(M, FINE, Fine, Success),
    both(M, FINE, Status(502), Success),
    both(M, FINE, Status(429), Throttled),
    both(M, FINE, Status(503), Throttled),
    both(M, FINE, Refuses, TargetUnreachable),
    both(M, FINE, Unnamed, TunnelRefused),
    both(M, FINE, Silent, Stalled),
    both(M, FINE, Full, Stalled),
    both(M, FINE, HangsUp, Unknown),
    https(M, FINE, Untrusted, TargetTls),
    https(M, FINE, Plain, Unknown),
    both(M, WrongPassword, Fine, CredentialsRefused),
    both(M, NoPassword, Fine, CredentialsRefused),
    both(M, Dead, Fine, ProxyUnreachable),
    both(M, Killed, Large, BodyCut),
    both(M, Stopped, Fine, Stalled),
    both(D, FINE, Fine, Success),
    both(D, FINE, Status(502), Success),
    both(D, FINE, Status(429), Throttled),
    both(D, FINE, Status(503), Throttled),
    both(D, FINE, Refuses, TargetUnreachable),
    both(D, FINE, Unnamed, TargetUnreachable),
    both(D, FINE, Silent, Stalled),
    both(D, FINE, Full, Stalled),
    both(D, FINE, HangsUp, Unknown),
    both(D, FINE, Denied, ProxyDenied),
    https(D, FINE, Untrusted, TargetTls),
    https(D, FINE, Plain, Unknown),
    both(D, WrongPassword, Fine, CredentialsRefused),
    both(D, NoPassword, Fine, CredentialsRefused),
    both(D, Dead, Fine, ProxyUnreachable),
    both(D, Killed, Large, BodyCut),
    both(D, Stopped, Fine, Stalled),
];

enum Running {
    Tinyproxy(Tinyproxy),
    Squid(Squid),
    Microsocks(Microsocks),
    Dante(Dante),
}

impl Running {
    fn start(proxy: Proxy, login: bool) -> Self {
        let credentials = login.then_some(LOGIN);
        match proxy {
            Proxy::Tinyproxy => Self::Tinyproxy(Tinyproxy::with_rule(credentials, Some(DENIED))),
            Proxy::Squid => Self::Squid(Squid::with_rule(credentials, Some(DENIED))),
            Proxy::Microsocks => Self::Microsocks(Microsocks::start(credentials)),
            Proxy::Dante => Self::Dante(Dante::start(login, DENIED)),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Tinyproxy(proxy) => proxy.url(),
            Self::Squid(proxy) => proxy.url(),
            Self::Microsocks(proxy) => proxy.url("socks5h"),
            Self::Dante(proxy) => proxy.url("socks5h"),
        }
    }

    fn program(&self) -> &Program {
        match self {
            Self::Tinyproxy(proxy) => proxy.program(),
            Self::Squid(proxy) => proxy.program(),
            Self::Microsocks(proxy) => proxy.program(),
            Self::Dante(proxy) => proxy.program(),
        }
    }
}

/// Runs a proxy's cases, and lists those that came out otherwise.
async fn run(proxy: Proxy) {
    let targets = Targets::start().await;
    let (open, closed) = (Running::start(proxy, false), Running::start(proxy, true));
    let mut wrong = Vec::new();
    for &(of, trouble, target, outcomes) in CASES {
        for (https, expected) in [false, true].into_iter().zip(outcomes) {
            let Some(expected) = expected.filter(|_| of == proxy) else { continue };
            let own;
            let running = match trouble {
                Trouble::None => &open,
                WrongPassword | NoPassword => &closed,
                Dead | Killed | Stopped => {
                    own = Running::start(proxy, false);
                    &own
                }
            };
            let login = (trouble == WrongPassword).then_some(WRONG);
            let watched = Watched::endpoint(&running.url(), login).await;
            match trouble {
                Dead => running.program().kill(),
                Stopped => running.program().signal("STOP"),
                _ => {}
            }
            let midway = || {
                if trouble == Killed {
                    running.program().kill();
                }
            };
            let brief = trouble == Stopped || matches!(target, Silent | Full);
            let seen = watched.fetch(&targets, (https, target), brief, midway).await;
            if seen != expected {
                wrong.push(format!("{trouble:?} {target:?} https={https}: {seen}, not {expected}"));
            } else {
                watched.check(seen).await;
            }
        }
    }
    assert!(wrong.is_empty(), "{proxy:?}: {wrong:#?}");
}

#[tokio::test]
async fn tinyproxy_is_told() {
    run(Proxy::Tinyproxy).await;
}

#[tokio::test]
async fn squid_is_told() {
    run(Proxy::Squid).await;
}

#[tokio::test]
async fn microsocks_is_told() {
    run(Proxy::Microsocks).await;
}

#[tokio::test]
async fn dante_is_told() {
    run(Proxy::Dante).await;
}
