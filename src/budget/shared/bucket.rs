//! One site's bucket in Redis.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::SharedLimits;
use crate::error::{Error, Kind};
use crate::redis::commands::{
    BUDGET_ENTER, BUDGET_LEAVE, BUDGET_PAUSE, BUDGET_RESERVE, BUDGET_RESET, BUDGET_SETTLE,
    BUDGET_UNDO,
};
use crate::redis::words::head;
use crate::redis::{Arguments, BudgetKeys, Call, Reply, reply::senseless};

/// One bucket, with the rate that this process wants for it.
///
/// No call is repeated: a reservation whose answer was lost is a slot that nobody uses.
pub(in crate::budget) struct Bucket {
    limits: SharedLimits,
    keys: BudgetKeys,
    interval: Duration,
    burst: u32,
    /// The outage of which this bucket has made up for what may be lost.
    seen: AtomicU64,
}

/// What a reservation came to.
#[derive(Debug, PartialEq)]
pub(in crate::budget) enum Reserved {
    Slot(Slot),
    /// The site is paused, and nothing is charged.
    Paused(Pause),
    /// After a pause another request finds out whether it is over, for this long at most.
    Probing(Duration),
    /// As many are in flight as may be; the next deadline of one is this far away.
    Full(Duration),
}

/// A slot that is charged.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::budget) struct Slot {
    /// From the answer on.
    pub(in crate::budget) wait: Duration,
    /// Whether it has a place in flight already.
    pub(in crate::budget) entered: bool,
    /// How many pauses there were in a row, if it is a probe.
    pub(in crate::budget) level: u32,
    /// The number of the site's last pause.
    pub(in crate::budget) known: u64,
    tat: u64,
}

impl Slot {
    /// Whether it is for the one request that finds out whether a pause is over.
    pub(in crate::budget) fn is_probe(&self) -> bool {
        self.level > 0
    }
}

/// A pause of a site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::budget) struct Pause {
    pub(in crate::budget) left: Duration,
    /// How many there were in a row.
    pub(in crate::budget) level: u32,
}

/// How long pauses are for which the site names no time: doubling from `first` to `longest`.
#[derive(Debug, Clone, Copy)]
pub(in crate::budget) struct Backoff {
    pub(in crate::budget) first: Duration,
    pub(in crate::budget) longest: Duration,
}

/// A place in flight that a request wants.
#[derive(Debug, Clone, Copy)]
pub(in crate::budget) struct Seat {
    pub(in crate::budget) passage: Passage,
    pub(in crate::budget) most: u32,
    /// How long it is taken if the request never tells of its end.
    pub(in crate::budget) hold: Duration,
}

/// A passage's name, which no other process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::budget) struct Passage {
    pub(in crate::budget) process: u64,
    pub(in crate::budget) number: u64,
}

/// Whether there is a place.
#[derive(Debug, PartialEq)]
pub(in crate::budget) enum Room {
    Entered,
    /// As [`Reserved::Full`].
    Full(Duration),
}

impl Bucket {
    pub(in crate::budget) fn new(
        limits: SharedLimits,
        name: &str,
        interval: Duration,
        burst: u32,
    ) -> Self {
        let keys = BudgetKeys::new(&limits.shared.handle.namespace, name);
        let seen = limits.shared.outage.number().into();
        Self { limits, keys, interval, burst, seen }
    }

    /// Charges the next slot. A seat is taken only by a slot that is due at once: one reserved for
    /// later would keep others out while nothing is in flight, and [`enter`](Self::enter)s then.
    ///
    /// `probe` is how long one request may take to find out whether a pause is over.
    pub(in crate::budget) async fn reserve(
        &self,
        probe: Duration,
        seat: Option<&Seat>,
    ) -> Result<Reserved, Error> {
        let shared = &self.limits.shared;
        shared.news.asked();
        let outages = shared.outage.number();
        let empty = outages != self.seen.load(Ordering::Acquire);
        let mut arguments =
            self.paced(&BUDGET_RESERVE).micros("probe_us", probe).number("empty", u64::from(empty));
        if let Some(seat) = seat {
            arguments = seated(arguments, seat);
        }
        shared.counters.reservations.add();
        let keys = if seat.is_some() { &self.keys.0[..] } else { &self.keys.0[..1] };
        let (word, mut reply) = self.call(keys, arguments).await?;
        let reserved = match word.as_str() {
            head::RESERVED => Reserved::Slot(slot(&mut reply)?),
            head::PAUSED => Reserved::Paused(pause(&mut reply)?),
            head::PROBING => Reserved::Probing(reply.time()?),
            head::FULL => Reserved::Full(reply.time()?),
            _ => return Err(senseless()),
        };
        if empty && matches!(reserved, Reserved::Slot(_)) {
            self.seen.store(outages, Ordering::Release);
        }
        let stepped = reply.time()?;
        if !stepped.is_zero() {
            shared.counters.clock_steps.add();
            tracing::warn!(by = ?stepped, "the clock of the store was set back");
        }
        Ok(reserved)
    }

    /// Gives a slot back that was not used; whether nobody had reserved one since.
    pub(in crate::budget) async fn undo(&self, slot: &Slot) -> Result<bool, Error> {
        let arguments = Arguments::of(&BUDGET_UNDO)
            .number("tat", slot.tat)
            .micros("interval_us", self.interval)
            .number("probe", u64::from(slot.is_probe()));
        let undone = match self.call(&self.keys.0[..1], arguments).await?.0.as_str() {
            head::UNDONE => true,
            head::LAPSED => false,
            _ => return Err(senseless()),
        };
        let counters = &self.limits.shared.counters;
        if undone {
            counters.undone.add()
        } else {
            counters.lapsed.add()
        }
        Ok(undone)
    }

    /// Tells of an answer that asks for a pause, to a request whose slot knew the pause `known`.
    ///
    /// Answers to requests that were admitted before the last pause began are no event of their
    /// own: then it says so by `None`, or lengthens the pause.
    pub(in crate::budget) async fn pause(
        &self,
        known: u64,
        asked: Duration,
        backoff: Backoff,
    ) -> Result<Option<Pause>, Error> {
        let arguments = Arguments::of(&BUDGET_PAUSE)
            .number("known", known)
            .micros("asked_us", asked)
            .micros("first_us", backoff.first)
            .micros("longest_us", backoff.longest);
        match self.call(&self.keys.0[..1], arguments).await? {
            (word, mut reply) if word == head::PAUSED => pause(&mut reply).map(Some),
            (word, _) if word == head::STALE => Ok(None),
            _ => Err(senseless()),
        }
    }

    /// Tells what became of a probe: a success ends the pauses, else another request may probe.
    pub(in crate::budget) async fn settle(&self, known: u64, success: bool) -> Result<(), Error> {
        let arguments = Arguments::of(&BUDGET_SETTLE)
            .number("known", known)
            .micros("interval_us", self.interval)
            .number("burst", u64::from(self.burst))
            .text("what", if success { "success" } else { "unknown" });
        match self.call(&self.keys.0[..1], arguments).await?.0.as_str() {
            head::SETTLED | head::STALE => Ok(()),
            _ => Err(senseless()),
        }
    }

    /// Ends a pause on a user's word; whether there was one.
    pub(in crate::budget) async fn reset(&self) -> Result<bool, Error> {
        let (_, mut reply) = self.call(&self.keys.0[..1], Arguments::of(&BUDGET_RESET)).await?;
        reply.flag()
    }

    /// Takes a place in flight at the moment of sending, or moves the deadline of the one it has.
    pub(in crate::budget) async fn enter(&self, seat: &Seat) -> Result<Room, Error> {
        let arguments = seated(Arguments::of(&BUDGET_ENTER), seat);
        match self.call(&self.keys.0[1..], arguments).await? {
            (word, _) if word == head::ENTERED => Ok(Room::Entered),
            (word, mut reply) if word == head::FULL => reply.time().map(Room::Full),
            _ => Err(senseless()),
        }
    }

    /// Gives places back.
    pub(in crate::budget) async fn leave(&self, passages: &[Passage]) -> Result<(), Error> {
        for page in passages.chunks(PAGE) {
            let arguments = page.iter().fold(Arguments::of(&BUDGET_LEAVE), |arguments, passage| {
                arguments.text("passage", &passage.to_string())
            });
            let (word, _) = self.call(&self.keys.0[1..], arguments).await?;
            if word != head::LEFT {
                return Err(senseless());
            }
        }
        Ok(())
    }

    /// A number that no other passage of this process has.
    pub(in crate::budget) fn next_number(&self) -> u64 {
        self.limits.shared.passages.fetch_add(1, Ordering::Relaxed)
    }

    pub(in crate::budget) fn passage(&self, number: u64) -> Passage {
        Passage { process: self.limits.shared.process, number }
    }

    /// Runs a call of this bucket that nobody waits for.
    pub(in crate::budget) fn tell(
        &self,
        work: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        self.limits.shared.news.tell(work);
    }

    /// Counts a slot that was allowed without Redis.
    pub(in crate::budget) fn fell_back(&self) {
        self.limits.shared.fallbacks.add_one();
    }

    fn paced(&self, command: &'static crate::redis::Command) -> Arguments {
        Arguments::of(command)
            .micros("interval_us", self.interval)
            .number("burst", u64::from(self.burst))
    }

    async fn call(&self, keys: &[String], arguments: Arguments) -> Result<(String, Reply), Error> {
        let shared = &self.limits.shared;
        if shared.outage.is_known(self.limits.ask_again()) {
            shared.errors.add_one(Kind::StoreUnavailable.as_str());
            return Err(
                Error::store_unavailable("the store did not answer a moment ago").without_effect()
            );
        }
        let (command, args) = arguments.finish();
        let call = Call { script: &command.script, keys, args: &args };
        let answer = shared.handle.connection.call(call).await.map_err(Error::from);
        self.note(answer.as_ref().err().map(Error::kind));
        let mut reply = Reply::new(answer?)?;
        Ok((reply.text()?, reply))
    }

    /// Keeps the books of outages, and tells of them once each.
    fn note(&self, failure: Option<Kind>) {
        let shared = &self.limits.shared;
        if let Some(code) = failure {
            shared.errors.add_one(code.as_str());
        }
        match failure {
            Some(Kind::StoreUnavailable) if shared.outage.begin() => match self.limits.share {
                Some(share) => tracing::warn!(
                    share,
                    "the store does not answer: site budgets go on in this process alone"
                ),
                None => tracing::warn!("the store does not answer: site budgets let nothing pass"),
            },
            Some(_) => {}
            None if shared.outage.end() => {
                tracing::info!("the store answers again: site budgets are shared")
            }
            None => {}
        }
    }
}

impl fmt::Display for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.process, self.number)
    }
}

fn seated(arguments: Arguments, seat: &Seat) -> Arguments {
    arguments
        .number("most", u64::from(seat.most))
        .text("passage", &seat.passage.to_string())
        .micros("hold_us", seat.hold)
}

fn slot(reply: &mut Reply) -> Result<Slot, Error> {
    let (wait, tat, known) = (reply.time()?, reply.parse()?, reply.parse()?);
    let (level, entered) = (reply.parse()?, reply.flag()?);
    Ok(Slot { wait, entered, level, known, tat })
}

fn pause(reply: &mut Reply) -> Result<Pause, Error> {
    Ok(Pause { left: reply.time()?, level: reply.parse()? })
}

/// Passages in one call.
const PAGE: usize = 1000;
