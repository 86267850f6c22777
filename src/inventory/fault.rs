//! What is wrong with an inventory, and where.

use crate::error::{BoxError, Error};
use crate::id::EndpointId;

use super::lines::Lines;

/// A refusal of something in the text.
///
/// Its message is made of our own words, numbers, valid ids and the names of variables and files,
/// never of other text from the inventory: that may be a password in the wrong place.
#[derive(Debug)]
pub(super) struct Fault {
    at: usize,
    endpoint: Option<String>,
    message: String,
    source: Option<BoxError>,
}

impl Fault {
    /// A refusal of what stands at this byte.
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, endpoint: None, message: message.into(), source: None }
    }

    pub(super) fn with_source(mut self, source: Option<impl Into<BoxError>>) -> Self {
        self.source = source.map(Into::into);
        self
    }

    /// Says which `[[endpoint]]` it is about, counted from 1.
    pub(super) fn in_endpoint(mut self, nth: usize, id: Option<&EndpointId>) -> Self {
        self.endpoint = Some(match id {
            Some(id) => format!("endpoint {nth} ({id}): "),
            None => format!("endpoint {nth}: "),
        });
        self
    }

    pub(super) fn into_error(self, lines: &Lines<'_>) -> Error {
        let endpoint = self.endpoint.unwrap_or_default();
        let position = lines.position(self.at);
        let error = Error::inventory(format!("{position}: {endpoint}{}", self.message));
        match self.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}
