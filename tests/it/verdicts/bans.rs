//! Answers by which a site shows that it has banned an endpoint.

use http::StatusCode;
use http::header::LOCATION;
use reqwest_lease::{BanMark, DefaultClassifier, LeaseMiddleware, Site, State};

use super::*;
use crate::support::origin::{Answer, text};
use crate::support::web::{Asked, Web, moved};

const PAGE: &str = "We have seen unusual traffic from your network.";

/// A site that has banned whoever comes by one endpoint; the twin's marks are another site's.
async fn scene(
    at: (Kept, Mode),
    banned: fn(&Asked) -> Answer,
    twin: bool,
) -> (Kit, ClientWithMiddleware, [Web; 2]) {
    let bad = Web::start(move |asked| match asked.url.starts_with("http://a.test/") {
        true => banned(asked),
        false => text(StatusCode::OK, "hello"),
    })
    .await;
    let good = Web::start(|_| text(StatusCode::OK, "hello")).await;
    let kit = Kit::new(at, &[bad.url(), good.url()], |builder| builder).await;
    let site = Site::parse(if twin { "z.test" } else { "a.test" }).unwrap();
    let marks = [
        BanMark::status(StatusCode::FORBIDDEN),
        BanMark::header(LOCATION, "/captcha"),
        BanMark::status(StatusCode::OK).and(BanMark::body("unusual traffic")),
    ];
    let classifier = DefaultClassifier::new().ban_marks(site, marks).look_at(64);
    let middleware = LeaseMiddleware::builder(kit.pool.clone()).classifier(classifier).build();
    (kit, middleware.unwrap().into_client(), [bad, good])
}

/// How often the banned endpoint served one site and the other in ten requests to each.
async fn shares(kit: &Kit, client: &ClientWithMiddleware) -> (usize, usize) {
    let mut shares = [0, 0];
    for (share, url) in shares.iter_mut().zip(["http://a.test/", "http://b.test/"]) {
        for _ in 0..10 {
            *share += usize::from(served(client, url).await.unwrap().0 == name(0));
            kit.quiet().await;
        }
    }
    let list = kit.pool.list().await.unwrap();
    assert!(list.iter().all(|member| member.state == State::Ready && member.strikes == 0));
    (shares[0], shares[1])
}

#[tokio::test]
async fn a_banned_endpoint_goes_on_serving_other_sites() {
    let bans: [fn(&Asked) -> Answer; 2] =
        [|_| text(StatusCode::FORBIDDEN, "no"), |_| text(StatusCode::OK, PAGE)];
    for banned in bans {
        for at in EVERYWHERE {
            let (kit, client, _webs) = scene(at, banned, false).await;
            let (there, elsewhere) = shares(&kit, &client).await;
            assert_eq!(there, 1, "{at:?}: the answer that showed it");
            assert!(elsewhere >= 4, "{at:?}: {elsewhere}");
        }
        let (kit, client, _webs) = scene(EVERYWHERE[0], banned, true).await;
        assert_eq!(shares(&kit, &client).await, (5, 5), "the twin");
    }
}

#[tokio::test]
async fn a_ban_that_leads_elsewhere_is_followed_by_another_endpoint() {
    let captcha: fn(&Asked) -> Answer = |asked| match asked.url.ends_with("/captcha") {
        true => text(StatusCode::OK, "are you human?"),
        false => moved(302, b"http://a.test/captcha"),
    };
    for (twin, by) in [(false, 1), (true, 0)] {
        let (kit, client, _webs) = scene(EVERYWHERE[0], captcha, twin).await;
        assert_eq!(served(&client, "http://a.test/").await, Some((name(by), 200)));
        assert_eq!(shares(&kit, &client).await.0 > 0, twin);
    }
}

#[tokio::test]
async fn a_body_that_is_looked_into_comes_as_it_is() {
    let long: fn(&Asked) -> Answer = |_| text(StatusCode::OK, PAGE.repeat(10_000));
    for twin in [false, true] {
        let (kit, client, _webs) = scene(EVERYWHERE[0], long, twin).await;
        let mut response = client.get("http://a.test/").send().await.unwrap();
        assert_eq!(response.content_length(), Some(PAGE.len() as u64 * 10_000));
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            body.extend(chunk);
        }
        assert!(body == PAGE.repeat(10_000).as_bytes());
        drop(response);
        assert_eq!(shares(&kit, &client).await.0 == 0, !twin);
    }
}

#[tokio::test]
async fn a_ban_is_seen_by_who_reads_its_beginning_and_leaves() {
    let long: fn(&Asked) -> Answer = |_| text(StatusCode::OK, PAGE.repeat(100_000));
    for twin in [false, true] {
        let (kit, client, _webs) = scene(EVERYWHERE[0], long, twin).await;
        let mut response = client.get("http://a.test/").send().await.unwrap();
        response.chunk().await.unwrap();
        drop(response);
        kit.quiet().await;
        let by = served(&client, "http://b.test/").await.unwrap().0;
        assert_eq!(by, name(1), "by turns");
        assert_eq!(served(&client, "http://a.test/").await.unwrap().0 == name(0), twin);
    }
}
