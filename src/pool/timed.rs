//! A set whose members leave it at their time.

use std::collections::{BTreeSet, HashMap};

use tokio::time::Instant;

use crate::id::EndpointId;

/// Endpoints, each until a time of its own.
#[derive(Debug, Default)]
pub(super) struct Timed {
    until: HashMap<EndpointId, Instant>,
    order: BTreeSet<(Instant, EndpointId)>,
}

impl Timed {
    /// Puts an endpoint in, or gives it another time.
    pub(super) fn set(&mut self, endpoint: &EndpointId, until: Instant) {
        self.remove(endpoint);
        self.until.insert(endpoint.clone(), until);
        self.order.insert((until, endpoint.clone()));
    }

    pub(super) fn remove(&mut self, endpoint: &EndpointId) {
        // Unlike a look, taking out hashes also where there is nothing.
        if self.until.is_empty() {
            return;
        }
        if let Some(until) = self.until.remove(endpoint) {
            self.order.remove(&(until, endpoint.clone()));
        }
    }

    pub(super) fn until(&self, endpoint: &EndpointId) -> Option<Instant> {
        self.until.get(endpoint).copied()
    }

    pub(super) fn contains(&self, endpoint: &EndpointId) -> bool {
        self.until.contains_key(endpoint)
    }

    /// How many there are at this time.
    pub(super) fn len_at(&mut self, now: Instant) -> usize {
        while self.order.first().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, endpoint)) = self.order.pop_first() {
                self.until.remove(&endpoint);
            }
        }
        self.until.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_leaves_at_its_time_and_a_later_one_stands() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let [a, b] = ["a", "b"].map(|name| EndpointId::new(name).unwrap());
        let mut timed = Timed::default();
        timed.set(&a, now + second);
        timed.set(&b, now + 2 * second);
        timed.set(&a, now + 3 * second);
        assert_eq!([0, 1, 2, 3].map(|after| timed.len_at(now + after * second)), [2, 2, 1, 0]);
        timed.set(&a, now + second);
        timed.remove(&a);
        timed.remove(&b);
        assert_eq!((timed.len_at(now), timed.order.len()), (0, 0));
    }
}
