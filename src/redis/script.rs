//! A script and one call of it.

use std::sync::OnceLock;

use redis::Cmd;

/// A script, by its source.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    sha1: OnceLock<String>,
}

/// An argument as it goes over the wire.
pub(crate) type Arg = Vec<u8>;

/// One call of a script.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) script: &'a Script,
    pub(crate) keys: &'a [String],
    pub(crate) args: &'a [Arg],
}

impl Script {
    pub(crate) const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source, sha1: OnceLock::new() }
    }

    /// The name that the server knows it by.
    pub(crate) fn sha1(&self) -> &str {
        self.sha1.get_or_init(|| redis::Script::new(self.source).get_hash().to_owned())
    }

    /// Whether it says of itself that it writes nothing: then a user who may only read can run
    /// it, for the read-only calls declare its keys as read.
    fn only_reads(&self) -> bool {
        self.source.lines().next().is_some_and(|line| {
            line.starts_with("#!") && line.split([' ', '=', ',']).any(|word| word == "no-writes")
        })
    }
}

impl Call<'_> {
    /// The call by the script's hash.
    pub(crate) fn by_hash(&self) -> Cmd {
        let word = if self.script.only_reads() { "EVALSHA_RO" } else { "EVALSHA" };
        self.command(word, self.script.sha1())
    }

    /// The call with the script's source, for a server that does not know it.
    pub(crate) fn by_source(&self) -> Cmd {
        let word = if self.script.only_reads() { "EVAL_RO" } else { "EVAL" };
        self.command(word, self.script.source)
    }

    fn command(&self, word: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(word);
        command.arg(script).arg(self.keys.len()).arg(self.keys);
        for arg in self.args {
            command.arg(&arg[..]);
        }
        command
    }
}
