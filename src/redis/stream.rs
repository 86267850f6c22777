//! Opening the socket of a connection.

use std::io;
#[cfg(feature = "redis-tls")]
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::aio::AsyncPushSender;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use redis::{AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, RedisError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::address::{Address, Place};
use super::options::ConnectOptions;
use crate::error::Error;

/// A connection and the task that moves its bytes.
pub(crate) type Opened = (MultiplexedConnection, BoxFuture<'static, ()>);

/// Opens the sockets of addresses.
pub(crate) struct Opener {
    /// Take a server that may evict the pool's keys.
    pub(crate) allow_eviction: bool,
    #[cfg(feature = "redis-tls")]
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Opener {
    pub(crate) fn new(options: &ConnectOptions, needs_tls: bool) -> Result<Self, Error> {
        #[cfg(feature = "redis-tls")]
        let tls = match (needs_tls, &options.tls) {
            (false, _) => None,
            (true, Some(config)) => Some(Arc::new(config.clone())),
            (true, None) => Some(Arc::new(crate::tls::system_roots()?)),
        };
        #[cfg(not(feature = "redis-tls"))]
        let _ = needs_tls;
        Ok(Self {
            allow_eviction: options.allow_eviction,
            #[cfg(feature = "redis-tls")]
            tls,
        })
    }

    /// Connects, without login. A host's name is looked up each time. An error says how far it came,
    /// and not where to.
    pub(crate) async fn open(&self, address: &Address) -> Result<Opened, &'static str> {
        let (host, port) = match &address.place {
            Place::Unix(path) => {
                let socket = unix(path).await.map_err(|error| unreached(&error))?;
                return speak(socket, quiet()).await.map_err(|_| UNREACHED);
            }
            Place::Tcp { host, port } => (host.as_str(), *port),
        };
        let socket = tcp(host, port).await.map_err(|error| unreached(&error))?;
        match address.tls {
            true => self.speak_tls(host, socket, quiet()).await.map_err(|_| NO_TLS),
            false => speak(socket, quiet()).await.map_err(|_| UNREACHED),
        }
    }

    /// Connects and logs in; what the server sends by itself goes to `push`.
    pub(crate) async fn open_to_listen(
        &self,
        address: &Address,
        push: impl AsyncPushSender,
    ) -> Result<Opened, RedisError> {
        let (mut login, config) = quiet();
        login = login.set_protocol(ProtocolVersion::RESP3);
        if let Some(username) = &address.username {
            login = login.set_username(username);
        }
        if let Some(password) = &address.password {
            login = login.set_password(password.expose());
        }
        self.reach(address, (login, config.set_push_sender(push))).await
    }

    async fn reach(&self, address: &Address, manner: Manner) -> Result<Opened, RedisError> {
        let (host, port) = match &address.place {
            Place::Unix(path) => return speak(unix(path).await?, manner).await,
            Place::Tcp { host, port } => (host.as_str(), *port),
        };
        let socket = tcp(host, port).await?;
        match address.tls {
            true => self.speak_tls(host, socket, manner).await,
            false => speak(socket, manner).await,
        }
    }

    #[cfg(feature = "redis-tls")]
    async fn speak_tls(
        &self,
        host: &str,
        socket: TcpStream,
        manner: Manner,
    ) -> Result<Opened, RedisError> {
        let missing = || io::Error::from(io::ErrorKind::Unsupported);
        let name = rustls::pki_types::ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let connector = tokio_rustls::TlsConnector::from(self.tls.clone().ok_or_else(missing)?);
        speak(connector.connect(name, socket).await?, manner).await
    }

    #[cfg(not(feature = "redis-tls"))]
    async fn speak_tls(&self, _: &str, _: TcpStream, _: Manner) -> Result<Opened, RedisError> {
        Err(io::Error::from(io::ErrorKind::Unsupported).into())
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let socket = TcpStream::connect((host, port)).await?;
    socket.set_nodelay(true)?;
    SockRef::from(&socket).set_tcp_keepalive(&keepalive())?;
    Ok(socket)
}

/// Why there is no socket.
fn unreached(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "the store cannot be reached: nothing listens there",
        io::ErrorKind::NotFound => "the store cannot be reached: there is no such socket",
        io::ErrorKind::PermissionDenied => "the store cannot be reached: not permitted",
        // The error of a look-up has no kind of its own.
        _ if error.to_string().contains("lookup address") => {
            "the store cannot be reached: its name leads to no address"
        }
        _ => UNREACHED,
    }
}

const UNREACHED: &str = "the store cannot be reached";

const NO_TLS: &str =
    "the store cannot be reached: no TLS with it, or its certificate is not trusted";

#[cfg(unix)]
async fn unix(path: &std::path::Path) -> io::Result<tokio::net::UnixStream> {
    tokio::net::UnixStream::connect(path).await
}

#[cfg(not(unix))]
async fn unix(_: &std::path::Path) -> io::Result<TcpStream> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// How to speak to a server.
type Manner = (RedisConnectionInfo, AsyncConnectionConfig);

/// Login and timeouts are the link's: it sorts every answer and knows the caller's deadline.
fn quiet() -> Manner {
    let login = RedisConnectionInfo::default().set_skip_set_lib_name();
    let config =
        AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(QUEUE);
    (login, config)
}

async fn speak<S>(stream: S, (login, config): Manner) -> Result<Opened, RedisError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&login, stream, config).await?;
    Ok((connection, Box::pin(driver)))
}

/// Finds out within 30 s that the other side of an idle connection is gone.
fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(Duration::from_secs(15))
        .with_interval(Duration::from_secs(5))
        .with_retries(3)
}

/// Calls that wait for the socket; more wait for their place in the queue.
const QUEUE: usize = 512;
