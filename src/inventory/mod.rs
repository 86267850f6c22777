//! The managed list of endpoints: where it comes from, what it holds, how it is read again.

mod document;
mod entry;
mod fault;
mod file;
mod hint;
mod lines;
mod password;
mod roster;
mod snapshot;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod toml_source;
mod warning;
#[cfg(feature = "watch")]
mod watching;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::endpoint::Endpoint;
use crate::error::Error;

pub use self::snapshot::{Reloaded, Snapshot};
pub use self::source::InventorySource;
pub use self::warning::{Concern, Warning};

use self::toml_source::TomlSource;
#[cfg(feature = "watch")]
pub(crate) use self::watching::{Files, Happened};

/// The endpoints that this process knows: ids with their proxy address, credentials and labels.
///
/// It is not the pool: the pool knows ids only and decides who may use which; the inventory says
/// what an id stands for. A handle is cheap to clone and all clones see the same reloads.
/// `Debug` shows counts only.
///
/// # Examples
/// ```
/// use reqwest_lease::{EndpointId, Inventory};
///
/// let inventory = Inventory::from_toml(
///     r#"
///     version = 7
///
///     [[endpoint]]
///     id = "vn-a01"
///     url = "http://gw1.example.net:8080"
///
///     [[endpoint]]
///     id = "gw"
///     url = "http://gw2.example.net:8080"
///     username = "acct-session-{session}"
///     sessions = 2
///     "#,
/// )?;
/// let snapshot = inventory.snapshot();
/// let ids: Vec<_> = snapshot.iter().map(|endpoint| endpoint.id().as_str()).collect();
/// assert_eq!(ids, ["gw_s1", "gw_s2", "vn-a01"]);
/// assert_eq!(snapshot.version(), Some(7));
/// # Ok::<(), reqwest_lease::Error>(())
/// ```
#[derive(Clone)]
pub struct Inventory(Arc<Shared>);

struct Shared {
    source: Box<dyn InventorySource>,
    snapshot: RwLock<Arc<Snapshot>>,
    generation: AtomicU64,
    /// One reload at a time, so that an older answer never replaces a newer one.
    reloading: tokio::sync::Mutex<()>,
}

impl Inventory {
    /// Reads an inventory from TOML text; [`reload`](Self::reload) looks the passwords up again.
    ///
    /// Password files are read at once, and relative ones resolve against the working directory,
    /// so inside async code [`from_file`](Self::from_file) is the better one.
    ///
    /// ```
    /// use reqwest_lease::Inventory;
    ///
    /// let error = Inventory::from_toml("[[endpoint]]\nid = 'a'\nurl = 'ftp://h:1'\n").unwrap_err();
    /// assert!(error.to_string().starts_with("line 3, column 7: endpoint 1 (a): "));
    /// ```
    ///
    /// # Errors
    /// [`Kind::Inventory`](crate::Kind::Inventory) with line and column, counted from 1 and in
    /// characters. The text itself is never repeated, but for valid ids and the names of
    /// variables and files.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        let source = TomlSource::text(text);
        let snapshot = source.read()?;
        Ok(Self::new(source, snapshot))
    }

    /// Reads an inventory from a TOML file of up to 16 MiB; relative password files resolve
    /// against its directory.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml), and when the file cannot be read.
    ///
    /// # Panics
    /// Outside a tokio runtime, whose blocking threads do the reading.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind but a read that ends on its own.
    pub async fn from_file(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open(TomlSource::file(path)).await
    }

    /// Takes endpoints made in code; [`reload`](Self::reload) never changes anything then.
    ///
    /// ```
    /// use reqwest_lease::{Endpoint, EndpointId, Inventory};
    ///
    /// let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), "http://h:8080", None).unwrap();
    /// assert!(Inventory::from_endpoints([endpoint.clone()]).is_ok());
    /// assert!(Inventory::from_endpoints([endpoint.clone(), endpoint]).is_err());
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::new`].
    pub fn from_endpoints(endpoints: impl IntoIterator<Item = Endpoint>) -> Result<Self, Error> {
        let snapshot = Snapshot::new(endpoints, None)?;
        Ok(Self::new(snapshot.clone(), snapshot))
    }

    /// Loads from any source, and keeps it to [`reload`](Self::reload) from.
    ///
    /// # Errors
    /// Those of the source.
    ///
    /// # Cancel safety
    /// As cancel-safe as the source's [`load`](InventorySource::load).
    pub async fn open(source: impl InventorySource) -> Result<Self, Error> {
        let snapshot = source.load().await?;
        Ok(Self::new(source, snapshot))
    }

    fn new(source: impl InventorySource, snapshot: Snapshot) -> Self {
        warning::log(snapshot.warnings(), &[]);
        Self(Arc::new(Shared {
            source: Box::new(source),
            snapshot: RwLock::new(Arc::new(snapshot)),
            generation: AtomicU64::new(1),
            reloading: tokio::sync::Mutex::new(()),
        }))
    }

    /// Asks the source again and swaps the snapshot in one step.
    ///
    /// Endpoints that did not change keep their `Arc`. Variables and files that passwords come
    /// from are read again too: another password is a change.
    ///
    /// # Errors
    /// Those of the source; the old snapshot stays then.
    ///
    /// # Panics
    /// Outside a tokio runtime, when the source is TOML.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the old snapshot. Reloads at the same time run one by one.
    pub async fn reload(&self) -> Result<Reloaded, Error> {
        let _turn = self.0.reloading.lock().await;
        let loaded = self.0.source.load().await?;
        let old = self.snapshot();
        let (fresh, reloaded) = loaded.succeed(&old);
        warning::log(fresh.warnings(), old.warnings());
        let changed = !reloaded.is_unchanged() || fresh.version() != old.version();
        *self.0.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
        if changed {
            self.0.generation.fetch_add(1, Ordering::Release);
            tracing::info!(
                version = reloaded.version,
                added = reloaded.added.len(),
                changed = reloaded.changed.len(),
                removed = reloaded.removed.len(),
                "inventory reloaded"
            );
        }
        Ok(reloaded)
    }

    /// What the inventory holds now. A later reload does not change it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The files that it is read from.
    #[cfg(feature = "watch")]
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.0.source.files()
    }

    /// A number that starts at 1 and grows with every reload that changed an endpoint or the
    /// version.
    ///
    /// Read it before the [`snapshot`](Self::snapshot) that is kept beside it: then that snapshot
    /// is at least as new, and an equal number later means that nothing has changed.
    pub fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }
}

impl Snapshot {
    /// Reads the endpoints of a TOML file with their labels, and looks no password up: for tools
    /// that set pools up where the endpoints' credentials are not at hand. It is not for leasing, for
    /// endpoints whose password is in a variable or a file have an empty one.
    ///
    /// # Errors
    /// As [`Inventory::from_file`], but for passwords that are missing.
    ///
    /// # Panics
    /// Outside a tokio runtime, whose blocking threads do the reading.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind but a read that ends on its own.
    pub async fn from_file_without_passwords(path: impl Into<PathBuf>) -> Result<Self, Error> {
        TomlSource::file(path).without_passwords().load().await
    }
}

impl fmt::Debug for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inventory")
            .field("generation", &self.generation())
            .field("snapshot", &self.snapshot())
            .finish_non_exhaustive()
    }
}
