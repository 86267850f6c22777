//! A server's address, read from its URL.

use std::path::PathBuf;

use redis::{ConnectionAddr, IntoConnectionInfo};
use url::Url;

use crate::error::{Error, Kind};
use crate::secret::Secret;

/// Where to connect and how to log in. Not `Debug`: it names host and user.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) place: Place,
    pub(crate) tls: bool,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) database: i64,
}

/// What to open.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Address {
    /// Reads a URL; what is wrong with it is told without any part of it.
    pub(crate) fn parse(url: &Secret) -> Result<Self, Error> {
        let mut url = Url::parse(url.expose()).map_err(|_| invalid("it is not a URL"))?;
        let tls = matches!(url.scheme(), "rediss" | "valkeys");
        if tls && !cfg!(feature = "redis-tls") {
            return Err(invalid("TLS needs the feature `redis-tls`"));
        }
        // A raw `#` or `?` in a password would turn the user into the host.
        let local = matches!(url.scheme(), "unix" | "redis+unix" | "valkey+unix");
        if url.fragment().is_some() || (url.query().is_some() && !local) {
            return Err(invalid("`?` and `#` have no meaning in it; encode them in a password"));
        }
        if tls {
            url.set_scheme("redis").map_err(|()| invalid("its scheme is not known"))?;
        }
        let info = url.into_connection_info().map_err(|_| {
            invalid("it should be like redis://user:password@host:port/database or unix:///path")
        })?;
        let place = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Place::Tcp { host: host.clone(), port: *port },
            ConnectionAddr::Unix(path) => Place::Unix(path.clone()),
            _ => return Err(invalid("its scheme is not known")),
        };
        let login = info.redis_settings();
        if login.username().is_some_and(|name| !name.is_empty()) && login.password().is_none() {
            // Logged in without one, it would be somebody else: the default user.
            return Err(invalid("it names a user without a password"));
        }
        Ok(Self {
            place,
            tls,
            username: login.username().map(str::to_owned),
            password: login.password().map(Secret::new),
            database: login.db(),
        })
    }

    /// The same login somewhere else.
    #[cfg(any(feature = "redis-cluster", feature = "redis-sentinel"))]
    pub(crate) fn moved_to(&self, place: Place) -> Self {
        Self { place, ..self.clone() }
    }
}

fn invalid(why: &str) -> Error {
    Error::new(Kind::Config, format!("the store's URL is not valid: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, Error> {
        Address::parse(&Secret::new(url))
    }

    #[test]
    fn a_url_gives_place_login_and_database() {
        let address = parse("redis://us%40er:p%23w@example.test:7000/3").unwrap();
        assert!(address.place == Place::Tcp { host: "example.test".into(), port: 7000 });
        assert_eq!(address.username.as_deref(), Some("us@er"));
        assert_eq!(address.password.unwrap().expose(), "p#w");
        assert_eq!(address.database, 3);
        let plain = parse("valkey://[::1]").unwrap();
        assert!(plain.place == Place::Tcp { host: "::1".into(), port: 6379 });
    }

    #[test]
    fn a_unix_socket_has_a_path_and_a_login() {
        let address = parse("redis+unix:///run/redis.sock?db=2&user=u&pass=w").unwrap();
        assert!(address.place == Place::Unix("/run/redis.sock".into()));
        assert_eq!((address.database, address.password.unwrap().expose()), (2, "w"));
    }

    #[test]
    fn a_wrong_url_is_refused_without_being_told() {
        for url in [
            "canary",
            "http://canary:canary@canary",
            "redis://canary:1#canary@canary",
            "redis://canary:1?canary@canary",
            "redis://canary:canary/canary@canary",
            "redis://canary@canary/canary",
            "redis://",
            "redis://canary@canary",
            "redis+unix:///canary?user=canary",
            "unix://",
        ] {
            let error = parse(url).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), Kind::Config, "{url}");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }
}
