//! A listener on loopback that takes its connections with it when it ends.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// A listener on 127.0.0.1 and a port that the system chose.
///
/// Stopping or dropping it closes the listener and every connection that came in by it.
pub(crate) struct Listening {
    address: SocketAddr,
    end: Arc<watch::Sender<bool>>,
}

impl Listening {
    /// Runs `serve` for each connection.
    pub(crate) async fn start<S, F>(serve: S) -> io::Result<Self>
    where
        S: Fn(TcpStream, SocketAddr, Lifeline) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let end = Arc::new(watch::Sender::new(false));
        let lifeline = Lifeline(Arc::clone(&end));
        lifeline.clone().spawn(accept(listener, serve, lifeline));
        Ok(Self { address, end })
    }

    /// Stops, and returns when the port is closed and every connection is gone.
    pub(crate) async fn stop(&self) {
        self.end.send_replace(true);
        self.end.closed().await;
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end.send_replace(true);
    }
}

/// What lives as long as a [`Listening`] does.
#[derive(Clone)]
pub(crate) struct Lifeline(Arc<watch::Sender<bool>>);

impl Lifeline {
    /// Runs `work` to its end or to the end of the listener.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut end = self.0.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = end.wait_for(|ended| *ended) => {}
                () = work => {}
            }
        });
    }

    /// Ends the listener from within.
    pub(crate) fn cut(&self) {
        self.0.send_replace(true);
    }
}

/// More connections than this wait to be accepted.
const MAX_CONNECTIONS: usize = 256;

async fn accept<S, F>(listener: TcpListener, serve: S, lifeline: Lifeline)
where
    S: Fn(TcpStream, SocketAddr, Lifeline) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        let Ok((stream, peer)) = listener.accept().await else { continue };
        let connection = serve(stream, peer, lifeline.clone());
        lifeline.spawn(async move {
            connection.await;
            drop(place);
        });
    }
}
