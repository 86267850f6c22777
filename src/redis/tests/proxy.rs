//! A TCP proxy between holder and server that fails in one way at a time.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to what passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Pass,
    /// The next answer to a script is lost and the connection closed.
    LoseAndClose,
    /// The next answer to a script is lost, and all after it on its connection.
    LoseAndStall,
    /// Answers take this much longer.
    Delay(Duration),
    /// New connections are closed at once, and the old ones too.
    Refuse,
    /// Everything is taken and nothing passed on.
    Blackhole,
    /// Scripts are answered with these words.
    Answer(&'static str),
}

pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    fault: watch::Sender<Fault>,
    server: Mutex<u16>,
    accepted: AtomicUsize,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            fault: watch::Sender::new(Fault::Pass),
            server: Mutex::new(server),
            accepted: AtomicUsize::new(0),
        });
        let serving = shared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                serving.accepted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serving.clone().carry(client));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.shared.fault.send_replace(fault);
    }

    /// Where new connections lead, as when a name gets another address.
    pub(crate) fn lead_to(&self, server: u16) {
        *self.shared.server.lock().unwrap() = server;
    }

    /// Connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn fault(&self) -> Fault {
        *self.fault.borrow()
    }

    async fn carry(self: Arc<Self>, mut client: TcpStream) {
        if self.fault() == Fault::Refuse {
            return;
        }
        let port = *self.server.lock().unwrap();
        let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
        // When one side has gone, both go.
        let _ = self.pass(&mut client, &mut server).await;
    }

    async fn pass(&self, client: &mut TcpStream, server: &mut TcpStream) -> io::Result<()> {
        let mut refuses = self.fault.subscribe();
        let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
        let mut loses = Fault::Pass;
        loop {
            tokio::select! {
                read = client.read(&mut asked) => {
                    let request = &asked[..some(read?)?];
                    let script = request.windows(4).any(|word| word == b"EVAL");
                    match self.fault() {
                        Fault::Blackhole => continue,
                        Fault::Answer(words) if script => {
                            client.write_all(format!("-{words}\r\n").as_bytes()).await?;
                            continue;
                        }
                        fault @ (Fault::LoseAndClose | Fault::LoseAndStall) if script => {
                            loses = fault;
                            self.fault.send_replace(Fault::Pass);
                        }
                        _ => {}
                    }
                    server.write_all(request).await?;
                }
                read = server.read(&mut answered) => {
                    let answer = &answered[..some(read?)?];
                    match (loses, self.fault()) {
                        (Fault::LoseAndClose, _) => return Ok(()),
                        (Fault::LoseAndStall, _) | (_, Fault::Blackhole) => continue,
                        (_, Fault::Delay(late)) => tokio::time::sleep(late).await,
                        _ => {}
                    }
                    client.write_all(answer).await?;
                }
                () = until_refused(&mut refuses) => return Ok(()),
            }
        }
    }
}

fn some(read: usize) -> io::Result<usize> {
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
}

async fn until_refused(fault: &mut watch::Receiver<Fault>) {
    let _ = fault.wait_for(|fault| *fault == Fault::Refuse).await;
}
