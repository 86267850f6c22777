//! A way to the server that loses answers, and that may change scripts on their way.

use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::layout::Flaw;
use crate::local::Listening;
use crate::support::flaky::Dice;

/// The relay. It ends when it is dropped.
pub(crate) struct Relay {
    listening: Listening,
    shared: Arc<Shared>,
}

struct Shared {
    server: Mutex<u16>,
    faults: Option<Dice>,
    flaw: Flaw,
    lost: AtomicUsize,
    changed: AtomicUsize,
    /// Grows with each cut of all connections.
    cuts: watch::Sender<usize>,
    /// Nothing arrives.
    silent: watch::Sender<bool>,
}

/// What happens to one script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Well,
    /// The connection ends before it is sent.
    Unsent,
    /// It takes place, its answer is lost and the connection ends.
    Lost,
    /// It takes place, and nothing is heard of it or of those after it.
    Stalled,
    Late(Duration),
}

impl Relay {
    pub(crate) async fn start(server: u16, faults: Option<Dice>, flaw: Flaw) -> Self {
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            faults,
            flaw,
            lost: AtomicUsize::new(0),
            changed: AtomicUsize::new(0),
            cuts: watch::Sender::new(0),
            silent: watch::Sender::new(false),
        });
        let serving = shared.clone();
        let listening = Listening::start(move |client, _, _| {
            let shared = serving.clone();
            async move {
                // When one side has gone, both go.
                let _ = shared.carry(client).await;
            }
        });
        Self { listening: listening.await.unwrap(), shared }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listening.address().port()
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}", self.listening.address())
    }

    /// Answers that were lost so far.
    pub(super) fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Scripts that were changed so far.
    pub(crate) fn changed(&self) -> usize {
        self.shared.changed.load(Ordering::Relaxed)
    }

    /// Leads all to another server, as a name that gets another address does.
    pub(super) fn lead_to(&self, server: u16) {
        *self.shared.server.lock().unwrap() = server;
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Whether nothing arrives any more, either way.
    pub(super) fn silence(&self, silent: bool) {
        self.shared.silent.send_replace(silent);
    }
}

impl Shared {
    fn fate(&self) -> Fate {
        match self.faults.as_ref().map(|dice| (dice.roll(400), dice.roll(20))) {
            Some((0..5, _)) => Fate::Lost,
            Some((5..7, _)) => Fate::Unsent,
            Some((7, _)) => Fate::Stalled,
            Some((8..16, late)) => Fate::Late(Duration::from_millis(late)),
            _ => Fate::Well,
        }
    }

    async fn carry(&self, mut client: TcpStream) -> io::Result<()> {
        let port = *self.server.lock().unwrap();
        let mut cuts = self.cuts.subscribe();
        let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        tokio::select! {
            done = self.pass(&mut client, &mut server) => done,
            _ = cuts.changed() => Ok(()),
        }
    }

    async fn pass(&self, client: &mut TcpStream, server: &mut TcpStream) -> io::Result<()> {
        let (mut asked, mut answered) = (Vec::new(), vec![0; 65_536]);
        let mut fate = Fate::Well;
        loop {
            tokio::select! {
                read = client.read_buf(&mut asked) => {
                    some(read?)?;
                    if *self.silent.borrow() {
                        asked.clear();
                        continue;
                    }
                    while let Some((request, length)) = request(&asked) {
                        if request[0].starts_with(b"EVAL") && fate == Fate::Well {
                            fate = self.fate();
                        }
                        if fate == Fate::Unsent {
                            return Ok(());
                        }
                        server.write_all(&self.changed_or_not(request)).await?;
                        asked.drain(..length);
                    }
                }
                read = server.read(&mut answered) => {
                    let answer = &answered[..some(read?)?];
                    match fate {
                        _ if *self.silent.borrow() => continue,
                        Fate::Lost | Fate::Stalled => {
                            self.lost.fetch_add(1, Ordering::Relaxed);
                            if fate == Fate::Lost {
                                return Ok(());
                            }
                            continue;
                        }
                        Fate::Late(late) => tokio::time::sleep(late).await,
                        Fate::Well | Fate::Unsent => {}
                    }
                    fate = Fate::Well;
                    client.write_all(answer).await?;
                }
            }
        }
    }

    /// A request as it goes on.
    fn changed_or_not(&self, mut request: Vec<Vec<u8>>) -> Vec<u8> {
        if request[0] == b"EVAL" && !self.flaw.is_empty() {
            let source = String::from_utf8(request[1].clone()).unwrap();
            let changed = self
                .flaw
                .iter()
                .fold(source.clone(), |source, (from, to)| source.replace(from, to));
            self.changed.fetch_add(usize::from(changed != source), Ordering::Relaxed);
            request[1] = changed.into_bytes();
        }
        let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
        for word in request {
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend(word);
            bytes.extend(b"\r\n");
        }
        bytes
    }
}

/// The first request if it is complete, and its length.
fn request(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let mut at = 0;
    let number = |at: &mut usize| {
        let end = *at + bytes[*at..].windows(2).position(|two| two == b"\r\n")?;
        let number = std::str::from_utf8(&bytes[*at + 1..end]).ok()?.parse::<usize>().ok();
        *at = end + 2;
        number
    };
    let words = number(&mut at)?;
    let mut request = Vec::new();
    for _ in 0..words {
        let length = number(&mut at)?;
        request.push(bytes.get(at..at + length)?.to_vec());
        bytes.get(at + length..at + length + 2)?;
        at += length + 2;
    }
    Some((request, at))
}

fn some(read: usize) -> io::Result<usize> {
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
}
