//! What an inventory holds at one moment.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::endpoint::{Endpoint, MAX_WEIGHT};
use crate::error::Error;
use crate::id::EndpointId;

use super::warning::{Concern, Warning};

/// The endpoints of an inventory at one moment, by id. It never changes.
///
/// `Debug` shows counts only.
#[derive(Clone)]
pub struct Snapshot {
    /// Sorted by id.
    endpoints: IndexMap<EndpointId, Arc<Endpoint>>,
    version: Option<u64>,
    warnings: Vec<Warning>,
}

impl Snapshot {
    /// Gathers endpoints, with the version of the configuration they come from.
    ///
    /// # Examples
    /// ```
    /// use reqwest_lease::{Endpoint, EndpointId, Snapshot};
    ///
    /// let id = EndpointId::new("a").unwrap();
    /// let endpoint = Endpoint::new(id.clone(), "http://gw1.example.net:8080", None).unwrap();
    /// let snapshot = Snapshot::new([endpoint], Some(7))?;
    /// assert!(snapshot.get(&id).is_some());
    /// # Ok::<(), reqwest_lease::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Kind::Inventory`](crate::Kind::Inventory) when there are no endpoints, an id comes
    /// twice, or a weight is outside 1 to 1000.
    pub fn new(
        endpoints: impl IntoIterator<Item = Endpoint>,
        version: Option<u64>,
    ) -> Result<Self, Error> {
        let mut snapshot = Self { endpoints: IndexMap::new(), version, warnings: Vec::new() };
        for endpoint in endpoints {
            snapshot.add(endpoint)?;
        }
        snapshot.endpoints.sort_unstable_keys();
        match snapshot.is_empty() {
            true => Err(Error::inventory("the inventory has no endpoints")),
            false => Ok(snapshot),
        }
    }

    fn add(&mut self, endpoint: Endpoint) -> Result<(), Error> {
        let id = endpoint.id().clone();
        if !(1..=MAX_WEIGHT).contains(&endpoint.labels().weight) {
            let message = format!("endpoint {id}: the weight must be 1 to {MAX_WEIGHT}");
            return Err(Error::inventory(message));
        }
        if let Some(concern) = Concern::of_scheme(endpoint.scheme()) {
            self.warnings.push(Warning { endpoint: id.clone(), concern, line: None });
        }
        match self.endpoints.insert(id, Arc::new(endpoint)) {
            Some(first) => {
                Err(Error::inventory(format!("endpoint {} is in the inventory twice", first.id())))
            }
            None => Ok(()),
        }
    }

    /// What a file gave: endpoints checked already, and warnings that know their lines.
    pub(super) fn of_file(
        endpoints: BTreeMap<EndpointId, Arc<Endpoint>>,
        version: Option<u64>,
        warnings: Vec<Warning>,
    ) -> Self {
        Self { endpoints: endpoints.into_iter().collect(), version, warnings }
    }

    /// Takes over from an older snapshot, whose unchanged endpoints are kept as they are.
    pub(super) fn succeed(mut self, old: &Self) -> (Self, Reloaded) {
        let mut reloaded = Reloaded { version: self.version, ..Reloaded::default() };
        for (id, endpoint) in &mut self.endpoints {
            match old.get(id) {
                Some(known) if is_same(known, endpoint) => *endpoint = Arc::clone(known),
                Some(_) => reloaded.changed.push(id.clone()),
                None => reloaded.added.push(id.clone()),
            }
        }
        let gone = old.endpoints.keys().filter(|id| !self.endpoints.contains_key(*id));
        reloaded.removed.extend(gone.cloned());
        (self, reloaded)
    }

    /// The endpoint of this id.
    pub fn get(&self, id: &EndpointId) -> Option<&Arc<Endpoint>> {
        self.endpoints.get(id)
    }

    /// All endpoints, sorted by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Endpoint>> {
        self.endpoints.values()
    }

    /// How many endpoints there are, each session of a gateway counted.
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Whether there are none, which [`new`](Self::new) refuses.
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }

    /// The version of the configuration, where it says one.
    pub fn version(&self) -> Option<u64> {
        self.version
    }

    /// What is allowed and yet better done otherwise.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("endpoints", &self.len())
            .field("version", &self.version)
            .field("warnings", &self.warnings.len())
            .finish()
    }
}

/// What a reload changed, each list sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// Ids that were not there before.
    pub added: Vec<EndpointId>,
    /// Ids whose address, credentials or labels are others now.
    pub changed: Vec<EndpointId>,
    /// Ids that are gone.
    pub removed: Vec<EndpointId>,
    /// The version of the configuration that is in force now.
    pub version: Option<u64>,
}

impl Reloaded {
    /// Whether all endpoints are as before.
    pub fn is_unchanged(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

fn is_same(one: &Endpoint, other: &Endpoint) -> bool {
    one.fingerprint() == other.fingerprint() && one.labels() == other.labels()
}
