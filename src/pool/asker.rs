//! Putting the queue's questions to the store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable, Either};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::answers::Tokens;
use super::attendance::SILENCE;
use super::question::{LEAST_PATIENCE, Unanswered};
use super::queue::{Launch, Plan, Queue};
use super::wants::Later;
use super::{Lease, Pool};
use crate::error::Error;
use crate::outcome::Outcome;
use crate::random;
use crate::secret::Token;
use crate::store::{AcquireReply, Grant};

/// After a lost answer the store is asked again this soon.
const REPEAT_LOST: Duration = Duration::from_millis(50);

/// How often one who waits looks after the asker.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// One question under way. Dropped without an answer it gives its tokens up.
pub(super) struct Flight {
    launch: Launch,
    call: Unanswered<Pool>,
    landed: bool,
}

impl Flight {
    pub(super) fn new(pool: &Pool, mut launch: Launch) -> Self {
        let call = Unanswered::new(pool.clone(), std::mem::take(&mut launch.tokens));
        Self { launch, call, landed: false }
    }

    fn pool(&self) -> &Pool {
        &self.call.pool
    }

    /// Asks, and has the queue take the answer in.
    pub(super) async fn fly(mut self) {
        let asked = Instant::now();
        // Long enough that one who would not wait at all can be answered.
        let end = self.launch.until.max(asked + LEAST_PATIENCE);
        let reply = self.call.ask(&self.launch.wants, |_| end).await;
        if !self.pool().0.core.waiting.with_queue(|queue| queue.claim(self.launch.number)) {
            // Whoever had it forsaken gives its tokens up.
            self.landed = true;
            return self.call.tokens.clear();
        }
        match reply {
            Ok(AcquireReply::Granted(grants)) => self.granted(grants, asked),
            Ok(reply) => self.refused(&reply),
            Err(why) => self.failed(&why),
        }
    }

    fn granted(&mut self, grants: Vec<Grant>, asked: Instant) {
        let short = grants.len() < self.call.tokens.len();
        let short = short.then(|| Later::exhausted(self.pool()));
        let mut doubtful = self.answered();
        let (mut leases, mut in_vain) = (Vec::with_capacity(grants.len()), true);
        let mut cancelled = Vec::new();
        for grant in grants {
            let token = grant.term.map(|term| term.token);
            let strays = match token {
                Some(token) => doubtful.iter().position(|doubt| *doubt == token),
                // In a shared pool nothing is held, and nothing in doubt.
                None => doubtful.len().checked_sub(1),
            };
            let stray = strays.map(|at| doubtful.swap_remove(at)).filter(|_| token.is_some());
            match Lease::new(self.pool().clone(), grant, &self.launch.wants, asked) {
                Ok(mut lease) => {
                    // An earlier question may still be on its way.
                    if stray.is_some() {
                        lease.cancel_at_the_end();
                    }
                    leases.push(lease);
                }
                Err(learned) => {
                    in_vain &= !learned;
                    cancelled.extend(stray);
                }
            }
        }
        let tokens = Tokens { doubtful, unanswered: false };
        if leases.is_empty() && in_vain {
            // They are given back and come again, for nothing.
            let rest = self.pool().rest();
            let later = Later::exhausted(self.pool()).after(rest);
            self.land(tokens, |queue, launch| queue.in_vain(launch, &later, rest));
            return self.cancel(cancelled);
        }
        let spare =
            self.land(tokens, |queue, launch| queue.granted(launch, leases, short.as_ref()));
        spare.into_iter().for_each(|lease| lease.finish(Outcome::Unused));
        self.cancel(cancelled);
    }

    fn refused(&mut self, reply: &AcquireReply) {
        let mut doubtful = self.answered();
        if *reply == AcquireReply::Cancelled && !doubtful.is_empty() {
            // Others are drawn.
            doubtful.clear();
            return self.land(Tokens::default(), |_, _| ());
        }
        let later = Later::of(reply, self.pool());
        let tokens = Tokens { doubtful, unanswered: false };
        let rest = self.rest(&later);
        self.land(tokens, |queue, launch| queue.refused(launch, &later, rest));
    }

    fn failed(&mut self, why: &Error) {
        let mut tokens = std::mem::take(&mut self.call.tokens).into_vec();
        if !why.may_have_run() {
            tokens.truncate(self.launch.doubtful);
        }
        if !why.is_of_an_outage() {
            self.land(Tokens::default(), |queue, launch| queue.failed(&launch.wants, why));
            return self.cancel(tokens);
        }
        let later = Later::new(why.clone()).after(REPEAT_LOST);
        let (pool, rest) = (self.pool().clone(), self.rest(&later));
        self.land(Tokens::default(), |queue, launch| {
            let doubtful = queue.lost(&pool, launch, &later, tokens);
            queue.doubt(&launch.wants, Tokens { doubtful, unanswered: true });
            queue.refused(launch, &later, rest);
        });
    }

    /// The store has answered: those that were in doubt before still are.
    fn answered(&mut self) -> Vec<Token> {
        let mut tokens = std::mem::take(&mut self.call.tokens).into_vec();
        tokens.truncate(self.launch.doubtful);
        tokens
    }

    fn rest(&self, later: &Later) -> Duration {
        let longest = self.pool().rest();
        later.after.map_or(longest, |after| jittered(after).min(longest))
    }

    fn land<T>(&mut self, tokens: Tokens, take_in: impl FnOnce(&mut Queue, &Launch) -> T) -> T {
        self.landed = true;
        let (taken, given_up) = self.pool().0.core.waiting.with_queue(|queue| {
            queue.land(self.launch.number);
            queue.doubt(&self.launch.wants, tokens);
            let taken = take_in(queue, &self.launch);
            (taken, queue.tidy())
        });
        self.cancel(given_up);
        taken
    }

    fn cancel(&self, tokens: Vec<Token>) {
        drop(Unanswered::new(self.pool(), tokens));
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.landed {
            self.land(Tokens::default(), |_, _| ());
        }
        self.pool().0.core.waiting.look();
    }
}

impl Pool {
    /// Between two questions, when nothing is known of the next chance.
    pub(super) fn rest(&self) -> Duration {
        jittered(self.0.settings.poll_every)
    }

    /// Sees to it that somebody puts the questions of those who wait, now if one has just come. Says
    /// how soon to look after that again.
    pub(super) fn attend(&self, has_come: bool) -> Duration {
        let now = Instant::now();
        let (begins, forsaken, called) = self.0.core.waiting.with_queue(|queue| {
            let silent = queue.attendance.relieve_silent(now);
            let forsaken = silent.map(|asker| queue.forsake(asker));
            let begins = if queue.is_empty() { None } else { queue.attendance.take(now) };
            let called = queue.attendance.call_up(now, has_come && begins.is_none());
            (begins, forsaken, called)
        });
        if let Some(tokens) = forsaken {
            tracing::debug!(pool = %self.0.core.name, "the asker's runtime is not driven");
            drop(Unanswered::new(self, tokens));
        }
        if let Some((number, calls)) = begins {
            drop(tokio::spawn(Asker { pool: self.clone(), number, calls }.run()));
        }
        if called { SILENCE } else { LOOK_AFTER }
    }

    /// Waits until nobody asks any more, but for no asker whose runtime is not driven.
    pub(super) async fn left_alone(&self) {
        let waiting = &self.0.core.waiting;
        if timeout(LEAST_PATIENCE, waiting.is_left()).await.is_err() {
            let relieve = |queue: &mut Queue| {
                Some(queue.attendance.relieve()?).map(|asker| queue.forsake(asker))
            };
            drop(Unanswered::new(self, waiting.with_queue(relieve).unwrap_or_default()));
        }
    }
}

/// The task that puts questions while somebody waits. It belongs to nobody who waits, so none of
/// them can hold the others up. Its runtime is that of the one who began it: when that is not
/// driven any more, one who waits begins another.
struct Asker {
    pool: Pool,
    number: u64,
    calls: Arc<Notify>,
}

impl Asker {
    async fn run(self) {
        let (pool, waiting) = (&self.pool, &self.pool.0.core.waiting);
        let mut flights = FuturesUnordered::new();
        loop {
            let (launches, taken_over, wake) = match waiting.plan(self.number) {
                Plan::Ask(launches, taken_over, wake) => (launches, taken_over, wake),
                Plan::Idle => return,
                Plan::Relieved => {
                    // Its questions are forsaken, and come to nothing.
                    while flights.next().await.is_some() {}
                    return;
                }
            };
            let taken_over = taken_over.into_iter().filter_map(|(number, alone)| {
                // Its timers may be those of a runtime that is not driven.
                let flight = timeout(LEAST_PATIENCE, alone.take_over()?);
                Some((number, Either::Left(flight.map(drop))))
            });
            let launched = launches
                .into_iter()
                .map(|launch| (launch.number, Either::Right(Flight::new(pool, launch).fly())));
            for (number, flight) in taken_over.chain(launched) {
                let (abandon, registration) = AbortHandle::new_pair();
                waiting.with_queue(|queue| queue.abandon_by(number, abandon));
                flights.push(Abortable::new(flight, registration));
            }
            let idle = async {
                match wake {
                    Some(wake) => sleep_until(wake).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(_) = flights.next() => {}
                () = self.calls.notified() => {}
                () = idle => {}
            }
        }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.pool.0.core.waiting.orphan(self.number);
    }
}

/// Up to an eighth longer, so that workers do not ask in step.
fn jittered(pause: Duration) -> Duration {
    let share = u32::from(random::number().to_le_bytes()[0]);
    pause + pause / 8 * share / 255
}
