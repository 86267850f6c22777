//! The holder: one shared connection, replaced when it is no longer good.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::address::Address;
use super::check;
use super::fault::{Failure, Fault, Remedy};
use super::link::Link;
use super::options::{ConnectOptions, Server};
use super::pace::pause;
use super::script::Call;
#[cfg(feature = "redis-sentinel")]
use super::sentinel::Sentinels;
use super::stream::Opener;
use crate::error::Error;

/// A connection that many calls share and that is replaced underneath them.
///
/// Each call ends within the call timeout, whatever the server does. The connection is replaced
/// when its socket closes, after READONLY and MASTERDOWN, and after two timeouts in a row; one
/// attempt runs at a time, in a task of its own, so it outlives the call that began it. After a
/// failed attempt calls fail at once until the next one is due.
///
/// With Sentinel, the Sentinels are asked at each attempt, and once a second while calls are made
/// whether the primary is still the one.
///
/// A call whose answer was lost is never sent again: that is for the caller, who has a token.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Holder>);

struct Holder {
    target: Target,
    opener: Opener,
    connect_timeout: Duration,
    call_timeout: Duration,
    state: Mutex<State>,
}

enum Target {
    At(Address),
    #[cfg(feature = "redis-sentinel")]
    Sentinels(Sentinels),
}

struct State {
    slot: Slot,
    /// Attempts that led to nothing since the last good one.
    failures: u32,
    /// When the Sentinels were last asked about the primary in use.
    #[cfg(feature = "redis-sentinel")]
    confirmed: Instant,
}

enum Slot {
    Empty,
    Live(Arc<Link>),
    /// Closes when the attempt has ended, or its runtime has.
    Connecting(watch::Receiver<()>),
    Away {
        until: Instant,
        fault: Fault,
    },
}

/// What a call does next for its connection.
enum Step {
    Use(Arc<Link>),
    Fail(Fault),
    Wait(watch::Receiver<()>),
}

impl Connection {
    /// Connects and checks that the server can keep leases.
    pub(crate) async fn connect(options: ConnectOptions) -> Result<Self, Error> {
        let allow_eviction = options.allow_eviction;
        let connection = Self(Arc::new(Holder::new(options)?));
        let deadline = Instant::now() + connection.0.connect_timeout + connection.0.call_timeout;
        let info = connection.0.run(deadline, |_| redis::cmd("INFO")).await?;
        check::Info::from_reply(info).check(allow_eviction)?;
        Ok(connection)
    }

    /// Runs a script: by its hash, then by its source when the server does not know it.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Value, Fault> {
        let make = |by_source: bool| {
            if !by_source {
                return call.by_hash();
            }
            tracing::debug!(script = call.script.name, "the store does not know the script");
            call.by_source()
        };
        self.0.run(Instant::now() + self.0.call_timeout, make).await
    }

    /// Sends a command.
    pub(crate) async fn command(&self, command: Cmd) -> Result<Value, Error> {
        let deadline = Instant::now() + self.0.call_timeout;
        Ok(self.0.run(deadline, |_| command.clone()).await?)
    }
}

#[cfg(test)]
impl Connection {
    /// The port of the server in use.
    #[cfg(feature = "redis-sentinel")]
    pub(crate) fn leads_to(&self) -> Option<u16> {
        match &self.0.state().slot {
            Slot::Live(link) => match link.place() {
                super::address::Place::Tcp { port, .. } => Some(*port),
                super::address::Place::Unix(_) => None,
            },
            _ => None,
        }
    }

    /// Whether its socket is open, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        matches!(&self.0.state().slot, Slot::Live(link) if !link.is_closed())
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection(..)")
    }
}

impl Holder {
    fn new(options: ConnectOptions) -> Result<Self, Error> {
        let target = match &options.server {
            Server::At(url) => Target::At(Address::parse(url)?),
            #[cfg(feature = "redis-sentinel")]
            Server::Sentinel { sentinels, service, primary } => {
                Target::Sentinels(Sentinels::new(sentinels, service, primary)?)
            }
        };
        let opener = Opener::new(&options, target.needs_tls())?;
        let state = State {
            slot: Slot::Empty,
            failures: 0,
            #[cfg(feature = "redis-sentinel")]
            confirmed: Instant::now(),
        };
        let ConnectOptions { connect_timeout, call_timeout, .. } = options;
        Ok(Self { target, opener, connect_timeout, call_timeout, state: Mutex::new(state) })
    }

    /// Sends what `make` makes until an answer, a final failure or the deadline.
    ///
    /// Only what surely had no effect is sent again.
    async fn run(
        self: &Arc<Self>,
        deadline: Instant,
        make: impl Fn(bool) -> Cmd,
    ) -> Result<Value, Fault> {
        let (mut by_source, mut moved, mut waits) = (false, false, 0);
        loop {
            let link = self.link(deadline).await?;
            let failure = match link.send(&make(by_source), deadline).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            if matches!(failure.remedy, Remedy::Leave | Remedy::Move | Remedy::MoveAndWait) {
                self.leave(&link, &failure.fault);
            }
            let again = match failure.remedy {
                Remedy::Nothing | Remedy::Leave => false,
                Remedy::SendSource => !std::mem::replace(&mut by_source, true),
                Remedy::Move => !std::mem::replace(&mut moved, true),
                Remedy::Wait | Remedy::MoveAndWait => {
                    waits += 1;
                    wait_within(deadline, pause(FIRST_WAIT, LONGEST_WAIT, waits)).await
                }
            };
            if !again {
                return Err(failure.fault);
            }
        }
    }

    /// The connection of the moment, waiting for an attempt under way.
    async fn link(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Link>, Fault> {
        loop {
            let mut attempt = match self.step() {
                Step::Use(link) => return Ok(link),
                Step::Fail(fault) => return Err(fault),
                Step::Wait(attempt) => attempt,
            };
            // Closing is what it waits for.
            if timeout_at(deadline, attempt.changed()).await.is_err() {
                return Err(Fault::unavailable("the store could not be reached in time"));
            }
        }
    }

    fn step(self: &Arc<Self>) -> Step {
        let mut state = self.state();
        if let Slot::Live(link) = &state.slot
            && link.is_closed()
        {
            let link = link.clone();
            state.retire(&link, &Fault::unavailable(CLOSED));
        }
        #[cfg(feature = "redis-sentinel")]
        self.confirm(&mut state);
        match &state.slot {
            Slot::Live(link) => Step::Use(link.clone()),
            Slot::Connecting(attempt) if attempt.has_changed().is_ok() => {
                Step::Wait(attempt.clone())
            }
            Slot::Away { until, fault } if Instant::now() < *until => Step::Fail(fault.clone()),
            Slot::Away { .. } | Slot::Connecting(_) | Slot::Empty => {
                let attempt = self.clone().begin();
                state.slot = Slot::Connecting(attempt.clone());
                Step::Wait(attempt)
            }
        }
    }

    /// Starts an attempt to connect, which ends by itself.
    fn begin(self: Arc<Self>) -> watch::Receiver<()> {
        let (ended, attempt) = watch::channel(());
        tokio::spawn(async move {
            let opened = timeout(self.connect_timeout, self.target.open(&self.opener)).await;
            let late = |_| Err(Fault::unavailable("the store cannot be reached").with_nothing());
            let opened = opened.unwrap_or_else(late);
            self.state().settle(opened);
            drop(ended);
        });
        attempt
    }

    /// Asks the Sentinels about the primary in use, in the background, when it is time.
    #[cfg(feature = "redis-sentinel")]
    fn confirm(self: &Arc<Self>, state: &mut State) {
        let (Target::Sentinels(_), Slot::Live(link)) = (&self.target, &state.slot) else { return };
        if state.confirmed.elapsed() < CONFIRM_EVERY {
            return;
        }
        state.confirmed = Instant::now();
        let (holder, link) = (self.clone(), link.clone());
        tokio::spawn(async move {
            let Target::Sentinels(sentinels) = &holder.target else { return };
            let asked = sentinels.name_another(&holder.opener, link.place());
            if timeout(holder.connect_timeout, asked).await == Ok(true) {
                holder.leave(&link, &Fault::unavailable("Sentinel names another primary"));
            }
        });
    }

    fn leave(&self, link: &Arc<Link>, fault: &Fault) {
        self.state().retire(link, fault);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn settle(&mut self, opened: Result<Link, Failure>) {
        match opened {
            Ok(link) => {
                tracing::debug!(attempts = self.failures + 1, "connected to the store");
                self.slot = Slot::Live(Arc::new(link));
                #[cfg(feature = "redis-sentinel")]
                {
                    self.confirmed = Instant::now();
                }
            }
            Err(failure) => self.stay_away(failure.fault),
        }
    }

    /// Gives up a link, if nobody has yet. One that never answered counts as a failed attempt.
    fn retire(&mut self, link: &Arc<Link>, fault: &Fault) {
        if !matches!(&self.slot, Slot::Live(live) if Arc::ptr_eq(live, link)) {
            return;
        }
        if link.has_answered() {
            tracing::warn!(reason = %fault, "the store's connection is replaced");
            self.failures = 0;
            self.slot = Slot::Empty;
        } else {
            self.stay_away(fault.clone());
        }
    }

    fn stay_away(&mut self, fault: Fault) {
        self.failures += 1;
        if self.failures == 1 {
            tracing::warn!(reason = %fault, "no connection to the store");
        }
        let until = Instant::now() + pause(FIRST_REST, LONGEST_REST, self.failures);
        self.slot = Slot::Away { until, fault: fault.not_sent() };
    }
}

impl Target {
    async fn open(&self, opener: &Opener) -> Result<Link, Failure> {
        match self {
            Self::At(address) => Link::open_primary(opener, address).await,
            #[cfg(feature = "redis-sentinel")]
            Self::Sentinels(sentinels) => sentinels.open_primary(opener).await,
        }
    }

    fn needs_tls(&self) -> bool {
        match self {
            Self::At(address) => address.tls,
            #[cfg(feature = "redis-sentinel")]
            Self::Sentinels(sentinels) => sentinels.need_tls(),
        }
    }
}

/// Waits, unless the deadline comes first: then there is no use in it.
async fn wait_within(deadline: Instant, wait: Duration) -> bool {
    let in_time = Instant::now() + wait < deadline;
    if in_time {
        sleep(wait).await;
    }
    in_time
}

/// Between questions to the Sentinels about the primary in use.
#[cfg(feature = "redis-sentinel")]
const CONFIRM_EVERY: Duration = Duration::from_secs(1);

const CLOSED: &str = "the connection to the store was closed";

/// Between questions to a server that is loading or busy.
const FIRST_WAIT: Duration = Duration::from_millis(25);
const LONGEST_WAIT: Duration = Duration::from_millis(200);

/// Between attempts to connect: long enough to spare the server, short against a failover.
const FIRST_REST: Duration = Duration::from_millis(50);
const LONGEST_REST: Duration = Duration::from_secs(1);
