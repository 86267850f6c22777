//! Where an inventory comes from.

use std::path::PathBuf;

use async_trait::async_trait;

use crate::error::Error;

use super::snapshot::Snapshot;

/// A place that endpoints are loaded from: a secret manager, a provider's API.
///
/// # Examples
/// ```
/// use async_trait::async_trait;
/// use reqwest_lease::{Endpoint, EndpointId, Error, Inventory, InventorySource, Snapshot};
///
/// struct Vault;
///
/// #[async_trait]
/// impl InventorySource for Vault {
///     async fn load(&self) -> Result<Snapshot, Error> {
///         let password = "looked up";
///         let login = Some(("worker", password));
///         let endpoint = Endpoint::new(EndpointId::new("a")?, "http://gw1.example.net:8080", login)
///             .map_err(|error| Error::inventory(error.to_string()))?;
///         Snapshot::new([endpoint], Some(1))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let inventory = Inventory::open(Vault).await?;
/// assert!(inventory.reload().await?.is_unchanged());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait InventorySource: Send + Sync + 'static {
    /// Loads all endpoints anew.
    ///
    /// # Errors
    /// Mostly [`Error::inventory`]; the inventory keeps what it had then.
    ///
    /// # Cancel safety
    /// The future may be dropped at any await; nothing that later loads need may hang on its end.
    async fn load(&self) -> Result<Snapshot, Error>;

    /// The files that loading reads, so that a change to one of them is a reason to load again;
    /// those of the last load, whether it succeeded or not. Default: none, and nothing to watch.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Endpoints made in code are their own source.
#[async_trait]
impl InventorySource for Snapshot {
    async fn load(&self) -> Result<Snapshot, Error> {
        Ok(self.clone())
    }
}
