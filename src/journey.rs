//! One request on its way: budget, lease, endpoint, exchange, verdict, and on to the next hop.

mod admission;
mod judged;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Request, Response};
use tokio::time::Instant;

use crate::budget::{Budgets, Passage};
use crate::classify::{Classifier, Route};
use crate::clients::{Clients, EndpointClient};
use crate::endpoint::Endpoint;
use crate::error::{Error, Kind};
use crate::hold::Hold;
use crate::id::EndpointId;
use crate::intake::{admissible, take_userinfo};
use crate::options::{LeaseOptions, Trip};
use crate::outcome::Outcome;
use crate::pool::{Doubt, Pool, Trust};
use crate::progress::watched;
use crate::record::Record;
use crate::redirect::{Hop, Redirects, carry_over, next_hop};
use crate::replay::Replay;
use crate::report::Report;
use crate::site::Site;
use crate::suspicion::Suspects;
use crate::targets::Targets;
use crate::transport::{Failure, Transport};

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

impl Left {
    fn is_something(&self) -> bool {
        self.hold.is_some() || self.passage.is_some()
    }
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

    /// Not an async fn, whose future would have room for the ticket twice.
    fn send(
        &mut self,
        mut ticket: Ticket,
    ) -> impl Future<Output = Result<Step, Failure<T::Error>>> + Send {
        let endpoint = ticket.hold.endpoint();
        async move {
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
                true => {
                    ticket.hold.within_trust(watched(self.transport.send(client, request))).await
                }
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

fn lease_expired() -> Error {
    Error::new(Kind::LeaseExpired, "lease expired before the response began")
}

fn target_refused() -> Error {
    Error::new(Kind::TargetRefused, "the target's address may not be fetched")
}
