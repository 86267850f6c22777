//! SOCKS 5 proxies that fail, each at one step (RFC 1928, RFC 1929).

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::local::Listening;

/// At which step it fails, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocksFault {
    /// It hangs up at the greeting.
    Closes,
    /// It answers the greeting with this instead of a method.
    Greets(&'static [u8]),
    /// It asks for a login and answers it with this status.
    Login(u8),
    /// It answers the request with this reply.
    Replies(u8),
    /// It never answers the request.
    Stalls,
    /// It accepts everything and hangs up at the first byte.
    Cuts,
}

/// A SOCKS 5 proxy with a fault. It ends when it is dropped.
pub(crate) struct SocksFaultProxy {
    listening: Listening,
}

impl SocksFaultProxy {
    /// Starts one.
    pub(crate) async fn start(fault: SocksFault) -> Self {
        let listening = Listening::start(move |stream, _, _| async move {
            // A client that hangs up first is as good.
            let _ = fault.act(stream).await;
        });
        Self { listening: listening.await.unwrap() }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("socks5h://{}", self.listening.address())
    }
}

impl SocksFault {
    async fn act(self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut greeting = [0; 2];
        stream.read_exact(&mut greeting).await?;
        let mut methods = vec![0; greeting[1].into()];
        stream.read_exact(&mut methods).await?;
        match self {
            Self::Closes => return Ok(()),
            Self::Greets(bytes) => {
                stream.write_all(bytes).await?;
                return stream.shutdown().await;
            }
            _ => stream.write_all(&[5, methods[0]]).await?,
        }
        if methods[0] == 2 {
            let user = stream.read_u16().await?;
            let mut rest = vec![0; usize::from(user.to_be_bytes()[1])];
            stream.read_exact(&mut rest).await?;
            rest.resize(stream.read_u8().await?.into(), 0);
            stream.read_exact(&mut rest).await?;
            let status = if let Self::Login(status) = self { status } else { 0 };
            stream.write_all(&[1, status]).await?;
        }
        read_request(&mut stream).await?;
        let reply = match self {
            Self::Stalls => std::future::pending().await,
            Self::Replies(reply) => reply,
            _ => 0,
        };
        stream.write_all(&[5, reply, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        if self == Self::Cuts {
            stream.read_u8().await?;
        }
        stream.shutdown().await
    }
}

async fn read_request(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let length = match head[3] {
        1 => 4,
        4 => 16,
        _ => stream.read_u8().await?.into(),
    };
    let mut rest = vec![0; length + 2];
    stream.read_exact(&mut rest).await?;
    Ok(())
}
