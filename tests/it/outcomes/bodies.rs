//! Bodies that break off, stall, or come from a caller that fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::header::CONTENT_ENCODING;
use http::{HeaderValue, Method, StatusCode};
use reqwest::{Body, Request};
use reqwest_lease::{
    Answer, Classifier, DefaultClassifier, Endpoint, EndpointId, Evidence, Failed, Inventory,
    Judge, LeaseInfo, LeaseMiddleware, Outcome, Pool, PoolName, Site, Verdict,
};

use super::scene::{BRIEF, Targets, Watched};
use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::client::get;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::h2::H2Origin;
use crate::support::origin::{Origin, text};
use crate::support::tap::Tap;

/// What became of a body, with a time limit on the whole request or on each read.
async fn read(url: &str, page: &str, each_read: bool) -> Outcome {
    let (targets, watched) = (Targets::start().await, Watched::endpoint(url, None).await);
    let client = watched.client(&targets, |builder| match each_read {
        true => builder.template(|template| template.read_timeout(BRIEF)),
        false => builder.timeout(BRIEF),
    });
    let response = client.get(page).send().await.unwrap();
    assert!(response.bytes().await.is_err());
    watched.outcome()
}

#[tokio::test]
async fn a_body_that_stalls_is_told_from_one_that_is_cut() {
    let tap = Tap::start().await;
    for each_read in [false, true] {
        let seen = read(&tap.url(), "http://a.test/quiet", each_read).await;
        assert_eq!(seen, Outcome::Stalled, "{each_read}");
    }
    let dying = FaultProxy::start(Fault::DiesAfter(10)).await;
    assert_eq!(read(&dying.url(), "http://a.test/", false).await, Outcome::BodyCut);
}

/// Through a tunnel, with HTTP/2 in it.
async fn over_h2(path: &str, limit: Duration) -> Outcome {
    let (origin, targets) = (H2Origin::start().await, Targets::start().await);
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let watched = Watched::endpoint(&proxy.url(), None).await;
    let trusted = origin.authority().client_config();
    let client = watched.client(&targets, |builder| builder.tls(trusted).timeout(limit));
    let response = client.get(origin.url(path)).send().await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    assert_eq!(response.bytes().await.is_err(), path != "/");
    watched.outcome()
}

#[tokio::test]
async fn a_stream_that_is_reset_is_a_cut_body() {
    let long = Duration::from_secs(10);
    assert_eq!(over_h2("/", long).await, Outcome::Success);
    assert_eq!(over_h2("/reset", long).await, Outcome::BodyCut);
    assert_eq!(over_h2("/quiet", BRIEF).await, Outcome::Stalled);
}

#[tokio::test]
async fn who_has_read_every_byte_may_leave_the_trailers() {
    let (origin, targets) = (H2Origin::start().await, Targets::start().await);
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    for (left, expected) in [(0, Outcome::Success), (1, Outcome::Cancelled)] {
        let watched = Watched::endpoint(&proxy.url(), None).await;
        let trusted = origin.authority().client_config();
        let client = watched.client(&targets, |builder| builder.tls(trusted));
        let mut response = client.get(origin.url("/trailers")).send().await.unwrap();
        if left == 0 {
            assert_eq!(response.chunk().await.unwrap().unwrap(), "hello");
        }
        drop(response);
        assert_eq!(watched.outcome(), expected);
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_decoded_blames_nobody() {
    let origin = Origin::http(|_| {
        let mut answer = text(StatusCode::OK, "this is not gzip");
        answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        answer
    })
    .await;
    let (proxy, targets) =
        (ForwardProxy::start(Manners::default()).await.unwrap(), Targets::start().await);
    let watched = Watched::endpoint(&proxy.url(), None).await;
    let client = watched.client(&targets, |builder| builder.template(|it| it.gzip(true)));
    let response = client.get(origin.url("/")).send().await.unwrap();
    assert!(response.bytes().await.is_err());
    assert_eq!(watched.outcome(), Outcome::Unknown);
}

/// A stream that fails after its first bytes.
fn failing() -> Body {
    let chunks = [Ok(Bytes::from_static(b"hel")), Err(std::io::Error::other("mine"))];
    Body::wrap_stream(stream::iter(chunks))
}

#[tokio::test]
async fn a_callers_failing_stream_is_its_own_fault() {
    let (origin, h2, targets) = (
        Origin::https(|_| text(StatusCode::OK, "")).await,
        H2Origin::start().await,
        Targets::start().await,
    );
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    for (url, trusted) in [
        ("http://127.0.0.1:1/".to_owned(), origin.authority().client_config()),
        (origin.url("/"), origin.authority().client_config()),
        (h2.url("/echo"), h2.authority().client_config()),
    ] {
        // Only a proxy that waits for the body lets the caller fail first.
        let stalls = FaultProxy::start(Fault::Stalls).await;
        let through = if url.starts_with("https") { proxy.url() } else { stalls.url() };
        let watched = Watched::endpoint(&through, None).await;
        let client = watched.client(&targets, |builder| builder.tls(trusted));
        let mut request = Request::new(Method::POST, url.parse().unwrap());
        *request.body_mut() = Some(failing());
        client.execute(request).await.unwrap_err();
        assert_eq!(watched.outcome(), Outcome::LocalFault, "{url}");
        watched.check(Outcome::LocalFault).await;
    }
}

/// The twin is an endpoint that answers nothing to all that there is to send.
#[tokio::test]
async fn a_callers_stream_that_does_not_go_on_is_its_own_fault() {
    let (h2, targets) = (H2Origin::start().await, Targets::start().await);
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let silent = FaultProxy::start(Fault::Stalls).await;
    for (through, url, ends, expected) in [
        (silent.url(), "http://127.0.0.1:1/".to_owned(), false, Outcome::LocalFault),
        (silent.url(), "http://127.0.0.1:1/".to_owned(), true, Outcome::Stalled),
        (proxy.url(), h2.url("/echo"), false, Outcome::LocalFault),
        (proxy.url(), h2.url("/quiet"), true, Outcome::Stalled),
    ] {
        let watched = Watched::endpoint(&through, None).await;
        let trusted = h2.authority().client_config();
        let client = watched.client(&targets, |builder| builder.tls(trusted).timeout(BRIEF));
        let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"hel"))]);
        let body = match ends {
            true => Body::wrap_stream(first),
            false => Body::wrap_stream(first.chain(stream::pending())),
        };
        let mut request = Request::new(Method::POST, url.parse().unwrap());
        *request.body_mut() = Some(body);
        if let Ok(response) = client.execute(request).await {
            assert!(response.bytes().await.is_err());
        }
        assert_eq!(watched.outcome(), expected, "{url} {ends}");
    }
}

#[tokio::test]
async fn what_the_head_said_stands_when_nobody_reads_the_body() {
    let origin = Origin::http(|visit| match visit.path.as_str() {
        "/slow-down" => text(StatusCode::TOO_MANY_REQUESTS, "slow down"),
        _ => text(StatusCode::OK, "hello"),
    })
    .await;
    let (proxy, targets) =
        (ForwardProxy::start(Manners::default()).await.unwrap(), Targets::start().await);
    for (path, expected) in [("/slow-down", Outcome::Throttled), ("/", Outcome::Cancelled)] {
        let watched = Watched::endpoint(&proxy.url(), None).await;
        let client = watched.client(&targets, |builder| builder);
        drop(client.get(origin.url(path)).send().await.unwrap());
        assert_eq!(watched.outcome(), expected);
    }
}

/// Takes pages with a captcha for a ban.
struct Captcha;

impl Classifier for Captcha {
    fn answer(&self, answer: &Answer<'_>) -> Outcome {
        match answer.headers.contains_key("x-captcha") {
            true => Outcome::Banned,
            false => DefaultClassifier::new().answer(answer),
        }
    }
}

#[tokio::test]
async fn a_ban_is_what_one_says_it_is() {
    let origin = Origin::http(|_| {
        let mut answer = text(StatusCode::FORBIDDEN, "who are you?");
        answer.headers_mut().insert("x-captcha", HeaderValue::from_static("1"));
        answer
    })
    .await;
    let (proxy, targets) =
        (ForwardProxy::start(Manners::default()).await.unwrap(), Targets::start().await);
    let here = Site::parse("127.0.0.1").unwrap();
    let marked = DefaultClassifier::new().ban_mark_of(here, StatusCode::FORBIDDEN);
    let classifiers: [(Arc<dyn Classifier>, _); 3] = [
        (Arc::new(DefaultClassifier::new()), Outcome::Success),
        (Arc::new(marked), Outcome::Banned),
        (Arc::new(Captcha), Outcome::Banned),
    ];
    for (classifier, expected) in classifiers {
        let watched = Watched::endpoint(&proxy.url(), None).await;
        let client = watched.client(&targets, |builder| builder.classifier(classifier));
        let response = client.execute(get(&origin.url("/"), &[])).await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "returned like any other");
        assert_eq!(response.extensions().get::<LeaseInfo>().unwrap().outcome(), expected);
        response.bytes().await.unwrap();
        assert_eq!(watched.outcome(), expected);
    }
}

/// Takes a blank page for a ban.
struct Blank;

impl Classifier for Blank {
    fn wants_of_body(&self, _: &Answer<'_>) -> usize {
        16
    }

    fn body_start(&self, answer: &Answer<'_>, start: &[u8]) -> Outcome {
        match start.is_empty() {
            true => Outcome::Banned,
            false => self.answer(answer),
        }
    }
}

#[tokio::test]
async fn a_body_without_a_byte_is_looked_at_too_but_none_where_there_can_be_none() {
    let origin = Origin::http(|visit| match visit.path.as_str() {
        "/blank" => text(StatusCode::OK, ""),
        _ => text(StatusCode::OK, "hello"),
    })
    .await;
    let (proxy, targets) =
        (ForwardProxy::start(Manners::default()).await.unwrap(), Targets::start().await);
    for (method, path, expected) in [
        (Method::GET, "/blank", Outcome::Banned),
        (Method::GET, "/", Outcome::Success),
        (Method::HEAD, "/", Outcome::Success),
    ] {
        let watched = Watched::endpoint(&proxy.url(), None).await;
        let client = watched.client(&targets, |builder| builder.classifier(Blank));
        let request = Request::new(method.clone(), origin.url(path).parse().unwrap());
        client.execute(request).await.unwrap().bytes().await.unwrap();
        assert_eq!(watched.outcome(), expected, "{method} {path}");
    }
}

#[tokio::test]
async fn a_body_of_which_nothing_came_is_not_taken_for_an_empty_one() {
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    let (proxy, targets) =
        (ForwardProxy::start(Manners::default()).await.unwrap(), Targets::start().await);
    let watched = Watched::endpoint(&proxy.url(), None).await;
    let client = watched.client(&targets, |builder| builder.classifier(Blank));
    drop(client.execute(get(&origin.url("/"), &[])).await.unwrap());
    assert_eq!(watched.outcome(), Outcome::Cancelled, "left unread");

    let dies = FaultProxy::start(Fault::DiesAfter(0)).await;
    let watched = Watched::endpoint(&dies.url(), None).await;
    let client = watched.client(&targets, |builder| builder.classifier(Blank));
    let response = client.execute(get("http://a.test/", &[])).await.unwrap();
    assert!(response.bytes().await.is_err());
    assert_eq!(watched.outcome(), Outcome::BodyCut);
}

/// Panics wherever it is asked.
struct Panics;

impl Classifier for Panics {
    fn failure(&self, _: &Failed<'_>) -> Outcome {
        panic!("a failure")
    }

    fn answer(&self, _: &Answer<'_>) -> Outcome {
        panic!("an answer")
    }

    fn wants_of_body(&self, _: &Answer<'_>) -> usize {
        16
    }

    fn body_start(&self, _: &Answer<'_>, _: &[u8]) -> Outcome {
        panic!("a body")
    }
}

#[tokio::test]
async fn a_classifier_that_panics_leaves_it_to_the_default_one() {
    let (origin, dying) = (
        Origin::http(|_| text(StatusCode::TOO_MANY_REQUESTS, "slow down")).await,
        FaultProxy::start(Fault::DiesAfter(10)).await,
    );
    let (proxy, targets) =
        (ForwardProxy::start(Manners::default()).await.unwrap(), Targets::start().await);
    let stalls = FaultProxy::start(Fault::Stalls).await;
    // Of a body that is left before its first byte nothing is looked at.
    for (through, most_chunks, expected, panics) in [
        (proxy.url(), usize::MAX, Outcome::Throttled, 2),
        (proxy.url(), 0, Outcome::Throttled, 1),
        (dying.url(), usize::MAX, Outcome::BodyCut, 3),
        (dying.url(), 1, Outcome::Cancelled, 2),
        (dying.url(), 0, Outcome::Cancelled, 1),
        (stalls.url(), usize::MAX, Outcome::Stalled, 1),
    ] {
        let watched = Watched::endpoint(&through, None).await;
        let client = watched.client(&targets, |it| it.classifier(Panics).timeout(BRIEF));
        if let Ok(mut response) = client.get(origin.url("/")).send().await {
            let mut read = 0;
            while read < most_chunks && matches!(response.chunk().await, Ok(Some(_))) {
                read += 1;
            }
        }
        assert_eq!(watched.outcome(), expected);
        assert_eq!(watched.pool.counts().panics, panics, "{expected}");
    }
}

/// Remembers whether what was given up had been served.
#[derive(Clone, Default)]
struct Served(Arc<Mutex<Vec<(Outcome, bool)>>>);

impl Judge for Served {
    fn judge(&self, evidence: Evidence<'_>) -> Verdict {
        self.0.lock().unwrap().push((evidence.outcome, evidence.served));
        Verdict::default()
    }
}

#[tokio::test]
async fn a_body_that_is_left_has_been_served_unless_it_was_waited_for() {
    let tap = Tap::start().await;
    for (path, reads, waits, served) in [
        ("endless", 0, false, true),
        ("endless", 2, false, true),
        ("quiet", 0, false, true),
        ("quiet", 0, true, false),
    ] {
        let (spy, id) = (Served::default(), EndpointId::new("a").unwrap());
        let endpoint = Endpoint::new(id, &tap.url(), None).unwrap();
        let inventory = Inventory::from_endpoints([endpoint]).unwrap();
        let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory).judge(spy.clone());
        let middleware = LeaseMiddleware::builder(pool.build().await.unwrap()).build().unwrap();
        let url = format!("http://a.test/{path}");
        let mut response = middleware.into_client().get(url).send().await.unwrap();
        for _ in 0..reads {
            response.chunk().await.unwrap().unwrap();
        }
        if waits {
            assert!(response.chunk().now_or_never().is_none());
        }
        drop(response);
        assert_eq!(*spy.0.lock().unwrap(), [(Outcome::Cancelled, served)], "{path} {reads}");
    }
}
