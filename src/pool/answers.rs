//! What the queue makes of the store's answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::question::{Doubt, LEAST_PATIENCE, UNANSWERED};
use super::queue::{Barred, Doubtful, Launch, MAX_FLIGHTS, Place, Queue, Rest, Told};
use super::wants::{Later, Wants};
use super::{Lease, Pool};
use crate::error::Error;
use crate::secret::Token;

/// What became of the tokens of a question that has been answered, or whose answer was lost.
#[derive(Default)]
pub(super) struct Tokens {
    /// They may have leases, or get some.
    pub(super) doubtful: Vec<Token>,
    /// Whether that is because the answer was lost.
    pub(super) unanswered: bool,
}

impl Queue {
    /// Hands leases out in order of arrival. With `short` there were fewer than asked for, which
    /// is why those who will not wait have none.
    pub(super) fn granted(
        &mut self,
        launch: &Launch,
        leases: Vec<Lease>,
        short: Option<&Later>,
    ) -> Vec<Lease> {
        self.why = None;
        self.barred.retain(|barred| barred.wants != launch.wants);
        let spare = leases.into_iter().filter_map(|lease| self.hand(&launch.wants, lease));
        let spare = spare.collect();
        self.window = if short.is_some() { 1 } else { (self.window * 2).clamp(1, MAX_FLIGHTS) };
        if let Some(later) = short {
            self.dismiss(later, |_, place| !place.patient && place.wants == launch.wants);
            self.dry = self.patient() > 0;
        }
        spare
    }

    /// Hands a lease to the first who wants it; gives it back if nobody does.
    fn hand(&mut self, wants: &Arc<Wants>, mut lease: Lease) -> Option<Lease> {
        while let Some(place) = self.first(wants).and_then(|first| self.remove(first)) {
            match place.tell.send(Told::Lease(lease)) {
                Err(Told::Lease(back)) => lease = back,
                _ => return None,
            }
        }
        Some(lease)
    }

    /// Takes in that all that was granted is of no use here, and would be no other the next time.
    pub(super) fn in_vain(&mut self, launch: &Launch, later: &Later, rest: Duration) {
        self.refused(launch, later, rest);
        // That it is given back is no reason to ask for it again.
        if let Some(rest) = &mut self.rest {
            rest.seen = None;
        }
    }

    /// Takes in that there is nothing: for those who want the same, or for anybody.
    pub(super) fn refused(&mut self, launch: &Launch, later: &Later, rest: Duration) {
        let now = Instant::now();
        let hopeless = later.is_hopeless(&launch.wants);
        let overdue = std::mem::take(&mut self.overdue);
        if hopeless || overdue || self.patient() < self.places.len() {
            let everybody = !later.restricted;
            self.dismiss(later, |queue, place| match place.wants == launch.wants {
                true => hopeless || !place.patient || place.until <= now,
                false => everybody && !place.patient && !queue.is_aloft(&place.wants),
            });
        }
        if self.patient() == 0 {
            return;
        }
        let next = later.after.and_then(|after| now.checked_add(after));
        let rest = Rest { until: now + rest, seen: Some(launch.seen) };
        (self.dry, self.window) = (true, 1);
        self.barred.retain(|barred| barred.wants != launch.wants);
        if later.restricted && self.first(&launch.wants).is_some() {
            self.barred.push(Barred { wants: launch.wants.clone(), rest, next });
        } else if !later.restricted {
            self.rest = Some(rest);
        }
        // What holds for some is no reason for all.
        self.why = (!later.restricted).then(|| (later.why.clone(), next));
    }

    /// Tells those who will not wait why there is no lease.
    fn dismiss(&mut self, later: &Later, leaves: impl Fn(&Self, &Place) -> bool) {
        let leaving = self.places.iter().filter(|(_, place)| leaves(self, place));
        let leaving: Vec<u64> = leaving.map(|(arrival, _)| *arrival).collect();
        for place in leaving.into_iter().filter_map(|arrival| self.remove(arrival)) {
            let _ = place.tell.send(Told::Later(later.clone(), None));
        }
    }

    /// Takes in that an answer was lost: the tokens stay with those who wait on. Those who do not
    /// are told, each with a token for the wait that follows.
    pub(super) fn lost(
        &mut self,
        pool: &Pool,
        launch: &Launch,
        later: &Later,
        mut tokens: Vec<Token>,
    ) -> Vec<Token> {
        let now = Instant::now();
        let same = self.places.iter().filter(|(_, place)| place.wants == launch.wants);
        let leaving = same.filter(|(_, place)| !place.patient || place.until <= now);
        let leaving: Vec<u64> = leaving.map(|(arrival, _)| *arrival).collect();
        for place in leaving.into_iter().filter_map(|arrival| self.remove(arrival)) {
            let token = (!place.patient).then(|| tokens.pop()).flatten();
            let doubt = token.map(|token| Doubt::new(pool, &place.wants, token));
            let _ = place.tell.send(Told::Later(later.clone(), doubt));
        }
        tokens
    }

    /// Tells all who want the same that the store will not serve them.
    pub(super) fn failed(&mut self, wants: &Arc<Wants>, error: &Error) {
        while let Some(place) = self.first(wants).and_then(|first| self.remove(first)) {
            let _ = place.tell.send(Told::Failed(error.clone()));
        }
    }

    /// Tells everybody.
    pub(super) fn close(&mut self, error: &Error) {
        while let Some(wants) = self.places.values().next().map(|place| place.wants.clone()) {
            self.failed(&wants, error);
        }
    }

    /// Notes tokens that may have leases.
    pub(super) fn doubt(&mut self, wants: &Arc<Wants>, tokens: Tokens) {
        let unanswered = tokens.unanswered;
        let note = |token| Doubtful { wants: wants.clone(), token, unanswered };
        self.doubts.extend(tokens.doubtful.into_iter().map(note));
    }

    /// Gives up what nobody waits for any more: questions, and the tokens that are returned.
    pub(super) fn tidy(&mut self) -> Vec<Token> {
        for flight in &self.flights {
            if let Some(abandon) = &flight.abandon
                && self.first(&flight.wants).is_none()
            {
                abandon.abort();
            }
        }
        let mut kept: Vec<Doubtful> = Vec::with_capacity(self.doubts.len());
        let mut given_up = Vec::new();
        for doubt in self.doubts.drain(..) {
            // One for each who waits.
            let before = kept.iter().filter(|kept| kept.wants == doubt.wants).count();
            let stays = self.places.values().filter(|p| p.wants == doubt.wants).nth(before);
            if stays.is_some() { kept.push(doubt) } else { given_up.push(doubt.token) }
        }
        self.doubts = kept;
        given_up
    }

    /// By when one who came at `started` and waits until `until` has had its answer: when nobody
    /// is ahead of it, its own question is put and answered first.
    pub(super) fn end_of(
        &mut self,
        wants: &Arc<Wants>,
        started: Instant,
        until: Instant,
    ) -> Instant {
        let barred = |place: &&Place| self.barred.iter().any(|one| one.wants == place.wants);
        let head = self.places.values().find(|place| !barred(place));
        let ahead = self.dry && head.is_some_and(|place| place.wants != *wants);
        let end = started + LEAST_PATIENCE;
        if self.rest.is_some() || ahead || end <= until {
            return until;
        }
        self.overdue = true;
        end
    }

    /// Why one who wants this, and has waited since `started`, has no lease.
    pub(super) fn reason(&self, pool: &Pool, wants: &Arc<Wants>, started: Instant) -> Error {
        let now = Instant::now();
        let silent = |since: Instant| since <= started || now >= since + LEAST_PATIENCE / 2;
        if self.flights.iter().any(|flight| silent(flight.since)) {
            return Error::store_unavailable(UNANSWERED);
        }
        let barred = self.barred.iter().find(|barred| barred.wants == *wants);
        let (why, next) = match (barred, &self.why) {
            (Some(barred), _) => (Later::exhausted(pool), barred.next),
            (None, Some((why, next))) => (Later::new(why.clone()), *next),
            (None, None) => (Later::exhausted(pool), None),
        };
        let after = next.map(|next| next.saturating_duration_since(now));
        Later { after, ..why }.into()
    }
}
