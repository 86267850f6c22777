//! Putting the queue's questions to the store.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};

use super::answers::Tokens;
use super::question::Unanswered;
use super::queue::{Launch, Plan, Queue};
use super::wants::Later;
use super::{Lease, Pool};
use crate::error::{Error, Kind};
use crate::outcome::Outcome;
use crate::random;
use crate::secret::Token;
use crate::store::{AcquireReply, Grant};

/// After a lost answer the store is asked again this soon.
const REPEAT_LOST: Duration = Duration::from_millis(50);

/// One question under way. Dropped without an answer it gives its tokens up.
pub(super) struct Flight<'a> {
    pool: &'a Pool,
    launch: Launch,
    call: Unanswered<'a>,
    landed: bool,
}

impl<'a> Flight<'a> {
    pub(super) fn new(pool: &'a Pool, mut launch: Launch) -> Self {
        let call = Unanswered::new(pool, std::mem::take(&mut launch.tokens));
        Self { pool, launch, call, landed: false }
    }

    /// Asks, and has the queue take the answer in.
    pub(super) async fn fly(mut self) {
        let asked = Instant::now();
        let patience = self.launch.until.saturating_duration_since(asked);
        match self.call.ask(&self.launch.wants, patience).await {
            Ok(AcquireReply::Granted(grants)) => self.granted(grants, asked),
            Ok(reply) => self.refused(&reply),
            Err(why) => self.failed(&why),
        }
    }

    fn granted(&mut self, grants: Vec<Grant>, asked: Instant) {
        let short = grants.len() < self.call.tokens.len();
        let short = short.then(|| Later::exhausted(self.pool));
        let mut doubtful = self.answered();
        let (mut leases, mut unknown) = (Vec::with_capacity(grants.len()), Vec::new());
        let mut cancelled = Vec::new();
        for grant in grants {
            let token = grant.term.map(|term| term.token);
            let strays = match token {
                Some(token) => doubtful.iter().position(|doubt| *doubt == token),
                // In a shared pool nothing is held, and nothing in doubt.
                None => doubtful.len().checked_sub(1),
            };
            let stray = strays.map(|at| doubtful.swap_remove(at)).filter(|_| token.is_some());
            match Lease::new(self.pool.clone(), grant, &self.launch.wants, asked) {
                Ok(mut lease) => {
                    // An earlier question may still be on its way.
                    if stray.is_some() {
                        lease.cancel_at_the_end();
                    }
                    leases.push(lease);
                }
                Err(id) => {
                    unknown.push(id);
                    cancelled.extend(stray);
                }
            }
        }
        let tokens = Tokens { doubtful, unanswered: false };
        let spare = self
            .land(tokens, |queue, launch| queue.granted(launch, leases, &unknown, short.as_ref()));
        spare.into_iter().for_each(|lease| lease.finish(Outcome::Unused));
        self.cancel(cancelled);
    }

    fn refused(&mut self, reply: &AcquireReply) {
        let mut doubtful = self.answered();
        let Some(later) = Later::of(reply, self.pool) else {
            // The tokens were cancelled: others are drawn.
            doubtful.clear();
            return self.land(Tokens::default(), |_, _| ());
        };
        let rest = self.rest(&later);
        let tokens = Tokens { doubtful, unanswered: false };
        self.land(tokens, |queue, launch| queue.refused(launch, &later, rest));
    }

    fn failed(&mut self, why: &Error) {
        let mut tokens = std::mem::take(&mut self.call.tokens).into_vec();
        if !why.may_have_run() {
            tokens.truncate(self.launch.doubtful);
        }
        if why.kind() != Kind::StoreUnavailable {
            self.land(Tokens::default(), |queue, launch| queue.failed(&launch.wants, why));
            return self.cancel(tokens);
        }
        let later = Later::new(why.clone()).after(REPEAT_LOST);
        let (pool, rest) = (self.pool, self.rest(&later));
        self.land(Tokens::default(), |queue, launch| {
            let doubtful = queue.lost(pool, launch, &later, tokens);
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
        let longest = self.pool.0.settings.poll_every;
        jittered(later.after.map_or(longest, |after| after.min(longest)))
    }

    fn land<T>(&mut self, tokens: Tokens, take_in: impl FnOnce(&mut Queue, &Launch) -> T) -> T {
        self.landed = true;
        let (taken, given_up) = self.pool.0.core.waiting.with_queue(|queue| {
            queue.land(self.launch.number);
            queue.doubt(&self.launch.wants, tokens);
            let taken = take_in(queue, &self.launch);
            (taken, queue.tidy())
        });
        self.cancel(given_up);
        taken
    }

    fn cancel(&self, tokens: Vec<Token>) {
        drop(Unanswered::new(self.pool, tokens));
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.landed {
            self.land(Tokens::default(), |_, _| ());
        }
        self.pool.0.core.waiting.look();
    }
}

impl Pool {
    /// Sees to it that somebody puts the questions of those who wait.
    pub(super) fn attend(&self) {
        let waiting = &self.0.core.waiting;
        let begins = waiting.with_queue(|queue| {
            let begins = !queue.is_empty() && !queue.attended;
            queue.attended |= begins;
            begins
        });
        match begins {
            true => drop(tokio::spawn(Asker(self.clone()).run())),
            false => waiting.look(),
        }
    }
}

/// The task that puts questions while somebody waits. It belongs to nobody who waits, so none of
/// them can hold the others up.
struct Asker(Pool);

impl Asker {
    async fn run(self) {
        let pool = &self.0;
        let waiting = &pool.0.core.waiting;
        let mut flights = FuturesUnordered::new();
        loop {
            let (launches, wake) = match waiting.plan() {
                Plan::Ask(launches, wake) => (launches, wake),
                Plan::Idle => return,
            };
            for launch in launches {
                let (abandon, registration) = AbortHandle::new_pair();
                waiting.with_queue(|queue| queue.abandon_by(launch.number, abandon));
                flights.push(Abortable::new(Flight::new(pool, launch).fly(), registration));
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
                () = waiting.looked() => {}
                () = idle => {}
            }
        }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.0.0.core.waiting.orphan();
    }
}

/// Up to an eighth longer, so that workers do not ask in step.
fn jittered(pause: Duration) -> Duration {
    let share = u32::from(random::number().to_le_bytes()[0]);
    pause + pause / 8 * share / 255
}
