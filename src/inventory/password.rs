//! Passwords, written in the inventory or looked up where it points to.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use toml::de::DeValue;

use crate::secret::Secret;

use super::fault::Fault;
use super::file;
use super::table::{Found, Table, wrong_type};

/// Looks up a variable; a parameter, so that tests need not change the process's environment.
pub(super) type Environment = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// Where the passwords are that an inventory only names.
pub(super) struct Lookup {
    /// What relative password files resolve against.
    pub(super) directory: PathBuf,
    pub(super) environment: Environment,
    /// Every password that is elsewhere is taken to be empty, and nothing is looked up.
    pub(super) withheld: bool,
    /// The password files that were looked up.
    pub(super) files: RefCell<Vec<PathBuf>>,
}

pub(super) struct Password {
    pub(super) secret: Secret,
    pub(super) is_inline: bool,
}

impl Lookup {
    pub(super) fn new(directory: PathBuf, environment: Environment) -> Self {
        Self { directory, environment, withheld: false, files: RefCell::default() }
    }

    /// Takes a `password` value; a file that it names is read here, which blocks.
    pub(super) fn password(&self, found: Found<&DeValue<'_>>) -> Result<Password, Fault> {
        match found.value {
            DeValue::String(text) => {
                Ok(Password { secret: Secret::new(&**text), is_inline: !text.is_empty() })
            }
            DeValue::Table(entries) => {
                let secret = self.reference(Table::new(found.at, entries))?;
                Ok(Password { secret, is_inline: false })
            }
            _ => Err(wrong_type("password", "a string, { env = .. } or { file = .. }", found)),
        }
    }

    fn reference(&self, table: Table<'_>) -> Result<Secret, Fault> {
        table.allow_only(&["env", "file"])?;
        match (table.text("env")?, table.text("file")?) {
            (Some(name), None) => self.variable(name),
            (None, Some(path)) => self.file(path),
            (Some(_), Some(file)) => {
                Err(Fault::new(file.at, "`password` has both `env` and `file`; give one"))
            }
            (None, None) => Err(Fault::new(table.at, "`password` must have `env` or `file`")),
        }
    }

    fn variable(&self, name: Found<&str>) -> Result<Secret, Fault> {
        if name.value.is_empty() {
            return Err(Fault::new(name.at, "`env` must name a variable"));
        }
        if self.withheld {
            return Ok(Secret::new(""));
        }
        let refuse = |why: &str| {
            Fault::new(name.at, format!("the environment variable {} {why}", Variable(name.value)))
        };
        let value = (self.environment)(name.value).ok_or_else(|| refuse("is not set"))?;
        // What into_string gives back on failure is the password.
        let value = value.into_string().map_err(|_| refuse("is not UTF-8"))?;
        match value.is_empty() {
            true => Err(refuse("is empty")),
            false => Ok(Secret::new(value)),
        }
    }

    fn file(&self, path: Found<&str>) -> Result<Secret, Fault> {
        if path.value.is_empty() {
            return Err(Fault::new(path.at, "`file` must name a file"));
        }
        if self.withheld {
            return Ok(Secret::new(""));
        }
        let refuse = |why: &str| {
            Fault::new(path.at, format!("the password file {} {why}", FileName(path.value)))
        };
        let place = self.directory.join(path.value);
        self.files.borrow_mut().push(place.clone());
        let text = file::read_text(&place, MAX_PASSWORD_FILE)
            .map_err(|error| refuse(&error.why).with_source(error.source))?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let password = line.strip_suffix('\r').unwrap_or(line);
        match password {
            "" => Err(refuse("is empty")),
            _ if password.contains(char::is_control) => {
                Err(refuse("contains control characters, or more than one line"))
            }
            _ => Ok(Secret::new(password)),
        }
    }
}

/// Far beyond any password.
const MAX_PASSWORD_FILE: u64 = 64 * 1024;

/// Longest name that a message repeats, in bytes.
const MAX_SHOWN: usize = 255;

/// The name of a variable, if it looks like one: a password may have been put in its place.
struct Variable<'a>(&'a str);

impl fmt::Display for Variable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        match self.0.len() <= MAX_SHOWN && self.0.bytes().all(is_plain) {
            true => f.write_str(self.0),
            false => f.write_str("named here"),
        }
    }
}

/// The name of a file, if it looks like one.
struct FileName<'a>(&'a str);

impl fmt::Display for FileName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_alphanumeric() || " ._-/\\".contains(c);
        match self.0.len() <= MAX_SHOWN && self.0.chars().all(is_plain) {
            true => write!(f, "{:?}", self.0),
            false => f.write_str("named here"),
        }
    }
}
