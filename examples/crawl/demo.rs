//! The world that is crawled when no other is given: a site and three proxies on loopback.

use std::collections::HashSet;
use std::io;

use reqwest_lease::{BoxError, Endpoint, EndpointId, Inventory};
use url::Url;

use crate::local::proxy::{ForwardProxy, Manners};
use crate::local::site::{PAGES, Site};

/// A site and its proxies. They end with it.
pub(crate) struct Demo {
    site: Site,
    proxies: Vec<(&'static str, ForwardProxy)>,
}

const CREDENTIALS: (&str, &str) = ("worker", "a secret");

/// The mortal one is asked for a third of the pages when it dies half-way.
const MORTAL_CARRIES: usize = PAGES / 6;

impl Demo {
    /// Starts the site and the proxies; one wants a password, one dies half-way.
    pub(crate) async fn start() -> io::Result<Self> {
        let locked = Manners { credentials: Some(CREDENTIALS), ..Manners::default() };
        let mortal = Manners { dies_after: Some(MORTAL_CARRIES), ..Manners::default() };
        let mut proxies = Vec::new();
        for (name, manners) in
            [("open", Manners::default()), ("locked", locked), ("mortal", mortal)]
        {
            proxies.push((name, ForwardProxy::start(manners).await?));
        }
        Ok(Self { site: Site::start().await?, proxies })
    }

    /// The proxies as an inventory.
    pub(crate) fn inventory(&self) -> Result<Inventory, BoxError> {
        let mut endpoints = Vec::new();
        for (name, proxy) in &self.proxies {
            let credentials = (*name == "locked").then_some(CREDENTIALS);
            endpoints.push(Endpoint::new(EndpointId::new(name)?, &proxy.url(), credentials)?);
        }
        Ok(Inventory::from_endpoints(endpoints)?)
    }

    /// The page to start from.
    pub(crate) fn front_page(&self) -> Result<Url, BoxError> {
        Ok(self.site.url("/").parse()?)
    }

    /// How many requests reached the site, and how many of them by none of the proxies.
    pub(crate) fn requests(&self) -> (usize, usize) {
        let carried = self.proxies.iter().flat_map(|(_, proxy)| proxy.carried());
        let sockets: HashSet<_> = carried.map(|carried| carried.outgoing).collect();
        let visits = self.site.visits();
        let direct = visits.iter().filter(|visit| !sockets.contains(&visit.peer)).count();
        (visits.len(), direct)
    }
}
