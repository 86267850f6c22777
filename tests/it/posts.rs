//! No request reaches a target twice by what this crate does, whatever becomes of it there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream as streams};
use http::Method;
use reqwest::{Body, Request};
use reqwest_lease::{LeaseMiddleware, LeaseOptions};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::local::Listening;
use crate::support::client::{pool_of, stream};
use crate::support::tls::Authority;

/// What a target does with a request once it has read all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It says this, and goes on.
    Says(&'static str),
    /// It says this, and hangs up.
    Ends(&'static str),
    /// It says this, and nothing more.
    Stalls(&'static str),
    /// It resets the connection.
    Resets,
}
use Then::{Ends, Resets, Says, Stalls};

const FAULTS: &[Then] = &[
    Says("HTTP/1.1 401 No\r\nServer: tinyproxy/1\r\nContent-Length: 0\r\n\r\n"),
    Says("HTTP/1.1 403 No\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\nContent-Length: 0\r\n\r\n"),
    Says("HTTP/1.1 425 Early\r\nContent-Length: 0\r\n\r\n"),
    Says("HTTP/1.1 429 Many\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"),
    Says("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
    Says("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n"),
    Says("HTTP/1.1 502 Bad\r\nProxy-Status: p; error=dns_error\r\nContent-Length: 0\r\n\r\n"),
    Says("HTTP/1.1 503 Bad\r\nX-Squid-Error: ERR_CONNECT_FAIL 111\r\nContent-Length: 0\r\n\r\n"),
    Says("HTTP/1.1 504 Late\r\nContent-Length: 0\r\n\r\n"),
    Ends("HTTP/1.1 408 Late\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
    Ends("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"),
    Ends("HTTP/1.1 200 OK\r\n"),
    Ends("HTTP/1.1 100 Continue\r\n\r\n"),
    Ends("no HTTP at all\r\n\r\n"),
    Ends(""),
    Stalls(""),
    Stalls("HTTP/1.1 103 Early Hints\r\n\r\n"),
    Stalls("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"),
    Resets,
];

/// A proxy and all targets behind it in one, which count the bodies that reach them.
#[derive(Clone)]
struct Targets {
    then: Then,
    tls: TlsAcceptor,
    bodies: Arc<AtomicUsize>,
}

impl Targets {
    async fn proxy(self, mut stream: TcpStream) -> std::io::Result<()> {
        if self.then == Resets {
            stream.set_zero_linger()?;
        }
        let head = read_to(&mut stream, "\r\n\r\n", Vec::new()).await?;
        if !head.starts_with("CONNECT") {
            return self.serve(stream, head).await;
        }
        stream.write_all(b"HTTP/1.1 200 Yes\r\n\r\n").await?;
        self.serve(self.tls.accept(stream).await?, String::new()).await
    }

    async fn serve<S>(&self, mut stream: S, mut read: String) -> std::io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            if !read.contains("\r\n\r\n") {
                read = read_to(&mut stream, "\r\n\r\n", read.into_bytes()).await?;
            }
            if read.starts_with("GET") {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await?;
                read.clear();
                continue;
            }
            let end = if read.contains("content-length") { "the body" } else { "0\r\n\r\n" };
            read_to(&mut stream, end, read.into_bytes()).await?;
            self.bodies.fetch_add(1, Ordering::SeqCst);
            match self.then {
                Says(answer) => stream.write_all(answer.as_bytes()).await?,
                Ends(answer) => {
                    stream.write_all(answer.as_bytes()).await?;
                    return stream.shutdown().await;
                }
                Stalls(answer) => {
                    stream.write_all(answer.as_bytes()).await?;
                    std::future::pending().await
                }
                Resets => return Ok(()),
            }
            read = String::new();
        }
    }
}

async fn read_to<S>(stream: &mut S, end: &str, mut read: Vec<u8>) -> std::io::Result<String>
where
    S: AsyncRead + Unpin,
{
    while !read.ends_with(end.as_bytes()) {
        read.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&read).into_owned())
}

/// How often a POST reaches its target, through connections that have been used or not.
async fn reached(then: Then, url: &str, streamed: bool, used: bool) -> usize {
    let (authority, bodies) = (Authority::new(&["a.test"]), Arc::<AtomicUsize>::default());
    let targets = Targets { then, tls: authority.acceptor(), bodies: bodies.clone() };
    let listening = Listening::start(move |stream, _, _| {
        let targets = targets.clone();
        async move {
            // A client hangs up when it likes.
            let _ = targets.proxy(stream).await;
        }
    });
    let listening = listening.await.unwrap();
    let pool = pool_of(&vec![format!("http://u:p@{}", listening.address()); 4]).await;
    let builder = LeaseMiddleware::builder(pool).tls(authority.client_config());
    let client = builder.timeout(Duration::from_secs(2)).build().unwrap().into_client();
    for _ in 0..if used { 4 } else { 0 } {
        client.get(url).send().await.unwrap().bytes().await.unwrap();
    }
    let mut request = Request::new(Method::POST, url.parse().unwrap());
    *request.body_mut() = Some(if streamed { stream("the body") } else { Body::from("the body") });
    if let Ok(response) = client.execute(request).await {
        let _ = response.bytes().await;
    }
    bodies.load(Ordering::SeqCst)
}

fn cases() -> impl Iterator<Item = (&'static str, bool, bool)> {
    ["http://a.test/", "https://a.test/"].into_iter().flat_map(|url| {
        [(false, false), (false, true), (true, false), (true, true)]
            .map(|(streamed, used)| (url, streamed, used))
    })
}

#[tokio::test]
async fn whatever_a_target_does_with_a_post_it_gets_no_other() {
    let all = FAULTS.iter().flat_map(|then| cases().map(move |case| (*then, case)));
    let wrong: Vec<_> = streams::iter(all)
        .map(|(then, (url, streamed, used))| async move {
            (then, url, streamed, used, reached(then, url, streamed, used).await)
        })
        .buffer_unordered(16)
        .filter(|(.., reached)| std::future::ready(*reached != 1))
        .collect()
        .await;
    // What bears the marks of refused credentials says that nothing was done with it.
    let (told, wrong): (Vec<_>, Vec<_>) =
        wrong.into_iter().partition(|(then, ..)| *then == FAULTS[0]);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let fresh = |(_, url, streamed, ..): &(_, &str, bool, _, _)| url.len() == 14 && !streamed;
    assert!(told.iter().all(fresh), "{told:#?}");
}

/// The twin: a caller that waits pauses out has asked for it.
#[tokio::test]
async fn a_post_reaches_its_target_again_when_its_caller_has_asked_for_that() {
    let says = Says("HTTP/1.1 503 Bad\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n");
    let bodies = Arc::<AtomicUsize>::default();
    let tls = Authority::new(&["a.test"]).acceptor();
    let targets = Targets { then: says, tls, bodies: bodies.clone() };
    let listening = Listening::start(move |stream, _, _| {
        let targets = targets.clone();
        async move {
            let _ = targets.proxy(stream).await;
        }
    });
    let listening = listening.await.unwrap();
    let pool = pool_of(&[format!("http://{}", listening.address())]).await;
    let client = LeaseMiddleware::builder(pool).build().unwrap().into_client();
    let options = LeaseOptions::new().wait_out_pauses(true).max_wait(Duration::from_millis(1500));
    let request = client.post("http://a.test/").body("the body").with_extension(options);
    request.send().await.unwrap().bytes().await.unwrap();
    assert_eq!(bodies.load(Ordering::SeqCst), 2);
}
