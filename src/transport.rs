//! Putting a request on the wire once it has its endpoint's client.

use std::future::Future;

use reqwest::{Client, Request, Response};

use crate::error::{BoxError, Error};
use crate::id::EndpointId;
use crate::options::LeaseInfo;
use crate::outcome::Attempt;

/// How a request is put on the wire once it has its endpoint's client.
pub(crate) trait Transport: Send {
    type Error: AsBoxError;

    fn send(
        &mut self,
        client: Client,
        request: Request,
    ) -> impl Future<Output = Result<Response, Self::Error>> + Send;
}

/// A transport's error, looked at and passed on.
pub(crate) trait AsBoxError: Send + Sized {
    fn as_error(&self) -> &(dyn std::error::Error + 'static);

    /// The error without the target's URL.
    fn into_source(self) -> BoxError;
}

impl AsBoxError for reqwest::Error {
    fn as_error(&self) -> &(dyn std::error::Error + 'static) {
        self
    }

    fn into_source(self) -> BoxError {
        Box::new(self.without_url())
    }
}

impl AsBoxError for BoxError {
    fn as_error(&self) -> &(dyn std::error::Error + 'static) {
        &**self
    }

    fn into_source(self) -> BoxError {
        match self.downcast::<reqwest::Error>() {
            Ok(error) => Box::new(error.without_url()),
            Err(error) => error,
        }
    }
}

/// Sends with the endpoint's client, and nothing else.
pub(crate) struct Wire;

impl Transport for Wire {
    type Error = reqwest::Error;

    fn send(
        &mut self,
        client: Client,
        request: Request,
    ) -> impl Future<Output = Result<Response, reqwest::Error>> + Send {
        client.execute(request)
    }
}

/// Why a request failed: for want of a lease, or on the wire.
#[derive(Debug)]
pub(crate) enum Failure<E> {
    Lease(Error),
    Exchange(E, Box<LeaseInfo>),
}

impl<E> Failure<E> {
    /// The endpoints that failed, the last one last.
    pub(crate) fn failed(&self) -> Vec<EndpointId> {
        let (tried, last) = match self {
            Self::Lease(error) => (error.tried(), None),
            Self::Exchange(_, info) => (info.failed(), Some(info.endpoint())),
        };
        tried.iter().map(Attempt::endpoint).chain(last).cloned().collect()
    }
}

impl<E> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self::Lease(error)
    }
}
