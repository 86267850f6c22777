//! Who waits for a lease, in order of arrival, and what the store is to be asked next.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use futures_util::future::AbortHandle;
use smallvec::SmallVec;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Lease;
use super::alone::Alone;
use super::attendance::Attendance;
use super::question::Doubt;
use super::wants::{Later, Wants};
use crate::error::Error;
use crate::secret::Token;
use crate::store::MAX_BATCH;

/// Questions in the air while nobody has to wait, each for wants of its own.
pub(super) const MAX_FLIGHTS: usize = 16;

/// The queue of a pool in this process.
///
/// While nobody is known to have to wait, all who want the same are asked for together, and those
/// who want something else beside them. As soon as there is less than was asked for the queue is
/// **dry** until nobody waits: then the question is for the longest run of those at the head who
/// want the same, so that nobody is served before somebody who came earlier. While such questions
/// are answered in full the next runs are asked for behind it, in order, twice as many each time.
/// Those for whom nothing free will do keep their places and are passed over until it is worth
/// asking for them again.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) places: BTreeMap<u64, Place>,
    arrivals: u64,
    patient: usize,
    pub(super) flights: Vec<Aloft>,
    launched: u64,
    pub(super) doubts: Vec<Doubtful>,
    pub(super) rest: Option<Rest>,
    pub(super) barred: Vec<Barred>,
    pub(super) dry: bool,
    /// Runs that are asked for at a time while it is dry.
    pub(super) window: usize,
    /// Somebody's time is up, and it waits for an answer.
    pub(super) overdue: bool,
    /// Why there was no lease, and when there is the next chance.
    pub(super) why: Option<(Error, Option<Instant>)>,
    /// Who puts the questions.
    pub(super) attendance: Attendance,
}

/// One who waits.
pub(super) struct Place {
    pub(super) wants: Arc<Wants>,
    pub(super) until: Instant,
    /// Whether it stays when there is nothing at the first question.
    pub(super) patient: bool,
    pub(super) tell: oneshot::Sender<Told>,
}

/// What a wait comes to.
pub(super) enum Told {
    Lease(Lease),
    Later(Later, Option<Doubt>),
    Failed(Error),
}

/// A question that is in the air.
pub(super) struct Aloft {
    pub(super) number: u64,
    pub(super) wants: Arc<Wants>,
    pub(super) since: Instant,
    pub(super) abandon: Option<AbortHandle>,
    tokens: SmallVec<[Token; 1]>,
    /// The asker that puts it.
    asker: Option<u64>,
    /// Or the request that does so itself.
    alone: Option<Weak<Alone>>,
    /// Its answer is being taken in.
    claimed: bool,
}

/// A token that may have a lease, or may still get one.
pub(super) struct Doubtful {
    pub(super) wants: Arc<Wants>,
    pub(super) token: Token,
    /// Its last question was not answered: it is repeated as it was.
    pub(super) unanswered: bool,
}

/// Until when it is not worth asking, unless something changes.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    pub(super) until: Instant,
    /// The pool's changes when it was asked; `None` when none matters.
    pub(super) seen: Option<u64>,
}

impl Rest {
    fn is_over(&self, now: Instant, changes: u64) -> bool {
        now >= self.until || self.seen.is_some_and(|seen| changes != seen)
    }
}

/// Those for whom nothing free will do.
pub(super) struct Barred {
    pub(super) wants: Arc<Wants>,
    pub(super) rest: Rest,
    pub(super) next: Option<Instant>,
}

/// Some who want the same, and the longest that one of them waits.
struct Run {
    wants: Arc<Wants>,
    number: usize,
    until: Instant,
}

/// A question to put.
pub(super) struct Launch {
    pub(super) number: u64,
    pub(super) wants: Arc<Wants>,
    pub(super) tokens: Vec<Token>,
    /// The first of the tokens have been asked with before and may have a lease.
    pub(super) doubtful: usize,
    pub(super) until: Instant,
    pub(super) seen: u64,
}

/// What to do now.
pub(super) enum Plan {
    /// Put these questions, go on with those that somebody else has put, by their numbers, and look
    /// again at this moment or when something happens.
    Ask(Vec<Launch>, Vec<(u64, Arc<Alone>)>, Option<Instant>),
    /// Nobody waits.
    Idle,
    /// Somebody else asks now.
    Relieved,
}

impl Queue {
    /// Those who stay when there is nothing at the first question.
    pub(super) fn patient(&self) -> usize {
        self.patient
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Joins the queue at its end; gives the place's number.
    pub(super) fn enter(&mut self, mut place: Place) -> u64 {
        // Most want what the one before them wants: then they share it.
        if let Some((_, last)) = self.places.last_key_value()
            && last.wants == place.wants
        {
            place.wants = last.wants.clone();
        }
        self.patient += usize::from(place.patient);
        self.arrivals += 1;
        self.places.insert(self.arrivals, place);
        self.arrivals
    }

    /// Takes somebody out, who may have been told meanwhile.
    pub(super) fn remove(&mut self, arrival: u64) -> Option<Place> {
        let place = self.places.remove(&arrival)?;
        self.patient -= usize::from(place.patient);
        if self.patient == 0 {
            // What was known was of use to those who wait.
            (self.dry, self.rest, self.why) = (false, None, None);
            self.barred.clear();
        }
        if !self.barred.is_empty() && self.first(&place.wants).is_none() {
            self.barred.retain(|barred| barred.wants != place.wants);
        }
        Some(place)
    }

    /// The first of those who want this.
    pub(super) fn first(&self, wants: &Arc<Wants>) -> Option<u64> {
        let mut same = self.places.iter().filter(|(_, place)| place.wants == *wants);
        same.next().map(|(arrival, _)| *arrival)
    }

    pub(super) fn is_aloft(&self, wants: &Arc<Wants>) -> bool {
        self.flights.iter().any(|flight| flight.wants == *wants)
    }

    fn is_barred(&self, wants: &Arc<Wants>, now: Instant, changes: u64) -> bool {
        let stands = |barred: &Barred| !barred.rest.is_over(now, changes);
        self.barred.iter().any(|barred| barred.wants == *wants && stands(barred))
    }

    /// What this asker is to ask the store now.
    pub(super) fn plan(&mut self, asker: u64, now: Instant, changes: u64) -> Plan {
        if !self.attendance.looks(asker, now) {
            return Plan::Relieved;
        }
        if self.places.is_empty() {
            return Plan::Idle;
        }
        let taken_over = self.take_over(asker);
        if let Some(rest) = self.rest {
            if !rest.is_over(now, changes) {
                return Plan::Ask(Vec::new(), taken_over, Some(rest.until));
            }
            self.rest = None;
        }
        let runs = match self.dry {
            true => self.head(now, changes),
            false => self.classes(now, changes),
        };
        let launch = |run| self.launch(run, Some(asker), now, changes);
        let launches = runs.into_iter().map(launch).collect();
        let ends = self.barred.iter().map(|barred| barred.rest.until);
        Plan::Ask(launches, taken_over, ends.filter(|end| *end > now).min())
    }

    /// The questions that requests put themselves and that keep others from being asked for: such a
    /// request may not be polled for a long time.
    fn take_over(&mut self, asker: u64) -> Vec<(u64, Arc<Alone>)> {
        let all = self.dry || self.flights.len() >= MAX_FLIGHTS;
        let mut taken = Vec::new();
        for flight in &mut self.flights {
            let awaited = || {
                self.places.values().filter(|place| place.wants == flight.wants).nth(1).is_some()
            };
            if flight.alone.is_some()
                && (all || awaited())
                && let Some(alone) = flight.alone.take().and_then(|alone| alone.upgrade())
            {
                flight.asker = Some(asker);
                taken.push((flight.number, alone));
            }
        }
        taken
    }

    /// Forgets the questions of an asker that does not ask any more; the tokens are to be given up.
    pub(super) fn forsake(&mut self, asker: u64) -> Vec<Token> {
        let forsaken = |flight: &mut Aloft| flight.asker == Some(asker) && !flight.claimed;
        self.flights.extract_if(.., forsaken).flat_map(|flight| flight.tokens).collect()
    }

    /// Begins to take an answer in; `false` when the question was forsaken and its tokens with it.
    pub(super) fn claim(&mut self, number: u64) -> bool {
        let mut flights = self.flights.iter_mut();
        let flight = flights.find(|flight| flight.number == number);
        flight.map(|flight| flight.claimed = true).is_some()
    }

    /// The longest run at the head, and those behind it as far as the window goes, if nothing is in
    /// the air. Those ahead for whom nothing would do when they were last asked for are asked for
    /// too.
    fn head(&self, now: Instant, changes: u64) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        if !self.flights.is_empty() {
            return runs;
        }
        for place in self.places.values() {
            let wants = &place.wants;
            if runs.last_mut().is_some_and(|run| run.takes(place))
                || self.is_barred(wants, now, changes)
            {
                continue;
            }
            let nothing_did = |run: &&Run| self.barred.iter().any(|b| b.wants == run.wants);
            let ahead = runs.len() - runs.iter().filter(nothing_did).count();
            let ends = ahead >= self.window.max(1) || runs.len() == MAX_FLIGHTS;
            if ends || runs.iter().any(|run| run.wants == *wants) {
                break;
            }
            runs.push(Run::of(place));
        }
        runs
    }

    /// All who want the same, for all wants of which nothing is in the air.
    fn classes(&self, now: Instant, changes: u64) -> Vec<Run> {
        let room = MAX_FLIGHTS.saturating_sub(self.flights.len());
        let mut runs: Vec<Run> = Vec::new();
        for place in self.places.values() {
            let known = runs.iter_mut().find(|run| run.wants == place.wants);
            let stands_back =
                || self.is_aloft(&place.wants) || self.is_barred(&place.wants, now, changes);
            if let Some(run) = known {
                run.takes(place);
            } else if runs.len() < room && !stands_back() {
                runs.push(Run::of(place));
            }
        }
        runs
    }

    /// A question for one who has just come and need not wait for anybody else's.
    pub(super) fn launch_alone(&mut self, arrival: u64, seen: u64) -> Option<Launch> {
        let place = self.places.get(&arrival)?;
        let busy = self.flights.len() >= MAX_FLIGHTS || self.is_aloft(&place.wants);
        let first = self.first(&place.wants) == Some(arrival);
        let run = (!self.dry && !busy && first).then(|| Run::of(place))?;
        Some(self.launch(run, None, Instant::now(), seen))
    }

    fn launch(&mut self, run: Run, asker: Option<u64>, now: Instant, seen: u64) -> Launch {
        let Run { wants, number, until } = run;
        let (mut tokens, mut unanswered) = (Vec::with_capacity(number), false);
        self.doubts.retain(|doubt| {
            let taken = doubt.wants == wants && tokens.len() < MAX_BATCH;
            if taken {
                tokens.push(doubt.token);
                unanswered |= doubt.unanswered;
            }
            !taken
        });
        let doubtful = tokens.len();
        // Until it is answered a question is not made larger: all its tokens are in doubt.
        if !unanswered {
            tokens.resize_with(number.max(doubtful), Token::random);
        }
        self.launched += 1;
        self.flights.push(Aloft {
            number: self.launched,
            wants: wants.clone(),
            since: now,
            abandon: None,
            tokens: SmallVec::from_slice(&tokens),
            asker,
            alone: None,
            claimed: false,
        });
        Launch { number: self.launched, wants, tokens, doubtful, until, seen }
    }

    /// By which a question is abandoned when nobody is left who wants its answer.
    pub(super) fn abandon_by(&mut self, number: u64, handle: AbortHandle) {
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.number == number) {
            flight.abandon = Some(handle);
        }
    }

    /// By which a question of a request's own is gone on with.
    pub(super) fn taken_over_by(&mut self, number: u64, alone: &Arc<Alone>) {
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.number == number) {
            flight.alone = Some(Arc::downgrade(alone));
        }
    }

    /// A question is in the air no longer.
    pub(super) fn land(&mut self, number: u64) {
        self.flights.retain(|flight| flight.number != number);
    }
}

impl Run {
    fn of(place: &Place) -> Self {
        Self { wants: place.wants.clone(), number: 1, until: place.until }
    }

    /// Takes one more in, if it wants the same and there is room.
    fn takes(&mut self, place: &Place) -> bool {
        let fits = place.wants == self.wants && self.number < MAX_BATCH;
        if fits {
            self.number += 1;
            self.until = self.until.max(place.until);
        }
        fits
    }
}
