//! The names of keys.

use crate::error::{Error, Kind};
use crate::id::{MAX_NAME_LENGTH, PoolName};
use crate::site::Site;

/// What the names of all keys begin with: 1 to 64 printable ASCII characters, without colon and
/// braces.
#[derive(Debug, Clone)]
pub(crate) struct Namespace(String);

impl Namespace {
    pub(crate) fn new(namespace: &str) -> Result<Self, Error> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b':' | b'{' | b'}');
        let fits = (1..=MAX_NAME_LENGTH).contains(&namespace.len());
        if fits && namespace.bytes().all(plain) {
            return Ok(Self(namespace.to_owned()));
        }
        Err(Error::new(
            Kind::Config,
            "a namespace has 1 to 64 printable ASCII characters, without colon and braces",
        ))
    }
}

/// The keys of one pool. They have one hash tag, so that they are in one slot of a cluster.
#[derive(Debug)]
pub(crate) struct PoolKeys {
    prefix: String,
    state: Vec<String>,
}

impl PoolKeys {
    pub(crate) fn new(namespace: &Namespace, pool: &PoolName) -> Self {
        let prefix = format!("{}:{{{pool}}}:", namespace.0);
        let state = STATE.iter().map(|name| format!("{prefix}{name}")).collect();
        Self { prefix, state }
    }

    /// Those of [`STATE`], made once.
    pub(crate) fn state(&self) -> &[String] {
        &self.state
    }

    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The standing orders, which a worker may read and cannot declare.
    pub(crate) fn orders(&self) -> String {
        self.key(ORDERS)
    }

    /// The channel for hints that something came free: a sharded one, for it goes with the slot.
    pub(crate) fn hints(&self) -> String {
        self.key(FREE)
    }

    /// The endpoints that rest for a site.
    pub(crate) fn shun(&self, site: &Site) -> String {
        self.key(&format!("{SHUN}:{site}"))
    }
}

/// The keys of one shared budget: a bucket and the passages in flight. They have one hash tag, so
/// that they are in one slot of a cluster, and other buckets in others.
///
/// | key | type | content |
/// |---|---|---|
/// | `budget:{bucket}` | string | `written:tat:interval`, and after a pause `:until:number:level:probe` |
/// | `budget:{bucket}:passages` | zset | passage by deadline |
///
/// Both expire some time after they have lost their meaning. Times are whole microseconds of the
/// server's clock; `tat` is when the bucket is full again.
#[derive(Debug, Clone)]
pub(crate) struct BudgetKeys(pub(crate) [String; 2]);

impl BudgetKeys {
    /// A bucket's name is a host, or what a rule makes of one; it has no braces.
    pub(crate) fn new(namespace: &Namespace, bucket: &str) -> Self {
        let key = format!("{}:budget:{{{bucket}}}", namespace.0);
        Self([key.clone(), key + ":passages"])
    }
}

/// The keys of a pool's state, in the order in which scripts that move members take them.
///
/// | key | type | content |
/// |---|---|---|
/// | `meta` | hash | layout, mode, policy, limits, first and last fence, hold, whether it is loading, config version; `due`: no lease ends and nothing has cooled before it; `note` |
/// | `ready` | zset | id by the time since which it is available, or by share |
/// | `cooling` | zset | id by the time from which it may be leased |
/// | `leases` | zset | id by deadline |
/// | `former` | hash | id: assignments of a member that was removed |
/// | `requests` | hash | token: `fence:granted_at:cooldown:id`, or `cancelled:until`; `@id`: token; `note` |
/// | `cancelled` | zset | tokens that were given up, by the end of their tombstone |
/// | `parked` | hash | id: `disabled` or `quarantined:code` |
/// | `members` | zset | all ids at score 0, to list them in order |
/// | `uses` | zset | id by share, (assignments + 1/2) / weight: the lowest is at hand |
/// | `weights` | hash | id: weight, where it is not 1 |
/// | `strikes` | hash | id: `count:fence`, the pool's last fence when the last was added; `@id`: the last fence when it was enabled, in a shared pool |
///
/// Beside them are `orders` (hash, id: `disable`, `drain`, `remove` or `quarantine:code`, or one of
/// the first two with the last behind a colon; `*`: `pause`; `.`: a note), the channel `free` for
/// hints, `shun:site` (zset, id by the end of its rest; the only key that expires) and `audit`
/// (stream, the orders with who, config version, time and ids; about the last 10,000; it outlasts
/// the pool). Times are whole microseconds of the server's clock, so that what comes first within a
/// millisecond stays first. A `note` is a text so long that the server looks fields up by hash, and
/// not from end to end: with 200 leases the search would be three quarters of a batch's cost.
///
/// Owners are fields of `requests` beside the records, and no key of their own: one command fewer for
/// each lease. A record counts only while its endpoint points back to its token.
///
/// `orders` is read undeclared, for a role cannot declare a key that it may only read. So a server
/// does not see that a script needs it: on a node to which the rest of the pool has moved it would be
/// read as empty. Therefore its note: scripts that find none answer `NOORDERS` before they write.
/// If `orders` was deleted, the orders are lost: when they have been given again by hand,
/// `HSET <namespace>:{pool}:orders . note` opens the pool; else it is erased and set up after a loss.
pub(crate) const STATE: &[&str] = &[
    "meta",
    "ready",
    "cooling",
    "leases",
    "former",
    "requests",
    "cancelled",
    "parked",
    "members",
    "uses",
    "weights",
    "strikes",
];

const ORDERS: &str = "orders";
const SHUN: &str = "shun";
const FREE: &str = "free";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_pool_share_one_hash_tag() {
        let namespace = Namespace::new("lease").unwrap();
        let keys = PoolKeys::new(&namespace, &PoolName::new("vn").unwrap());
        assert_eq!(keys.state()[0], "lease:{vn}:meta");
        assert_eq!(keys.orders(), "lease:{vn}:orders");
        assert_eq!(keys.key("audit"), "lease:{vn}:audit");
        assert_eq!(keys.shun(&Site::parse("[::1]").unwrap()), "lease:{vn}:shun:[::1]");
    }

    #[test]
    fn keys_of_a_budget_share_one_hash_tag_which_is_not_the_pools() {
        let namespace = Namespace::new("lease").unwrap();
        let [bucket, passages] = BudgetKeys::new(&namespace, "a.test:8080").0;
        assert_eq!(bucket, "lease:budget:{a.test:8080}");
        assert_eq!(passages, "lease:budget:{a.test:8080}:passages");
    }

    #[test]
    fn a_namespace_cannot_change_the_hash_tag() {
        for bad in ["", "a:b", "{a}", "a b", "é", &"a".repeat(65)] {
            assert!(Namespace::new(bad).is_err(), "{bad:?}");
        }
        assert!(Namespace::new("prod.lease/1").is_ok());
    }
}
