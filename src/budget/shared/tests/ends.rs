//! A user ends pauses.

use url::Url;

use super::probes::is_refused_at;
use super::queues::worker;
use super::*;
use crate::budget::Budget;
use crate::error::Kind;
use crate::site::Site;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

async fn goes_at_once(budgets: &Budgets, url: &Url) {
    let site = Site::of(url).unwrap();
    let mut turn = budgets.gate(&site, url.port_or_known_default(), &[]).turn(SECOND).unwrap();
    tokio::time::timeout(5 * SECOND, turn.slot()).await.unwrap().unwrap();
    drop(turn.spend());
}

#[tokio::test]
async fn a_user_ends_the_pause_of_any_rules_bucket_here_and_for_those_to_come() {
    let server = Server::start(&[]);
    let make = async || {
        let budget = Budget::per_second(1_000);
        let builder = Budgets::builder()
            .shared(limits(&server.url()).await)
            .default(budget)
            .site("A.example", budget)
            .site("a.example:8080", budget)
            .suffix("suffix.example", budget);
        #[cfg(feature = "psl")]
        let builder = builder.domain("example.co.uk", budget);
        builder.build().unwrap()
    };
    let (one, other) = (make().await, make().await);
    for text in [
        "http://a.example/x",
        "https://A.EXAMPLE.:8080",
        "http://www.suffix.example",
        "http://by-default.example",
        #[cfg(feature = "psl")]
        "http://www.example.co.uk",
    ] {
        let url = url(text);
        is_refused_at(&server, &one, &url, 600).await;
        assert!(one.explain(&url).paused().is_some(), "{text}");
        assert!(one.end_pause(&url).await.unwrap(), "{text}");
        assert_eq!(one.explain(&url).paused(), None, "{text}");
        goes_at_once(&one, &url).await;
        goes_at_once(&other, &url).await;
        // One who has never asked the site can end it as well.
        is_refused_at(&server, &one, &url, 600).await;
        assert!(make().await.end_pause(&url).await.unwrap(), "{text}");
        assert!(!other.end_pause(&url).await.unwrap(), "once: {text}");
    }
    assert!(!one.end_pause(&url("data:text/plain,x")).await.unwrap());
}

#[tokio::test]
async fn a_pause_goes_on_if_the_server_does_not_take_its_end() {
    let mut server = Server::start(&[]);
    let budgets = worker(&server, Budget::per_second(100)).await.0;
    let url = url("http://a.test");
    is_refused_at(&server, &budgets, &url, 600).await;
    server.kill();
    let error = budgets.end_pause(&url).await.unwrap_err();
    assert_eq!(error.kind(), Kind::StoreUnavailable);
    assert!(budgets.explain(&url).paused().is_some());
}
