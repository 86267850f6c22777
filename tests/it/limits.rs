//! How far a redirect leads, and where it never does.

use http::StatusCode;
use reqwest_lease::{Error, Kind, LeaseInfo, LeaseMiddleware, Redirects, Targets};

use crate::support::client::{chain, failure, get, leased, pool_of};
use crate::support::origin::text;
use crate::support::web::{Web, moved};

#[tokio::test]
async fn ten_hops_are_followed_and_the_eleventh_is_an_error() {
    let web = Web::start(|asked| {
        let left: u32 = asked.url.rsplit('/').next().unwrap().parse().unwrap();
        match left {
            0 => text(StatusCode::OK, "arrived"),
            _ => moved(302, (left - 1).to_string().as_bytes()),
        }
    })
    .await;
    let ours = leased(&web, web.url(), |builder| builder).await;
    let response = ours.execute(get("http://a.test/10", &[])).await.unwrap();
    assert_eq!(response.extensions().get::<LeaseInfo>().unwrap().hops(), 10);
    assert_eq!(response.text().await.unwrap(), "arrived");
    web.forget();
    assert_eq!(failure(&ours, "http://a.test/11").await, Kind::TooManyRedirects);
    assert_eq!(web.asked().len(), 11);
    for (redirects, sent, end) in [
        (Redirects::none(), 1, Ok(StatusCode::FOUND)),
        (Redirects::limited(0), 1, Err(Kind::TooManyRedirects)),
        (Redirects::limited(2), 3, Err(Kind::TooManyRedirects)),
        (Redirects::limited(3), 4, Ok(StatusCode::OK)),
    ] {
        web.forget();
        let ours = leased(&web, web.url(), |builder| builder.redirects(redirects)).await;
        let found = ours.execute(get("http://a.test/3", &[])).await;
        let found = found.map(|response| response.status());
        assert_eq!(found.map_err(|error| Error::find_in(&error).unwrap().kind()), end);
        assert_eq!(web.asked().len(), sent);
    }
}

#[tokio::test]
async fn a_loop_ends_and_gives_its_lease_back_in_good_standing() {
    let web = Web::start(chain(&[
        ("http://a.test/", "http://b.test/"),
        ("http://b.test/", "http://a.test/"),
    ]))
    .await;
    let pool = pool_of(&[web.url()]).await;
    let ours = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    assert_eq!(failure(&ours, "http://a.test/").await, Kind::TooManyRedirects);
    assert_eq!(web.asked().len(), 11);
    let status = pool.status().await.unwrap();
    assert_eq!((status.ready, status.leased, status.cooling), (1, 0, 0));
}

#[tokio::test]
async fn a_public_page_leads_to_no_special_address() {
    let web = Web::start(|asked| match asked.url.split_once("?to=") {
        Some((_, to)) => moved(302, to.as_bytes()),
        None => text(StatusCode::OK, "arrived"),
    })
    .await;
    let careful = leased(&web, web.url(), |builder| builder).await;
    let free = leased(&web, web.url(), |builder| builder.targets(Targets::any())).await;
    let public = leased(&web, web.url(), |builder| builder.targets(Targets::public())).await;
    for special in [
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://localhost/",
        "http://localhost.:8080/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.1.2.3:81/",
        "//192.168.0.1/",
    ] {
        web.forget();
        let from = format!("http://public.test/?to={special}");
        assert_eq!(failure(&careful, &from).await, Kind::TargetRefused, "{special}");
        assert_eq!(web.asked().len(), 1, "{special}");
        let response = free.execute(get(&from, &[])).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{special}");
        web.forget();
        let first = special.replace("//192", "http://192");
        assert_eq!(failure(&public, &first).await, Kind::TargetRefused, "{special}");
        assert!(web.asked().is_empty(), "{special}");
        careful.execute(get(&first, &[])).await.unwrap();
    }
    // By way of a second public host, too.
    let twice = "http://public.test/?to=http://a.test/?to=http://127.0.0.1/";
    web.forget();
    assert_eq!(failure(&careful, twice).await, Kind::TargetRefused);
    assert_eq!(web.asked().len(), 2);
}

#[tokio::test]
async fn a_redirect_that_leaves_http_is_an_error_and_is_not_followed() {
    let web = Web::start(|asked| match asked.url.as_str() {
        "http://a.test/1" => moved(302, b"ftp://b.test/"),
        _ => moved(302, b"http://b..test/"),
    })
    .await;
    let ours = leased(&web, web.url(), |builder| builder).await;
    for url in ["http://a.test/1", "http://a.test/2"] {
        assert_eq!(failure(&ours, url).await, Kind::TargetRefused);
    }
    assert_eq!(web.asked().len(), 2);
}
