//! What all commands have in common: the store, the pool, the inventory and who is asking.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use reqwest_lease::{
    AdminName, AdminReply, AdminRequest, LeaseStore as _, ListRequest, MemberState, Order,
    PoolName, RedisStore, RedisStoreBuilder, Snapshot,
};

use super::arguments::Common;
use super::exit::Code;
use super::failure::Failure;
use super::output::{Format, Report};
use super::shell::quoted;

/// The common settings of a call.
pub(crate) struct Context {
    common: Common,
}

impl Context {
    pub(crate) const fn new(common: Common) -> Self {
        Self { common }
    }

    pub(crate) fn format(&self) -> Format {
        self.common.output
    }

    pub(crate) fn print(&self, report: &Report) -> Result<(), Failure> {
        report.print(self.format())
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.common.namespace
    }

    pub(crate) fn pool(&self) -> Result<PoolName, Failure> {
        let missing = || Failure::usage("which pool? name it with --pool or LEASE_POOL");
        let name = self.common.pool.as_ref().ok_or_else(missing)?;
        PoolName::new(name)
            .map_err(|why| Failure::usage(format!("the pool's name is not valid: {why}")))
    }

    /// Who is asking: `--by`, else LEASE_BY, else the user who is logged in, if that is a name.
    pub(crate) fn by(&self) -> Result<Option<AdminName>, Failure> {
        match &self.common.by {
            Some(name) => AdminName::new(name)
                .map(Some)
                .map_err(|why| Failure::usage(format!("--by is not valid: {why}"))),
            None => Ok(std::env::var("USER").ok().and_then(|name| AdminName::new(name).ok())),
        }
    }

    /// A connection to the store.
    pub(crate) async fn store(&self) -> Result<RedisStore, Failure> {
        Ok(self.builder()?.build().await?)
    }

    /// The same before it connects.
    pub(crate) fn builder(&self) -> Result<RedisStoreBuilder, Failure> {
        let urls = self.urls()?;
        let mut urls = urls.split_whitespace().map(str::to_owned);
        let first = urls.next().ok_or_else(|| Failure::usage("the store's URL is empty"))?;
        let rest: Vec<String> = urls.collect();
        let builder = self.topology(first, rest)?;
        Ok(builder
            .namespace(self.namespace())
            .connect_timeout(CONNECT_WITHIN)
            .call_timeout(self.common.timeout))
    }

    fn topology(&self, first: String, rest: Vec<String>) -> Result<RedisStoreBuilder, Failure> {
        #[cfg(feature = "redis-cluster")]
        if self.common.cluster {
            return Ok(RedisStore::cluster(std::iter::once(first).chain(rest)));
        }
        #[cfg(feature = "redis-sentinel")]
        if let Some(service) = &self.common.sentinel {
            return Ok(RedisStore::sentinel(rest, service, first));
        }
        if rest.is_empty() {
            return Ok(RedisStore::builder(first));
        }
        Err(Failure::usage("the store has more than one URL, which is for clusters and Sentinels"))
    }

    /// The store's URL; it comes by no argument, for those can be seen by all.
    fn urls(&self) -> Result<String, Failure> {
        match &self.common.redis_url_file {
            Some(path) if path == Path::new("-") => {
                let mut text = String::new();
                let read = io::stdin().lock().read_to_string(&mut text);
                read.map_err(|error| Failure::usage(format!("standard input: {error}")))?;
                Ok(text)
            }
            Some(path) => fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display()))),
            None => std::env::var("LEASE_REDIS_URL").map_err(|_| {
                Failure::usage(
                    "where is the store? put its URL into LEASE_REDIS_URL, or into a file that \
                     --redis-url-file or LEASE_REDIS_URL_FILE names (- is standard input)",
                )
            }),
        }
    }

    pub(crate) fn inventory_path(&self) -> Option<&Path> {
        self.common.inventory.as_deref()
    }

    pub(crate) fn needed_inventory(&self, what_for: &str) -> Result<&Path, Failure> {
        self.inventory_path().ok_or_else(|| {
            Failure::usage(format!("{what_for} needs an inventory: --inventory or LEASE_INVENTORY"))
        })
    }

    /// Ids and labels of the inventory; no password is looked up.
    pub(crate) async fn labels(&self, what_for: &str) -> Result<Snapshot, Failure> {
        read_labels(self.needed_inventory(what_for)?).await
    }

    /// The same where it is only nice to have: one that cannot be read is a warning.
    pub(crate) async fn labels_if_any(&self) -> Option<Snapshot> {
        match read_labels(self.inventory_path()?).await {
            Ok(snapshot) => Some(snapshot),
            Err(failure) => {
                eprintln!("warning: {}", failure.message());
                None
            }
        }
    }

    /// Carries out an order in the name of who is asking.
    pub(crate) async fn order(
        &self,
        store: &RedisStore,
        order: Order,
        version: Option<u64>,
    ) -> Result<AdminReply, Failure> {
        let request =
            AdminRequest::new(self.pool()?, order).by(self.by()?).with_config_version(version);
        Ok(store.administer(request).await?)
    }

    /// Whether what needs it has been confirmed.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.common.yes
    }

    /// Asks before what cannot be taken back.
    pub(crate) fn confirm(&self, what: &str) -> Result<(), Failure> {
        if self.common.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::new(Code::REFUSED, format!("{what}: not confirmed"))
                .with_hint("--yes confirms it where nobody can be asked"));
        }
        eprint!("{what}? [y/N] ");
        io::stderr().flush()?;
        let mut answer = String::new();
        let _ = io::stdin().read_line(&mut answer);
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new(Code::REFUSED, "nothing was done")),
        }
    }

    /// The full name of a key of the pool.
    pub(crate) fn key(&self, name: &str) -> String {
        let pool = self.common.pool.as_deref().unwrap_or_default();
        format!("{}:{{{pool}}}:{name}", self.namespace())
    }

    /// A command that the reader may run, with the settings that this call was given.
    pub(crate) fn command(&self, command: &str) -> String {
        let mut line = format!("reqwest-lease {command}");
        if let Ok(pool) = self.pool() {
            line += &option("pool", pool.as_str());
        }
        if self.namespace() != "lease" {
            line += &option("namespace", self.namespace());
        }
        line
    }

    /// The same with the inventory.
    pub(crate) fn command_with_inventory(&self, command: &str) -> String {
        let path = self.inventory_path().unwrap_or(Path::new("FILE"));
        format!("{} --inventory {}", self.command(command), quoted(&path.to_string_lossy()))
    }
}

/// An option for a command to be copied, also with a value that looks like another.
fn option(name: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!(" --{name}{between}{}", quoted(value))
}

/// Ids and labels of an inventory file.
pub(crate) async fn read_labels(path: &Path) -> Result<Snapshot, Failure> {
    Ok(Snapshot::from_file_without_passwords(path).await?)
}

/// All members in order of their ids.
pub(crate) async fn members(
    store: &RedisStore,
    pool: &PoolName,
) -> Result<Vec<MemberState>, Failure> {
    let mut all: Vec<MemberState> = Vec::new();
    loop {
        let after = all.last().map(|member| member.endpoint.clone());
        let page = store.list(ListRequest::new(pool.clone(), after, PAGE)).await?;
        let last = page.len() < PAGE;
        all.extend(page);
        if last {
            return Ok(all);
        }
    }
}

const PAGE: usize = 1000;

/// Longer than a worker waits: who looks after a server in trouble has the patience.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
