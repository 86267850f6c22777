//! A pool that follows its inventory's files.

use std::sync::{Arc, PoisonError, Weak};

use tokio::task::{AbortHandle, spawn_blocking};

use super::{Pool, Shared};
use crate::error::{Error, Kind};
use crate::inventory::{Files, Happened};

impl Pool {
    /// Reads the inventory again, as [`reload`](Self::reload) does, now and whenever one of its
    /// files changes, until the pool ends.
    ///
    /// Password files count too. A change is seen when a file is written, when another one is
    /// renamed over it, and when a symbolic link on the way to it is turned elsewhere, as
    /// orchestrators do with mounted secrets. It is taken in when nothing has happened for 100 ms,
    /// or after 1 s; where the file system tells nothing of changes, as over a network, within
    /// 30 s. Passwords from the environment are only looked up again along the way.
    ///
    /// What cannot be read leaves everything as it was: it is logged once for each fault, counted
    /// ([`Counts::reloads_failed`](crate::Counts::reloads_failed)), and read again every 30 s even if
    /// nothing changes, for the fault may have been of the moment. A file that is written
    /// in place can be caught half-written and yet be valid, with fewer endpoints; rename a whole
    /// one over it.
    ///
    /// Calling it again starts over.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use reqwest_lease::{Endpoint, EndpointId, Inventory, Kind, Pool, PoolName};
    ///
    /// let endpoint = Endpoint::new(EndpointId::new("a")?, "http://127.0.0.1:1", None)?;
    /// let inventory = Inventory::from_endpoints([endpoint])?;
    /// let pool = Pool::builder(PoolName::new("vn")?, inventory).build().await?;
    /// let error = pool.watch_inventory().await.unwrap_err();
    /// assert_eq!(error.kind(), Kind::Config, "there is no file");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Config`](Kind::Config) when the inventory comes from no file;
    /// [`Inventory`](Kind::Inventory) when the system lets nothing be watched, mostly because too
    /// much is watched already; [`PoolClosed`](Kind::PoolClosed).
    ///
    /// # Cancel safety
    /// A dropped future leaves the pool unwatched, or watched as before.
    pub async fn watch_inventory(&self) -> Result<(), Error> {
        let files = self.0.inventory.files();
        if files.is_empty() {
            let what = format!("the inventory of pool {} comes from no file", self.0.core.name);
            return Err(Error::new(Kind::Config, what));
        }
        let cut_off = || Err(Error::inventory("watching the inventory's files was cut off"));
        let files = blocking(move || Files::watch(files)).await.unwrap_or_else(cut_off)?;
        let mut watching = self.0.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed() {
            return Err(self.closed());
        }
        let task = tokio::spawn(watch(Arc::downgrade(&self.0), files));
        *watching = Some(Watching(task.abort_handle()));
        Ok(())
    }

    /// Ends the watching, if there is any.
    pub(super) fn watch_no_more(&self) {
        self.0.watching.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Ends the task that watches when it is dropped.
pub(super) struct Watching(AbortHandle);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reloads at each change, until the runtime ends. It keeps the pool only while it reloads.
async fn watch(pool: Weak<Shared>, mut files: Files) -> Option<()> {
    // What happened since the inventory was read nobody has seen.
    let (mut due, mut told) = (true, None);
    loop {
        if due {
            files = reload(&Pool(pool.upgrade()?), files, &mut told).await?;
        }
        due = match files.happened().await {
            Happened::Something => true,
            // What failed for a reason of the moment would leave no trace.
            Happened::Nothing if told.is_some() => true,
            Happened::Nothing => {
                let other;
                (other, files) = blocking(move || (files.look_other(), files)).await?;
                other
            }
        };
    }
}

/// Reloads until the files that were read are those that are watched.
async fn reload(pool: &Pool, mut files: Files, told: &mut Option<String>) -> Option<Files> {
    for _ in 0..MOST_ROUNDS {
        let now = pool.inventory().files();
        let follow = move || {
            let followed = files.follow(now);
            files.remember();
            (followed, files)
        };
        let (followed, mut watched) = blocking(follow).await?;
        match (pool.reload().await, followed.trouble) {
            (Err(error), _) => pool.tell_once("the inventory stays as it was", &error, told),
            // It is looked at now and then all the same.
            (Ok(_), Some(error)) => pool.tell_once("the inventory is not watched", &error, told),
            (Ok(_), None) if told.take().is_some() => {
                tracing::info!(pool = %pool.name(), "the inventory is read and watched again");
            }
            (Ok(_), None) => {}
        }
        let now = pool.inventory().files();
        let followed;
        (followed, files) = blocking(move || (watched.follow(now), watched)).await?;
        if !followed.others {
            break;
        }
    }
    Some(files)
}

/// What is read may name other files, and those again come by other links.
const MOST_ROUNDS: usize = 3;

/// `None` when the runtime ends.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    spawn_blocking(work).await.ok()
}

impl Pool {
    /// Logs what is the matter, unless it was the same before.
    fn tell_once(&self, what: &'static str, error: &Error, told: &mut Option<String>) {
        let why = error.to_string();
        if told.as_ref() != Some(&why) {
            tracing::warn!(pool = %self.name(), why, "{what}");
            *told = Some(why);
        }
    }
}
