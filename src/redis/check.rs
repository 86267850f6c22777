//! What a server must be to keep leases.

use std::collections::HashMap;
use std::fmt;

use redis::Value;

use super::fault::Fault;

/// What a server tells of itself: its reply to INFO, by field.
#[derive(Default)]
pub(crate) struct Info(HashMap<String, String>);

/// A server's make and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Make {
    name: &'static str,
    version: (u32, u32, u32),
}

impl Info {
    /// Reads a reply; what is no field is left out.
    pub(crate) fn from_reply(reply: Value) -> Self {
        let text: String = redis::from_redis_value(reply).unwrap_or_default();
        Self::parse(&text)
    }

    /// Reads the text of a reply.
    pub(crate) fn parse(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Self(fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    /// Whether the server takes writes of its own.
    pub(crate) fn is_primary(&self) -> bool {
        self.field("role") == "master"
    }

    /// Whether the server can keep leases; the fault says what is against it.
    ///
    /// `allow_eviction` takes a server that may evict keys which have no end of their own.
    pub(crate) fn check(&self, allow_eviction: bool) -> Result<(), Fault> {
        self.check_version()?;
        self.check_eviction(allow_eviction)?;
        if self.field("master_replid").is_empty() {
            return Err(Fault::refused("the store does not tell its replication id"));
        }
        if self.field("aof_enabled") == "0" {
            tracing::warn!(
                "the store keeps no append-only file: leases since its last snapshot are lost \
                 when it restarts"
            );
        }
        Ok(())
    }

    /// Whether the server is a cluster's node exactly when it is used as one.
    pub(crate) fn check_cluster(&self, wanted: bool) -> Result<(), Fault> {
        match (self.field("cluster_enabled") == "1", wanted) {
            (true, false) => Err(Fault::refused("the store is a cluster, but is not used as one")),
            (false, true) => Err(Fault::refused("the store is used as a cluster, but is not one")),
            _ => Ok(()),
        }
    }

    fn check_version(&self) -> Result<(), Fault> {
        let make = self.make().ok_or(Fault::refused("the store does not tell its version"))?;
        let least = match make.name {
            "Redis" => (7, 0, 0),
            "Valkey" => (7, 2, 0),
            _ => return Err(Fault::refused(format!("the store is {make}, {OLDEST}"))),
        };
        if make.version < least {
            return Err(Fault::refused(format!("the store is {make}, {OLDEST}")));
        }
        Ok(())
    }

    /// A pool whose keys vanish under load looks like one that was never set up.
    fn check_eviction(&self, allow: bool) -> Result<(), Fault> {
        let policy = self.field("maxmemory_policy");
        if policy.starts_with("allkeys-") {
            if !allow {
                return Err(Fault::refused(
                    "the store may evict the pool's keys: its maxmemory-policy is one of \
                     allkeys-*; noeviction is the right one",
                ));
            }
            tracing::warn!("the store may evict the pool's keys");
        }
        Ok(())
    }

    /// Its make and version, `Redis 7.0.15`.
    pub(crate) fn name(&self) -> Option<String> {
        self.make().map(|make| make.to_string())
    }

    /// Others call themselves Redis too, and have a field of their own beside it.
    fn make(&self) -> Option<Make> {
        let make = |name, field| version(self.field(field)).map(|version| Make { name, version });
        make("Dragonfly", "dragonfly_version").or_else(|| make("Valkey", "valkey_version")).or_else(
            || {
                let keydb = self.field("executable").ends_with("keydb-server");
                make(if keydb { "KeyDB" } else { "Redis" }, "redis_version")
            },
        )
    }

    /// A field's value; empty when there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

impl fmt::Display for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.version;
        write!(f, "{} {major}.{minor}.{patch}", self.name)
    }
}

/// The numbers of `7.0.15`, `8.0-dev` or `df-v1.30.0`.
fn version(text: &str) -> Option<(u32, u32, u32)> {
    let text = text.trim_start_matches(|character: char| !character.is_ascii_digit());
    let mut numbers = text.split(|character: char| !character.is_ascii_digit());
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    Some((next()?, next().unwrap_or(0), next().unwrap_or(0)))
}

const OLDEST: &str = "but leases need Redis 7.0 or Valkey 7.2 or newer";

#[cfg(test)]
mod tests {
    use super::*;

    const REDIS_6_2: &str = "# Server\r\nredis_version:6.2.16\r\nredis_git_sha1:00000000\r\n\
        redis_mode:standalone\r\nexecutable:/usr/bin/redis-server\r\n# Memory\r\n\
        maxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\n# Replication\r\n\
        role:master\r\nmaster_replid:8c37f16ab0ef6b5bdb3fe9c1a3a8f4a2b6d52e7d\r\n";
    const VALKEY_8: &str = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\n\
        valkey_version:8.0.1\r\nvalkey_release_stage:ga\r\nredis_mode:standalone\r\n# Memory\r\n\
        maxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\n# Replication\r\n\
        role:master\r\nmaster_replid:0f3f6a8d6b1c1a5e4dbb5d1c5d0f24de32c5a001\r\n";
    const KEYDB: &str = "# Server\r\nredis_version:6.3.4\r\nredis_git_sha1:7e7e5e57\r\n\
        redis_mode:standalone\r\nexecutable:/data/keydb-server\r\n# Replication\r\n\
        role:active-replica\r\n";
    const DRAGONFLY: &str = "# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.40.1\r\n\
        redis_mode:standalone\r\n# Replication\r\nrole:master\r\nmaster_replid:1f0e\r\n";

    fn check(text: &str) -> Result<(), String> {
        Info::parse(text).check(false).map_err(|fault| fault.to_string())
    }

    #[test]
    fn servers_that_can_keep_leases_pass() {
        for text in [
            &REDIS_6_2.replace("6.2.16", "7.0.15"),
            &REDIS_6_2.replace("6.2.16", "8.0-dev"),
            &REDIS_6_2.replace("6.2.16", "255.255.255"),
            VALKEY_8,
            &VALKEY_8.replace("8.0.1", "7.2.5"),
        ] {
            assert_eq!(check(text), Ok(()));
        }
    }

    #[test]
    fn the_others_are_named_with_their_version() {
        for (text, name) in [
            (REDIS_6_2, "Redis 6.2.16"),
            (&VALKEY_8.replace("8.0.1", "7.0.0"), "Valkey 7.0.0"),
            (KEYDB, "KeyDB 6.3.4"),
            (DRAGONFLY, "Dragonfly 1.40.1"),
        ] {
            let told = check(text).unwrap_err();
            assert!(told.starts_with(&format!("the store is {name}, but")), "{told}");
        }
        assert_eq!(check("").unwrap_err(), "the store does not tell its version");
    }

    #[test]
    fn what_may_evict_the_pool_or_hides_its_identity_is_refused() {
        let evicts = VALKEY_8.replace("noeviction", "allkeys-lru");
        assert!(check(&evicts).unwrap_err().contains("may evict"));
        assert_eq!(Info::parse(&evicts).check(true), Ok(()));
        assert_eq!(check(&VALKEY_8.replace("noeviction", "volatile-lru")), Ok(()));
        let hidden = VALKEY_8.replace("master_replid", "other");
        assert_eq!(check(&hidden).unwrap_err(), "the store does not tell its replication id");
    }

    #[test]
    fn only_a_primary_is_one() {
        assert!(Info::parse(VALKEY_8).is_primary());
        assert!(!Info::parse(KEYDB).is_primary());
        assert!(!Info::parse(&VALKEY_8.replace("role:master", "role:slave")).is_primary());
    }
}
