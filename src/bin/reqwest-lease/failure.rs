//! Why a command ended without doing what it was for.

use std::io;
use std::process::ExitCode;

use reqwest_lease::{Error, InvalidName, Kind};

use super::exit::Code;
use super::output::note;

/// A sentence for people and a code for programs. It holds no secret.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::USAGE, message)
    }

    /// Somebody wanted it to end.
    pub(crate) fn interrupted() -> Self {
        Self::new(Code::FAILED, "interrupted")
    }

    /// With what it is about before it.
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// With what to do about it.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With what had been done before.
    pub(crate) fn after(mut self, what: &str) -> Self {
        self.message += &format!("; {what}");
        self
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Tells it, unless there is nothing to tell.
    pub(crate) fn tell(self) -> ExitCode {
        if self.code != Code::DONE {
            note(&format!("reqwest-lease: {}", self.message));
            if let Some(hint) = self.hint {
                note(&format!("hint: {hint}"));
            }
        }
        self.code.into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            Kind::Config | Kind::Inventory => Code::USAGE,
            Kind::StoreUnavailable | Kind::PoolWithoutOrders => Code::UNREACHABLE,
            Kind::StoreRefused
            | Kind::InvalidCall
            | Kind::PoolTooNew
            | Kind::PoolPaused
            | Kind::PoolLoading => Code::REFUSED,
            Kind::PoolUninitialised => Code::NOT_SET_UP,
            Kind::PoolExhausted | Kind::TimedOut | Kind::BudgetExceeded => Code::LATE,
            _ => Code::FAILED,
        };
        // The library names its orders as its callers write them.
        let failure = Self::new(code, error.to_string().replace("DestroyPool", "`destroy`"));
        match error.kind() {
            Kind::PoolUninitialised => {
                failure.with_hint("`reqwest-lease init` sets a pool up; `doctor` says what is left")
            }
            Kind::InvalidCall if failure.message.ends_with("has been set up before") => {
                failure.with_hint("`reqwest-lease sync` makes its members those of the inventory")
            }
            Kind::InvalidCall
                if failure.message.ends_with("only a paused pool can be destroyed") =>
            {
                failure
                    .with_hint("`reqwest-lease pause` pauses it; workers that still run then wait")
            }
            Kind::Inventory
                if failure.message.starts_with("the inventory file")
                    && failure.message.ends_with("does not exist") =>
            {
                failure.with_hint("`reqwest-lease inventory import` makes one of a list of proxies")
            }
            Kind::PoolWithoutOrders => {
                failure.with_hint("`reqwest-lease doctor` says what mends it")
            }
            Kind::PoolPaused => failure.with_hint("`reqwest-lease resume` ends a pause"),
            Kind::StoreUnavailable => {
                failure.with_hint("the store's address comes from LEASE_REDIS_URL or its file")
            }
            _ => failure,
        }
    }
}

impl From<InvalidName> for Failure {
    fn from(error: InvalidName) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<io::Error> for Failure {
    /// Of standard output: whoever reads it may stop when there is enough.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Code::DONE, ""),
            _ => Self::new(Code::FAILED, format!("cannot write the output: {error}")),
        }
    }
}

/// Tells what is wrong with the arguments, without what may be a secret in the wrong place.
pub(crate) fn of_arguments(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            Ok(()) => Code::DONE.into(),
            Err(error) => Failure::from(error).tell(),
        };
    }
    let mut text = error.render().to_string();
    let words = std::env::args_os().skip(1);
    let mut given: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    // What is shorter is no secret, and would be found in other words.
    given.retain(|argument| argument.len() > 3 && argument.contains([':', '@']));
    given.sort_by_key(|argument| std::cmp::Reverse(argument.len()));
    for argument in &given {
        text = text.replace(argument.as_str(), "<not shown>");
        if let Some((_, value)) = argument.split_once('=').filter(|(_, value)| value.len() > 3) {
            text = text.replace(value, "<not shown>");
        }
    }
    note(text.trim_end());
    Code::USAGE.into()
}
