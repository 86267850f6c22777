//! What may be asked for, and in which form it is sent on.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION, UPGRADE};
use http::{HeaderValue, Method};
use reqwest::Request;
use url::Url;

use crate::error::{Error, Kind};
use crate::site::Site;

/// Refuses what cannot go through a proxy, and takes credentials out of the URL.
///
/// A connection that is taken over outlives its response, which would end the lease; whoever
/// holds a lease of his own answers for that himself.
pub(crate) fn admissible(mut request: Request, held: bool) -> Result<(Request, Site), Error> {
    let refuse = |why| Err(Error::new(Kind::UnsupportedRequest, why));
    if request.version() == http::Version::HTTP_3 {
        return refuse("HTTP/3 does not go through a proxy");
    }
    if !matches!(request.url().scheme(), "http" | "https") {
        return refuse("only http and https URLs go through a proxy");
    }
    let Some(site) = Site::of(request.url()) else {
        return refuse("the URL's host is not valid");
    };
    if request.method() == Method::CONNECT {
        return refuse("a tunnel of the caller's own does not go through a proxy");
    }
    if request.headers().contains_key(UPGRADE) && !held {
        return refuse("a connection that the caller takes over needs a held lease");
    }
    // It would take the place of the endpoint's own credentials.
    request.headers_mut().remove(PROXY_AUTHORIZATION);
    let (username, password) = take_userinfo(request.url_mut());
    let named = !username.is_empty() || password.is_some();
    if named
        && !request.headers().contains_key(AUTHORIZATION)
        && let Some(value) = basic(&username, password.as_deref())
    {
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    Ok((request, site))
}

/// RFC 9110 section 4.2.4: no user information in a request's target.
pub(crate) fn take_userinfo(url: &mut Url) -> (String, Option<String>) {
    if url.username().is_empty() && url.password().is_none() {
        return (String::new(), None);
    }
    let decode =
        |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let taken = (decode(url.username()), url.password().map(decode));
    // Both fail only for URLs without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    taken
}

/// RFC 7617.
fn basic(username: &str, password: Option<&str>) -> Option<HeaderValue> {
    let login = BASE64_STANDARD.encode(format!("{username}:{}", password.unwrap_or_default()));
    let mut value = HeaderValue::try_from(format!("Basic {login}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
