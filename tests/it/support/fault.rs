//! Proxies that fail, each in one way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::local::Listening;

/// How a proxy fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It accepts connections and closes them.
    Closes,
    /// It refuses everybody's credentials.
    RefusesCredentials,
    /// It answers everything, CONNECT too, with 502.
    BadGateway,
    /// It reads a request and hangs up.
    Drops,
    /// It reads requests and never answers.
    Stalls,
    /// It answers everything, CONNECT too, with these bytes, and hangs up.
    Says(&'static str),
    /// It answers CONNECT well and then says this in the tunnel, and hangs up.
    Tunnels(&'static str),
    /// It promises a long answer and stalls after this many bytes of the body.
    StallsAfter(usize),
    /// It promises a long answer and dies after this many bytes of the body.
    DiesAfter(usize),
}

/// A proxy with a fault. It ends when it is dropped.
pub(crate) struct FaultProxy {
    listening: Listening,
    tries: Arc<AtomicUsize>,
}

impl FaultProxy {
    /// Starts one.
    pub(crate) async fn start(fault: Fault) -> Self {
        let tries = Arc::<AtomicUsize>::default();
        let count = tries.clone();
        let listening = Listening::start(move |stream, _, _| {
            let count = count.clone();
            async move {
                // A client that hangs up first is as good.
                let _ = fault.act(stream, &count).await;
            }
        });
        Self { listening: listening.await.unwrap(), tries }
    }

    /// How many requests it has read.
    pub(crate) fn tries(&self) -> usize {
        self.tries.load(Ordering::Relaxed)
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listening.address())
    }
}

impl Fault {
    async fn act(self, mut stream: TcpStream, tries: &AtomicUsize) -> std::io::Result<()> {
        if self == Self::Closes {
            return Ok(());
        }
        while read_head(&mut stream).await? {
            tries.fetch_add(1, Ordering::Relaxed);
            match self {
                Self::Closes | Self::Drops => return Ok(()),
                Self::Stalls => std::future::pending().await,
                Self::RefusesCredentials => {
                    let head = "HTTP/1.1 407 Proxy Authentication Required\r\n\
                                Proxy-Authenticate: Basic realm=\"fault\"\r\n\
                                Content-Length: 0\r\n\r\n";
                    stream.write_all(head.as_bytes()).await?;
                }
                Self::BadGateway => {
                    let head = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
                    stream.write_all(head.as_bytes()).await?;
                }
                Self::Says(answer) => {
                    stream.write_all(answer.as_bytes()).await?;
                    return stream.shutdown().await;
                }
                Self::Tunnels(answer) => {
                    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                    // What the client says first.
                    stream.read_u8().await?;
                    stream.write_all(answer.as_bytes()).await?;
                    return stream.shutdown().await;
                }
                Self::StallsAfter(bytes) | Self::DiesAfter(bytes) => {
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes + 1);
                    stream.write_all(head.as_bytes()).await?;
                    stream.write_all(&vec![b'x'; bytes]).await?;
                    if self == Self::StallsAfter(bytes) {
                        std::future::pending::<()>().await;
                    }
                    return stream.shutdown().await;
                }
            }
        }
        Ok(())
    }
}

/// Reads to the blank line; false when the client has gone before it.
async fn read_head(stream: &mut TcpStream) -> std::io::Result<bool> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
