//! What a queue asks, answered by Redis.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::SharedLimits;
use super::bucket::{Backoff, Bucket, Reserved, Room, Seat, Slot};
use super::places::Places;
use crate::budget::clock::{At, Epoch};
use crate::budget::local::{
    Admission, Known, Limiter, Local, Pending, Reply, Reservation, Slot as Granted,
};
use crate::budget::rate::Pace;
use crate::error::{Error, Kind};
use crate::random;

/// One bucket's limiter.
///
/// A slot that is due at once takes its place in flight in the same call. One for later takes it
/// when it is due, in a second call: taken before, it would keep other workers out while nothing
/// is in flight.
pub(in crate::budget) struct SharedLimiter(Arc<Asking>);

struct Asking {
    bucket: Arc<Bucket>,
    epoch: Epoch,
    places: Option<Places>,
    fallback: Option<Fallback>,
    books: Mutex<Books>,
}

/// What is known of the site's pauses, and the slot that the queue has.
#[derive(Default)]
struct Books {
    slot: Option<Slot>,
    /// Told when nobody is left for the slot that is asked for.
    asked: Option<Arc<Notify>>,
    /// The last pause when the last slot was granted.
    known: u64,
    /// The last pause that was told of, here or there.
    nth: u32,
    until: At,
}

/// Goes on without Redis.
struct Fallback {
    /// `None` where there is no rate.
    rate: Option<Local>,
    /// The share of the places in flight.
    most: usize,
}

impl SharedLimiter {
    pub(in crate::budget) fn new(
        limits: &SharedLimits,
        name: &str,
        pace: &Pace,
        epoch: Epoch,
    ) -> Self {
        // Without a rate a slot is always due: a million a second are more than one server tells.
        let (interval, burst) = match pace.interval {
            0 => (Duration::from_micros(1), NO_RATE),
            interval => (Duration::from_nanos(interval), pace.burst.get()),
        };
        let bucket = Arc::new(Bucket::new(limits.clone(), name, interval, burst));
        let limited = pace.in_flight != u32::MAX;
        let places = limited.then(|| Places::new(Arc::clone(&bucket), pace.in_flight));
        let fallback = limits.share().map(|share| Fallback::new(share, pace));
        Self(Arc::new(Asking { bucket, epoch, places, fallback, books: Mutex::default() }))
    }
}

impl Limiter for SharedLimiter {
    fn reserve(&self, from: At, early: bool) -> Reservation {
        let asking = Arc::clone(&self.0);
        Reservation::Asked(Box::pin(async move { asking.reserve(from, early).await }))
    }

    fn try_reserve(&self, _: At, _: At) -> Option<At> {
        None
    }

    /// The script does it when the probe has succeeded.
    fn restart(&self, _: At) {}

    fn lapsed(&self, granted: Granted) {
        if let Some(place) = granted.place {
            self.left(place);
        }
        let Some(slot) = self.0.books().slot.take() else { return };
        let bucket = Arc::clone(&self.0.bucket);
        self.0.bucket.tell(async move { give_back(&bucket, &slot).await });
    }

    fn unwanted(&self) {
        if let Some(asked) = self.0.books().asked.take() {
            asked.notify_one();
        }
    }

    fn left(&self, place: u64) {
        if let Some(places) = &self.0.places {
            places.leave(place);
        }
    }

    fn spent(&self) -> Option<Admission> {
        let slot = self.0.books().slot.take()?;
        Some(Admission { known: slot.known, probe: slot.is_probe() })
    }

    fn paused(&self, until: At, nth: u32, said: bool, admission: Option<Admission>) {
        let Some(known) = self.0.books().report(until, nth, admission) else { return };
        let (bucket, now) = (Arc::clone(&self.0.bucket), self.0.epoch.now());
        let asked = if said { until.since(now) } else { Duration::ZERO };
        self.0.bucket.tell(async move { bucket.pause(known, asked, BACKOFF).await.map(drop) });
    }

    fn succeeded(&self, probe: Admission) {
        self.0.books().nth = 0;
        let bucket = Arc::clone(&self.0.bucket);
        self.0.bucket.tell(async move { bucket.settle(probe.known, true).await });
    }

    fn end_pause(&self) -> Pending<bool> {
        let asking = Arc::clone(&self.0);
        Box::pin(async move {
            let ended = asking.bucket.reset().await?;
            let mut books = asking.books();
            (books.nth, books.until) = (0, At::default());
            Ok(ended)
        })
    }

    fn unanswered(&self, probe: Admission) {
        let bucket = Arc::clone(&self.0.bucket);
        self.0.bucket.tell(async move { bucket.settle(probe.known, false).await });
    }
}

impl Asking {
    async fn reserve(&self, from: At, early: bool) -> Result<Reply, Error> {
        if let Some(places) = &self.places {
            places.make_up();
        }
        let seat = self.places.as_ref().map(Places::seat);
        let unwanted = Arc::new(Notify::new());
        self.books().asked = Some(Arc::clone(&unwanted));
        let reserved = match self.bucket.reserve(PROBE, seat.as_ref()).await {
            Ok(reserved) => reserved,
            Err(error) => return self.without(error, from),
        };
        let now = self.epoch.now();
        Ok(match reserved {
            Reserved::Slot(slot) => {
                return self.granted(slot, seat, from, early, &unwanted).await;
            }
            Reserved::Paused(pause) => {
                let until = now.after(pause.left);
                self.books().told(until, pause.level);
                Reply::Paused { until, nth: pause.level }
            }
            Reserved::Probing(left) => {
                Reply::Probing { again: now.after(soon(left, LOOK_AT_PROBE)) }
            }
            Reserved::Full(left) => Reply::Full { again: now.after(soon(left, LOOK_FOR_PLACE)) },
        })
    }

    async fn granted(
        &self,
        slot: Slot,
        seat: Option<Seat>,
        from: At,
        early: bool,
        unwanted: &Notify,
    ) -> Result<Reply, Error> {
        let at = self.epoch.now().after(slot.wait).max(from);
        let entered = slot.entered;
        self.books().granted(&slot);
        let known = match slot.level {
            0 => Known::NoPause,
            nth => Known::Ended { nth },
        };
        let (Some(places), Some(seat)) = (&self.places, seat) else {
            return Ok(Reply::Slot(Granted { at, place: None }, known));
        };
        if !entered {
            if !early {
                tokio::select! {
                    biased;
                    () = unwanted.notified() => return Ok(self.refund(&slot, Duration::ZERO).await),
                    () = tokio::time::sleep_until(self.epoch.instant(at)) => {}
                }
            }
            match self.bucket.enter(&seat).await {
                Ok(Room::Entered) => {}
                Ok(Room::Full(left)) => {
                    return Ok(self.refund(&slot, soon(left, LOOK_FOR_PLACE)).await);
                }
                Err(error) => return self.without(error, from),
            }
        }
        places.taken(seat.passage.number);
        Ok(Reply::Slot(Granted { at, place: Some(seat.passage.number) }, known))
    }

    /// Gives a slot without a place back; who comes asks again so much later.
    async fn refund(&self, slot: &Slot, later: Duration) -> Reply {
        self.books().slot = None;
        // What became of it is counted.
        let _ = give_back(&self.bucket, slot).await;
        Reply::Full { again: self.epoch.now().after(later) }
    }

    /// What happens when Redis does not answer.
    fn without(&self, error: Error, from: At) -> Result<Reply, Error> {
        let Some(fallback) = &self.fallback else { return Err(error) };
        if error.kind() != Kind::StoreUnavailable {
            return Err(error);
        }
        self.books().slot = None;
        let taken = self.places.as_ref().map_or(0, Places::count);
        if taken >= fallback.most {
            let again = self.epoch.now().after(soon(Duration::MAX, LOOK_FOR_PLACE));
            return Ok(Reply::Full { again });
        }
        let at = match fallback.rate.as_ref().map(|rate| rate.reserve(from, false)) {
            Some(Reservation::Now(slot)) => slot.at,
            _ => from,
        };
        self.bucket.fell_back();
        let place = self.places.as_ref().map(|places| {
            let number = places.seat().passage.number;
            places.taken(number);
            number
        });
        Ok(Reply::Slot(Granted { at, place }, Known::Nothing))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn granted(&mut self, slot: &Slot) {
        (self.known, self.nth) = (slot.known, slot.level);
        self.slot = Some(slot.clone());
    }

    fn told(&mut self, until: At, nth: u32) {
        (self.until, self.nth) = (self.until.max(until), nth);
    }

    /// Notes a pause that the site asked for, and which pause the refused request knew; `None` if
    /// Redis knows all of it.
    fn report(&mut self, until: At, nth: u32, admission: Option<Admission>) -> Option<u64> {
        let is_new = nth > self.nth;
        if !is_new && until <= self.until {
            return None;
        }
        (self.until, self.nth) = (self.until.max(until), self.nth.max(nth));
        Some(match admission {
            Some(admission) => admission.known,
            None if is_new => self.known,
            // An answer of before the last pause can lengthen it and is none of its own.
            None => self.known.saturating_sub(1),
        })
    }
}

impl Fallback {
    fn new(share: f64, pace: &Pace) -> Self {
        let interval = (pace.interval as f64 / share).ceil() as u64;
        let alone = Pace { interval, burst: NonZeroU32::MIN, ..*pace };
        let most = match pace.in_flight {
            u32::MAX => usize::MAX,
            most => ((f64::from(most) * share) as usize).max(1),
        };
        Self { rate: Local::new(&alone), most }
    }
}

/// Undoes a slot; a probe that cannot be undone is another one's.
async fn give_back(bucket: &Bucket, slot: &Slot) -> Result<(), Error> {
    if !bucket.undo(slot).await? && slot.is_probe() {
        bucket.settle(slot.known, false).await?;
    }
    Ok(())
}

/// A time to look again, at random so that workers do not come together.
fn soon(left: Duration, longest: Duration) -> Duration {
    let least = longest / 2;
    let spread = u64::try_from(least.as_nanos()).unwrap_or(u64::MAX).max(1);
    left.min(least + Duration::from_nanos(random::number() % spread))
}

const BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(60) };

/// How long one request may take to find out whether a pause is over, before another one may.
const PROBE: Duration = Duration::from_secs(30);

/// Between looks at another worker's probe, and for a place that another worker gives back.
const LOOK_AT_PROBE: Duration = Duration::from_millis(500);
const LOOK_FOR_PLACE: Duration = Duration::from_millis(100);

/// The burst of a bucket without a rate.
const NO_RATE: u32 = 1_000_000;
