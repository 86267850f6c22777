//! The roles of worker, administrator and observer, as the server's access rules.

/// Whom a user of the Redis server is for.
///
/// ```
/// use reqwest_lease::RedisRole;
///
/// let command = RedisRole::Worker.set_user("crawler", "lease");
/// assert!(command.starts_with("ACL SETUSER crawler on "));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Leases: reads an administrator's orders and cannot write them, nor the audit trail.
    ///
    /// This keeps orders safe from honest workers' mistakes. A worker that means harm can still
    /// spoil the pool's other keys.
    Worker,
    /// Everything in the namespace, and nothing outside.
    Administrator,
    /// Runs scripts that write nothing, and sees no tokens.
    Observer,
}

impl Role {
    /// The command that makes `user` one of this role, as `redis-cli` and ACL files take it.
    ///
    /// It sets no password and leaves the user's own: a new user cannot log in before it has one,
    /// and one that needs none (`nopass`, as `default` has it) still needs none.
    pub fn set_user(self, user: &str, namespace: &str) -> String {
        let words = ["ACL", "SETUSER", user].map(str::to_owned).into_iter();
        words.chain(self.rules(namespace)).map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// The rules one by one. They replace those that a user has, but for passwords.
    pub fn rules(self, namespace: &str) -> Vec<String> {
        let space = escaped(namespace);
        let pool = |access: &str, names: &[&[&str]]| -> Vec<String> {
            let names = names.iter().copied().flatten();
            names.map(|name| format!("{access}{space}:{{*}}:{name}")).collect()
        };
        let one = |access: &str, rest: &str| vec![format!("{access}{space}:{rest}")];
        let (patterns, commands): (_, &[&[&str]]) = match self {
            Self::Worker => (
                [
                    pool("~", &[STATE, TOKENS]),
                    pool("%R~", &[ORDERS]),
                    one("~", "budget:*"),
                    one("&", "*"),
                ]
                .concat(),
                &[CONNECT, RUN, RUN_READING, READ, WRITE],
            ),
            Self::Administrator => (
                [one("~", "*"), one("&", "*")].concat(),
                &[CONNECT, RUN, RUN_READING, READ, WRITE, READ_AUDIT, WRITE_AUDIT],
            ),
            Self::Observer => (
                [pool("%R~", &[STATE, ORDERS, AUDIT]), one("%R~", "budget:*")].concat(),
                &[CONNECT, RUN_READING, READ, READ_AUDIT],
            ),
        };
        let start = ["on", "clearselectors", "resetkeys", "resetchannels", "-@all"];
        let allowed = commands.iter().copied().flatten().map(|word| format!("+{word}"));
        start.map(str::to_owned).into_iter().chain(patterns).chain(allowed).collect()
    }
}

/// A namespace as a pattern that fits nothing else.
fn escaped(namespace: &str) -> String {
    let special = |character| matches!(character, '*' | '?' | '[' | '\\');
    let escape = |character| special(character).then_some('\\').into_iter().chain([character]);
    namespace.chars().flat_map(escape).collect()
}

/// A word as the server's own reader of lines takes it.
fn quoted(word: String) -> String {
    if !word.contains(['"', '\'', '\\', ' ', '\t', '\r', '\n']) && !word.is_empty() {
        return word;
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Keys of a pool's state.
const STATE: &[&str] = &[
    "meta", "ready", "cooling", "leases", "parked", "members", "uses", "weights", "strikes",
    "former", "shun:*",
];

/// Keys of its state that hold tokens.
const TOKENS: &[&str] = &["requests", "cancelled"];

const ORDERS: &[&str] = &["orders"];
const AUDIT: &[&str] = &["audit"];

const CONNECT: &[&str] = &["asking", "ping", "select", "info", "time"];
const RUN: &[&str] = &["evalsha", "eval"];
const RUN_READING: &[&str] = &["evalsha_ro", "eval_ro"];

const READ: &[&str] = &[
    "exists",
    "type",
    "get",
    "pttl",
    "hget",
    "hmget",
    "hgetall",
    "hvals",
    "hlen",
    "hexists",
    "hscan",
    "zscore",
    "zmscore",
    "zcard",
    "zcount",
    "zrange",
    "zrangebyscore",
    "zrank",
    "zscan",
];

const WRITE: &[&str] = &[
    "set",
    "del",
    "unlink",
    "pexpire",
    "pexpireat",
    "hset",
    "hsetnx",
    "hdel",
    "hincrby",
    "zadd",
    "zrem",
    "zremrangebyscore",
    "zremrangebyrank",
    "spublish",
    "ssubscribe",
    "sunsubscribe",
];

const READ_AUDIT: &[&str] = &["xlen", "xrange", "xrevrange"];
const WRITE_AUDIT: &[&str] = &["xadd", "xtrim"];
