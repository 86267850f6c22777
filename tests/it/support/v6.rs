//! A way to IPv4 servers by IPv6.

use std::net::{Ipv6Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A listener on ::1 that carries to an address. It ends when it is dropped.
pub(crate) struct V6 {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl V6 {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// When this machine has no IPv6 on loopback.
    pub(crate) async fn before(behind: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("IPv6 on loopback: sysctl net.ipv6.conf.lo.disable_ipv6=0");
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let Ok(mut server) = TcpStream::connect(behind).await else { return };
                    // Either end may hang up as it likes.
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { address, accepting }
    }

    /// Where it listens: `[::1]:port`.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for V6 {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
