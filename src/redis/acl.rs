//! The roles of worker, administrator and observer, as the server's access rules.

use std::fmt::Write as _;

/// Whom a user of the server is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
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
    /// The command that makes `user` one of this role.
    ///
    /// It sets no password and leaves the user's own: without one nobody can log in as `user`.
    /// `namespace` and `user` have been checked: they hold no blanks and no pattern.
    pub(crate) fn set_user(self, user: &str, namespace: &str) -> String {
        let mut line =
            format!("ACL SETUSER {user} on clearselectors resetkeys resetchannels -@all");
        match self {
            Self::Worker => {
                keys(&mut line, "~", namespace, &[SHARED, SECRET]);
                keys(&mut line, "%R~", namespace, &[&["orders"]]);
                let _ = write!(line, " ~{namespace}:budget:* &{namespace}:*");
                commands(&mut line, &[CONNECT, RUN, READ, WRITE]);
            }
            Self::Administrator => {
                let _ = write!(line, " ~{namespace}:* &{namespace}:*");
                commands(&mut line, &[CONNECT, RUN, RUN_READING, READ, WRITE, AUDIT]);
            }
            Self::Observer => {
                keys(&mut line, "%R~", namespace, &[SHARED, &["orders", "audit"]]);
                let _ = write!(line, " %R~{namespace}:budget:*");
                commands(
                    &mut line,
                    &[CONNECT, RUN_READING, READ, &["xlen", "xrange", "xrevrange"]],
                );
            }
        }
        line
    }
}

fn keys(line: &mut String, access: &str, namespace: &str, names: &[&[&str]]) {
    for name in names.iter().copied().flatten() {
        let _ = write!(line, " {access}{namespace}:{{*}}:{name}");
    }
}

fn commands(line: &mut String, words: &[&[&str]]) {
    for word in words.iter().copied().flatten() {
        let _ = write!(line, " +{word}");
    }
}

/// Keys of a pool that no role but the worker's needs to be kept from.
const SHARED: &[&str] =
    &["meta", "ready", "cooling", "leases", "parked", "uses", "strikes", "shun:*"];

/// Keys of a pool with tokens in them.
const SECRET: &[&str] = &["owners", "requests", "cancelled"];

const CONNECT: &[&str] = &["ping", "select", "info", "time"];
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
    "pexpire",
    "hset",
    "hsetnx",
    "hdel",
    "hincrby",
    "zadd",
    "zrem",
    "zincrby",
    "zremrangebyscore",
    "zremrangebyrank",
    "publish",
    "subscribe",
    "unsubscribe",
];

const AUDIT: &[&str] = &["xadd", "xlen", "xrange", "xrevrange", "xtrim"];
