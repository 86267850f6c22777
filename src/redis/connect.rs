//! The connection.

use std::fmt;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, RedisError, Value};

use super::script::Call;
use crate::error::{Error, Kind};
use crate::secret::Secret;

/// One connection that many calls share.
#[derive(Clone)]
pub(crate) struct Connection(MultiplexedConnection);

impl Connection {
    /// Connects to the server of this URL, which no error repeats.
    pub(crate) async fn connect(url: &Secret) -> Result<Self, Error> {
        let client = redis::Client::open(url.expose())
            .map_err(|_| Error::new(Kind::Config, "the store's url is not valid"))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        connection.map(Self).map_err(|error| unavailable(&error))
    }

    /// Runs a script: by its hash, then by its source when the server does not know it.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Value, Error> {
        let answer = match self.send(&call.by_hash()).await {
            Err(error) if error.code() == Some("NOSCRIPT") => self.send(&call.by_source()).await,
            answer => answer,
        };
        answer.map_err(|error| unavailable(&error))
    }

    async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        command.query_async(&mut self.0.clone()).await
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection(..)")
    }
}

fn unavailable(error: &RedisError) -> Error {
    match error.code() {
        Some(code @ ("BADCALL" | "WRONGTYPE" | "ERR")) => {
            Error::new(Kind::StoreRefused, format!("the store refused the call: {code}"))
        }
        Some(code) => Error::store_unavailable(format!("the store refused the call: {code}")),
        None => Error::store_unavailable("the store did not answer"),
    }
}

const TIMEOUT: Duration = Duration::from_secs(5);
