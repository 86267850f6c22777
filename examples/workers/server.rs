//! A Redis server for as long as the example runs.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::sleep;

/// A server on loopback. It ends when it is dropped.
pub(crate) struct Server {
    _process: Child,
    _directory: TempDir,
    port: u16,
}

impl Server {
    /// Starts the program of `REDIS_SERVER`, else `redis-server` of the search path.
    pub(crate) async fn start() -> io::Result<Self> {
        let program = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let directory = tempfile::tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut process = Command::new(&program)
            .args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                io::Error::other(format!(
                    "{program} did not start ({error}): install redis-server, or give --redis"
                ))
            })?;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
            if let Some(status) = process.try_wait()? {
                return Err(io::Error::other(format!("{program} ended at once: {status}")));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(Self { _process: process, _directory: directory, port })
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}
