//! What can be said on the command line.

use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "redis-cluster")]
use clap::builder::BoolishValueParser;
use clap::{Arg, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::output::Format;
use super::{
    acl, audit, bench, doctor, drain, exit, fetch, import, init, inventory, list, members, orders,
    probe, status, sync, time,
};

/// Sets up, shows, changes and repairs pools of leased proxy endpoints in Redis or Valkey.
///
/// The store's URL comes from LEASE_REDIS_URL or from a file, never by an argument, and is never
/// shown. Results go to standard output, all else to standard error.
#[derive(Debug, Parser)]
#[command(
    name = "reqwest-lease",
    version,
    after_long_help = after_help(),
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Settings that all commands take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// The pool
    #[arg(long, global = true, env = "LEASE_POOL", hide_env_values = true, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// What the names of all keys begin with
    #[arg(
        long,
        global = true,
        env = "LEASE_NAMESPACE",
        hide_env_values = true,
        default_value = "lease",
        value_name = "NAME"
    )]
    pub(crate) namespace: String,
    /// The inventory file
    #[arg(
        long,
        global = true,
        env = "LEASE_INVENTORY",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) inventory: Option<PathBuf>,
    /// A file with the store's URL; - is standard input
    #[arg(
        long,
        global = true,
        env = "LEASE_REDIS_URL_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) redis_url_file: Option<PathBuf>,
    /// The store is a cluster, of which the URL names one node, or some with blanks between them
    #[cfg(feature = "redis-cluster")]
    #[arg(
        long,
        global = true,
        env = "LEASE_CLUSTER",
        hide_env_values = true,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) cluster: bool,
    /// The name that Sentinels watch the primary by; their URLs stand behind that of the primary
    #[cfg(feature = "redis-sentinel")]
    #[arg(
        long,
        global = true,
        env = "LEASE_SENTINEL",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub(crate) sentinel: Option<String>,
    /// Longest wait for one answer of the store
    #[arg(
        long,
        global = true,
        env = "LEASE_TIMEOUT",
        hide_env_values = true,
        default_value = "5s",
        value_parser = time::parse_some,
        value_name = "TIME"
    )]
    pub(crate) timeout: Duration,
    /// How results are written
    #[arg(
        long,
        global = true,
        env = "LEASE_OUTPUT",
        hide_env_values = true,
        value_enum,
        default_value_t = Format::Table,
        value_name = "FORM"
    )]
    pub(crate) output: Format,
    /// Who gives orders, for the trail; default: $USER
    #[arg(long, global = true, env = "LEASE_BY", hide_env_values = true, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Confirms what cannot be taken back
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Init),
    Sync(sync::Sync),
    Add(members::Add),
    Remove(members::Remove),
    Disable(orders::Disable),
    Enable(orders::Enable),
    Quarantine(orders::Quarantine),
    Drain(drain::Drain),
    /// Grant nothing until resume; leases go on
    Pause,
    Resume(orders::Resume),
    List(list::List),
    Status(status::Status),
    Audit(audit::Audit),
    /// Take back leases that have run out
    Reap,
    Probe(probe::Probe),
    Doctor(doctor::Doctor),
    Acl(acl::Acl),
    Bench(bench::Bench),
    /// Look after inventory files
    #[command(subcommand)]
    Inventory(InventoryCommand),
    Fetch(fetch::Fetch),
    /// Erase a paused pool, or what is left of a lost one; its trail of orders stays
    Destroy,
    /// Print a script of completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for each command
    Man {
        /// Where to write them
        #[arg(value_name = "DIRECTORY")]
        directory: Option<PathBuf>,
    },
}

/// What to do with an inventory.
#[derive(Debug, Subcommand)]
pub(crate) enum InventoryCommand {
    Check(inventory::Check),
    Import(Box<import::Import>),
}

/// Reads what the call was given. A variable that is empty is none.
pub(crate) fn read() -> Result<Arguments, clap::Error> {
    let set = |arg: &Arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        value.is_some_and(|value| !value.is_empty())
    };
    let command = Arguments::command();
    let command = command.mut_args(|arg| if set(&arg) { arg } else { arg.env(None::<&str>) });
    Arguments::from_arg_matches(&command.try_get_matches()?)
}

fn after_help() -> String {
    format!(
        "Exit codes:\n{}\nEach of the common options has a variable that begins with LEASE_. The \
         store's URL is like\nredis://user:password@host:6379/0.",
        exit::table()
    )
}
