//! What a failed send says, as far as the types of its error tell.

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::time::Duration;

use http::Uri;
use http_body::Body;
use hyper_util::client::legacy::ResponseFuture;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use tower::Service;

use super::{Failed, Route};
use crate::endpoint::Scheme;
use crate::outcome::Outcome;
use crate::progress::Phase;

// These types are public in hyper-util and hyper, but from here only as associated types.
type ConnectError = <HttpConnector as Service<Uri>>::Error;
type TunnelError = <Tunnel<HttpConnector> as Service<Uri>>::Error;
type SocksError = <SocksV5<HttpConnector> as Service<Uri>>::Error;
type LegacyError = hyper_util::client::legacy::Error;
type HyperError = <<<ResponseFuture as Future>::Output as Answered>::Body as Body>::Error;

/// The body's type of an answer.
trait Answered {
    type Body;
}

impl<B, E> Answered for Result<http::Response<B>, E> {
    type Body = B;
}

/// A dial that got no answer for so long has sent SYN three times (RFC 6298 section 2: one second,
/// doubling), so it says something of the endpoint and not only of the caller's patience.
const LONG_DIAL: Duration = Duration::from_secs(3);

pub(super) fn outcome(failed: &Failed<'_>) -> Outcome {
    let chain = Chain::of(failed.error);
    if let Some(outcome) = chain.told {
        return match outcome {
            Outcome::ProxyUnreachable if chain.exhausted => Outcome::LocalFault,
            // A body had begun, so the endpoint was reached.
            _ if failed.phase != Phase::Body => outcome,
            Outcome::LocalFault | Outcome::Stalled => outcome,
            _ => Outcome::BodyCut,
        };
    }
    if chain.timed_out {
        return timeout(failed, chain.connecting);
    }
    match failed.phase {
        Phase::Body if chain.on_the_wire => Outcome::BodyCut,
        Phase::Body => Outcome::Unknown,
        // A forwarding proxy is the only thing that is connected to.
        _ if chain.connecting && failed.route.forwards() => Outcome::ProxyUnreachable,
        _ if chain.connecting => connecting(failed.error, failed.route),
        _ => Outcome::Unknown,
    }
}

/// `connecting` when the time meant for a connection was up, and not the caller's.
fn timeout(failed: &Failed<'_>, connecting: bool) -> Outcome {
    let long = failed.phase == Phase::Connecting && failed.elapsed >= LONG_DIAL;
    // A tunnel waits for the target too.
    match failed.route.forwards() && (connecting || long) {
        true => Outcome::ProxyUnreachable,
        false => Outcome::Stalled,
    }
}

/// What went wrong between a tunnel and its use.
fn connecting(error: &(dyn StdError + 'static), route: Route) -> Outcome {
    let resolves_here = matches!(route.proxy, Scheme::Socks4 | Scheme::Socks5);
    // The type cannot be named, and has nothing that a name server or a proxy could put in.
    let unresolved =
        |link: &(dyn StdError + 'static)| link.to_string() == "error resolving for socks proxy";
    if resolves_here && links(error).any(unresolved) {
        return Outcome::TargetUnreachable;
    }
    #[cfg(feature = "rustls-no-provider")]
    if links(error).any(is_the_targets_tls) {
        return Outcome::TargetTls;
    }
    Outcome::Unknown
}

/// Whether the handshake with the target failed. What is no TLS at all may be the endpoint's.
#[cfg(feature = "rustls-no-provider")]
fn is_the_targets_tls(link: &(dyn StdError + 'static)) -> bool {
    link.downcast_ref::<rustls::Error>()
        .is_some_and(|error| !matches!(error, rustls::Error::InvalidMessage(_)))
}

/// What the links of an error tell.
#[derive(Default)]
struct Chain {
    /// What one of them is certain of.
    told: Option<Outcome>,
    timed_out: bool,
    /// It came while a connection was made.
    connecting: bool,
    /// It came from a connection, not from what was made of its bytes.
    on_the_wire: bool,
    /// This process or machine has no file descriptor left.
    exhausted: bool,
}

impl Chain {
    fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut chain = Self::default();
        for link in links(error) {
            chain.told = chain.told.or_else(|| told(link));
            if let Some(error) = link.downcast_ref::<reqwest::Error>() {
                chain.timed_out |= error.is_timeout();
            }
            if let Some(error) = link.downcast_ref::<LegacyError>() {
                chain.connecting |= error.is_connect();
            }
            chain.on_the_wire |= link.is::<HyperError>();
            chain.exhausted |= link.downcast_ref::<io::Error>().is_some_and(is_exhausted);
        }
        chain
    }
}

/// EMFILE and ENFILE, which have no kind of their own and the same numbers on all unixes.
fn is_exhausted(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// What one link is certain of.
fn told(link: &(dyn StdError + 'static)) -> Option<Outcome> {
    if let Some(error) = link.downcast_ref::<TunnelError>() {
        return Some(tunnel(error));
    }
    if let Some(error) = link.downcast_ref::<SocksError>() {
        return Some(socks(error));
    }
    if link.is::<ConnectError>() {
        return Some(Outcome::ProxyUnreachable);
    }
    let ours = link.downcast_ref::<HyperError>().is_some_and(HyperError::is_user)
        || link.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_builder);
    ours.then_some(Outcome::LocalFault)
}

fn tunnel(error: &TunnelError) -> Outcome {
    match error {
        TunnelError::ProxyAuthRequired => Outcome::CredentialsRefused,
        TunnelError::ConnectFailed(_) | TunnelError::ProxyHeadersTooLong => {
            Outcome::ProxyUnreachable
        }
        // What some do when they cannot reach the target.
        TunnelError::Io(_) | TunnelError::TunnelUnexpectedEof => Outcome::TunnelCut,
        // The proxy's doing or the target's: the status is not kept.
        TunnelError::TunnelUnsuccessful => Outcome::TunnelRefused,
        TunnelError::MissingHost => Outcome::LocalFault,
    }
}

fn socks(error: &SocksError) -> Outcome {
    match error {
        SocksError::Inner(_) | SocksError::Parsing(_) => Outcome::ProxyUnreachable,
        SocksError::Io(_) => Outcome::TunnelCut,
        SocksError::V4(_) => Outcome::TunnelRefused,
        // The reply's types cannot be named; their `Debug` is all that tells them apart.
        SocksError::V5(error) => reply(&format!("{error:?}")),
        SocksError::MissingHost | SocksError::MissingPort => Outcome::LocalFault,
        SocksError::DnsFailure => Outcome::TargetUnreachable,
        SocksError::Serialize(_) => Outcome::Unknown,
    }
}

/// RFC 1928 section 6.
fn reply(reply: &str) -> Outcome {
    match reply {
        _ if reply.starts_with("Auth(") => Outcome::CredentialsRefused,
        "Command(ConnectionNotAllowed)" => Outcome::ProxyDenied,
        "Command(NetworkUnreachable)"
        | "Command(HostUnreachable)"
        | "Command(ConnectionRefused)"
        | "Command(TtlExpired)" => Outcome::TargetUnreachable,
        "HostTooLong" => Outcome::LocalFault,
        // A general failure, or something that the proxy cannot do.
        _ => Outcome::TunnelRefused,
    }
}

/// The error and what it was caused by, also inside an `io::Error`, which hides it.
fn links<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = match error.downcast_ref::<io::Error>().and_then(|error| error.get_ref()) {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => error.source(),
        };
        Some(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORWARD: Route = Route::new(Scheme::Http, false);
    const TUNNEL: Route = Route::new(Scheme::Http, true);

    fn seen(error: impl StdError + 'static, route: Route, phase: Phase) -> Outcome {
        outcome(&Failed::new(&error, route, phase))
    }

    #[test]
    fn a_tunnel_tells_what_it_knows() {
        for (error, expected) in [
            (TunnelError::TunnelUnsuccessful, Outcome::TunnelRefused),
            (TunnelError::ProxyAuthRequired, Outcome::CredentialsRefused),
            (TunnelError::TunnelUnexpectedEof, Outcome::TunnelCut),
            (TunnelError::Io(io::ErrorKind::ConnectionReset.into()), Outcome::TunnelCut),
            (TunnelError::ProxyHeadersTooLong, Outcome::ProxyUnreachable),
            (TunnelError::ConnectFailed("x".into()), Outcome::ProxyUnreachable),
            (TunnelError::MissingHost, Outcome::LocalFault),
        ] {
            let text = error.to_string();
            assert_eq!(seen(error, TUNNEL, Phase::Connecting), expected, "{text}");
        }
    }

    #[test]
    fn a_cause_inside_an_io_error_is_found() {
        let hidden = io::Error::other(TunnelError::ProxyAuthRequired);
        assert_eq!(seen(hidden, TUNNEL, Phase::Connecting), Outcome::CredentialsRefused);
        assert_eq!(seen(io::Error::other("x"), TUNNEL, Phase::Head), Outcome::Unknown);
    }

    #[test]
    fn a_dial_without_a_file_descriptor_is_our_own_fault() {
        for (code, expected) in
            [(23, Outcome::LocalFault), (24, Outcome::LocalFault), (111, Outcome::ProxyUnreachable)]
        {
            let failed = TunnelError::ConnectFailed(io::Error::from_raw_os_error(code).into());
            assert_eq!(seen(failed, TUNNEL, Phase::Connecting), expected, "{code}");
        }
    }

    /// That of a plain dial has its cause as well.
    #[tokio::test]
    async fn a_dials_error_shows_its_cause() {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let error = client.get(format!("http://{address}/")).send().await.unwrap_err();
        let code = links(&error).find_map(|link| link.downcast_ref::<io::Error>()?.raw_os_error());
        assert!(code.is_some(), "{error:?}");
    }

    #[test]
    fn a_body_that_began_is_no_word_on_reaching_the_endpoint() {
        let late = TunnelError::TunnelUnexpectedEof;
        assert_eq!(seen(late, FORWARD, Phase::Body), Outcome::BodyCut);
        let decoder = io::Error::new(io::ErrorKind::InvalidData, "not gzip");
        assert_eq!(seen(decoder, FORWARD, Phase::Body), Outcome::Unknown);
    }

    #[tokio::test]
    async fn a_long_dial_is_the_endpoints_and_a_short_one_the_callers() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_millis(1));
        let page = format!("http://{}/", silent.local_addr().unwrap());
        let request = client.build().unwrap().get(page);
        let error = request.send().await.unwrap_err();
        let after = |route, phase, seconds| {
            let elapsed = Duration::from_secs(seconds);
            outcome(&Failed::new(&error, route, phase).after(elapsed))
        };
        assert_eq!(after(FORWARD, Phase::Connecting, 3), Outcome::ProxyUnreachable);
        assert_eq!(after(FORWARD, Phase::Connecting, 2), Outcome::Stalled);
        assert_eq!(after(FORWARD, Phase::Head, 60), Outcome::Stalled);
        assert_eq!(after(FORWARD, Phase::Body, 60), Outcome::Stalled);
        assert_eq!(after(TUNNEL, Phase::Connecting, 60), Outcome::Stalled, "the target's, perhaps");
    }

    #[test]
    fn socks_replies_are_told_by_their_words() {
        for (text, expected) in [
            ("Auth(Failed)", Outcome::CredentialsRefused),
            ("Command(GeneralServerFailure)", Outcome::TunnelRefused),
            ("Command(ConnectionNotAllowed)", Outcome::ProxyDenied),
            ("Command(NetworkUnreachable)", Outcome::TargetUnreachable),
            ("Command(HostUnreachable)", Outcome::TargetUnreachable),
            ("Command(ConnectionRefused)", Outcome::TargetUnreachable),
            ("Command(TtlExpired)", Outcome::TargetUnreachable),
            ("Command(CommandNotSupported)", Outcome::TunnelRefused),
            ("Command(AddressTypeNotSupported)", Outcome::TunnelRefused),
            ("HostTooLong", Outcome::LocalFault),
        ] {
            assert_eq!(reply(text), expected, "{text}");
        }
    }
}
