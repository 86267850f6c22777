//! What the tests start, and how they wait.
#![allow(dead_code, reason = "the tests of a part need a part")]

pub(crate) mod client;
pub(crate) mod dante;
pub(crate) mod fault;
pub(crate) mod flaky;
pub(crate) mod h2;
pub(crate) mod microsocks;
pub(crate) mod origin;
pub(crate) mod program;
pub(crate) mod redis;
pub(crate) mod socks_fault;
pub(crate) mod squid;
pub(crate) mod tap;
pub(crate) mod tinyproxy;
pub(crate) mod tls;
pub(crate) mod v6;
pub(crate) mod web;

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::local::proxy::ForwardProxy;
use origin::{Origin, Visit};

/// The bound for what is only a matter of scheduling.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A proxy whose connections to an origin can be told from all others.
pub(crate) trait Outgoing {
    /// Whether a connection with this far end, seen at an origin, is the proxy's.
    fn owns(&self, peer: SocketAddr) -> bool;
}

impl Outgoing for ForwardProxy {
    fn owns(&self, peer: SocketAddr) -> bool {
        self.carried().iter().any(|carried| carried.outgoing == peer)
    }
}

/// The requests at the origin that came by none of these proxies.
pub(crate) fn direct_connections(origin: &Origin, proxies: &[&dyn Outgoing]) -> Vec<Visit> {
    let direct = |visit: &Visit| !proxies.iter().any(|proxy| proxy.owns(visit.peer));
    origin.visits().into_iter().filter(direct).collect()
}

/// cargo in this package, as it is called from a shell.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        // What cargo tells a test of its package would make build scripts run again.
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|of| name.to_string_lossy().starts_with(of))
        {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    cargo
}

/// Asks until there is an answer, and panics when there is none in time.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within {SOON:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Does some work, and tells how late timers were meanwhile: that is this machine's own.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let (mut work, mut late) = (std::pin::pin!(work), Duration::ZERO);
    loop {
        let begun = Instant::now();
        tokio::select! {
            biased;
            () = tokio::time::sleep(TICK) => late = late.max(begun.elapsed().saturating_sub(TICK)),
            done = &mut work => return (done, late),
        }
    }
}

const TICK: Duration = Duration::from_millis(5);
