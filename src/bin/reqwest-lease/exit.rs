//! What the program's end says.

use std::process::ExitCode;

/// An exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(u8);

impl Code {
    pub(crate) const DONE: Self = Self(0);
    pub(crate) const FAILED: Self = Self(1);
    pub(crate) const USAGE: Self = Self(2);
    pub(crate) const UNREACHABLE: Self = Self(3);
    pub(crate) const REFUSED: Self = Self(4);
    pub(crate) const NOT_SET_UP: Self = Self(5);
    pub(crate) const FINDINGS: Self = Self(6);
    pub(crate) const LATE: Self = Self(7);
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}

/// What each code means, for `--help` and the manual.
const MEANINGS: [(Code, &str); 8] = [
    (Code::DONE, "done, also when the reader of the output went away"),
    (Code::FAILED, "failed in another way"),
    (Code::USAGE, "an argument, a variable or the inventory is not valid"),
    (Code::UNREACHABLE, "the store could not be reached, or cannot serve now"),
    (Code::REFUSED, "refused: not allowed, not confirmed, or not possible as the pool is"),
    (Code::NOT_SET_UP, "the pool is not set up"),
    (
        Code::FINDINGS,
        "findings of doctor, inventory check and probe, differences of sync --dry-run",
    ),
    (Code::LATE, "not in time: no endpoint came free, or a drain has not ended"),
];

/// The table of codes as text.
pub(crate) fn table() -> String {
    MEANINGS.iter().map(|(code, meaning)| format!("  {}  {meaning}\n", code.0)).collect()
}
