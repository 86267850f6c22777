//! What an error of the server or its connection means.

use std::borrow::Cow;
use std::fmt;

use redis::{ErrorKind, RedisError};

use super::words::code;
use crate::error::{Error, Kind};

/// Why a call failed, for the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The script itself threw; the code is one of ours.
    Script {
        /// The first word of the error.
        code: String,
    },
    /// Another time it may work.
    Unavailable {
        /// What is wrong, for people.
        message: &'static str,
        /// Whether the call may have taken place, or may still.
        may_have_run: bool,
    },
    /// The pool's orders are not where the pool is.
    WithoutOrders,
    /// It will not work until somebody changes something.
    Refused {
        /// What is wrong, for people.
        message: Cow<'static, str>,
        /// Whether some of the call may have taken place.
        may_have_run: bool,
    },
}

/// A fault and what the holder does about it.
#[derive(Clone)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    pub(crate) remedy: Remedy,
}

/// What to do after a failure.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Nothing; it is the caller's.
    Nothing,
    /// Send the script's source.
    SendSource,
    /// Wait a little and ask again.
    Wait,
    /// The same on a cluster's node, to which the rest of a slot may be on its way.
    AwaitSlot,
    /// Leave the connection and ask the server that is primary now; nothing ran.
    Move,
    /// Leave the connection, wait a little and ask again.
    MoveAndWait,
    /// Leave the connection.
    Leave,
    /// Ask another node of a cluster; nothing was sent.
    Elsewhere,
    /// Ask the node that the cluster names; nothing ran.
    Follow(Redirect),
}

/// Where a cluster's node sends a call on to.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// Empty for the host that was asked.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// For this call alone, while the slot moves.
    pub(crate) once: bool,
}

impl Fault {
    pub(crate) fn unavailable(message: &'static str) -> Self {
        Self::Unavailable { message, may_have_run: false }
    }

    pub(crate) fn lost(message: &'static str) -> Self {
        Self::Unavailable { message, may_have_run: true }
    }

    pub(crate) fn refused(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused { message: message.into(), may_have_run: false }
    }

    pub(crate) fn with(self, remedy: Remedy) -> Failure {
        Failure { fault: self, remedy }
    }

    pub(crate) fn with_nothing(self) -> Failure {
        self.with(Remedy::Nothing)
    }

    /// The same fault for a call that was not even sent.
    pub(crate) fn not_sent(self) -> Self {
        match self {
            Self::Unavailable { message, .. } => Self::unavailable(message),
            Self::Refused { message, .. } => Self::refused(message),
            other @ (Self::Script { .. } | Self::WithoutOrders) => other,
        }
    }
}

impl Failure {
    /// Sorts an error by what ran and what helps.
    pub(crate) fn of(error: &RedisError) -> Self {
        match (error.code(), error.kind()) {
            (Some(code @ ("MOVED" | "ASK")), _) => {
                let remedy = match error.redirect_node().and_then(|(node, _)| node.rsplit_once(':'))
                {
                    Some((host, port)) => redirect(host, port, code == "ASK"),
                    None => Remedy::Nothing,
                };
                Fault::refused("the store is a cluster, but is not used as one").with(remedy)
            }
            (Some(code), _) => Self::of_reply(code, error.detail().unwrap_or_default()),
            (None, ErrorKind::Io) => {
                Fault::lost("the connection to the store was lost").with(Remedy::Leave)
            }
            (None, _) => Fault::lost("the store's answer makes no sense").with(Remedy::Leave),
        }
    }

    fn of_reply(code: &str, detail: &str) -> Self {
        let (message, remedy) = match code {
            "NOSCRIPT" => ("the store does not know the script", Remedy::SendSource),
            "READONLY" => ("the store is read-only", Remedy::Move),
            "MASTERDOWN" => ("the store has lost its primary", Remedy::MoveAndWait),
            "LOADING" => ("the store is loading its data", Remedy::Wait),
            "CLUSTERDOWN" => ("the store's cluster is down", Remedy::Wait),
            "TRYAGAIN" => ("the store is moving its keys", Remedy::Wait),
            code::NOORDERS => return Fault::WithoutOrders.with(Remedy::AwaitSlot),
            "BUSY" => ("the store is busy with a long script", Remedy::Wait),
            "OOM" => ("the store is out of memory", Remedy::Nothing),
            "MISCONF" => ("the store cannot save its data", Remedy::Nothing),
            "NOREPLICAS" => ("the store has too few replicas", Remedy::Nothing),
            "ERR" if detail.contains("Script killed by user") => {
                ("an operator ended the store's script", Remedy::Nothing)
            }
            // A key of the slot that is elsewhere already, met by a script that did not declare it.
            "ERR" if detail.contains("non local key") => {
                ("the store is moving its keys", Remedy::Wait)
            }
            "ERR" if detail.contains("max number of clients") => {
                ("the store has too many clients", Remedy::Leave)
            }
            _ => return Self::of_refusal(code, detail),
        };
        Fault::unavailable(message).with(remedy)
    }

    fn of_refusal(code: &str, detail: &str) -> Self {
        let (message, may_have_run, remedy) = match code {
            "NOAUTH" => ("the store asks for credentials", false, Remedy::Leave),
            "WRONGPASS" => ("the store refused the credentials", false, Remedy::Leave),
            code::NOPERM => return Self::denied(detail),
            // Inside a script a missing permission has no code of its own.
            "ERR" if denies(detail) => ("the store's user may not do this", true, Remedy::Nothing),
            "ERR" if detail.contains("compiling script") => {
                ("the store cannot compile the script", false, Remedy::Nothing)
            }
            "ERR" => ("the store failed at the call", true, Remedy::Nothing),
            code::WRONGTYPE => ("a key of the store holds something else", true, Remedy::Nothing),
            "CROSSSLOT" => ("the store's cluster cannot join these keys", false, Remedy::Nothing),
            "NOPROTO" | "EXECABORT" | "DENIED" | "UNKILLABLE" | "NOTBUSY" | "IOERR" => {
                ("the store refused the call", true, Remedy::Nothing)
            }
            _ => return Fault::Script { code: code.to_owned() }.with(Remedy::Nothing),
        };
        Fault::Refused { message: message.into(), may_have_run }.with(remedy)
    }

    /// A call that was refused as a whole: by the server, or by a script of ours, which names the
    /// command that its user lacks.
    fn denied(detail: &str) -> Self {
        let command = detail.split(' ').next().filter(|word| is_plain(word) && !word.is_empty());
        let may_not = |what: &str| Fault::refused(format!("the store's user may not {what}"));
        command
            .map_or_else(|| may_not("do this"), |name| may_not(&format!("run {name}")))
            .with_nothing()
    }
}

fn redirect(host: &str, port: &str, once: bool) -> Remedy {
    let host = host.trim_matches(['[', ']']).to_owned();
    port.parse().map_or(Remedy::Nothing, |port| Remedy::Follow(Redirect { host, port, once }))
}

/// The words for a missing permission in Redis 7 and in Valkey.
fn denies(detail: &str) -> bool {
    ["permission", "ACL failure", "can't run this command", "can't access"]
        .iter()
        .any(|words| detail.contains(words))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable { message, .. } => f.write_str(message),
            Self::WithoutOrders => {
                f.write_str("the pool's standing orders are on the move, or lost")
            }
            Self::Refused { message, .. } => f.write_str(message),
            Self::Script { code } if is_plain(code) => {
                write!(f, "the store's script failed: {code}")
            }
            Self::Script { .. } => f.write_str("the store's script failed"),
        }
    }
}

/// A code that is one, and not some text of a server.
fn is_plain(code: &str) -> bool {
    code.len() <= 40 && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let message = fault.to_string();
        let (kind, may_have_run) = match fault {
            Fault::Script { .. } => (Kind::StoreRefused, true),
            Fault::WithoutOrders => (Kind::PoolWithoutOrders, false),
            Fault::Unavailable { may_have_run, .. } => (Kind::StoreUnavailable, may_have_run),
            Fault::Refused { may_have_run, .. } => (Kind::StoreRefused, may_have_run),
        };
        let error = Self::new(kind, message);
        if may_have_run { error } else { error.without_effect() }
    }
}
