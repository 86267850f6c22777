//! Facts from a failed send: whose failure it was, as far as the error's types tell.

use std::error::Error as StdError;
use std::io;

use http::{StatusCode, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use tower::Service;

use crate::endpoint::Scheme;
use crate::outcome::Outcome;

// The types are public in hyper-util, but only as associated types.
type ConnectError = <HttpConnector as Service<Uri>>::Error;
type TunnelError = <Tunnel<HttpConnector> as Service<Uri>>::Error;
type SocksError = <SocksV5<HttpConnector> as Service<Uri>>::Error;
type LegacyError = hyper_util::client::legacy::Error;

/// How the exchange was made, which decides what an error can mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) proxy: Scheme,
    pub(crate) https_target: bool,
}

impl Route {
    /// The proxy itself answers plain http requests; a tunnel only carries them.
    fn forwards(self) -> bool {
        !self.https_target && !self.proxy.is_socks()
    }
}

/// Whether a response may be the endpoint's refusal of its credentials.
///
/// Through a tunnel a 407 is the origin's own.
pub(crate) fn may_refuse_credentials(status: StatusCode, route: Route) -> bool {
    status == StatusCode::PROXY_AUTHENTICATION_REQUIRED && route.forwards()
}

/// What a failed send says about the endpoint.
///
/// `ProxyUnreachable` and `CredentialsRefused` are certain, and the target has then seen
/// nothing of the request; everything else is `Unknown`.
pub(crate) fn failure(error: &(dyn StdError + 'static), route: Route) -> Outcome {
    let mut connecting = false;
    for link in chain(error) {
        if let Some(error) = link.downcast_ref::<TunnelError>() {
            return tunnel(error);
        }
        if let Some(error) = link.downcast_ref::<SocksError>() {
            return socks(error);
        }
        if link.is::<ConnectError>() {
            return Outcome::ProxyUnreachable;
        }
        if let Some(error) = link.downcast_ref::<LegacyError>() {
            connecting |= error.is_connect();
        }
    }
    // A forwarding proxy is the only thing that is connected to.
    if connecting && route.forwards() { Outcome::ProxyUnreachable } else { Outcome::Unknown }
}

fn tunnel(error: &TunnelError) -> Outcome {
    match error {
        TunnelError::ProxyAuthRequired => Outcome::CredentialsRefused,
        TunnelError::ConnectFailed(_)
        | TunnelError::Io(_)
        | TunnelError::ProxyHeadersTooLong
        | TunnelError::TunnelUnexpectedEof => Outcome::ProxyUnreachable,
        // A refused CONNECT can be the proxy's doing or the target's.
        TunnelError::TunnelUnsuccessful | TunnelError::MissingHost => Outcome::Unknown,
    }
}

fn socks(error: &SocksError) -> Outcome {
    match error {
        SocksError::Inner(_) | SocksError::Io(_) | SocksError::Parsing(_) => {
            Outcome::ProxyUnreachable
        }
        // The reply's type cannot be named; only a refused login carries this word.
        SocksError::V5(error) if format!("{error:?}").starts_with("Auth(") => {
            Outcome::CredentialsRefused
        }
        _ => Outcome::Unknown,
    }
}

/// The error and what it was caused by, also inside an `io::Error`, which hides it.
fn chain<'a>(
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

    const FORWARD: Route = Route { proxy: Scheme::Http, https_target: false };
    const TUNNEL: Route = Route { proxy: Scheme::Http, https_target: true };
    const SOCKS: Route = Route { proxy: Scheme::Socks5h, https_target: false };

    #[test]
    fn a_407_is_the_proxys_only_when_it_forwards() {
        let status = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        assert!(may_refuse_credentials(status, FORWARD));
        assert!(!may_refuse_credentials(status, TUNNEL));
        assert!(!may_refuse_credentials(status, SOCKS));
        assert!(!may_refuse_credentials(StatusCode::FORBIDDEN, FORWARD));
    }

    #[test]
    fn a_refused_tunnel_says_nothing_certain() {
        assert_eq!(failure(&TunnelError::TunnelUnsuccessful, TUNNEL), Outcome::Unknown);
        assert_eq!(failure(&TunnelError::ProxyAuthRequired, TUNNEL), Outcome::CredentialsRefused);
        assert_eq!(failure(&TunnelError::TunnelUnexpectedEof, TUNNEL), Outcome::ProxyUnreachable);
    }

    #[test]
    fn a_cause_inside_an_io_error_is_found() {
        let hidden = io::Error::other(TunnelError::ProxyAuthRequired);
        assert_eq!(failure(&hidden, TUNNEL), Outcome::CredentialsRefused);
        assert_eq!(failure(&io::Error::other("x"), TUNNEL), Outcome::Unknown);
    }
}
