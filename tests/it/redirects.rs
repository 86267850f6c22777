//! Redirects: what goes over the wire, hop by hop, is what reqwest itself would send.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, REFERER};
use http::{HeaderValue, Method, StatusCode};
use reqwest::{Body, Request};
use reqwest_lease::{Kind, LeaseBuilder, LeaseMiddleware, Redirects, Targets};

use crate::support::client::{chain, get, leased, plain, pool_of, stream};
use crate::support::origin::{Answer, text};
use crate::support::web::{Asked, Web, moved};

/// One request and the redirect that it meets.
#[derive(Debug, Clone)]
struct Case {
    from: &'static str,
    method: Method,
    status: u16,
    location: Option<&'static [u8]>,
    body: Kept,
}

#[derive(Debug, Clone, Copy)]
enum Kept {
    Nothing,
    Bytes,
    Stream,
    EmptyStream,
}

const FROM: &str = "http://a.test/from/page?q=1#f";
const FROM_TLS: &str = "https://a.test/from/page?q=1#f";

const METHODS: [Method; 5] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE];
const STATUSES: [u16; 7] = [300, 301, 302, 303, 304, 307, 308];
const BODIES: [Kept; 3] = [Kept::Nothing, Kept::Bytes, Kept::Stream];

/// Those that a site may well send.
const LOCATIONS: [Option<&[u8]>; 11] = [
    Some(b"http://a.test/to"),
    Some(b"../to?x=%20y"),
    Some(b"?to"),
    Some(b"http://b.test/to"),
    Some(b"http://a.test:8080/to"),
    Some(b"//b.test/to"),
    Some(b"/to#fragment"),
    Some(b"http://127.0.0.1/to"),
    None,
    Some(b"http://[bad"),
    Some(b"ftp://b.test/to"),
];

/// Those that only an odd site sends.
const ODD: [&[u8]; 22] = [
    b"",
    b"/\xff",
    b"  /to  ",
    b"http:to",
    b"http:///b.test/to",
    b"\\\\b.test\\to",
    b"http://A.TEST/to",
    b"http://a.test:80/to",
    b"http://a.test./to",
    b"http://a.test:99999/to",
    b"http://b%2etest/to",
    b"HTTP://b.test/to",
    b"/a b|c^{}\"<>`'[]%zz",
    "/ö?ü=ß".as_bytes(),
    "http://bücher.test/to".as_bytes(),
    b"mailto:editor@b.test",
    b"data:,to",
    b"about:blank",
    b"javascript:alert(1)",
    b"file:///etc/passwd",
    b"ftp://b.test",
    b"urn:isbn:1",
];

/// Redirects as the request's own headers say.
fn answer(asked: &Asked) -> Answer {
    let from = asked.url.contains("/from/") && !asked.url.ends_with("?to");
    match asked.header("x-status").parse() {
        Ok(status) if from => {
            let mut answer = moved(status, b"/");
            match asked.headers.get("x-location") {
                Some(location) => answer.headers_mut().insert("location", location.clone()),
                None => answer.headers_mut().remove("location"),
            };
            answer
        }
        _ => text(StatusCode::OK, "arrived"),
    }
}

impl Case {
    fn request(&self, name: &str) -> Request {
        let mut request = Request::new(self.method.clone(), self.from.parse().unwrap());
        let headers = request.headers_mut();
        headers.insert("x-case", name.parse().unwrap());
        headers.insert("x-status", self.status.into());
        if let Some(location) = self.location {
            headers.insert("x-location", HeaderValue::from_bytes(location).unwrap());
        }
        for name in [AUTHORIZATION, COOKIE] {
            headers.insert(name, HeaderValue::from_static("secret=1"));
        }
        headers.insert("cookie2", HeaderValue::from_static("secret=2"));
        *request.body_mut() = match self.body {
            Kept::Nothing => return request,
            Kept::Bytes => Some(Body::from("the body")),
            Kept::Stream => Some(stream("the body")),
            Kept::EmptyStream => Some(Body::wrap(http_body_util::Empty::<Bytes>::new())),
        };
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        request
    }
}

/// What the web saw of a hop, apart from what is the proxy's.
fn line(asked: &Asked) -> String {
    let mut line = format!("{} {} [{}]", asked.method, asked.url, asked.host());
    let compared = [CONTENT_TYPE, CONTENT_LENGTH, AUTHORIZATION, COOKIE, REFERER];
    for name in compared.iter().map(|name| name.as_str()).chain([
        "cookie2",
        "transfer-encoding",
        "accept",
        "accept-encoding",
        "x-status",
    ]) {
        for value in asked.headers.get_all(name) {
            line += &format!(" {name}={value:?}");
        }
    }
    line + &format!(" {:?}", asked.body)
}

/// The hops of a case and its end.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    hops: Vec<String>,
    end: Option<(StatusCode, String)>,
}

fn trace<E>(web: &Web, name: &str, end: Result<reqwest::Response, E>) -> Trace {
    let mut asked = web.asked();
    asked.retain(|asked| asked.header("x-case") == name);
    web.forget();
    Trace {
        hops: asked.iter().map(line).collect(),
        end: end.ok().map(|response| (response.status(), response.url().to_string())),
    }
}

fn grid() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |from, method: &Method, status, location, body| {
        cases.push(Case { from, method: method.clone(), status, location, body });
    };
    for method in &METHODS {
        for status in STATUSES {
            for body in BODIES {
                for location in LOCATIONS {
                    add(FROM, method, status, location, body);
                }
            }
        }
        for status in [301, 303, 307] {
            for body in [Kept::Nothing, Kept::Bytes] {
                for location in [
                    &b"to"[..],
                    b"https://b.test/to",
                    b"http://a.test/to",
                    b"https://a.test:444/to",
                ] {
                    add(FROM_TLS, method, status, Some(location), body);
                }
                add(FROM, method, status, Some(b"https://a.test/to"), body);
            }
            add(FROM, method, status, Some(b"/to"), Kept::EmptyStream);
        }
    }
    for location in ODD {
        for (method, status, body) in [
            (Method::GET, 302, Kept::Nothing),
            (Method::POST, 302, Kept::Bytes),
            (Method::POST, 308, Kept::Bytes),
        ] {
            add(FROM, &method, status, Some(location), body);
        }
    }
    cases
}

#[tokio::test]
async fn every_redirect_goes_over_the_wire_as_reqwest_itself_sends_it() {
    let web = Web::start(answer).await;
    let reqwest = plain(&web, &web.url());
    let ours = leased(&web, web.url(), |builder| builder.targets(Targets::any())).await;
    let cases = grid();
    let mut different = Vec::new();
    for (nth, case) in cases.iter().enumerate() {
        let name = nth.to_string();
        let expected = trace(&web, &name, reqwest.execute(case.request(&name)).await);
        let found = trace(&web, &name, ours.execute(case.request(&name)).await);
        if found != expected {
            let location = case.location.map(String::from_utf8_lossy);
            different.push(format!("{case:?} {location:?}\n{expected:#?}\n{found:#?}"));
        }
    }
    eprintln!("{} cases compared", cases.len());
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

/// What the web saw, as words: method, URL and one header.
fn seen(web: &Web, header: &str) -> Vec<String> {
    let word = |asked: Asked| format!("{} {}", asked.url, asked.header(header));
    web.asked().into_iter().map(|asked| word(asked).trim_end().to_owned()).collect()
}

#[tokio::test]
async fn the_proxys_password_goes_with_every_hop_where_reqwest_loses_it() {
    let web = Web::with_password(answer).await;
    let (reqwest, open) = (plain(&web, &web.url_with_password()), Web::start(answer).await);
    let ours =
        leased(&web, web.url_with_password(), |builder| builder.targets(Targets::any())).await;
    let without = leased(&open, open.url(), |builder| builder.targets(Targets::any())).await;
    let (mut lost, mut cases) = (0, grid());
    cases.retain(|case| case.from == FROM && matches!(case.body, Kept::Bytes));
    cases.retain(|case| !case.location.is_some_and(|to| to.starts_with(b"https")));
    for (nth, case) in cases.iter().enumerate() {
        let name = nth.to_string();
        let expected = trace(&open, &name, without.execute(case.request(&name)).await);
        let found = trace(&web, &name, ours.execute(case.request(&name)).await);
        assert_eq!(found, expected, "{case:?}");
        let twin = trace(&web, &name, reqwest.execute(case.request(&name)).await);
        let refused = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
        lost += usize::from(twin.end.is_some_and(|(status, _)| status == refused));
    }
    eprintln!("{} cases compared, {lost} of them lost by reqwest", cases.len());
    assert!(lost > 50, "{lost}");
}

#[tokio::test]
async fn a_secret_stays_away_from_the_other_host_on_all_hops_there() {
    let web = Web::start(chain(&[
        ("http://a.test/", "http://b.test/1"),
        ("http://b.test/1", "http://b.test/2"),
        ("http://b.test/2", "http://a.test/3"),
    ]))
    .await;
    let secret = || get("http://a.test/", &[("authorization", "secret")]);
    let ours = leased(&web, web.url(), |builder| builder).await;
    ours.execute(secret()).await.unwrap();
    let kept = ["http://a.test/ secret", "http://b.test/1", "http://b.test/2", "http://a.test/3"];
    assert_eq!(seen(&web, "authorization"), kept);
    web.forget();
    plain(&web, &web.url()).execute(secret()).await.unwrap();
    assert_eq!(seen(&web, "authorization")[2], "http://b.test/2 secret", "reqwest's own");
}

#[tokio::test]
async fn no_default_of_the_template_can_carry_a_secret_along() {
    let web = Web::start(chain(&[("http://a.test/", "http://b.test/")])).await;
    for name in ["authorization", "Cookie", "proxy-authorization"] {
        let pool = pool_of(&[web.url()]).await;
        let refused = LeaseMiddleware::builder(pool).template(move |builder| {
            let mut value = HeaderValue::from_static("secret");
            value.set_sensitive(true);
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            builder.default_headers([(name, value)].into_iter().collect())
        });
        let error = refused.build().unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
    let ours = leased(&web, web.url(), |builder| {
        builder.template(|builder| {
            let value = HeaderValue::from_static("the \"cookie\": is a word");
            builder.default_headers([(http::header::USER_AGENT, value)].into_iter().collect())
        })
    });
    ours.await.execute(get("http://a.test/", &[])).await.unwrap();
    assert!(seen(&web, "user-agent")[1].ends_with("is a word"));
}

#[tokio::test]
async fn a_referer_never_tells_an_http_site_of_an_https_page() {
    let web = Web::start(chain(&[
        ("https://a.test:443/", "https://b.test/secret?q#f"),
        ("https://b.test:443/secret?q", "http://b.test/end"),
    ]))
    .await;
    let request = || get("https://a.test/", &[("referer", "https://a.test/private")]);
    leased(&web, web.url(), |builder| builder).await.execute(request()).await.unwrap();
    let told = [
        "https://a.test:443/ https://a.test/private",
        "https://b.test:443/secret?q https://a.test/",
        "http://b.test/end",
    ];
    assert_eq!(seen(&web, "referer"), told);
    web.forget();
    plain(&web, &web.url()).execute(request()).await.unwrap();
    let told = "http://b.test/end https://a.test/private";
    assert_eq!(seen(&web, "referer")[2], told, "reqwest sends the caller's own");
    web.forget();
    let silent = |builder: LeaseBuilder| builder.redirects(Redirects::default().referer(false));
    leased(&web, web.url(), silent).await.execute(get("https://a.test/", &[])).await.unwrap();
    assert!(web.asked().iter().all(|asked| asked.header("referer").is_empty()));
}

#[tokio::test]
async fn a_host_header_goes_no_further_than_its_host() {
    let web =
        Web::start(chain(&[("http://a.test/", "/1"), ("http://a.test/1", "http://b.test/2")]))
            .await;
    let request = || get("http://a.test/", &[("host", "virtual.test")]);
    leased(&web, web.url(), |builder| builder).await.execute(request()).await.unwrap();
    let hosts =
        |web: &Web| web.asked().iter().map(|asked| asked.host().into()).collect::<Vec<String>>();
    assert_eq!(hosts(&web), ["virtual.test", "virtual.test", "b.test"]);
    web.forget();
    plain(&web, &web.url()).execute(request()).await.unwrap();
    assert_eq!(hosts(&web)[2], "virtual.test", "reqwest tells b.test another name");
}

#[tokio::test]
async fn user_information_is_credentials_first_and_nothing_on_a_hop() {
    let web = Web::start(chain(&[("http://a.test/", "http://u:p@b.test/1")])).await;
    let ours = leased(&web, web.url(), |builder| builder).await;
    let request = get("http://user:pass%20word@a.test/", &[]);
    let response = ours.execute(request).await.unwrap();
    assert_eq!(response.url().as_str(), "http://b.test/1");
    let sent = ["http://a.test/ Basic dXNlcjpwYXNzIHdvcmQ=", "http://b.test/1"];
    assert_eq!(seen(&web, "authorization"), sent);
    web.forget();
    let response = plain(&web, &web.url()).execute(get("http://a.test/", &[])).await.unwrap();
    assert_eq!(response.url().as_str(), "http://u:p@b.test/1", "reqwest's own");
    assert_eq!(web.urls()[1], "http://u:p@b.test/1");
}
