//! `inventory import`: lists of proxies as inventories.

mod files;
mod line;
mod secrets;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use reqwest_lease::{Endpoint, EndpointId, Scheme};
use serde_json::json;

use self::line::Proxy;
use self::secrets::Keeper;
use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::output::{Report, count, note, some, write};

/// Make an inventory of a list of proxies
///
/// Makes an inventory of a list with one proxy a line: host:port, host:port:user:password,
/// user:password:host:port, user:password@host:port, host:port@user:password or a URL. Lines that
/// begin with # are left out, and what follows a blank and #. Passwords go to files or variables of
/// their own, and are never printed.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The list; without it, or with -, standard input
    #[arg(value_name = "LIST")]
    list: Option<PathBuf>,
    /// Where the inventory goes; default: standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Put passwords into files of this directory
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "env_file")]
    secrets: Option<PathBuf>,
    /// Put passwords into variables, which this file sets for a shell (set -a; . FILE) or systemd
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// What ids begin with
    #[arg(long, default_value = "p", value_name = "WORD")]
    prefix: String,
    /// How proxies are spoken to whose line does not say it
    #[arg(long, default_value = "http", value_name = "SCHEME")]
    scheme: String,
    /// The provider of all of them
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The group of all of them
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// A tag of all of them; can be repeated
    #[arg(long, value_name = "NAME")]
    tag: Vec<String>,
    /// Write over files that are there
    #[arg(long)]
    force: bool,
}

impl Import {
    pub(crate) fn run(self, context: &Context) -> Result<Code, Failure> {
        let scheme = Scheme::parse(&self.scheme)
            .ok_or_else(|| Failure::usage("--scheme is none that proxies are spoken to in"))?;
        let (proxies, again) = line::once(line::parse_all(&self.read()?, scheme)?);
        if !again.is_empty() {
            note(&format!("warning: lines that repeat others are left out: {}", some(&again)));
        }
        let ids = self.ids(proxies.len())?;
        let mut keeper = self.keeper(&proxies)?;
        let mut toml = String::from("version = 1\n");
        for (id, (number, proxy)) in ids.iter().zip(&proxies) {
            check(id, *number, proxy)?;
            self.entry(&mut toml, id, proxy, &mut keeper);
        }
        let mut files = keeper.written();
        if let Some(path) = &self.to {
            files.push((path.clone(), toml.clone()));
        }
        files::write_all(&files, keeper.directory(), self.force)?;
        self.tell(context, &toml, proxies.len(), keeper.number(), &again)
    }

    /// The inventory is the result, if it has gone to no file.
    fn tell(
        &self,
        context: &Context,
        toml: &str,
        endpoints: usize,
        passwords: usize,
        again: &[usize],
    ) -> Result<Code, Failure> {
        let line = format!("{}, {}", count(endpoints, "endpoint"), count(passwords, "password"));
        if self.to.is_none() {
            write(toml)?;
            note(&line);
        } else {
            let json =
                json!({"endpoints": endpoints, "passwords": passwords, "left_out": again.len()});
            context.print(&Report::new(json).line(line))?;
        }
        Ok(Code::DONE)
    }

    fn read(&self) -> Result<String, Failure> {
        let Some(path) = self.list.as_deref().filter(|path| *path != Path::new("-")) else {
            let mut text = String::new();
            let read = io::stdin().lock().read_to_string(&mut text);
            read.map_err(|error| Failure::usage(format!("standard input: {error}")))?;
            return Ok(text);
        };
        fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }

    fn ids(&self, number: usize) -> Result<Vec<EndpointId>, Failure> {
        let width = number.to_string().len().max(3);
        let id = |nth| EndpointId::new(format!("{}-{nth:0width$}", self.prefix));
        let ids: Result<Vec<_>, _> = (1..=number).map(id).collect();
        ids.map_err(|why| Failure::usage(format!("--prefix makes no valid ids: {why}")))
    }

    fn keeper(&self, proxies: &[(usize, Proxy)]) -> Result<Keeper, Failure> {
        match (&self.secrets, &self.env_file) {
            (Some(directory), _) => Ok(Keeper::files(directory, self.to.as_deref())),
            (None, Some(path)) => Ok(Keeper::variables(path)),
            (None, None) if proxies.iter().all(|(_, proxy)| proxy.login.is_none()) => {
                Ok(Keeper::nothing())
            }
            (None, None) => Err(Failure::usage(
                "the list has passwords: say where they go, with --secrets DIRECTORY or --env-file \
                 FILE",
            )),
        }
    }

    fn entry(&self, toml: &mut String, id: &EndpointId, proxy: &Proxy, keeper: &mut Keeper) {
        let mut line = |key: &str, value: String| {
            let _ = writeln!(toml, "{key} = {value}");
        };
        line("\n[[endpoint]]\nid", quoted(id.as_str()));
        line("url", quoted(&proxy.url()));
        if let Some((user, password)) = &proxy.login {
            line("username", quoted(user));
            line("password", keeper.keep(id, password));
        }
        if let Some(provider) = &self.provider {
            line("provider", quoted(provider));
        }
        if let Some(group) = &self.group {
            line("group", quoted(group));
        }
        if !self.tag.is_empty() {
            let tags: Vec<_> = self.tag.iter().map(|tag| quoted(tag)).collect();
            line("tags", format!("[{}]", tags.join(", ")));
        }
    }
}

/// Whether an endpoint can be made of it; says why not without repeating the line.
fn check(id: &EndpointId, number: usize, proxy: &Proxy) -> Result<(), Failure> {
    let login = proxy.login.as_ref().map(|(user, word)| (user.as_str(), word.as_str()));
    match Endpoint::new(id.clone(), &proxy.url(), login) {
        Ok(_) => Ok(()),
        Err(why) => Err(Failure::usage(format!("line {number} of the list: {why}"))),
    }
}

/// Text as TOML has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}
