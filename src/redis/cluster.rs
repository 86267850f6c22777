//! Finding the node of a key in a cluster.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::time::Instant;

use super::address::{Address, Place};
use super::fault::{Failure, Fault, Redirect, Remedy};
use super::holder::{Holder, Target};
use super::link::Request;
use super::stream::Opener;
use crate::error::{Error, Kind};

/// A cluster's nodes, each with a holder of its own, and the nodes of slots as far as they were
/// told.
///
/// Nodes tell where a slot is when they are asked for it, so no map of the cluster is fetched: a
/// pool is one slot. The library's own cluster client sends a script again when its answer was
/// lost; this one does not.
pub(crate) struct Cluster {
    seeds: Vec<Address>,
    opener: Arc<Opener>,
    connect_timeout: Duration,
    map: Mutex<Map>,
    /// Which of the nodes is asked next for a slot that nobody is known to have.
    next: AtomicUsize,
}

#[derive(Default)]
struct Map {
    nodes: HashMap<Place, Arc<Holder>>,
    slots: HashMap<u16, Place>,
}

impl Cluster {
    pub(crate) fn new(
        seeds: Vec<Address>,
        opener: Arc<Opener>,
        connect_timeout: Duration,
    ) -> Result<Self, Error> {
        if seeds.is_empty() {
            return Err(Error::new(Kind::Config, "a cluster needs the url of one of its nodes"));
        }
        let (map, next) = (Mutex::default(), AtomicUsize::new(0));
        Ok(Self { seeds, opener, connect_timeout, map, next })
    }

    /// Sends to the node of `key`, or to any; follows redirects, and asks the other nodes when one
    /// cannot be reached. Only what surely had no effect is sent again.
    pub(crate) async fn run(
        &self,
        deadline: Instant,
        key: Option<&str>,
        make: impl Fn(bool) -> Cmd,
    ) -> Result<Value, Failure> {
        let slot = key.map(slot_of);
        let (mut redirect, mut redirects) = (None, 0);
        let (mut unreached, mut refused) = (Vec::new(), None);
        loop {
            let (place, asking) =
                redirect.take().unwrap_or_else(|| (self.place_of(slot, &unreached), false));
            let request = |by_source| Request::new(make(by_source)).asking(asking);
            let failure = match self.node(&place).run(deadline, request).await {
                Ok(value) => {
                    if let (Some(slot), false) = (slot, asking) {
                        self.note(slot, &place);
                    }
                    return Ok(value);
                }
                Err(failure) => failure,
            };
            match &failure.remedy {
                Remedy::Follow(to) if redirects < MOST_REDIRECTS => {
                    redirects += 1;
                    redirect = Some((self.follow(slot, &place, to), to.once));
                }
                Remedy::Follow(_) => {
                    return Err(Fault::unavailable("the store is moving its keys").with_nothing());
                }
                Remedy::Nothing => return Err(failure),
                // The slot may have another node by now, and the other nodes know.
                remedy => {
                    self.forget(slot, &place);
                    let again = unreached.contains(&place);
                    unreached.push(place);
                    let others = self.known().iter().any(|place| !unreached.contains(place));
                    let late = Instant::now() >= deadline;
                    if *remedy != Remedy::Elsewhere || again || !others || late {
                        // A node that is there and cannot be used tells more than one that is gone.
                        return Err(refused.unwrap_or(failure));
                    }
                    if matches!(failure.fault, Fault::Refused { .. }) {
                        refused = Some(failure);
                    }
                }
            }
        }
    }

    /// The node of `key`, asked for.
    pub(crate) async fn address_of(
        &self,
        deadline: Instant,
        key: &str,
    ) -> Result<Address, Failure> {
        let ask = |_| redis::cmd("EXISTS").arg(key).clone();
        self.run(deadline, Some(key), ask).await?;
        let place = self.place_of(Some(slot_of(key)), &[]);
        Ok(self.address(&place))
    }

    pub(crate) fn opener(&self) -> &Opener {
        &self.opener
    }

    /// Takes note of where a slot is; gives the node to ask.
    fn follow(&self, slot: Option<u16>, asked: &Place, to: &Redirect) -> Place {
        let host = match (to.host.as_str(), asked) {
            ("" | "?", Place::Tcp { host, .. }) => host.clone(),
            (host, _) => host.to_owned(),
        };
        let place = Place::Tcp { host, port: to.port };
        if let (Some(slot), false) = (slot, to.once) {
            self.note(slot, &place);
        }
        place
    }

    fn note(&self, slot: u16, place: &Place) {
        let mut map = self.map();
        if map.slots.get(&slot) != Some(place) {
            map.slots.insert(slot, place.clone());
        }
    }

    fn forget(&self, slot: Option<u16>, place: &Place) {
        let mut map = self.map();
        if let Some(slot) = slot
            && map.slots.get(&slot) == Some(place)
        {
            map.slots.remove(&slot);
        }
        // Nodes come and go under other addresses; who names this one again begins anew.
        let gone = map.nodes.get(place).is_some_and(|node| node.failures() >= GIVE_UP_AFTER);
        if gone && !self.is_seed(place) {
            map.nodes.remove(place);
        }
    }

    /// The node of a slot, else any but these.
    fn place_of(&self, slot: Option<u16>, unreached: &[Place]) -> Place {
        if let Some(place) = slot.and_then(|slot| self.map().slots.get(&slot).cloned()) {
            return place;
        }
        let mut places = self.known();
        if places.iter().any(|place| !unreached.contains(place)) {
            places.retain(|place| !unreached.contains(place));
        }
        places.swap_remove(self.next.fetch_add(1, Ordering::Relaxed) % places.len())
    }

    /// All nodes that were heard of; the seeds always.
    fn known(&self) -> Vec<Place> {
        let mut places: Vec<_> = self.seeds.iter().map(|seed| seed.place.clone()).collect();
        let map = self.map();
        places.extend(map.nodes.keys().filter(|place| !self.is_seed(place)).cloned());
        places
    }

    fn is_seed(&self, place: &Place) -> bool {
        self.seeds.iter().any(|seed| seed.place == *place)
    }

    fn node(&self, place: &Place) -> Arc<Holder> {
        let address = self.address(place);
        let new = || {
            let target = Target::Node(address);
            Arc::new(Holder::new(target, self.opener.clone(), self.connect_timeout))
        };
        self.map().nodes.entry(place.clone()).or_insert_with(new).clone()
    }

    fn address(&self, place: &Place) -> Address {
        let seed = self.seeds.iter().find(|seed| seed.place == *place);
        seed.unwrap_or(&self.seeds[0]).moved_to(place.clone())
    }

    fn map(&self) -> MutexGuard<'_, Map> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Attempts to connect, some five seconds of them, before a node that is no seed is forgotten.
const GIVE_UP_AFTER: u32 = 8;

/// A slot's owner is one redirect away, two while it moves.
const MOST_REDIRECTS: usize = 5;

/// The slot of a key: of what is between its first braces, or of all of it.
fn slot_of(key: &str) -> u16 {
    let tagged = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    let hashed = tagged.map_or(key, |(tag, _)| if tag.is_empty() { key } else { tag });
    crc16(hashed.as_bytes()) % 16_384
}

/// CRC-16/XMODEM, as the cluster specification has it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of("foo"), 12_182);
        assert_eq!(slot_of("lease:{foo}:meta"), slot_of("foo"));
        assert_eq!(slot_of("foo{}{bar}"), crc16(b"foo{}{bar}") % 16_384);
        assert_eq!(slot_of("foo{{bar}}zap"), slot_of("{bar"));
    }
}
