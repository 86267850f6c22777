//! Which part of an exchange a time limit struck.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Extensions;
use reqwest_lease::{Error, Kind, LeaseInfo, Outcome};
use tower::timeout::TimeoutLayer;
use tower::util::MapRequestLayer;

use super::scene::{BRIEF, Full, Target, Targets, Watched};
use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::client::get;
use crate::support::fault::{Fault, FaultProxy};

const SCHEMES: [&str; 3] = ["http", "socks5h", "https"];

fn pages() -> [&'static str; 2] {
    ["http://a.test/", "https://a.test/"]
}

#[tokio::test]
async fn an_endpoint_whose_dial_gets_no_answer_is_unreachable() {
    let (full, targets) = (Full::start().await, Targets::start().await);
    for scheme in SCHEMES {
        for page in pages() {
            let url = format!("{scheme}://{}", full.address());
            let watched = Watched::endpoint(&url, None).await;
            let client = watched.client(&targets, |builder| builder.connect_timeout(BRIEF));
            let error = client.execute(get(page, &[])).await.unwrap_err();
            let error = Error::find_in(&error).unwrap_or_else(|| panic!("{scheme}: {error:?}"));
            assert_eq!(error.kind(), Kind::ProxyUnreachable);
            let [tried] = error.tried() else { panic!("{error:?}") };
            assert_eq!(tried.to_string(), "a: proxy_unreachable");
            watched.check(watched.outcome()).await;
        }
    }
}

/// A caller's impatience is no word on the endpoint.
#[tokio::test]
async fn a_dial_that_the_callers_own_limit_cuts_short_is_stalled() {
    let (full, targets) = (Full::start().await, Targets::start().await);
    for scheme in SCHEMES {
        for page in pages() {
            let url = format!("{scheme}://{}", full.address());
            let watched = Watched::endpoint(&url, None).await;
            let client = watched.client(&targets, |builder| builder.timeout(BRIEF));
            let error = client.execute(get(page, &[])).await.unwrap_err();
            assert!(error.is_timeout() && Error::find_in(&error).is_none(), "{error:?}");
            assert_eq!(watched.outcome(), Outcome::Stalled, "{scheme} {page}");
        }
    }
}

/// The time for a connection counts for the way through a tunnel too, which is the target's.
#[tokio::test]
async fn a_target_that_gets_no_answer_leaves_the_endpoint_alone() {
    let targets = Targets::start().await;
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let watched = Watched::endpoint(&proxy.url(), None).await;
    let client = watched.client(&targets, |builder| builder.connect_timeout(BRIEF));
    let silent = targets.url(true, Target::Silent);
    let error = client.execute(get(&silent, &[])).await.unwrap_err();
    assert!(error.is_timeout() && error.is_connect(), "{error:?}");
    assert_eq!(watched.outcome(), Outcome::Stalled);
}

#[tokio::test]
async fn a_failed_exchange_tells_its_endpoint_to_those_above() {
    let (targets, closing) = (Targets::start().await, FaultProxy::start(Fault::Closes).await);
    let watched = Watched::endpoint(&closing.url(), None).await;
    let client = watched.client(&targets, |builder| builder);
    let mut extensions = Extensions::new();
    let plain = get("http://a.test/", &[]);
    let error = client.execute_with_extensions(plain, &mut extensions).await.unwrap_err();
    assert!(matches!(error, reqwest_middleware::Error::Reqwest(_)), "reqwest's own: {error:?}");
    let info = extensions.get::<LeaseInfo>().unwrap();
    assert_eq!((info.endpoint().as_str(), info.outcome()), ("a", Outcome::Unknown));
    let tunnel = get("https://a.test/", &[]);
    let error = client.execute_with_extensions(tunnel, &mut extensions).await.unwrap_err();
    assert_eq!(Error::find_in(&error).unwrap().tried().len(), 1);
    assert!(extensions.get::<LeaseInfo>().is_none(), "not the one before");
}

/// A template's own layers around connections go on working, below this crate's.
#[tokio::test]
async fn a_templates_layers_see_its_connections() {
    let (full, targets) = (Full::start().await, Targets::start().await);
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let dials = Arc::new(AtomicUsize::new(0));
    let watched = Watched::endpoint(&proxy.url(), None).await;
    let counted = dials.clone();
    let client = watched.client(&targets, |builder| {
        builder.template(move |template| {
            let dials = counted.clone();
            template.connector_layer(MapRequestLayer::new(move |dial| {
                dials.fetch_add(1, Ordering::SeqCst);
                dial
            }))
        })
    });
    for _ in 0..2 {
        let response = client.get(targets.url(false, Target::Fine)).send().await.unwrap();
        response.bytes().await.unwrap();
    }
    assert_eq!(dials.load(Ordering::SeqCst), 1);
    let watched = Watched::endpoint(&format!("http://{}", full.address()), None).await;
    let client = watched.client(&targets, |builder| {
        builder.template(|it| it.connector_layer(TimeoutLayer::new(Duration::from_millis(50))))
    });
    client.execute(get("http://a.test/", &[])).await.unwrap_err();
    assert_eq!(watched.outcome(), Outcome::ProxyUnreachable);
}
