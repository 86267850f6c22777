//! The arguments of a call.

use std::time::Duration;

use super::Command;
use super::script::Arg;
use crate::secret::Token;

/// Arguments in the order in which a script takes them, each under its name in the script's
/// header. Builds with debug assertions compare the two.
pub(crate) struct Arguments {
    command: &'static Command,
    args: Vec<Arg>,
    #[cfg(debug_assertions)]
    names: Vec<&'static str>,
}

impl Arguments {
    pub(crate) fn of(command: &'static Command) -> Self {
        Self {
            command,
            args: Vec::with_capacity(8),
            #[cfg(debug_assertions)]
            names: Vec::new(),
        }
    }

    /// The script that they are for.
    pub(crate) fn command(&self) -> &'static Command {
        self.command
    }

    pub(crate) fn text(self, name: &'static str, text: &str) -> Self {
        self.push(name, text.as_bytes().to_vec())
    }

    pub(crate) fn number(self, name: &'static str, number: u64) -> Self {
        self.push(name, number.to_string().into_bytes())
    }

    /// Whole microseconds, rounded up; what is longer than 142 years stands for never.
    pub(crate) fn micros(self, name: &'static str, duration: Duration) -> Self {
        let micros = duration.as_nanos().div_ceil(1000);
        self.number(name, u64::try_from(micros).unwrap_or(LONGEST).min(LONGEST))
    }

    /// In hexadecimal digits.
    pub(crate) fn token(self, name: &'static str, token: &Token) -> Self {
        let digit = |half: u8| DIGITS[usize::from(half)];
        let hex = token.expose().into_iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        let hex = hex.collect();
        self.push(name, hex)
    }

    fn push(mut self, name: &'static str, arg: Arg) -> Self {
        self.args.push(arg);
        #[cfg(debug_assertions)]
        self.names.push(name);
        #[cfg(not(debug_assertions))]
        let _ = name;
        self
    }

    /// The script and its arguments.
    pub(crate) fn finish(self) -> (&'static Command, Vec<Arg>) {
        #[cfg(debug_assertions)]
        assert!(
            self.command.takes(&self.names),
            "{} takes {}, not {:?}",
            self.command.script.name,
            self.command.args,
            self.names
        );
        (self.command, self.args)
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// 2^52 microseconds, the longest time that scripts take.
const LONGEST: u64 = 1 << 52;
