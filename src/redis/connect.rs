//! The connection that a store calls through.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::time::Instant;

use super::address::Address;
#[cfg(feature = "redis-cluster")]
use super::cluster::Cluster;
use super::fault::{Failure, Fault};
use super::holder::{Holder, Target};
use super::link::Request;
use super::options::{ConnectOptions, Server};
use super::script::Call;
#[cfg(feature = "redis-sentinel")]
use super::sentinel::Sentinels;
use super::stream::Opener;
use crate::error::Error;

/// A connection that many calls share and that is replaced underneath them.
///
/// Each call ends within the call timeout, whatever the server does. With Sentinel, the Sentinels
/// are asked at each attempt to connect, and once a second while calls are made whether the
/// primary is still the one.
///
/// A call whose answer was lost is never sent again: that is for the caller, who has a token.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Inner>);

struct Inner {
    route: Route,
    call_timeout: Duration,
}

enum Route {
    One(Arc<Holder>),
    #[cfg(feature = "redis-cluster")]
    Cluster(Cluster),
}

impl Connection {
    /// Connects. Here and at each reconnect it is checked that the server can keep leases.
    pub(crate) async fn connect(options: ConnectOptions) -> Result<Self, Error> {
        let ConnectOptions { connect_timeout, call_timeout, .. } = options;
        let connection = Self(Arc::new(Inner { route: Route::new(options)?, call_timeout }));
        let deadline = Instant::now() + connect_timeout + call_timeout;
        connection.send(deadline, redis::cmd("PING")).await?;
        Ok(connection)
    }

    /// Runs a script: by its hash, then by its source when the server does not know it.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Value, Fault> {
        let make = |by_source: bool| {
            if !by_source {
                return call.by_hash();
            }
            tracing::debug!(script = call.script.name, "the store does not know the script");
            call.by_source()
        };
        let deadline = Instant::now() + self.0.call_timeout;
        let answer = self.0.route.run(deadline, call.keys.first().map(String::as_str), make);
        answer.await.map_err(|failure| failure.fault)
    }

    /// Sends a command to the server of its key.
    pub(crate) async fn send_to(&self, key: &str, command: Cmd) -> Result<Value, Fault> {
        let deadline = Instant::now() + self.0.call_timeout;
        let answer = self.0.route.run(deadline, Some(key), |_| command.clone());
        answer.await.map_err(|failure| failure.fault)
    }

    /// The server of a key at the moment.
    pub(crate) async fn address_of(&self, key: &str) -> Result<Address, Fault> {
        let deadline = Instant::now() + self.0.call_timeout;
        match &self.0.route {
            Route::One(holder) => {
                // One server has all keys.
                let _ = key;
                Ok(holder.link(deadline).await?.address().clone())
            }
            #[cfg(feature = "redis-cluster")]
            Route::Cluster(cluster) => {
                cluster.address_of(deadline, key).await.map_err(|failure| failure.fault)
            }
        }
    }

    pub(crate) fn opener(&self) -> &Opener {
        match &self.0.route {
            Route::One(holder) => holder.opener(),
            #[cfg(feature = "redis-cluster")]
            Route::Cluster(cluster) => cluster.opener(),
        }
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        self.0.call_timeout
    }

    /// Sends a command, in a cluster to any of its nodes.
    #[cfg(test)]
    pub(crate) async fn command(&self, command: Cmd) -> Result<Value, Error> {
        self.send(Instant::now() + self.0.call_timeout, command).await
    }

    async fn send(&self, deadline: Instant, command: Cmd) -> Result<Value, Error> {
        let answer = self.0.route.run(deadline, None, |_| command.clone());
        Ok(answer.await.map_err(|failure| failure.fault)?)
    }
}

impl Route {
    fn new(options: ConnectOptions) -> Result<Self, Error> {
        let opener = |needs_tls| Opener::new(&options, needs_tls).map(Arc::new);
        let (target, opener) = match &options.server {
            Server::At(url) => {
                let address = Address::parse(url)?;
                let tls = address.tls;
                (Target::Server(address), opener(tls)?)
            }
            #[cfg(feature = "redis-sentinel")]
            Server::Sentinel { sentinels, service, primary } => {
                let sentinels = Sentinels::new(sentinels, service, primary)?;
                let tls = sentinels.need_tls();
                (Target::Sentinels(sentinels), opener(tls)?)
            }
            #[cfg(feature = "redis-cluster")]
            Server::Cluster { seeds } => {
                let seeds = seeds.iter().map(Address::parse).collect::<Result<Vec<_>, _>>()?;
                let opener = opener(seeds.iter().any(|seed| seed.tls))?;
                let cluster = Cluster::new(seeds, opener, options.connect_timeout)?;
                return Ok(Self::Cluster(cluster));
            }
        };
        Ok(Self::One(Arc::new(Holder::new(target, opener, options.connect_timeout))))
    }

    async fn run(
        &self,
        deadline: Instant,
        key: Option<&str>,
        make: impl Fn(bool) -> Cmd,
    ) -> Result<Value, Failure> {
        match self {
            Self::One(holder) => {
                // One server has all keys.
                let _ = key;
                holder.run(deadline, |by_source| Request::new(make(by_source))).await
            }
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(cluster) => cluster.run(deadline, key, make).await,
        }
    }
}

#[cfg(test)]
impl Connection {
    /// The one server's holder.
    pub(crate) fn holder(&self) -> &Holder {
        match &self.0.route {
            Route::One(holder) => holder,
            #[cfg(feature = "redis-cluster")]
            Route::Cluster(_) => panic!("a cluster has many"),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection(..)")
    }
}
