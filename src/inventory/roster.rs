//! The endpoints of a file as they are gathered, with what they are checked against.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::endpoint::Endpoint;
use crate::id::EndpointId;

use super::entry::Entry;
use super::fault::Fault;
use super::lines::Lines;
use super::snapshot::Snapshot;
use super::warning::{Concern, Warning};

pub(super) struct Roster<'a> {
    lines: &'a Lines<'a>,
    endpoints: BTreeMap<EndpointId, Arc<Endpoint>>,
    /// The byte at which the id of an endpoint stands.
    places: HashMap<EndpointId, usize>,
    warnings: Vec<Warning>,
}

impl<'a> Roster<'a> {
    pub(super) fn new(lines: &'a Lines<'a>) -> Self {
        let (endpoints, places) = (BTreeMap::new(), HashMap::new());
        Self { lines, endpoints, places, warnings: Vec::new() }
    }

    pub(super) fn add(&mut self, entry: &Entry<'_>) -> Result<(), Fault> {
        if self.endpoints.len() + entry.count() > MAX_ENDPOINTS {
            let message = format!("an inventory has at most {MAX_ENDPOINTS} endpoints");
            return Err(Fault::new(entry.id.at, message));
        }
        let mut sample = None;
        for endpoint in entry.endpoints() {
            let endpoint = Arc::new(endpoint?);
            self.insert(entry.id.at, Arc::clone(&endpoint))?;
            sample = Some(endpoint);
        }
        if let Some(endpoint) = sample {
            self.warn(entry, &endpoint);
        }
        Ok(())
    }

    fn insert(&mut self, at: usize, endpoint: Arc<Endpoint>) -> Result<(), Fault> {
        let id = endpoint.id().clone();
        if let Some(first) = self.places.insert(id.clone(), at) {
            let line = self.lines.line(first);
            let message = format!("the id {id} is taken already, by the endpoint on line {line}");
            return Err(Fault::new(at, message));
        }
        self.endpoints.insert(id, endpoint);
        Ok(())
    }

    /// Sessions of one entry differ in nothing that is warned of, so one of them will do.
    fn warn(&mut self, entry: &Entry<'_>, endpoint: &Endpoint) {
        let password = entry.password.as_ref().filter(|password| password.value.is_inline);
        let inline = password.map(|password| (password.at, Concern::InlinePassword));
        let in_url = (endpoint.has_credentials() && !entry.has_username())
            .then_some((entry.url.at, Concern::CredentialsInUrl));
        let scheme = Concern::of_scheme(endpoint.scheme()).map(|concern| (entry.url.at, concern));
        for (at, concern) in [inline, in_url, scheme].into_iter().flatten() {
            let (endpoint, line) = (entry.id.value.clone(), Some(self.lines.line(at)));
            self.warnings.push(Warning { endpoint, concern, line });
        }
    }

    pub(super) fn finish(self, version: Option<u64>) -> Result<Snapshot, Fault> {
        match self.endpoints.is_empty() {
            true => Err(Fault::new(0, "the inventory has no endpoints; each is an [[endpoint]]")),
            false => Ok(Snapshot::of_file(self.endpoints, version, self.warnings)),
        }
    }
}

/// Many times the largest pools; it keeps a slip in `sessions` from filling the memory.
const MAX_ENDPOINTS: usize = if cfg!(test) { 20_000 } else { 1_000_000 };
