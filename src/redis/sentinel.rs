//! Finding the primary through Sentinel.

use std::future::ready;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::address::{Address, Place};
use super::fault::{Failure, Fault};
use super::link::Link;
use super::stream::Opener;
use crate::error::Error;
use crate::secret::Secret;

/// The Sentinels of one primary.
pub(crate) struct Sentinels {
    addresses: Vec<Address>,
    service: String,
    primary: Address,
}

impl Sentinels {
    pub(crate) fn new(
        sentinels: &[Secret],
        service: &str,
        primary: &Secret,
    ) -> Result<Self, Error> {
        let addresses = sentinels.iter().map(Address::parse).collect::<Result<_, _>>()?;
        let primary = Address::parse(primary)?;
        Ok(Self { addresses, service: service.to_owned(), primary })
    }

    pub(crate) fn need_tls(&self) -> bool {
        self.primary.tls || self.addresses.iter().any(|address| address.tls)
    }

    /// Connects to the first server that a Sentinel names and that takes writes.
    ///
    /// All Sentinels are asked at once and every server named is tried, so one of them that hangs
    /// or lags behind costs no time.
    pub(crate) async fn open_primary(&self, opener: &Opener) -> Result<Link, Failure> {
        let mut asked: FuturesUnordered<_> =
            self.addresses.iter().map(|sentinel| self.ask(opener, sentinel)).collect();
        let mut tried = Vec::new();
        let mut opening = FuturesUnordered::new();
        let mut last = Fault::unavailable("no Sentinel can be reached").with_nothing();
        loop {
            tokio::select! {
                Some(answer) = asked.next() => match answer {
                    Ok(named) if tried.contains(&named) => {}
                    Ok(named) => {
                        let address = self.primary.moved_to(named.clone());
                        tried.push(named);
                        opening.push(async move { Link::open_primary(opener, &address).await });
                    }
                    Err(failure) => last = failure,
                },
                Some(opened) = opening.next() => match opened {
                    Ok(link) => return Ok(link),
                    Err(failure) => last = failure,
                },
                else => return Err(last),
            }
        }
    }

    /// Whether more than half of the Sentinels name another server as the primary.
    ///
    /// Until Sentinel reaches it, a primary that was replaced takes writes that will be lost. One
    /// Sentinel alone may be the one that lags behind.
    pub(crate) async fn name_another(&self, opener: &Opener, place: &Place) -> bool {
        let asked: FuturesUnordered<_> =
            self.addresses.iter().map(|sentinel| self.ask(opener, sentinel)).collect();
        let others = asked.filter(|answer| ready(matches!(answer, Ok(named) if named != place)));
        others.skip(self.addresses.len() / 2).next().await.is_some()
    }

    async fn ask(&self, opener: &Opener, sentinel: &Address) -> Result<Place, Failure> {
        let link = Link::open(opener, sentinel).await?;
        let mut question = redis::cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.service);
        let reply = link.ask(&question).await?;
        let named: Option<(String, u16)> = redis::from_redis_value(reply).unwrap_or_default();
        let place = named.map(|(host, port)| Place::Tcp { host, port });
        place.ok_or_else(|| Fault::unavailable("no Sentinel knows the primary").with_nothing())
    }
}
