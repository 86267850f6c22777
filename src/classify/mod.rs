//! What happened to an exchange: from errors and response heads to outcomes.

mod answer;
mod bans;
mod failure;
mod marks;

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

pub use bans::BanMark;

use crate::endpoint::Scheme;
use crate::outcome::Outcome;
use crate::progress::Phase;
use crate::site::Site;

/// How an exchange was made, which decides what its end can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// How the endpoint is spoken to.
    pub proxy: Scheme,
    /// Whether the target is an https URL.
    pub https_target: bool,
    /// Whether credentials were sent to the endpoint.
    pub credentials: bool,
}

impl Route {
    /// A route without credentials.
    pub const fn new(proxy: Scheme, https_target: bool) -> Self {
        Self { proxy, https_target, credentials: false }
    }

    /// The same with credentials, or without.
    pub const fn with_credentials(mut self, credentials: bool) -> Self {
        self.credentials = credentials;
        self
    }

    /// Whether the endpoint reads the request and passes it on, as HTTP proxies do for http
    /// targets, so that an answer can be its own. A tunnel (CONNECT, SOCKS) only carries bytes.
    pub fn forwards(self) -> bool {
        !self.https_target && !self.proxy.is_socks()
    }
}

/// The head of a response.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Answer<'a> {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// How it came.
    pub route: Route,
    /// The site that was asked.
    pub site: &'a Site,
}

impl<'a> Answer<'a> {
    /// A response's head.
    pub const fn new(
        status: StatusCode,
        headers: &'a HeaderMap,
        route: Route,
        site: &'a Site,
    ) -> Self {
        Self { status, headers, route, site }
    }

    /// Whether the site said this, and not an endpoint that forwards: a 429 or 503 is then a word
    /// on the site's limit.
    ///
    /// It goes by the marks that [`DefaultClassifier`] goes by. A site can send them too, and
    /// then only loses its own pause.
    pub fn is_the_sites(&self) -> bool {
        answer::own_mark(self).is_none()
    }
}

/// A send that failed, or a body that did.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Failed<'a> {
    /// The error, with all that caused it.
    pub error: &'a (dyn StdError + 'static),
    /// How the exchange was made.
    pub route: Route,
    /// What it was at.
    pub phase: Phase,
    /// Time since this send began; zero where it is not known.
    pub elapsed: Duration,
}

impl<'a> Failed<'a> {
    /// A failure of unknown duration.
    pub const fn new(error: &'a (dyn StdError + 'static), route: Route, phase: Phase) -> Self {
        Self { error, route, phase, elapsed: Duration::ZERO }
    }

    /// The same after this time.
    pub const fn after(mut self, elapsed: Duration) -> Self {
        self.elapsed = elapsed;
        self
    }
}

/// Turns what was seen of an exchange into an [`Outcome`].
///
/// It only looks: what is done about an outcome is a [`Judge`](crate::Judge)'s. Both methods
/// have the default classifier's answer as their own default. One that panics is counted
/// ([`Counts::panics`](crate::Counts::panics)), and the default classifier is asked instead.
///
/// Four outcomes of a failed send also decide that the request is sent again through another
/// endpoint: give [`ProxyUnreachable`](Outcome::ProxyUnreachable),
/// [`TunnelCut`](Outcome::TunnelCut), [`CredentialsRefused`](Outcome::CredentialsRefused) and
/// [`ProxyDenied`](Outcome::ProxyDenied) only when the target has surely seen
/// nothing of it. [`CredentialsDoubted`](Outcome::CredentialsDoubted) as the outcome of an answer
/// has another endpoint asked the same.
///
/// ```
/// use reqwest_lease::{Answer, Classifier, DefaultClassifier, Outcome};
///
/// /// Knows the page that a site shows to those whom it has banned.
/// struct Captcha;
///
/// impl Classifier for Captcha {
///     fn answer(&self, answer: &Answer<'_>) -> Outcome {
///         match answer.headers.contains_key("x-captcha") {
///             true => Outcome::Banned,
///             false => DefaultClassifier::default().answer(answer),
///         }
///     }
/// }
/// ```
pub trait Classifier: Send + Sync + 'static {
    /// The outcome of a send that failed, or of a response whose body did.
    fn failure(&self, failed: &Failed<'_>) -> Outcome {
        failure::outcome(failed)
    }

    /// The outcome of a response if its body comes to its end.
    fn answer(&self, answer: &Answer<'_>) -> Outcome {
        answer::outcome(answer)
    }

    /// How many bytes of the body's beginning [`body_start`](Self::body_start) is to see, at most
    /// 64 KiB. Default none.
    ///
    /// The caller reads the body as it comes; what is looked at is a copy. A response that leads on
    /// to another is not looked into.
    fn wants_of_body(&self, _answer: &Answer<'_>) -> usize {
        0
    }

    /// The outcome of a response if its body comes to its end, in place of [`answer`](Self::answer)
    /// once so much of the body as was wanted has been read, or all that will be. Of a body that is
    /// left, or cut, before its first byte nothing is known, and it is not asked. Default: as before.
    fn body_start(&self, answer: &Answer<'_>, _start: &[u8]) -> Outcome {
        self.answer(answer)
    }
}

impl<C: Classifier + ?Sized> Classifier for Arc<C> {
    fn failure(&self, failed: &Failed<'_>) -> Outcome {
        (**self).failure(failed)
    }

    fn answer(&self, answer: &Answer<'_>) -> Outcome {
        (**self).answer(answer)
    }

    fn wants_of_body(&self, answer: &Answer<'_>) -> usize {
        (**self).wants_of_body(answer)
    }

    fn body_start(&self, answer: &Answer<'_>, start: &[u8]) -> Outcome {
        (**self).body_start(answer, start)
    }
}

/// The outcomes that hold unless you say otherwise.
///
/// Failures are told by the types of reqwest's and hyper-util's errors. Answers are the site's,
/// except where an endpoint forwards http and the answer bears a proxy's marks (`Proxy-Status` of
/// RFC 9209, `X-Squid-Error`, tinyproxy's `Server`). A site can send such marks too, so none of
/// the outcomes that rest on them is one that harms the endpoint; `Via` says nothing, for it is
/// on what was passed on as well.
#[derive(Debug, Clone)]
pub struct DefaultClassifier {
    bans: Vec<(Option<Site>, BanMark)>,
    looked_at: usize,
}

impl DefaultClassifier {
    /// Without ban marks.
    pub const fn new() -> Self {
        Self { bans: Vec::new(), looked_at: 4096 }
    }

    /// Takes this status for a ban, from whichever site. Default: none.
    pub fn ban_mark(mut self, status: StatusCode) -> Self {
        self.bans.push((None, BanMark::status(status)));
        self
    }

    /// Takes this status for a ban when it is this site's. Default: none.
    pub fn ban_mark_of(self, site: Site, status: StatusCode) -> Self {
        self.ban_marks(site, [BanMark::status(status)])
    }

    /// Takes this site's answers with any of these marks for a ban. Default: none.
    ///
    /// ```
    /// use http::{HeaderMap, StatusCode};
    /// use reqwest_lease::{
    ///     Answer, BanMark, Classifier, DefaultClassifier, Outcome, Route, Scheme, Site,
    /// };
    ///
    /// let site = Site::parse("shop.example").unwrap();
    /// let classifier = DefaultClassifier::new().ban_marks(
    ///     site.clone(),
    ///     [BanMark::status(StatusCode::OK).and(BanMark::body("unusual traffic"))],
    /// );
    /// let (headers, route) = (HeaderMap::new(), Route::new(Scheme::Http, true));
    /// let answer = Answer::new(StatusCode::OK, &headers, route, &site);
    /// assert_eq!(classifier.answer(&answer), Outcome::Success);
    /// assert_eq!(classifier.wants_of_body(&answer), 4096);
    /// let page = b"<p>We have seen unusual traffic from your network.";
    /// assert_eq!(classifier.body_start(&answer, page), Outcome::Banned);
    /// assert_eq!(classifier.body_start(&answer, b"<p>Welcome"), Outcome::Success);
    /// ```
    pub fn ban_marks(mut self, site: Site, marks: impl IntoIterator<Item = BanMark>) -> Self {
        self.bans.extend(marks.into_iter().map(|mark| (Some(site.clone()), mark)));
        self
    }

    /// How many bytes of a body [`BanMark::body`] looks at, at most 64 KiB. Default 4096. Nothing
    /// is looked at where no mark asks for it.
    pub const fn look_at(mut self, bytes: usize) -> Self {
        self.looked_at = bytes;
        self
    }

    /// Whether one of the marks is on an answer; `None` when only its body can tell.
    fn is_ban(&self, answer: &Answer<'_>, body: Option<&[u8]>) -> Option<bool> {
        let mut ban = Some(false);
        for (site, mark) in &self.bans {
            if site.as_ref().is_some_and(|site| site != answer.site) {
                continue;
            }
            match mark.is_on(answer, body) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => ban = None,
            }
        }
        ban
    }

    /// The outcome, with the site's own word taken for a ban where it is one: a proxy's would be
    /// another outcome.
    fn outcome(&self, answer: &Answer<'_>, body: Option<&[u8]>) -> Outcome {
        match answer::outcome(answer) {
            Outcome::Success | Outcome::Throttled if self.is_ban(answer, body) == Some(true) => {
                Outcome::Banned
            }
            outcome => outcome,
        }
    }
}

impl Default for DefaultClassifier {
    fn default() -> Self {
        Self::new()
    }
}

impl Classifier for DefaultClassifier {
    fn answer(&self, answer: &Answer<'_>) -> Outcome {
        self.outcome(answer, None)
    }

    fn wants_of_body(&self, answer: &Answer<'_>) -> usize {
        if self.is_ban(answer, None).is_none() { self.looked_at } else { 0 }
    }

    fn body_start(&self, answer: &Answer<'_>, start: &[u8]) -> Outcome {
        self.outcome(answer, Some(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ban_mark_is_the_sites_that_it_was_given_for() {
        let (here, there) = (Site::parse("a.test").unwrap(), Site::parse("b.test").unwrap());
        let classifier = DefaultClassifier::new()
            .ban_mark_of(here.clone(), StatusCode::FORBIDDEN)
            .ban_mark(StatusCode::IM_A_TEAPOT);
        let (headers, route) = (HeaderMap::new(), Route::new(Scheme::Http, true));
        let says = |site, status| classifier.answer(&Answer::new(status, &headers, route, site));
        assert_eq!(says(&here, StatusCode::FORBIDDEN), Outcome::Banned);
        assert_eq!(says(&there, StatusCode::FORBIDDEN), Outcome::Success);
        assert_eq!(says(&there, StatusCode::IM_A_TEAPOT), Outcome::Banned);
        assert_eq!(says(&here, StatusCode::NOT_FOUND), Outcome::Success);
    }

    #[test]
    fn a_proxys_own_refusal_is_no_ban() {
        let site = Site::parse("a.test").unwrap();
        let classifier = DefaultClassifier::new().ban_mark(StatusCode::FORBIDDEN);
        let marks = [("x-squid-error", "ERR_ACCESS_DENIED 0")];
        let headers: HeaderMap = marks
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .into_iter()
            .collect();
        let route = Route::new(Scheme::Http, false);
        let answer = Answer::new(StatusCode::FORBIDDEN, &headers, route, &site);
        assert_eq!(classifier.answer(&answer), Outcome::ProxyDenied);
    }
}
