//! Finding the primary through Sentinel.

use std::future::ready;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

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

    /// Connects to the server that most Sentinels name, else to another one that is named.
    ///
    /// All Sentinels are asked at once. What more than half of them name is taken at once; one
    /// that lags behind may still name a primary that was replaced, which takes writes that will
    /// be lost. A server is tried only after those with more votes have failed.
    pub(crate) async fn open_primary(&self, opener: &Opener) -> Result<Link, Failure> {
        let mut last = Fault::unavailable("no Sentinel can be reached").with_nothing();
        for place in self.named(opener, &mut last).await {
            match Link::open_primary(opener, &self.primary.moved_to(place)).await {
                Ok(link) => return Ok(link),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// The servers that are named, those with more votes first; those with equal votes in the
    /// order of their answers.
    async fn named(&self, opener: &Opener, last: &mut Failure) -> Vec<Place> {
        let mut asked: FuturesUnordered<_> =
            self.addresses.iter().map(|sentinel| self.ask(opener, sentinel)).collect();
        let mut votes: Vec<(Place, usize)> = Vec::new();
        let mut until = None;
        while let Some(answer) = in_time(until, asked.next()).await {
            let place = match answer {
                Ok(place) => place,
                Err(failure) => {
                    *last = failure;
                    continue;
                }
            };
            until.get_or_insert_with(|| Instant::now() + GRACE);
            let nth = votes.iter().position(|(named, _)| *named == place).unwrap_or(votes.len());
            if nth == votes.len() {
                votes.push((place, 0));
            }
            votes[nth].1 += 1;
            if votes[nth].1 > self.addresses.len() / 2 {
                break;
            }
        }
        votes.sort_by_key(|(_, votes)| std::cmp::Reverse(*votes));
        votes.into_iter().map(|(place, _)| place).collect()
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

/// The next answer, if there is one by then.
async fn in_time<T>(until: Option<Instant>, next: impl Future<Output = Option<T>>) -> Option<T> {
    match until {
        Some(until) => timeout_at(until, next).await.ok().flatten(),
        None => next.await,
    }
}

/// How long the other Sentinels are waited for once one has answered.
const GRACE: Duration = Duration::from_millis(250);
