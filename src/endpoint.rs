//! A proxy endpoint with its address and credentials.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::id::EndpointId;
use crate::secret::Secret;

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// An HTTP proxy in clear text.
    Http,
    /// An HTTP proxy over TLS.
    Https,
    /// SOCKS 4; names resolve at the worker.
    Socks4,
    /// SOCKS 4a; names resolve at the proxy.
    Socks4a,
    /// SOCKS 5; names resolve at the worker.
    Socks5,
    /// SOCKS 5; names resolve at the proxy.
    Socks5h,
}

impl Scheme {
    /// The scheme as written in a URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks4 => "socks4",
            Self::Socks4a => "socks4a",
            Self::Socks5 => "socks5",
            Self::Socks5h => "socks5h",
        }
    }

    /// The scheme of this name, `None` when a proxy cannot be spoken to in it.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Http, Self::Https, Self::Socks4, Self::Socks4a, Self::Socks5, Self::Socks5h]
            .into_iter()
            .find(|scheme| scheme.as_str() == name)
    }

    /// Whether it is one of the SOCKS schemes.
    pub const fn is_socks(self) -> bool {
        !matches!(self, Self::Http | Self::Https)
    }
}

/// One leasable proxy identity, resolved: where it is and how to log in there.
///
/// `Debug` shows neither credentials nor address.
#[derive(Clone)]
pub struct Endpoint {
    id: EndpointId,
    scheme: Scheme,
    /// Host and port without credentials: `http://gw1.example.net:8080/`.
    address: Url,
    credentials: Option<Credentials>,
    pub(crate) labels: Labels,
    fingerprint: u64,
}

/// Largest weight of an endpoint.
pub const MAX_WEIGHT: u32 = 1000;

/// What an administrator sorts endpoints by.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Labels {
    /// Who runs the proxy.
    pub provider: Option<String>,
    /// A group of the administrator's own.
    pub group: Option<String>,
    /// Any words.
    pub tags: Vec<String>,
    /// Share of assignments beside the others', 1 to [`MAX_WEIGHT`]. Default 1.
    pub weight: u32,
}

impl Default for Labels {
    fn default() -> Self {
        Self { provider: None, group: None, tags: Vec::new(), weight: 1 }
    }
}

#[derive(Clone)]
struct Credentials {
    username: Secret,
    password: Secret,
}

impl Endpoint {
    /// Checks an endpoint's address and credentials.
    ///
    /// The URL is `scheme://host:port` with one of the [schemes](Scheme); SOCKS URLs must name
    /// the port. Credentials are arguments of their own, or percent-encoded in the URL, not both.
    ///
    /// ```
    /// use reqwest_lease::{Endpoint, EndpointId, InvalidEndpoint};
    ///
    /// let id = EndpointId::new("vn-a01").unwrap();
    /// let login = Some(("worker", "p/a#ss"));
    /// assert!(Endpoint::new(id.clone(), "http://gw1.example.net:8080", login).is_ok());
    /// let error = Endpoint::new(id, "ftp://gw1.example.net:21", None).unwrap_err();
    /// assert_eq!(error, InvalidEndpoint::UnknownScheme);
    /// ```
    ///
    /// # Errors
    /// [`InvalidEndpoint`] says what is wrong, without the text that is.
    pub fn new(
        id: EndpointId,
        url: &str,
        credentials: Option<(&str, &str)>,
    ) -> Result<Self, InvalidEndpoint> {
        let mut address = parse_address(url)?;
        let scheme = Scheme::parse(address.scheme()).ok_or(InvalidEndpoint::UnknownScheme)?;
        if scheme.is_socks() && cfg!(not(feature = "socks")) {
            return Err(InvalidEndpoint::SocksNotBuiltIn);
        }
        match address.port_or_known_default() {
            None => return Err(InvalidEndpoint::MissingPort),
            Some(0) => return Err(InvalidEndpoint::PortZero),
            Some(_) => {}
        }
        let inline = take_userinfo(&mut address)?;
        let credentials = match (inline, credentials) {
            (Some(_), Some(_)) => return Err(InvalidEndpoint::CredentialsTwice),
            (inline, None) => inline,
            (None, Some((username, password))) => Some(Credentials {
                username: Secret::new(username),
                password: Secret::new(password),
            }),
        };
        if let Some(credentials) = &credentials {
            credentials.check(scheme)?;
        }
        let mut endpoint =
            Self { id, scheme, address, credentials, labels: Labels::default(), fingerprint: 0 };
        endpoint.fingerprint = FINGERPRINTS.hash_one(endpoint.proxy_url());
        Ok(endpoint)
    }

    /// With these labels.
    pub fn with_labels(mut self, labels: Labels) -> Self {
        self.labels = labels;
        self
    }

    /// Its public name.
    pub fn id(&self) -> &EndpointId {
        &self.id
    }

    /// How it is spoken to.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// What it is sorted by.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Whether it has a user name or password.
    pub fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }

    /// A number that changes when address or credentials change; it differs between processes.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The whole proxy URL, credentials percent-encoded. It is a secret.
    pub(crate) fn proxy_url(&self) -> String {
        let address = self.address.as_str().trim_end_matches('/');
        match (&self.credentials, address.split_once("://")) {
            (Some(credentials), Some((scheme, authority))) => {
                let username = utf8_percent_encode(credentials.username.expose(), NON_ALPHANUMERIC);
                let password = utf8_percent_encode(credentials.password.expose(), NON_ALPHANUMERIC);
                format!("{scheme}://{username}:{password}@{authority}")
            }
            _ => address.to_owned(),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("id", &self.id)
            .field("scheme", &self.scheme)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    fn check(&self, scheme: Scheme) -> Result<(), InvalidEndpoint> {
        let (username, password) = (self.username.expose(), self.password.expose());
        if scheme.is_socks() && (username.len() > 255 || password.len() > 255) {
            return Err(InvalidEndpoint::SocksCredentialsTooLong);
        }
        // RFC 7617: the first colon ends the user name.
        if !scheme.is_socks() && username.contains(':') {
            return Err(InvalidEndpoint::ColonInUsername);
        }
        // RFC 7617: neither part may contain them.
        if username.contains(char::is_control) || password.contains(char::is_control) {
            return Err(InvalidEndpoint::ControlCharacter);
        }
        Ok(())
    }
}

/// Why an address was refused. It never repeats the text, which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// Not a URL.
    NotAUrl,
    /// The URL is longer than 2 kB.
    TooLong,
    /// A scheme that no proxy is spoken to in.
    UnknownScheme,
    /// A SOCKS scheme, and the `socks` feature is off.
    SocksNotBuiltIn,
    /// No host.
    MissingHost,
    /// No port, and the scheme has no default.
    MissingPort,
    /// Port 0.
    PortZero,
    /// A path, query or fragment, as a raw `/`, `?` or `#` in a password makes one.
    NotOnlyHostAndPort,
    /// Credentials in the URL and beside it.
    CredentialsTwice,
    /// Percent-encoding in the URL's credentials that is not UTF-8.
    NotUtf8,
    /// A SOCKS user name or password over 255 bytes.
    SocksCredentialsTooLong,
    /// A colon in the user name of an HTTP proxy.
    ColonInUsername,
    /// A control character in user name or password.
    ControlCharacter,
}

impl fmt::Display for InvalidEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAUrl => "the url is not a valid URL, as http://host:8080 is one",
            Self::TooLong => "the url is longer than 2048 bytes",
            Self::UnknownScheme => {
                "the url's scheme is none of http, https, socks4, socks4a, socks5, socks5h"
            }
            Self::SocksNotBuiltIn => "socks urls need the crate feature `socks`",
            Self::MissingHost => "the url has no host",
            Self::MissingPort => "the url has no port, and its scheme has no default port",
            Self::PortZero => "the url has port 0",
            Self::NotOnlyHostAndPort => {
                "the url has more than scheme, host and port; a password with `/`, `?` or `#` \
                 belongs into `password`"
            }
            Self::CredentialsTwice => "credentials are given in the url and beside it",
            Self::NotUtf8 => "percent-encoded credentials in the url are not UTF-8",
            Self::SocksCredentialsTooLong => "a SOCKS user name or password has at most 255 bytes",
            Self::ColonInUsername => "the user name of an HTTP proxy cannot contain a colon",
            Self::ControlCharacter => "user name and password cannot contain control characters",
        })
    }
}

impl std::error::Error for InvalidEndpoint {}

/// reqwest's proxy matcher passes over a URL that is too long, and then goes direct.
const MAX_URL_LENGTH: usize = 2048;

static FINGERPRINTS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

fn parse_address(url: &str) -> Result<Url, InvalidEndpoint> {
    if url.len() > MAX_URL_LENGTH {
        return Err(InvalidEndpoint::TooLong);
    }
    let address = Url::parse(url).map_err(|error| match error {
        url::ParseError::EmptyHost => InvalidEndpoint::MissingHost,
        _ => InvalidEndpoint::NotAUrl,
    })?;
    // A foreign scheme is told before its other faults.
    if Scheme::parse(address.scheme()).is_none() {
        return Err(InvalidEndpoint::UnknownScheme);
    }
    if address.host_str().is_none_or(str::is_empty) {
        return Err(InvalidEndpoint::MissingHost);
    }
    let only_host = matches!(address.path(), "" | "/");
    if !only_host || address.query().is_some() || address.fragment().is_some() {
        return Err(InvalidEndpoint::NotOnlyHostAndPort);
    }
    Ok(address)
}

fn take_userinfo(address: &mut Url) -> Result<Option<Credentials>, InvalidEndpoint> {
    if address.username().is_empty() && address.password().is_none() {
        return Ok(None);
    }
    let decode = |text: &str| {
        percent_encoding::percent_decode_str(text)
            .decode_utf8()
            .map(|text| Secret::new(text.into_owned()))
            .map_err(|_| InvalidEndpoint::NotUtf8)
    };
    let username = decode(address.username())?;
    let password = decode(address.password().unwrap_or_default())?;
    // Both fail only for URLs without a host.
    let _ = address.set_username("");
    let _ = address.set_password(None);
    Ok(Some(Credentials { username, password }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str, login: Option<(&str, &str)>) -> Result<Endpoint, InvalidEndpoint> {
        Endpoint::new(EndpointId::new("e").unwrap(), url, login)
    }

    #[test]
    #[cfg(feature = "socks")]
    fn what_reqwest_would_pass_over_is_refused() {
        use InvalidEndpoint::*;
        let long = format!("http://{}:1", "a".repeat(3000));
        for (url, expected) in [
            ("ftp://h:1", UnknownScheme),
            ("quic://h:1", UnknownScheme),
            ("socks://h:1", UnknownScheme),
            ("socks6://h:1", UnknownScheme),
            ("mailto:a@b", UnknownScheme),
            ("h:8080", UnknownScheme),
            ("gw1.example.net", NotAUrl),
            ("", NotAUrl),
            (long.as_str(), TooLong),
            ("http://", MissingHost),
            ("socks5h://:1080", MissingHost),
            ("http://h:0", PortZero),
            ("socks5h://h", MissingPort),
            ("http://h:99999", NotAUrl),
            ("http://h:1/path", NotOnlyHostAndPort),
            ("http://h:1?q", NotOnlyHostAndPort),
            ("http://user:12/3@h:1", NotOnlyHostAndPort),
            ("http://user:12#3@h:1", NotOnlyHostAndPort),
            ("http://%FF:x@h:1", NotUtf8),
            ("http://u:a%0Ab@h:1", ControlCharacter),
        ] {
            assert_eq!(endpoint(url, None).err(), Some(expected), "{url:.40}");
        }
        let long = "x".repeat(256);
        for (url, login, expected) in [
            ("http://u:p@h:1", ("u", "p"), CredentialsTwice),
            ("http://u@h:1", ("u", "p"), CredentialsTwice),
            ("socks5://h:1", ("u", long.as_str()), SocksCredentialsTooLong),
            ("socks5h://h:1", (long.as_str(), "p"), SocksCredentialsTooLong),
            ("http://h:1", ("u:v", "p"), ColonInUsername),
            ("http://h:1", ("u", "p\n"), ControlCharacter),
            ("socks5h://h:1", ("u\0", "p"), ControlCharacter),
        ] {
            assert_eq!(endpoint(url, Some(login)).err(), Some(expected), "{url}");
        }
    }

    #[test]
    fn credentials_survive_any_characters() {
        let proxy = endpoint("http://h:8080", Some(("us@er", "p:a/s #%41é"))).unwrap().proxy_url();
        assert_eq!(proxy, "http://us%40er:p%3Aa%2Fs%20%23%2541%C3%A9@h:8080");
        let inline = endpoint("http://us%40er:p%3Aa%2Fs%20%23%2541%C3%A9@h:8080", None).unwrap();
        assert_eq!(inline.proxy_url(), proxy);
        assert_eq!(endpoint("http://[::1]:81", None).unwrap().proxy_url(), "http://[::1]:81");
    }

    #[test]
    fn the_fingerprint_tells_a_changed_password() {
        let of = |password| endpoint("http://h:1", Some(("u", password))).unwrap().fingerprint();
        assert_eq!(of("a"), of("a"));
        assert_ne!(of("a"), of("b"));
    }

    #[test]
    fn debug_shows_no_secret_and_no_address() {
        let debug = format!("{:?}", endpoint("http://host:1", Some(("canary", "canary"))).unwrap());
        assert!(!debug.contains("canary") && !debug.contains("host"), "{debug}");
    }
}
