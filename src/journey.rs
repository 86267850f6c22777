//! One request on its way: budget, lease, endpoint, exchange, verdict, and on to the next hop.

mod admission;

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use reqwest::{Request, Response};
use tokio::time::Instant;

use crate::body::{self, Cargo};
use crate::budget::{Budgets, Passage};
use crate::classify::{Answer, Classifier, Failed, Route};
use crate::clients::{Clients, EndpointClient};
use crate::endpoint::Endpoint;
use crate::error::{Error, Kind};
use crate::hold::Hold;
use crate::id::EndpointId;
use crate::intake::{admissible, take_userinfo};
use crate::options::{LeaseInfo, LeaseOptions, Trip};
use crate::outcome::{Attempt, Outcome};
use crate::pool::{Doubt, Pool, Trust};
use crate::preview::Preview;
use crate::progress::{Phase, watched};
use crate::record::Record;
use crate::redirect::{Hop, Redirects, carry_over, next_hop};
use crate::replay::Replay;
use crate::report::Report;
use crate::site::Site;
use crate::suspicion::Suspects;
use crate::targets::Targets;
use crate::transport::{AsBoxError, Failure, Transport};

/// What holds for every request of a client.
pub(crate) struct Terms {
    pub(crate) budgets: Budgets,
    pub(crate) redirects: Redirects,
    pub(crate) targets: Targets,
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempts: u32,
    pub(crate) classifier: Arc<dyn Classifier>,
}

/// One request on its way, over redirects and attempts.
pub(crate) struct Journey<'a, T> {
    terms: &'a Terms,
    transport: T,
    pool: &'a Pool,
    clients: &'a Clients,
    options: &'a LeaseOptions,
    replay: Replay,
    /// The site of the present hop.
    site: Site,
    /// When the caller's own timeout is up.
    deadline: Option<Instant>,
    /// Time left for waiting.
    patience: Duration,
    trip: Trip,
    suspects: Suspects,
    /// An attempt that a reload has overtaken has been left out of the count.
    overtaken: bool,
    /// Endpoints that are only taken when no other one is free.
    avoid: &'a [EndpointId],
    /// What the store left unanswered when it was asked without a wait.
    doubt: Option<Doubt>,
    /// Goes along with the response.
    report: Option<Report>,
}

/// What admits a send.
struct Ticket {
    hold: Hold,
    passage: Passage,
}

/// What was sent, and how.
struct Sent {
    ticket: Ticket,
    endpoint: Arc<Endpoint>,
    route: Route,
    record: Record,
}

impl Sent {
    /// Whether the inventory still has the endpoint as it was used.
    fn is_current(&self) -> bool {
        self.ticket.hold.endpoint().fingerprint() == self.endpoint.fingerprint()
    }
}

/// What a send leaves to the next one: along a redirect the lease, after a failure on the
/// endpoint's side the slot that the site never saw.
#[derive(Default)]
struct Left {
    hold: Option<Hold>,
    passage: Option<Passage>,
    failure: Option<Error>,
}

/// What one send came to.
enum Step {
    Done(Response),
    Again(Left),
}

impl<'a, T: Transport> Journey<'a, T> {
    pub(crate) fn new(
        terms: &'a Terms,
        pool: &'a Pool,
        clients: &'a Clients,
        options: &'a LeaseOptions,
        transport: T,
        request: Request,
    ) -> Result<Self, Error> {
        let (request, site) = admissible(request, options.held.is_some())?;
        if !terms.targets.allows(request.url()) {
            return Err(target_refused());
        }
        let timeout = request.timeout().copied().or(terms.timeout);
        Ok(Self {
            report: Some(Report::begin(pool, &site)),
            terms,
            transport,
            pool,
            clients,
            options,
            replay: Replay::new(request),
            site,
            // A timeout beyond all instants is none.
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            patience: options.max_wait.unwrap_or(pool.settings().max_wait),
            trip: Trip::default(),
            suspects: Suspects::default(),
            overtaken: false,
            avoid: &options.avoid,
            doubt: None,
        })
    }

    /// The report, unless a response has it, with what it is about.
    pub(crate) fn report(&mut self) -> (&mut Option<Report>, &Trip) {
        (&mut self.report, &self.trip)
    }

    pub(crate) async fn run(&mut self) -> Result<Response, Failure<T::Error>> {
        let mut left = Left::default();
        loop {
            let failure = left.failure.take();
            let ticket = match self.admit(left).await {
                Ok(ticket) => ticket,
                // That no other endpoint came free does not hide why one was needed.
                Err(error) => return Err(failure.unwrap_or(error).into()),
            };
            if let (Some(_), Some(last)) = (failure, self.trip.failed.last()) {
                self.pool.counters().retries.add_one(last.outcome.as_str());
            }
            left = match Box::pin(self.send(ticket)).await? {
                Step::Done(response) => return Ok(response),
                Step::Again(left) => left,
            };
        }
    }

    async fn send(&mut self, mut ticket: Ticket) -> Result<Step, Failure<T::Error>> {
        let endpoint = ticket.hold.endpoint();
        let EndpointClient { client, record } = self.clients.of(&endpoint)?;
        let trust = if self.replay.is_streamed() { ticket.hold.trust() } else { None };
        let request = self.timed_request(trust)?;
        let https_target = request.url().scheme() == "https";
        let route = Route::new(endpoint.scheme(), https_target)
            .with_credentials(endpoint.has_credentials());
        if let Some(report) = &mut self.report {
            report.attempt(endpoint.id(), self.trip.failed.len() + 1);
        }
        let began = Instant::now();
        ticket.hold.begin();
        let answer = match ticket.hold.is_trusted() {
            true => ticket.hold.within_trust(watched(self.transport.send(client, request))).await,
            false => None,
        };
        let sent = Sent { ticket, endpoint, route, record };
        match answer {
            None => {
                self.saw(Outcome::Expired);
                sent.ticket.hold.finish(Outcome::Expired);
                Err(lease_expired().into())
            }
            Some((Err(error), phase)) => self.failed(sent, error, (phase, began.elapsed())),
            Some((Ok(response), _)) => self.answered(sent, response),
        }
    }

    fn timed_request(&self, trust: Option<Trust>) -> Result<Request, Error> {
        let mut request = self.replay.request(trust).ok_or_else(|| {
            Error::new(Kind::UnsupportedRequest, "the request's body cannot be sent again")
        })?;
        if let Some(deadline) = self.deadline {
            *request.timeout_mut() = Some(deadline.saturating_duration_since(Instant::now()));
        }
        Ok(request)
    }

    /// Judges a failed send, and tries another endpoint if this one was at fault.
    fn failed(
        &mut self,
        sent: Sent,
        error: T::Error,
        (phase, elapsed): (Phase, Duration),
    ) -> Result<Step, Failure<T::Error>> {
        let failed = Failed::new(error.as_error(), sent.route, phase).after(elapsed);
        let outcome = match self.replay.has_failed() {
            true => Outcome::LocalFault,
            false => {
                let look = |it: &dyn Classifier| it.failure(&failed);
                self.pool.classified(&*self.terms.classifier, look)
            }
        };
        // It was the caller's stream that was waited for.
        let outcome = match outcome {
            Outcome::Stalled if self.replay.is_waited_for() => Outcome::LocalFault,
            outcome => outcome,
        };
        self.saw(outcome);
        let is_current = sent.is_current();
        let Ticket { hold, passage } = sent.ticket;
        tracing::debug!(
            pool = %self.pool.name(), endpoint = %hold.endpoint().id(), %outcome, %phase, "send failed"
        );
        let (kind, what) = match outcome {
            Outcome::ProxyUnreachable => (Kind::ProxyUnreachable, "could not be reached"),
            Outcome::TunnelCut => (Kind::ProxyUnreachable, "hung up instead of opening a tunnel"),
            Outcome::CredentialsRefused => (Kind::CredentialsRefused, REFUSED),
            Outcome::ProxyDenied => (Kind::ProxyDenied, "forbids the target"),
            _ => {
                let info = Box::new(self.info(&hold, outcome));
                hold.finish(outcome);
                return Err(Failure::Exchange(error, info));
            }
        };
        let fault = self.fault(&hold, kind, what, outcome).with_source(error.into_source());
        self.settle(hold, outcome, is_current);
        if self.may_try_another() {
            // The site has seen nothing, so its slot is still good.
            Ok(Step::Again(Left { passage: Some(passage), failure: Some(fault), hold: None }))
        } else {
            Err(fault.into())
        }
    }

    /// Judges a response: perhaps the endpoint's own refusal, a redirect, or what the caller gets.
    fn answered(&mut self, sent: Sent, response: Response) -> Result<Step, Failure<T::Error>> {
        let (status, headers) = (response.status(), response.headers());
        let answer = Answer::new(status, headers, sent.route, &self.site);
        let outcome = self.pool.classified(&*self.terms.classifier, |it| it.answer(&answer));
        self.saw(outcome);
        if outcome == Outcome::CredentialsDoubted {
            return self.doubted(sent, response);
        }
        // What the endpoint may have said itself proves neither its credentials nor the site.
        if matches!(outcome, Outcome::Success | Outcome::Throttled | Outcome::Banned) {
            sent.record.accepted();
            self.suspects.cleared_the_site();
            if let Some(pause) = self.heed(&sent, &response)
                && self.waits_out(pause)
            {
                drop(response);
                sent.ticket.hold.finish(outcome);
                return Ok(Step::Again(Left::default()));
            }
        }
        let Some(hop) = self.next_hop(&response) else {
            return Ok(Step::Done(self.load(sent, response, outcome)));
        };
        drop(response);
        // The next hop's budget is not waited for with a place of this one in hand.
        let Ticket { hold, passage } = sent.ticket;
        drop(passage);
        if let Err(error) = self.follow(hop) {
            hold.finish(outcome);
            return Err(error.into());
        }
        // Where a ban leads to, say, is seen through another endpoint.
        if outcome != Outcome::Success {
            hold.finish(outcome);
            return Ok(Step::Again(Left::default()));
        }
        Ok(Step::Again(Left { hold: Some(hold), ..Left::default() }))
    }

    /// Tells the budgets of an answer; for how long the site is paused, if that is what it says.
    fn heed(&self, sent: &Sent, response: &Response) -> Option<Duration> {
        let (status, headers) = (response.status(), response.headers());
        let passage = &sent.ticket.passage;
        self.terms.budgets.answered(&self.site, self.port(), passage, status, headers)
    }

    /// Whether the request is sent again after the pause that its answer asked for.
    fn waits_out(&self, pause: Duration) -> bool {
        self.options.wait_out_pauses && self.replay.can_follow() && pause <= self.patience()
    }

    /// Has another endpoint asked whether a 407 is this one's or the site's own. A 407 says that
    /// nothing was done, so any method may be sent again.
    fn doubted(&mut self, sent: Sent, response: Response) -> Result<Step, Failure<T::Error>> {
        let doubted = Outcome::CredentialsDoubted;
        let fault = self.fault(&sent.ticket.hold, Kind::CredentialsRefused, REFUSED, doubted);
        if !sent.is_current() {
            drop(response);
            self.settle(sent.ticket.hold, doubted, false);
            return match self.may_try_another() && self.replay.can_follow() {
                true => Ok(Step::Again(Left { failure: Some(fault), ..Left::default() })),
                false => Err(fault.into()),
            };
        }
        // The first send may still be reading a stream.
        if self.may_try_another() && self.replay.can_follow() {
            self.suspects.add(sent.ticket.hold, &sent.endpoint, &sent.record, &self.site);
            return Ok(Step::Again(Left { failure: Some(fault), ..Left::default() }));
        }
        let (outcome, is_an_answer) = self.suspects.conclude(&sent.record, &self.site);
        self.saw(outcome);
        if is_an_answer {
            self.trip.failed.pop();
            return Ok(Step::Done(self.load(sent, response, outcome)));
        }
        drop(response);
        sent.ticket.hold.finish(outcome);
        Err(fault.into())
    }

    /// Gives a lease back after a failed attempt. What a reload has changed meanwhile is not blamed
    /// for what it was before, and may be tried again: once, for it may change all the time.
    fn settle(&mut self, hold: Hold, outcome: Outcome, is_current: bool) {
        if is_current {
            return hold.finish(outcome);
        }
        if !mem::replace(&mut self.overtaken, true) {
            self.trip.failed.pop();
        }
        hold.finish(Outcome::LocalFault);
    }

    fn load(&mut self, sent: Sent, response: Response, outcome: Outcome) -> Response {
        let Sent { ticket: Ticket { hold, passage }, route, .. } = sent;
        let classifier = self.terms.classifier.clone();
        let answer = Answer::new(response.status(), response.headers(), route, &self.site);
        let wanted = match *self.replay.method() == Method::HEAD {
            true => 0,
            false => self.pool.classified(&*classifier, |it| it.wants_of_body(&answer)),
        };
        let preview = Preview::of(&answer, wanted);
        let report = self.report.take();
        if let Some(report) = &report {
            report.settled(self.pool, &self.trip);
        }
        let info = self.info(&hold, outcome);
        let cargo = Cargo { hold, passage, route, classifier, outcome, preview, report };
        body::load(response, cargo, info)
    }

    /// Notes what an exchange came to.
    fn saw(&mut self, outcome: Outcome) {
        if let Some(report) = &mut self.report {
            report.saw(outcome);
        }
    }

    /// What the caller is told of the way here.
    fn info(&mut self, hold: &Hold, outcome: Outcome) -> LeaseInfo {
        LeaseInfo {
            endpoint: hold.endpoint().id().clone(),
            pool: hold.pool().name().clone(),
            fence: hold.fence(),
            outcome,
            trip: mem::take(&mut self.trip),
        }
    }

    /// Notes a failed attempt, and says what will be told if it was the last one.
    fn fault(&mut self, hold: &Hold, kind: Kind, what: &str, outcome: Outcome) -> Error {
        let endpoint = hold.endpoint().id().clone();
        tracing::debug!(pool = %self.pool.name(), %endpoint, code = %kind, "attempt failed");
        self.trip.failed.push(Attempt { endpoint, outcome });
        Error::new(kind, format!("the endpoint {what}")).with_tried(self.trip.failed.clone())
    }

    fn may_try_another(&self) -> bool {
        let attempts = self.options.attempts.unwrap_or(self.terms.attempts).max(1) as usize;
        let tried = self.trip.failed.len();
        !self.options.is_bound()
            && tried < attempts
            && tried < self.pool.inventory().snapshot().len()
            && self.replay.can_send()
    }

    fn next_hop(&self, response: &Response) -> Option<Hop> {
        self.terms.redirects.limit()?;
        let (url, method) = (self.replay.url(), self.replay.method());
        next_hop(url, method, response.status(), response.headers())
            .filter(|hop| !hop.keep_body || self.replay.can_follow())
    }

    fn follow(&mut self, mut hop: Hop) -> Result<(), Error> {
        if !matches!(hop.url.scheme(), "http" | "https") {
            return Err(Error::new(Kind::TargetRefused, "a redirect left http and https"));
        }
        let Some(site) = Site::of(&hop.url) else {
            return Err(Error::new(Kind::TargetRefused, "a redirect led to an invalid host"));
        };
        if !self.terms.targets.allows_redirect(self.replay.url(), &hop.url) {
            return Err(target_refused());
        }
        if self.terms.redirects.limit().is_some_and(|limit| self.trip.hops >= limit) {
            return Err(Error::new(Kind::TooManyRedirects, "too many redirects"));
        }
        self.trip.hops += 1;
        take_userinfo(&mut hop.url);
        let from = self.replay.url().clone();
        carry_over(self.replay.headers_mut(), &from, &hop, self.terms.redirects);
        self.replay.redirect(hop.url, hop.method, hop.keep_body);
        tracing::debug!(pool = %self.pool.name(), %site, "redirect is followed");
        self.site = site;
        Ok(())
    }
}

impl<T> Drop for Journey<'_, T> {
    fn drop(&mut self) {
        // Who would have been told is gone.
        if let Some(report) = self.report.take() {
            report.dropped(self.pool, &self.trip);
        }
    }
}

const REFUSED: &str = "refused its credentials";

fn lease_expired() -> Error {
    Error::new(Kind::LeaseExpired, "lease expired before the response began")
}

fn target_refused() -> Error {
    Error::new(Kind::TargetRefused, "the target's address may not be fetched")
}
