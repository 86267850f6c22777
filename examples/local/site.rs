//! A small linked web site that remembers who asked for what.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::Listening;

/// The site. It ends when it is dropped.
pub(crate) struct Site {
    listening: Listening,
    visits: Visits,
}

/// One request that reached the site.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    /// The other end of the connection.
    pub(crate) peer: SocketAddr,
    /// The path that was asked for.
    pub(crate) path: String,
    /// When.
    pub(crate) at: Instant,
}

type Visits = Arc<Mutex<Vec<Visit>>>;

impl Site {
    /// Starts the site on a port of its own.
    pub(crate) async fn start() -> io::Result<Self> {
        let visits = Visits::default();
        let record = Arc::clone(&visits);
        let listening = Listening::start(move |stream, peer, _| {
            let record = Arc::clone(&record);
            let answer = service_fn(move |request: Request<Incoming>| {
                let path = request.uri().path().to_owned();
                let response = answer(&path);
                let visit = Visit { peer, path, at: Instant::now() };
                record.lock().unwrap_or_else(PoisonError::into_inner).push(visit);
                async { Ok::<_, Infallible>(response) }
            });
            async move {
                // A visitor that hangs up is no news here.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            }
        })
        .await?;
        Ok(Self { listening, visits })
    }

    /// The address of a page, given its path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listening.address())
    }

    /// Every request so far, in the order of arrival.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.visits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

const TOPICS: usize = 6;
const ARTICLES: usize = 7;

/// Pages that a crawler can find and may fetch: front page, topics, articles, and the long one.
pub(crate) const PAGES: usize = 1 + TOPICS + TOPICS * ARTICLES + 1;

/// The length of the long page.
pub(crate) const LONG_PAGE: usize = 1 << 20;

const ROBOTS: &str = "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.02\n";

fn answer(path: &str) -> Response<Full<Bytes>> {
    let (status, kind, body) = match path {
        "/robots.txt" => (StatusCode::OK, "text/plain", ROBOTS.to_owned()),
        "/old" => (StatusCode::MOVED_PERMANENTLY, "text/plain", String::new()),
        _ => match page(path) {
            Some(body) => (StatusCode::OK, "text/html; charset=utf-8", body),
            None => (StatusCode::NOT_FOUND, "text/plain", "no such page\n".to_owned()),
        },
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    if status.is_redirection() {
        let target = http::HeaderValue::from_static("/topics/1.html");
        response.headers_mut().insert(LOCATION, target);
    }
    response
}

fn page(path: &str) -> Option<String> {
    match path {
        "/" => return Some(front()),
        "/long.html" => return Some(long()),
        "/private/diary.html" => return Some(html("Diary", "", "<p>Not for crawlers.</p>")),
        "/login.html" => return Some(html("Log in", "", "<p>Linked with nofollow.</p>")),
        _ => {}
    }
    let rest = path.strip_prefix("/topics/")?.strip_suffix(".html")?;
    match rest.split_once('/') {
        None => topic(number(rest, TOPICS)?),
        Some((topic, nth)) => article(number(topic, TOPICS)?, number(nth, ARTICLES)?),
    }
}

fn number(text: &str, most: usize) -> Option<usize> {
    text.parse().ok().filter(|number| (1..=most).contains(number))
}

fn front() -> String {
    let mut links = String::new();
    for topic in 1..=TOPICS {
        let _ = writeln!(links, r#"<a href="topics/{topic}.html">Topic {topic}</a>"#);
    }
    links.push_str(
        r##"<a href="/old">An old address</a>
<a href="/long.html#end">A long page</a>
<a href="/missing.html">Gone</a>
<a href="/private/diary.html">Private</a>
<a href="/login.html" rel="nofollow">Log in</a>
<a href="http://elsewhere.test/">Another host</a>
<a href="mailto:editor@elsewhere.test">Write to us</a>
<a href="#top">Top</a>"##,
    );
    html("Front page", "", &links)
}

fn topic(topic: usize) -> Option<String> {
    let mut links = String::from("<a href=\"../../\">Front page</a>\n");
    for nth in 1..=ARTICLES {
        let _ = writeln!(links, r#"<a href="{nth}.html#text">Article {nth}</a>"#);
    }
    let base = format!(r#"<base href="/topics/{topic}/">"#);
    Some(html(&format!("Topic {topic}"), &base, &links))
}

fn article(topic: usize, nth: usize) -> Option<String> {
    let next = nth % ARTICLES + 1;
    let body = format!(
        "<p id=\"text\">{}</p>\n<a href=\"../{topic}.html\">Up</a>\n<a href=\"{next}.html\">Next</a>",
        "Words about it. ".repeat(40 * nth)
    );
    Some(html(&format!("Article {topic}.{nth}"), "", &body))
}

fn long() -> String {
    let start = "<!doctype html><title>A long page</title><a href=\"/\">Front page</a><pre>\n";
    let line = "All work and no play makes a long page.\n";
    let mut page = start.to_owned() + &line.repeat(LONG_PAGE / line.len());
    page.truncate(LONG_PAGE);
    page
}

fn html(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><title>{title}</title>{head}</head>\n\
         <body id=\"top\"><h1>{title}</h1>\n{body}\n</body></html>\n"
    )
}
