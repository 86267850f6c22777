//! What a send came to: perhaps another endpoint is tried, or a hop is followed.

use std::mem;
use std::time::Duration;

use http::Method;
use reqwest::Response;

use super::{Journey, Left, Sent, Step, Ticket};
use crate::body::{self, Cargo};
use crate::classify::{Answer, Classifier, Failed};
use crate::error::{Error, Kind};
use crate::hold::Hold;
use crate::options::LeaseInfo;
use crate::outcome::{Attempt, Outcome};
use crate::preview::Preview;
use crate::progress::Phase;
use crate::transport::{AsBoxError, Failure, Transport};

impl<T: Transport> Journey<'_, T> {
    /// Judges a failed send, and tries another endpoint if this one was at fault.
    pub(super) fn failed(
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
    pub(super) fn answered(
        &mut self,
        sent: Sent,
        response: Response,
    ) -> Result<Step, Failure<T::Error>> {
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
    pub(super) fn saw(&mut self, outcome: Outcome) {
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
}

const REFUSED: &str = "refused its credentials";
