//! A proxy that writes down every byte that reaches it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::local::Listening;
use crate::support::eventually;

/// The proxy. It ends when it is dropped.
///
/// It answers a GET with a body without an end, a PUT at once with one byte, and leaves everything
/// else unanswered.
pub(super) struct Witness {
    listening: Listening,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    received: Mutex<Vec<u8>>,
    connections: AtomicUsize,
    open: AtomicUsize,
}

impl Witness {
    pub(super) async fn start() -> Self {
        let seen = Arc::<Seen>::default();
        let all = seen.clone();
        let listening = Listening::start(move |stream, _, _| {
            let seen = all.clone();
            async move {
                seen.connections.fetch_add(1, Ordering::SeqCst);
                seen.open.fetch_add(1, Ordering::SeqCst);
                // Clients hang up as they like.
                let _ = seen.serve(stream).await;
                seen.open.fetch_sub(1, Ordering::SeqCst);
            }
        });
        Self { listening: listening.await.unwrap(), seen }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.listening.address())
    }

    /// Bytes and connections that have come so far.
    pub(super) fn so_far(&self) -> (usize, usize) {
        let received = self.seen.received.lock().unwrap().len();
        (received, self.seen.connections.load(Ordering::SeqCst))
    }

    /// Waits until every connection is closed.
    pub(super) async fn is_left_alone(&self) {
        let open = || self.seen.open.load(Ordering::SeqCst);
        eventually("every connection is closed", || (open() == 0).then_some(())).await;
    }
}

impl Seen {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let (mut reader, mut writer) = stream.split();
        let mut bytes = [0; 4096];
        let read = reader.read(&mut bytes).await?;
        self.received.lock().unwrap().extend(&bytes[..read]);
        let answers = bytes.starts_with(b"GET");
        let at_once = bytes.starts_with(b"PUT");
        let hear = async {
            loop {
                match reader.read(&mut bytes).await {
                    Ok(0) | Err(_) => return,
                    Ok(read) => self.received.lock().unwrap().extend(&bytes[..read]),
                }
            }
        };
        let speak = async {
            if answers {
                writer.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
            }
            if at_once {
                writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await?;
            }
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                if answers {
                    writer.write_all(b"1\r\nx\r\n").await?;
                }
            }
        };
        tokio::select! {
            () = hear => Ok(()),
            failed = speak => failed,
        }
    }
}
