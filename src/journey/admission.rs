//! What a request passes before it is sent: its budgets, then a lease.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::{Journey, Left, Ticket, lease_expired};
use crate::budget::{Gate, Turn};
use crate::error::{Error, Kind};
use crate::hold::Hold;
use crate::id::EndpointId;
use crate::outcome::{Attempt, Outcome};
use crate::pool::{Lease, Now, Patience, Wants};
use crate::transport::Transport;

impl<T: Transport> Journey<'_, T> {
    /// Waits for the site's budget, then for a lease, holding none meanwhile.
    pub(super) async fn admit(&mut self, left: Left) -> Result<Ticket, Error> {
        let mut prefer = None;
        if let Some(mut passage) = left.passage {
            let hold = {
                let mut lease = Box::pin(self.lease(None));
                tokio::select! {
                    biased;
                    hold = &mut lease => hold?,
                    // Its places go back, for others may need them.
                    () = passage.give_back() => lease.await?,
                }
            };
            if self.gate().lets(&mut passage) {
                return Ok(Ticket { hold, passage });
            }
            // The next passage may need its places.
            drop(passage);
            if let Some(passage) = self.gate().try_pass() {
                return Ok(Ticket { hold, passage });
            }
            hold.finish(Outcome::Unused);
        }
        if let Some(mut hold) = left.hold {
            if hold.lasts_for(&self.site)
                && let Some(passage) = self.gate().try_pass()
            {
                hold.set_site(Some(self.site.clone()));
                return Ok(Ticket { hold, passage });
            }
            prefer = Some(hold.endpoint().id().clone());
            hold.finish(Outcome::Success);
            // What gives leases back comes first, and the endpoint is free when it is asked for.
            yield_now().await;
        }
        if let Some(ticket) = Box::pin(self.admit_now(prefer.clone())).await? {
            return Ok(ticket);
        }
        self.suspects.let_go();
        // Most requests need not wait, and should not carry a waiter's state with them.
        Box::pin(self.wait(prefer)).await
    }

    /// Takes lease and slot together if neither needs a wait.
    async fn admit_now(&mut self, prefer: Option<EndpointId>) -> Result<Option<Ticket>, Error> {
        if !self.gate().would_pass() {
            return Ok(None);
        }
        let hold = match self.lent()? {
            Some(hold) => hold,
            None => match self.lease_now(prefer).await? {
                Some(hold) => hold,
                None => return Ok(None),
            },
        };
        match self.gate().try_pass() {
            Some(passage) => Ok(Some(Ticket { hold, passage })),
            None => {
                hold.finish(Outcome::Unused);
                Ok(None)
            }
        }
    }

    /// Waits for the budgets of site and keys, then for a lease.
    async fn wait(&mut self, prefer: Option<EndpointId>) -> Result<Ticket, Error> {
        let turn = self.gate().turn(self.patience());
        let mut turn = turn.map_err(|error| self.or_timed_out(error))?;
        loop {
            self.budgeted(&mut turn).await?;
            let hold = tokio::select! {
                biased;
                hold = self.lease(prefer.clone()) => hold?,
                never = turn.let_go() => match never {},
            };
            // A site without a budget may have asked for a pause meanwhile.
            let joined = self.gate().join(&mut turn, self.patience());
            // A slot that went stale meanwhile is charged anew.
            let ready = match joined {
                Ok(()) => self.budgeted_at_once(&mut turn).await,
                Err(error) => Err(error),
            };
            if let Ok(true) = ready {
                return Ok(Ticket { hold, passage: turn.spend() });
            }
            hold.finish(Outcome::Unused);
            ready.map_err(|error| self.or_timed_out(error))?;
        }
    }

    /// What the present hop has to pass.
    fn gate(&self) -> Gate<'_> {
        self.terms.budgets.gate(&self.site, self.port(), &self.options.charges)
    }

    /// Waits for a turn's slots, and counts the time.
    async fn budgeted(&mut self, turn: &mut Turn) -> Result<(), Error> {
        let (pauses, patience) = (turn.pauses(), self.patience());
        let wait = Wait::begin(&mut self.trip.budget_wait, &mut self.patience);
        let done = {
            let mut step = pin!(timeout(patience, turn.slot()));
            match poll_fn(|cx| Poll::Ready(step.as_mut().poll(cx))).await {
                Poll::Ready(done) => done,
                Poll::Pending => {
                    // It may stand for a lease, and none is held through a wait for the budget.
                    self.doubt = None;
                    step.await
                }
            }
        };
        drop(wait);
        self.trip.pauses += turn.pauses() - pauses;
        done.unwrap_or_else(|_| Err(turn.overdue())).map_err(|error| self.or_timed_out(error))
    }

    /// Has a turn's slots for a lease in hand, and counts the time that a server took.
    async fn budgeted_at_once(&mut self, turn: &mut Turn) -> Result<bool, Error> {
        let patience = self.patience();
        let wait = Wait::begin(&mut self.trip.budget_wait, &mut self.patience);
        let ready = timeout(patience, turn.slot_at_once()).await;
        drop(wait);
        ready.unwrap_or_else(|_| Err(turn.overdue()))
    }

    /// Waits for a lease, and counts the time.
    async fn lease(&mut self, prefer: Option<EndpointId>) -> Result<Hold, Error> {
        if let Some(hold) = self.lent()? {
            return Ok(hold);
        }
        if !(self.suspects.is_empty() && self.avoid.is_empty()) {
            if let Some(hold) = self.lease_now(prefer.clone()).await? {
                return Ok(hold);
            }
            // Requests could wait for each other's suspects.
            self.suspects.let_go();
        }
        let (wants, doubt) = (self.wants(prefer), self.doubt.take());
        let patience = self.lease_patience();
        let wait = Wait::begin(&mut self.trip.lease_wait, &mut self.patience);
        let leased = self.pool.lease_after(wants, patience, doubt).await;
        drop(wait);
        let (lease, _) = leased.map_err(|error| self.or_timed_out(error))?;
        Ok(self.own(lease))
    }

    /// The caller's own lease, if it still holds: an expired one must not cost a slot.
    fn lent(&self) -> Result<Option<Hold>, Error> {
        let site = Some(self.site.clone());
        let hold = match (&self.options.probed, &self.options.held) {
            (Some(probed), _) => Hold::Probed(probed.clone().at(site)),
            (None, Some(held)) => Hold::Lent(held.clone(), site),
            (None, None) => return Ok(None),
        };
        if hold.is_trusted() {
            return Ok(Some(hold));
        }
        hold.finish(Outcome::Expired);
        Err(lease_expired())
    }

    /// Takes a lease if that needs no wait but for the store's answer: on an endpoint to be avoided
    /// only when no other is free, and then rather on one that did not fail last.
    async fn lease_now(&mut self, prefer: Option<EndpointId>) -> Result<Option<Hold>, Error> {
        while !self.avoid.is_empty() {
            let hold = self.ask_now(prefer.clone()).await?;
            if hold.is_some() || self.doubt.is_some() {
                return Ok(hold);
            }
            let last = self.avoid.len() - 1;
            self.avoid = if last == 0 { &[] } else { &self.avoid[last..] };
        }
        self.ask_now(prefer).await
    }

    async fn ask_now(&mut self, prefer: Option<EndpointId>) -> Result<Option<Hold>, Error> {
        let (wants, patience) = (self.wants(prefer), self.lease_patience());
        // What is answered at once needs no clock.
        let waits = !self.pool.answers_at_once();
        let wait = waits.then(|| Wait::begin(&mut self.trip.lease_wait, &mut self.patience));
        let leased = Box::pin(self.pool.lease_now(wants, patience)).await;
        drop(wait);
        let (now, _) = leased.map_err(|error| self.or_timed_out(error))?;
        Ok(match now {
            Now::Lease(lease) => Some(self.own(lease)),
            Now::Later(doubt) => {
                self.doubt = doubt;
                None
            }
        })
    }

    fn wants(&self, prefer: Option<EndpointId>) -> Wants {
        Wants {
            ttl: self.options.ttl.unwrap_or(self.pool.settings().ttl),
            site: Some(self.site.clone()),
            exclude: self
                .trip
                .failed
                .iter()
                .map(Attempt::endpoint)
                .chain(self.avoid)
                .cloned()
                .collect(),
            prefer,
        }
    }

    fn own(&self, mut lease: Lease) -> Hold {
        if self.options.renew.unwrap_or(self.pool.settings().renew) {
            lease.keep_alive();
        }
        Hold::Own(lease)
    }

    pub(super) fn port(&self) -> Option<u16> {
        self.replay.url().port_or_known_default()
    }

    /// How long the next wait may be.
    pub(super) fn patience(&self) -> Duration {
        let patience = self.patience.min(LONGEST_WAIT);
        match self.deadline {
            Some(deadline) => patience.min(deadline.saturating_duration_since(Instant::now())),
            None => patience,
        }
    }

    /// The same for a lease, with the end that nothing moves.
    fn lease_patience(&self) -> Patience {
        Patience { wait: self.patience(), deadline: self.deadline }
    }

    /// Tells a wait that the caller's own timeout ended from one that was too long.
    fn or_timed_out(&self, error: Error) -> Error {
        let waiting = matches!(
            error.kind(),
            Kind::PoolExhausted
                | Kind::BudgetExceeded
                | Kind::StoreUnavailable
                | Kind::PoolWithoutOrders
        );
        if waiting && self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Error::new(Kind::TimedOut, "the request's timeout was up while it waited")
                .with_source(error);
        }
        error
    }
}

/// A wait under way. However it ends, its time is counted.
struct Wait<'a> {
    began: Instant,
    sum: &'a mut Duration,
    patience: &'a mut Duration,
}

impl<'a> Wait<'a> {
    fn begin(sum: &'a mut Duration, patience: &'a mut Duration) -> Self {
        Self { began: Instant::now(), sum, patience }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let waited = self.began.elapsed();
        *self.sum += waited;
        *self.patience = self.patience.saturating_sub(waited);
    }
}

/// Keeps sums of instants representable.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);
