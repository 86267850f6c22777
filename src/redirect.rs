//! The next hop of a redirect, as reqwest itself would make it on the wire.

use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION,
    PROXY_AUTHORIZATION, REFERER, TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use url::Url;

/// How redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Redirects {
    limit: Option<usize>,
    referer: bool,
}

impl Default for Redirects {
    /// At most 10 hops, with a Referer header: reqwest's own defaults.
    fn default() -> Self {
        Self::limited(10)
    }
}

impl Redirects {
    /// At most this many hops; one more is
    /// [`TooManyRedirects`](crate::Kind::TooManyRedirects).
    pub const fn limited(hops: usize) -> Self {
        Self { limit: Some(hops), referer: true }
    }

    /// Redirects are returned as they are.
    pub const fn none() -> Self {
        Self { limit: None, referer: true }
    }

    /// Whether a hop carries the URL it came from. Default `true`.
    pub const fn referer(mut self, referer: bool) -> Self {
        self.referer = referer;
        self
    }

    pub(crate) const fn limit(self) -> Option<usize> {
        self.limit
    }
}

/// What a hop does to the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) url: Url,
    pub(crate) method: Method,
    pub(crate) keep_body: bool,
}

/// The hop that a response asks for; `None` when it is not a redirect or leads nowhere.
pub(crate) fn next_hop(
    from: &Url,
    method: &Method,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<Hop> {
    // RFC 9110 section 15.4, with the change of POST to GET that all browsers make.
    let (method, keep_body) = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND if *method == Method::POST => {
            (Method::GET, false)
        }
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => (method.clone(), true),
        StatusCode::SEE_OTHER if *method == Method::HEAD => (Method::HEAD, false),
        StatusCode::SEE_OTHER => (Method::GET, false),
        _ => return None,
    };
    let location = std::str::from_utf8(headers.get(LOCATION)?.as_bytes()).ok()?;
    let mut url = from.join(location).ok()?;
    url.set_fragment(None);
    // What reqwest cannot send it does not follow (a urn, say): the redirect itself is returned.
    Uri::try_from(url.as_str()).ok()?;
    Some(Hop { url, method, keep_body })
}

/// Makes the headers of one hop those of the next.
pub(crate) fn carry_over(headers: &mut HeaderMap, from: &Url, hop: &Hop, redirects: Redirects) {
    if !hop.keep_body {
        for name in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING, TRANSFER_ENCODING] {
            headers.remove(name);
        }
    }
    if !same_origin(from, &hop.url) {
        for name in [HOST, AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, WWW_AUTHENTICATE] {
            headers.remove(name);
        }
        headers.remove("cookie2");
    }
    if redirects.referer {
        headers.remove(REFERER);
        if let Some(referer) = referer(from, &hop.url) {
            headers.insert(REFERER, referer);
        }
    }
}

fn same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host_str() == other.host_str()
        && one.port_or_known_default() == other.port_or_known_default()
}

fn referer(from: &Url, to: &Url) -> Option<HeaderValue> {
    if from.scheme() == "https" && to.scheme() == "http" {
        return None;
    }
    let mut referer = from.clone();
    // Both fail only for URLs without a host.
    let _ = referer.set_username("");
    let _ = referer.set_password(None);
    referer.set_fragment(None);
    referer.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn located(location: &str) -> HeaderMap {
        HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(location).unwrap())])
    }

    fn hop(method: Method, status: u16, location: &str) -> Option<Hop> {
        let status = StatusCode::from_u16(status).unwrap();
        next_hop(&url("http://a.test/x/y?q#f"), &method, status, &located(location))
    }

    #[test]
    fn methods_change_as_browsers_change_them() {
        let changed =
            |method, status| hop(method, status, "/z").map(|hop| (hop.method, hop.keep_body));
        assert_eq!(changed(Method::POST, 301), Some((Method::GET, false)));
        assert_eq!(changed(Method::POST, 302), Some((Method::GET, false)));
        assert_eq!(changed(Method::PUT, 302), Some((Method::PUT, true)));
        assert_eq!(changed(Method::PUT, 303), Some((Method::GET, false)));
        assert_eq!(changed(Method::HEAD, 303), Some((Method::HEAD, false)));
        assert_eq!(changed(Method::POST, 307), Some((Method::POST, true)));
        assert_eq!(changed(Method::POST, 308), Some((Method::POST, true)));
        assert_eq!(changed(Method::GET, 300), None);
        assert_eq!(changed(Method::GET, 304), None);
        assert_eq!(changed(Method::GET, 200), None);
    }

    #[test]
    fn a_location_is_resolved_and_loses_its_fragment() {
        let to = |location| hop(Method::GET, 302, location).unwrap().url.to_string();
        assert_eq!(to("z#g"), "http://a.test/x/z");
        assert_eq!(to("//b.test/"), "http://b.test/");
        assert_eq!(to("?r"), "http://a.test/x/y?r");
        assert!(hop(Method::GET, 302, "http://[bad").is_none());
        assert!(hop(Method::GET, 302, "urn:isbn:1").is_none());
        let nowhere =
            next_hop(&url("http://a.test"), &Method::GET, StatusCode::FOUND, &HeaderMap::new());
        assert_eq!(nowhere, None);
    }

    #[test]
    fn secrets_stay_with_their_origin_for_all_later_hops() {
        let (a, b) = (url("http://u:p@a.test/#f"), url("http://b.test/"));
        let mut headers = HeaderMap::new();
        for name in [AUTHORIZATION, COOKIE, HOST, CONTENT_TYPE] {
            headers.insert(name, HeaderValue::from_static("x"));
        }
        let to = |url: &Url| Hop { url: url.clone(), method: Method::GET, keep_body: true };
        carry_over(&mut headers, &a, &to(&a), Redirects::default());
        assert!(headers.contains_key(AUTHORIZATION) && headers.contains_key(HOST));
        assert_eq!(headers[REFERER], "http://a.test/");
        carry_over(&mut headers, &a, &to(&b), Redirects::default());
        carry_over(&mut headers, &b, &to(&b), Redirects::default());
        assert!(!headers.contains_key(AUTHORIZATION) && !headers.contains_key(COOKIE));
        assert!(!headers.contains_key(HOST), "another host has another name");
        assert!(headers.contains_key(CONTENT_TYPE));
    }

    #[test]
    fn no_referer_goes_from_https_to_http() {
        let hop = Hop { url: url("http://b.test/"), method: Method::GET, keep_body: true };
        let mut headers = HeaderMap::from_iter([(REFERER, HeaderValue::from_static("old"))]);
        carry_over(&mut headers, &url("https://a.test/"), &hop, Redirects::default());
        assert!(headers.is_empty());
    }
}
