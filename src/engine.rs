//! What all requests of a client share.

use reqwest::{Request, Response};
use tracing::{Instrument as _, Span};

use crate::clients::Clients;
use crate::error::{Error, Kind};
use crate::journey::{Journey, Terms};
use crate::options::LeaseOptions;
use crate::pool::Pool;
use crate::transport::{Failure, Transport};

/// The pools with their endpoints' clients, and the terms of every request.
pub(crate) struct Engine {
    /// The first one is the default.
    pub(crate) pools: Vec<(Pool, Clients)>,
    pub(crate) terms: Terms,
}

impl Engine {
    /// Makes one request.
    ///
    /// # Cancel safety
    /// At every point a dropped future gives back what it holds.
    pub(crate) async fn execute<T: Transport>(
        &self,
        request: Request,
        options: &LeaseOptions,
        transport: T,
    ) -> Result<Response, Failure<T::Error>> {
        let (pool, clients) = self.pool(options)?;
        let journey = Journey::new(&self.terms, pool, clients, options, transport, request)
            .inspect_err(|error| pool.refused(error))?;
        // In pieces: a large future is a large allocation, which threads contend for.
        let mut journey = Box::new(journey);
        let span =
            journey.report().0.as_ref().map_or_else(Span::none, |report| report.span().clone());
        let done = Box::pin(journey.run()).instrument(span).await;
        if let (Err(failure), (report, trip)) = (&done, journey.report())
            && let Some(report) = report.take()
        {
            report.failed(pool, failure, trip);
        }
        done
    }

    /// Builds the clients of all endpoints.
    pub(crate) fn warm_up(&self) -> Result<(), Error> {
        for (pool, clients) in &self.pools {
            for endpoint in pool.inventory().snapshot().iter() {
                clients.of(endpoint)?;
            }
        }
        Ok(())
    }

    pub(crate) fn pool(&self, options: &LeaseOptions) -> Result<(&Pool, &Clients), Error> {
        let named = |name| self.pools.iter().find(|(pool, _)| pool.name() == name);
        let (found, name) = match (&options.held, &options.pool) {
            (Some(held), _) => {
                let found = self.pools.iter().find(|(pool, _)| pool.is(held.pool()));
                (found, Some(held.pool().name()))
            }
            (None, Some(name)) => (named(name), Some(name)),
            (None, None) => (self.pools.first(), None),
        };
        found.map(|(pool, clients)| (pool, clients)).ok_or_else(|| {
            let name = name.map_or_else(String::new, ToString::to_string);
            Error::new(Kind::UnknownPool, format!("this client has no pool {name}"))
        })
    }
}
