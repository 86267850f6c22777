//! Targets of all sorts, and a client that tells what it saw.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use reqwest_lease::{
    DefaultJudge, Endpoint, EndpointId, Evidence, Inventory, Judge, LeaseBuilder, LeaseMiddleware,
    Outcome, Pool, PoolName, State, Verdict,
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::local::Listening;
use crate::support::SOON;
use crate::support::origin::{Answer, Origin, Visit, text};

pub(super) const LOGIN: (&str, &str) = ("worker", "secret");
pub(super) const WRONG: (&str, &str) = ("worker", "wrong");
/// What the rules of the proxies here forbid.
pub(super) const DENIED: &str = "127.0.0.9";
/// For what never answers.
pub(super) const BRIEF: Duration = Duration::from_millis(400);
/// More than sockets and proxies take in by themselves.
const LARGE: usize = 24 << 20;

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// It answers 200.
    Fine,
    /// It answers with this status.
    Status(u16),
    /// It answers a lot.
    Large,
    /// Nobody listens.
    Refuses,
    /// Its name does not exist.
    Unnamed,
    /// It accepts connections and says nothing.
    Silent,
    /// Its port takes no connection and refuses none.
    Full,
    /// It reads a request and hangs up.
    HangsUp,
    /// The proxy's rules forbid it.
    Denied,
    /// It has a certificate that nobody trusts.
    Untrusted,
    /// It speaks plain text where TLS is expected.
    Plain,
}

/// One target of each sort, for http and for https.
pub(super) struct Targets {
    plain: Origin,
    tls: Origin,
    untrusted: Origin,
    refuses: TcpSocket,
    silent: Listening,
    hangs_up: Listening,
    full: Full,
}

/// A port whose queue is full: further SYNs are dropped, which looks like a firewall.
pub(crate) struct Full {
    listener: TcpListener,
    _queued: [TcpStream; 2],
}

impl Full {
    pub(crate) async fn start() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        // Linux takes one connection more than it is told.
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let queued = [
            TcpStream::connect(address).await.unwrap(),
            TcpStream::connect(address).await.unwrap(),
        ];
        Self { listener, _queued: queued }
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.listener.local_addr().unwrap()
    }
}

fn answer(visit: &Visit) -> Answer {
    match visit.path.trim_start_matches('/') {
        "large" => text(StatusCode::OK, vec![b'x'; LARGE]),
        path => {
            let status = path.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
            text(status.unwrap_or(StatusCode::OK), "hello")
        }
    }
}

impl Targets {
    pub(super) async fn start() -> Self {
        let refuses = TcpSocket::new_v4().unwrap();
        refuses.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            plain: Origin::http(answer).await,
            tls: Origin::https(answer).await,
            untrusted: Origin::https(answer).await,
            refuses,
            silent: Listening::start(|stream, _, _| async move {
                let _open = stream;
                std::future::pending().await
            })
            .await
            .unwrap(),
            hangs_up: Listening::start(|stream, _, _| async move {
                stream.readable().await.unwrap();
                let _ = stream.try_read(&mut [0; 4096]);
            })
            .await
            .unwrap(),
            full: Full::start().await,
        }
    }

    pub(super) fn url(&self, https: bool, target: Target) -> String {
        let scheme = if https { "https" } else { "http" };
        let of = |address| format!("{scheme}://{address}/");
        match target {
            Target::Fine => self.origin(https).url("/"),
            Target::Status(status) => self.origin(https).url(&format!("/{status}")),
            Target::Large => self.origin(https).url("/large"),
            Target::Refuses => of(self.refuses.local_addr().unwrap()),
            Target::Unnamed => format!("{scheme}://nobody.invalid/"),
            Target::Silent => of(self.silent.address()),
            Target::Full => of(self.full.address()),
            Target::HangsUp => of(self.hangs_up.address()),
            Target::Denied => self.origin(https).url("/").replace("127.0.0.1", DENIED),
            Target::Untrusted => self.untrusted.url("/"),
            Target::Plain => self.plain.url("/").replace("http:", "https:"),
        }
    }

    fn origin(&self, https: bool) -> &Origin {
        if https { &self.tls } else { &self.plain }
    }
}

/// Remembers what it was asked about, and judges as usual.
#[derive(Clone, Default)]
struct Spy(Arc<Mutex<Vec<Outcome>>>);

impl Judge for Spy {
    fn judge(&self, evidence: Evidence) -> Verdict {
        self.0.lock().unwrap().push(evidence.outcome);
        DefaultJudge::default().judge(evidence)
    }
}

/// One endpoint, and what was seen of it.
pub(super) struct Watched {
    pub(super) pool: Pool,
    spy: Spy,
}

impl Watched {
    pub(super) async fn endpoint(url: &str, login: Option<(&str, &str)>) -> Self {
        let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), url, login).unwrap();
        let inventory = Inventory::from_endpoints([endpoint]).unwrap();
        let spy = Spy::default();
        let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory).judge(spy.clone());
        Self { pool: pool.build().await.unwrap(), spy }
    }

    pub(super) fn client(
        &self,
        targets: &Targets,
        change: impl FnOnce(LeaseBuilder) -> LeaseBuilder,
    ) -> ClientWithMiddleware {
        let builder = LeaseMiddleware::builder(self.pool.clone())
            .tls(targets.tls.authority().client_config())
            .timeout(SOON);
        change(builder).build().unwrap().into_client()
    }

    /// Fetches a target once, calls `midway` when the head is there, and tells what was seen.
    pub(super) async fn fetch(
        &self,
        targets: &Targets,
        (https, target): (bool, Target),
        brief: bool,
        midway: impl FnOnce(),
    ) -> Outcome {
        let client = self.client(targets, |builder| match brief {
            true => builder.timeout(BRIEF),
            false => builder,
        });
        if let Ok(response) = client.get(targets.url(https, target)).send().await {
            midway();
            // What became of it is the judge's to say.
            let _ = response.bytes().await;
        }
        self.outcome()
    }

    /// The one outcome that was seen.
    pub(super) fn outcome(&self) -> Outcome {
        let seen = self.spy.0.lock().unwrap();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0]
    }

    /// What the pool made of it, checked against what the table of outcomes says.
    pub(super) async fn check(&self, outcome: Outcome) {
        let member = self.pool.list().await.unwrap().remove(0);
        let verdict = outcome.default_verdict();
        let (rests, quarantined) = (verdict.contains("rests"), verdict.contains("quarantine"));
        match member.state {
            State::Quarantined(_) => assert!(quarantined, "{outcome}"),
            State::Cooling(_) => assert!(rests, "{outcome}"),
            state => assert!(!rests && !quarantined, "{outcome}: {state:?}"),
        }
        assert_eq!(member.strikes > 0, verdict.contains("strike;"), "{outcome}");
    }
}
