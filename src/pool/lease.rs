//! One lease: whoever drops it gives it back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::question::UNANSWERED;
use super::{Pool, Wants};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::id::{EndpointId, Fence, PoolName};
use crate::outcome::Outcome;
use crate::secret::Token;
use crate::site::Site;
use crate::store::{Grant, Release, RenewReply, RenewRequest};
use crate::telemetry::Stopwatch;
use crate::verdict::Verdict;

/// A granted endpoint. Dropping it gives it back as what was noted last; before that as
/// [`Outcome::Unused`].
pub(crate) struct Lease {
    pool: Pool,
    grant: Grant,
    endpoint: Arc<Endpoint>,
    /// The inventory's when the endpoint was looked up, or one before.
    generation: u64,
    ttl: Duration,
    site: Option<Site>,
    /// What was seen of the endpoint before is no news on what this lease sees.
    asked: Instant,
    /// When the store ends it at the earliest, unless it is renewed.
    ends: Option<Instant>,
    trusted_until: Option<Instant>,
    /// The same moment, once somebody else goes by it too.
    trust: Option<Trust>,
    renewal: Option<AbortHandle>,
    outcome: Outcome,
    /// Whether a caller gave up what was served.
    served: bool,
    /// A repeated acquire may still take place, and must not find the token free.
    cancel: bool,
    held: Stopwatch,
}

/// The moment until which the holder may rely on its lease, moved by renewals. It has come when
/// the lease is given back.
#[derive(Clone)]
pub(crate) struct Trust(Arc<Mutex<Span>>);

struct Span {
    until: Instant,
    over: bool,
}

impl Trust {
    fn new(until: Instant) -> Self {
        Self(Arc::new(Mutex::new(Span { until, over: false })))
    }

    fn span(&self) -> MutexGuard<'_, Span> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self) -> Instant {
        self.span().until
    }

    /// Whether it has not come yet.
    pub(crate) fn lasts(&self) -> bool {
        let span = self.span();
        !span.over && Instant::now() < span.until
    }

    fn extend(&self, until: Instant) {
        let mut span = self.span();
        if !span.over {
            span.until = until.max(span.until);
        }
    }

    /// Ends it now and for good; says whether that was news.
    fn end(&self) -> bool {
        let mut span = self.span();
        span.until = span.until.min(Instant::now());
        !std::mem::replace(&mut span.over, true)
    }
}

/// The part of a term that is not trusted: the answer's way back, and the clocks' drift.
fn margin(term: Duration) -> Duration {
    (term / 100).max(LEAST_MARGIN).min(term / 2)
}

const LEAST_MARGIN: Duration = Duration::from_millis(250);

impl Lease {
    /// Takes a grant in, counted from before it was asked for. A grant of an endpoint that the
    /// inventory lacks is given back unused; the error is whether it will be passed over from now
    /// on.
    pub(super) fn new(
        pool: Pool,
        grant: Grant,
        wants: &Wants,
        asked: Instant,
    ) -> Result<Self, bool> {
        let shared = &pool.0;
        shared.core.counters.grants.add_one();
        let ends = grant.term.map(|term| asked + term.remaining);
        let generation = shared.inventory.generation();
        let Some(endpoint) = pool.endpoint(&grant.endpoint) else {
            shared.core.counters.unknown_endpoints.add_one();
            tracing::debug!(pool = %shared.core.name, endpoint = %grant.endpoint, "not in the inventory");
            give_back(&pool, (&grant, asked), (Outcome::Unused, false), None, ends);
            return Err(pool.lacks(&grant.endpoint));
        };
        let trusted_until =
            grant.term.map(|term| asked + (term.remaining - margin(term.remaining)));
        Ok(Self {
            grant,
            endpoint,
            generation,
            ttl: wants.ttl,
            site: wants.site.clone(),
            asked,
            ends,
            trusted_until,
            trust: None,
            renewal: None,
            outcome: Outcome::Unused,
            served: false,
            cancel: false,
            held: Stopwatch::since(asked),
            pool,
        })
    }

    /// The endpoint as the inventory has it now, or had it last: what is sent after a reload goes
    /// out with the new password.
    pub(crate) fn endpoint(&self) -> Arc<Endpoint> {
        let newer = self.pool.0.inventory.generation() != self.generation;
        let resolved = newer.then(|| self.pool.endpoint(self.endpoint.id())).flatten();
        resolved.unwrap_or_else(|| self.endpoint.clone())
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn fence(&self) -> Fence {
        self.grant.fence
    }

    /// Until when the lease may be relied on; `None` in a shared pool, which reserves nothing.
    pub(crate) fn trusted_until(&self) -> Option<Instant> {
        match &self.trust {
            Some(trust) => Some(trust.until()),
            None => self.trusted_until,
        }
    }

    /// The end of its trust for what goes on beside its holder; `None` in a shared pool.
    pub(crate) fn trust(&mut self) -> Option<Trust> {
        let until = self.trusted_until?;
        Some(self.trust.get_or_insert_with(|| Trust::new(until)).clone())
    }

    /// Whether at least half of the time that was asked for is left.
    pub(crate) fn lasts(&self) -> bool {
        self.trusted_until().is_none_or(|until| Instant::now() + self.ttl / 2 < until)
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted_until().is_none_or(|until| Instant::now() < until)
    }

    /// Whether it was taken for this site, which a verdict on it is about.
    pub(crate) fn is_for(&self, site: &Site) -> bool {
        self.site.as_ref() == Some(site)
    }

    /// Notes what was seen, for the verdict when the lease is dropped.
    pub(crate) fn note(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// Notes what was seen, and where, unless something worse has been noted.
    pub(crate) fn note_worse(&mut self, outcome: Outcome, site: Option<Site>) {
        if severity(outcome) >= severity(self.outcome) {
            (self.outcome, self.site) = (outcome, site);
        }
    }

    #[cfg(test)]
    pub(super) fn as_released(&self) -> Release {
        let (claim, verdict) = (self.grant.claim(), crate::verdict::Verdict::default());
        Release { claim, verdict, site: None }
    }

    /// Has its token cancelled once it has been given back.
    pub(super) fn cancel_at_the_end(&mut self) {
        self.cancel = true;
    }

    /// Gives it back with this outcome.
    pub(crate) fn finish(mut self, outcome: Outcome) {
        self.note(outcome);
    }

    /// Gives it back because its caller gave up what the endpoint had served.
    pub(crate) fn leave(mut self) {
        self.note_left();
    }

    /// Notes that its caller gave up what the endpoint had served.
    pub(crate) fn note_left(&mut self) {
        self.served = true;
        self.note(Outcome::Cancelled);
    }

    /// Has its verdict be about this site.
    pub(crate) fn set_site(&mut self, site: Option<Site>) {
        self.site = site;
    }

    /// Renews it until it is dropped or lost.
    pub(crate) fn keep_alive(&mut self) {
        let (Some(trust), Some(term), None) = (self.trust(), self.grant.term, &self.renewal) else {
            return;
        };
        let (pool, endpoint) = (self.pool.clone(), self.endpoint.clone());
        let renewal = Renewal { pool, endpoint, token: term.token, ttl: self.ttl, trust };
        self.renewal = Some(tokio::spawn(renewal.run()).abort_handle());
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let ends = self.ends.max(self.trusted_until());
        // A renewal or an upload under way on another thread is told so.
        let was_trusted = self.trust.take().is_some_and(|trust| trust.end());
        let was_kept = self.renewal.take().inspect(AbortHandle::abort).is_some();
        if self.outcome == Outcome::Expired {
            self.pool.0.core.counters.expirations.add_one();
            // What ends with the trust comes before the renewal that would find it over.
            if was_trusted && was_kept {
                self.pool.not_renewed(self.endpoint.id(), OVER);
            }
        }
        self.pool.0.core.times.hold.record(self.outcome.as_str(), self.held);
        let (granted, seen) = ((&self.grant, self.asked), (self.outcome, self.served));
        give_back(&self.pool, granted, seen, self.site.take(), ends);
        if let (true, Some(term)) = (self.cancel, self.grant.term) {
            self.pool.cancel(term.token);
        }
    }
}

fn give_back(
    pool: &Pool,
    (grant, asked): (&Grant, Instant),
    (outcome, served): (Outcome, bool),
    site: Option<Site>,
    ends: Option<Instant>,
) {
    let shared = &pool.0;
    let verdict = pool.judge((grant, asked), (outcome, served), site.as_ref());
    tell(&shared.core.name, &grant.endpoint, outcome, &verdict);
    // The verdict on a grant of a shared pool has no deadline.
    let ends = ends.unwrap_or_else(|| Instant::now() + shared.settings.ttl);
    let release = Release { claim: grant.claim(), verdict, site };
    shared.releaser.release(&shared.core, release, outcome, ends);
}

/// Logs a verdict, unless there is nothing in it: loudly if an administrator has to undo it.
fn tell(pool: &PoolName, endpoint: &EndpointId, outcome: Outcome, verdict: &Verdict) {
    let Verdict { cooldown, shun, quarantine, .. } = verdict;
    if let Some(code) = quarantine {
        let code = code.as_str();
        tracing::warn!(%pool, %endpoint, %outcome, code, "endpoint goes into quarantine");
    } else if *verdict != Verdict::default().with_strike(verdict.strike) {
        tracing::debug!(%pool, %endpoint, %outcome, ?cooldown, ?shun, "verdict");
    }
}

/// What weighs most when one lease saw several outcomes.
fn severity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Unused => 0,
        Outcome::Cancelled | Outcome::LocalFault => 1,
        Outcome::Success => 2,
        Outcome::Unknown | Outcome::Throttled => 3,
        Outcome::TargetTls | Outcome::TargetUnreachable => 4,
        Outcome::Expired => 5,
        Outcome::TunnelCut | Outcome::BodyCut | Outcome::Stalled => 6,
        Outcome::TunnelRefused | Outcome::ProxyDenied | Outcome::Banned => 7,
        Outcome::ProxyUnreachable => 8,
        Outcome::CredentialsDoubted => 9,
        Outcome::CredentialsRefused => 10,
    }
}

/// Moves a lease's deadline on while it is held.
struct Renewal {
    pool: Pool,
    endpoint: Arc<Endpoint>,
    token: Token,
    ttl: Duration,
    trust: Trust,
}

/// After a failed renewal the next one follows this soon, sooner when the ttl is short.
const RETRY_RENEWAL: Duration = Duration::from_millis(500);

impl Renewal {
    /// Renews at half of the trusted time. One failure is not the end: it is tried again until
    /// the trust runs out, and only `not_owner` is final.
    async fn run(self) {
        let retry = RETRY_RENEWAL.min(self.ttl / 16);
        let mut next = halfway(self.trust.until());
        loop {
            sleep_until(next).await;
            let (asked, until) = (Instant::now(), self.trust.until());
            if asked >= until {
                return self.lost(OVER);
            }
            // One that hangs leaves time for another.
            let reply = timeout_at(halfway(until).max(asked + retry), self.renew()).await;
            let unanswered = |_| Err(Error::store_unavailable(UNANSWERED));
            match self.pool.0.core.noted(reply.unwrap_or_else(unanswered)) {
                Ok(RenewReply::Renewed(remaining)) => {
                    self.trust.extend(asked + (remaining - margin(remaining)));
                    // At its largest lifetime a lease is not extended any more.
                    next = halfway(self.trust.until()).max(asked + retry);
                }
                Ok(RenewReply::NotOwner) => return self.lost("it is no longer held"),
                Err(error) if !error.is_of_an_outage() => {
                    return self.lost("the store refused");
                }
                Err(_) => next = asked + retry,
            }
        }
    }

    async fn renew(&self) -> Result<RenewReply, Error> {
        let core = &self.pool.0.core;
        let request = RenewRequest { pool: core.name.clone(), token: self.token, ttl: self.ttl };
        core.called(async { core.store.renew(request).await }).await
    }

    fn lost(&self, why: &'static str) {
        if self.trust.end() {
            self.pool.not_renewed(self.endpoint.id(), why);
        }
    }
}

const OVER: &str = "its trusted time ran out";

impl Pool {
    fn not_renewed(&self, endpoint: &EndpointId, why: &'static str) {
        self.0.core.counters.renewals_failed.add_one();
        tracing::warn!(pool = %self.name(), %endpoint, why, "lease was not renewed");
    }
}

fn halfway(until: Instant) -> Instant {
    let now = Instant::now();
    now + until.saturating_duration_since(now) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_a_hundredth_but_at_least_a_quarter_second_and_never_all() {
        assert_eq!(margin(Duration::from_secs(60)), Duration::from_millis(600));
        assert_eq!(margin(Duration::from_secs(10)), LEAST_MARGIN);
        assert_eq!(margin(Duration::from_millis(100)), Duration::from_millis(50));
    }

    #[tokio::test(start_paused = true)]
    async fn trust_is_only_ever_extended_until_it_is_over() {
        let now = Instant::now();
        let trust = Trust::new(now + Duration::from_secs(5));
        trust.extend(now + Duration::from_secs(1));
        assert_eq!(trust.until(), now + Duration::from_secs(5));
        trust.extend(now + Duration::from_secs(9));
        assert_eq!(trust.until(), now + Duration::from_secs(9));
        assert!(trust.end() && !trust.end());
        trust.extend(now + Duration::from_secs(20));
        assert_eq!(trust.until(), now);
    }
}
