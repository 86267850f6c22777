//! The holder: one shared connection, replaced when it is no longer good.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::address::Address;
use super::fault::{Failure, Fault, Remedy};
use super::link::{Link, Request};
use super::pace::pause;
#[cfg(feature = "redis-sentinel")]
use super::sentinel::Sentinels;
use super::stream::Opener;

/// One shared connection to one server, or to the primary of the moment.
///
/// It is replaced when its socket closes, after READONLY and MASTERDOWN, and after two timeouts in
/// a row. One attempt runs at a time, in a task of its own, so it outlives the call that began it.
/// After a failed attempt calls fail at once until the next one is due.
pub(crate) struct Holder {
    target: Target,
    opener: Arc<Opener>,
    connect_timeout: Duration,
    state: Mutex<State>,
}

/// Whom to connect to.
pub(crate) enum Target {
    /// A server, as long as it is a primary.
    Server(Address),
    /// A cluster's node; it sends calls on that are not for it.
    #[cfg(feature = "redis-cluster")]
    Node(Address),
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

impl Holder {
    pub(crate) fn new(target: Target, opener: Arc<Opener>, connect_timeout: Duration) -> Self {
        let state = State {
            slot: Slot::Empty,
            failures: 0,
            #[cfg(feature = "redis-sentinel")]
            confirmed: Instant::now(),
        };
        Self { target, opener, connect_timeout, state: Mutex::new(state) }
    }

    /// Sends what `make` makes until an answer, a final failure or the deadline.
    ///
    /// Only what surely had no effect is sent again.
    pub(crate) async fn run(
        self: &Arc<Self>,
        deadline: Instant,
        make: impl Fn(bool) -> Request,
    ) -> Result<Value, Failure> {
        let (mut by_source, mut moved, mut waits) = (false, false, 0);
        let mut last = None;
        loop {
            let link = self.link(deadline).await.map_err(|fault| fault.with(Remedy::Elsewhere))?;
            if Instant::now() >= deadline {
                // What is sent now would run unheard.
                return Err(last.unwrap_or_else(|| Fault::unavailable(LATE).with_nothing()));
            }
            let failure = match link.send(&make(by_source), deadline).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            if matches!(failure.remedy, Remedy::Leave | Remedy::Move | Remedy::MoveAndWait) {
                self.leave(&link, &failure.fault);
            }
            let again = match &failure.remedy {
                Remedy::Nothing | Remedy::Leave | Remedy::Elsewhere | Remedy::Follow(_) => false,
                Remedy::SendSource => !std::mem::replace(&mut by_source, true),
                Remedy::Move => !std::mem::replace(&mut moved, true),
                Remedy::AwaitSlot if !self.target.has_slots() => false,
                Remedy::Wait | Remedy::AwaitSlot | Remedy::MoveAndWait => {
                    waits += 1;
                    wait_within(deadline, pause(FIRST_WAIT, LONGEST_WAIT, waits)).await
                }
            };
            if !again {
                return Err(failure);
            }
            last = Some(failure);
        }
    }

    /// The connection of the moment, waiting for an attempt under way.
    pub(crate) async fn link(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Link>, Fault> {
        let mut waited = false;
        loop {
            let mut attempt = match self.step(waited) {
                Step::Use(link) => return Ok(link),
                Step::Fail(fault) => return Err(fault),
                Step::Wait(attempt) => attempt,
            };
            // Closing is what it waits for.
            if timeout_at(deadline, attempt.changed()).await.is_err() {
                return Err(Fault::unavailable(LATE));
            }
            waited = true;
        }
    }

    /// One who `waited` for an attempt takes its result, however late it learns of it.
    fn step(self: &Arc<Self>, waited: bool) -> Step {
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
            Slot::Away { until, fault } if waited || Instant::now() < *until => {
                Step::Fail(fault.clone())
            }
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

    /// Attempts to connect that led to nothing since the last good one.
    #[cfg(feature = "redis-cluster")]
    pub(crate) fn failures(&self) -> u32 {
        self.state().failures
    }

    pub(crate) fn opener(&self) -> &Opener {
        &self.opener
    }

    fn leave(&self, link: &Arc<Link>, fault: &Fault) {
        self.state().retire(link, fault);
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
    /// Whether it keeps a part of what there is, which comes and goes.
    #[cfg(feature = "redis-cluster")]
    fn has_slots(&self) -> bool {
        matches!(self, Self::Node(_))
    }

    #[cfg(not(feature = "redis-cluster"))]
    fn has_slots(&self) -> bool {
        false
    }

    async fn open(&self, opener: &Opener) -> Result<Link, Failure> {
        match self {
            Self::Server(address) => Link::open_primary(opener, address).await,
            #[cfg(feature = "redis-cluster")]
            Self::Node(address) => Link::open_node(opener, address).await,
            #[cfg(feature = "redis-sentinel")]
            Self::Sentinels(sentinels) => sentinels.open_primary(opener).await,
        }
    }
}

#[cfg(test)]
impl Holder {
    /// The server in use.
    #[cfg(feature = "redis-sentinel")]
    pub(crate) fn place(&self) -> Option<super::address::Place> {
        match &self.state().slot {
            Slot::Live(link) => Some(link.place().clone()),
            _ => None,
        }
    }

    /// Whether its socket is open, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        matches!(&self.state().slot, Slot::Live(link) if !link.is_closed())
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

const LATE: &str = "the store could not be reached in time";
const CLOSED: &str = "the connection to the store was closed";

/// Between questions to a server that is loading or busy.
const FIRST_WAIT: Duration = Duration::from_millis(25);
const LONGEST_WAIT: Duration = Duration::from_millis(200);

/// Between attempts to connect: long enough to spare the server, short against a failover.
const FIRST_REST: Duration = Duration::from_millis(50);
const LONGEST_REST: Duration = Duration::from_secs(1);
