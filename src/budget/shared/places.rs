//! The places in flight that this process has taken in one bucket.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::bucket::{Bucket, Passage, Seat};

/// Places taken, kept until they are given back, and given back many at a time.
///
/// A place is taken for a minute and kept by the process for as long as it needs it: a dead
/// worker's come back after a minute, and a body that takes an hour keeps its own.
pub(super) struct Places(Arc<Inner>);

struct Inner {
    bucket: Arc<Bucket>,
    most: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: HashMap<u64, Instant>,
    leaving: Vec<Passage>,
    /// Whether there is a task that keeps places, and one that gives them back.
    keeps: bool,
    leaves: bool,
}

impl Places {
    pub(super) fn new(bucket: Arc<Bucket>, most: u32) -> Self {
        Self(Arc::new(Inner { bucket, most, state: Mutex::default() }))
    }

    /// A place to ask for.
    pub(super) fn seat(&self) -> Seat {
        self.0.seat(self.0.bucket.next_number())
    }

    pub(super) fn count(&self) -> usize {
        self.0.state().taken.len()
    }

    /// Notes a place that was taken, and keeps it.
    pub(super) fn taken(&self, number: u64) {
        self.0.state().taken.insert(number, Instant::now());
        self.make_up();
    }

    /// Gives a place back, with others that come meanwhile.
    pub(super) fn leave(&self, number: u64) {
        {
            let mut state = self.0.state();
            if state.taken.remove(&number).is_none() {
                return;
            }
            state.leaving.push(self.0.bucket.passage(number));
        }
        self.make_up();
    }

    /// Starts the tasks that are missing, also those that ended with their runtime.
    pub(super) fn make_up(&self) {
        let (keeps, leaves) = {
            let mut state = self.0.state();
            let keeps = !state.taken.is_empty() && !std::mem::replace(&mut state.keeps, true);
            let leaves = !state.leaving.is_empty() && !std::mem::replace(&mut state.leaves, true);
            (keeps, leaves)
        };
        if keeps {
            let mut task = Task::new(&self.0, |state| &mut state.keeps);
            self.0.bucket.tell(async move {
                keep(&task.places).await;
                task.has_ended();
                Ok(())
            });
        }
        if leaves {
            let mut task = Task::new(&self.0, |state| &mut state.leaves);
            let inner = Arc::clone(&self.0);
            self.0.bucket.tell(async move {
                inner.leave_all().await;
                task.has_ended();
                Ok(())
            });
        }
    }
}

/// A task under way. Should it be dropped before it has ended, for want of a runtime or with one,
/// another one may be started.
struct Task {
    places: Weak<Inner>,
    is_under_way: fn(&mut State) -> &mut bool,
}

impl Task {
    fn new(places: &Arc<Inner>, is_under_way: fn(&mut State) -> &mut bool) -> Self {
        Self { places: Arc::downgrade(places), is_under_way }
    }

    /// It has said so itself, and another one may be under way already.
    fn has_ended(&mut self) {
        self.places = Weak::new();
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(places) = self.places.upgrade() {
            *(self.is_under_way)(&mut places.state()) = false;
        }
    }
}

impl Inner {
    fn seat(&self, number: u64) -> Seat {
        Seat { passage: self.bucket.passage(number), most: self.most, hold: HOLD }
    }

    async fn leave_all(&self) {
        loop {
            let leaving = {
                let mut state = self.state();
                state.leaves = !state.leaving.is_empty();
                std::mem::take(&mut state.leaving)
            };
            if leaving.is_empty() {
                return;
            }
            // Deadlines end what could not be given back.
            let _ = self.bucket.leave(&leaving).await;
        }
    }

    /// Places that were last kept some time ago; nothing when there are none left to keep.
    fn due(&self) -> Option<Vec<u64>> {
        let mut state = self.state();
        state.keeps = !state.taken.is_empty();
        let now = Instant::now();
        let due = |(number, kept): (&u64, &mut Instant)| {
            (now - *kept >= HOLD / 3).then(|| {
                *kept = now;
                *number
            })
        };
        let due = state.taken.iter_mut().filter_map(due).collect();
        state.keeps.then_some(due)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves the deadlines of places that are still needed.
async fn keep(places: &Weak<Inner>) {
    loop {
        sleep(HOLD / 6).await;
        let Some(inner) = places.upgrade() else { return };
        let Some(due) = inner.due() else { return };
        for number in due {
            let seat = inner.seat(number);
            // One that fails is tried again with the next; the place may be lost meanwhile.
            let _ = inner.bucket.enter(&seat).await;
        }
    }
}

const HOLD: Duration = Duration::from_secs(60);
