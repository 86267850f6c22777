//! A proxy that answers itself, with bodies that flow for as long as the test wants.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::eventually;
use crate::local::Listening;

/// The proxy. It ends when it is dropped.
///
/// It answers by the path: `/drops/n` with n bytes, one every 2 ms; `/endless` with a byte every
/// 5 ms; `/quiet` with a head and no body; `/stall` with nothing; `/late` after 0.6 s with a way
/// to `/drops/1`; `/upgrade` with an echo.
pub(crate) struct Tap {
    listening: Listening,
    meter: Arc<Meter>,
}

/// What a tap has seen. An exchange ends with its last byte, or when its client hangs up.
#[derive(Default)]
struct Meter {
    connections: AtomicUsize,
    exchanges: AtomicUsize,
    most: AtomicUsize,
    asked: Mutex<Vec<String>>,
}

/// One more, until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tap {
    /// Starts one.
    pub(crate) async fn start() -> Self {
        let meter = Arc::<Meter>::default();
        let seen = meter.clone();
        let listening = Listening::start(move |stream, _, _| {
            let meter = seen.clone();
            async move {
                let _open = Counted::new(&meter.connections);
                // Clients hang up as they like.
                let _ = meter.serve(stream).await;
            }
        });
        Self { listening: listening.await.unwrap(), meter }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listening.address())
    }

    /// The target of every request so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.meter.asked.lock().unwrap().clone()
    }

    /// Exchanges under way.
    pub(crate) fn exchanges(&self) -> usize {
        self.meter.exchanges.load(Ordering::SeqCst)
    }

    /// Most exchanges under way at once so far.
    pub(crate) fn most(&self) -> usize {
        self.meter.most.load(Ordering::SeqCst)
    }

    /// Waits until nobody is connected.
    pub(crate) async fn is_left_alone(&self) {
        let connections = || self.meter.connections.load(Ordering::SeqCst);
        eventually("every connection is closed", || (connections() == 0).then_some(())).await;
    }
}

impl Meter {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let url = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let path = url.splitn(4, '/').nth(3).unwrap_or_default().to_owned();
            let exchange = Counted::new(&self.exchanges);
            self.most.fetch_max(self.exchanges.load(Ordering::SeqCst), Ordering::SeqCst);
            self.asked.lock().unwrap().push(url);
            answer(&mut stream, &path, exchange).await?;
        }
    }
}

async fn answer(stream: &mut TcpStream, path: &str, exchange: Counted<'_>) -> std::io::Result<()> {
    let (name, number) = path.split_once('/').unwrap_or((path, "0"));
    match name {
        "drops" => {
            let drops: usize = number.parse().unwrap();
            stream.write_all(head(&format!("Content-Length: {drops}")).as_bytes()).await?;
            for _ in 1..drops {
                flow(stream, b"x", Duration::from_millis(2)).await?;
            }
            // Whoever reads the last byte may come back before this side goes on.
            drop(exchange);
            stream.write_all(b"x").await
        }
        "endless" => {
            stream.write_all(head("Transfer-Encoding: chunked").as_bytes()).await?;
            loop {
                flow(stream, b"1\r\nx\r\n", Duration::from_millis(5)).await?;
            }
        }
        "quiet" => {
            stream.write_all(head("Content-Length: 5").as_bytes()).await?;
            hang_up(stream).await
        }
        "late" => {
            flow(stream, b"", Duration::from_millis(600)).await?;
            drop(exchange);
            let head = "HTTP/1.1 302 Found\r\nLocation: /drops/1\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).await
        }
        "upgrade" => {
            let head =
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
            stream.write_all(head.as_bytes()).await?;
            loop {
                let byte = stream.read_u8().await?;
                stream.write_all(&[byte]).await?;
            }
        }
        _ => hang_up(stream).await,
    }
}

fn head(length: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{length}\r\n\r\n")
}

/// Sends this after a while, unless the client is gone.
async fn flow(stream: &mut TcpStream, bytes: &[u8], pause: Duration) -> std::io::Result<()> {
    match tokio::time::timeout(pause, hang_up(stream)).await {
        Ok(gone) => gone,
        Err(_) => stream.write_all(bytes).await,
    }
}

/// Waits until the client is gone.
async fn hang_up(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.read_u8().await?;
    Err(std::io::ErrorKind::InvalidData.into())
}
