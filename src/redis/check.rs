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
        if let Some(what) = self.loses() {
            tracing::warn!("{what}");
        }
        Ok(())
    }

    /// What a restart would lose, as far as INFO tells.
    ///
    /// Whether snapshots are to be taken at all is in CONFIG, which roles may not read and managed
    /// servers refuse; INFO tells of those that were taken since the start, or loaded at it.
    pub(crate) fn loses(&self) -> Option<&'static str> {
        let failed = |name: &str| self.field(name) == "err";
        let some = |name: &str| self.field(name).parse().is_ok_and(|number: i64| number > 0);
        let snapshots = some("rdb_saves")
            || some("rdb_bgsave_in_progress")
            || some("rdb_last_load_keys_loaded")
            || self.field("rdb_last_bgsave_time_sec").parse().is_ok_and(|took: i64| took >= 0);
        match self.field("aof_enabled") {
            "1" if failed("aof_last_write_status") => {
                Some("the store cannot write its append-only file: a restart loses leases")
            }
            "0" if failed("rdb_last_bgsave_status") => Some(
                "the store keeps no append-only file and its last snapshot failed: a restart \
                 loses what came after the one before",
            ),
            "0" if snapshots => Some(
                "the store keeps no append-only file: a restart loses what came after its last \
                 snapshot",
            ),
            "0" => Some(
                "the store keeps no append-only file and has taken no snapshot yet: unless it is \
                 set to take some, a restart loses the pools",
            ),
            _ => None,
        }
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
        } else if policy.starts_with("volatile-") {
            tracing::warn!(
                "the store may evict keys with a ttl: shared budgets start afresh when it is full"
            );
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

    // What real servers told, cut to what matters; the two below are put together by hand.
    const REDIS_6_2: &str = include_str!("tests/info/redis-6.2.14.txt");
    const REDIS_7: &str = include_str!("tests/info/redis-7.0.15.txt");
    const REDIS_8: &str = include_str!("tests/info/redis-8.0.2.txt");
    const VALKEY_8: &str = include_str!("tests/info/valkey-8.1.1.txt");
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
            REDIS_7,
            REDIS_8,
            &REDIS_8.replace("8.0.2", "8.0-dev"),
            &REDIS_8.replace("8.0.2", "255.255.255"),
            VALKEY_8,
            &VALKEY_8.replace("8.1.1", "7.2.5"),
        ] {
            assert_eq!(check(text), Ok(()));
        }
    }

    #[test]
    fn the_others_are_named_with_their_version() {
        for (text, name) in [
            (REDIS_6_2, "Redis 6.2.14"),
            (&VALKEY_8.replace("8.1.1", "7.0.0"), "Valkey 7.0.0"),
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
    fn what_a_restart_loses_is_told_as_far_as_it_is_known() {
        for (more, told) in [
            ("", Some("has taken no snapshot yet")),
            ("rdb_last_bgsave_time_sec:-1", Some("has taken no snapshot yet")),
            ("rdb_last_bgsave_time_sec:0", Some("after its last snapshot")),
            ("rdb_saves:3", Some("after its last snapshot")),
            ("rdb_last_load_keys_loaded:7", Some("after its last snapshot")),
            ("rdb_last_bgsave_status:err", Some("its last snapshot failed")),
            ("aof_enabled:1", None),
            ("aof_enabled:1\r\naof_last_write_status:ok", None),
            ("aof_enabled:1\r\naof_last_write_status:err", Some("cannot write")),
        ] {
            let loses = Info::parse(&format!("{REDIS_7}{more}\r\n")).loses();
            match told {
                Some(told) => assert!(loses.unwrap().contains(told), "{more}: {loses:?}"),
                None => assert_eq!(loses, None, "{more}"),
            }
        }
        assert_eq!(Info::default().loses(), None, "what is not known is not told");
    }

    #[test]
    fn only_a_primary_is_one() {
        assert!(Info::parse(VALKEY_8).is_primary());
        assert!(!Info::parse(KEYDB).is_primary());
        assert!(!Info::parse(&VALKEY_8.replace("role:master", "role:slave")).is_primary());
    }
}
