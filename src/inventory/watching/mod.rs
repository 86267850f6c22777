//! Noticing that an inventory's files have changed.

mod trail;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use self::trail::Trail;
use crate::error::Error;

/// The files of an inventory under watch.
///
/// Folders are watched and not files: what happens to a name is seen whatever stands behind it.
/// Beside that the files are looked at now and then, for file systems that tell nothing of what
/// others do to them.
pub(crate) struct Files {
    watcher: RecommendedWatcher,
    ear: Arc<Ear>,
    folders: BTreeSet<PathBuf>,
    files: Vec<PathBuf>,
    stamps: Vec<Option<Stamp>>,
}

/// What hears of events.
#[derive(Default)]
struct Ear {
    names: Mutex<BTreeSet<OsString>>,
    heard: Notify,
}

/// After an event others are waited for this long, for a file that is written in pieces is read
/// once; but only so long in all.
const QUIET: Duration = Duration::from_millis(100);
const LONGEST_UNREST: Duration = Duration::from_secs(1);

/// How often the files are looked at without an event.
const LOOK_EVERY: Duration = Duration::from_secs(30);

impl Files {
    /// Watches these. It blocks.
    pub(crate) fn watch(files: Vec<PathBuf>) -> Result<Self, Error> {
        let ear = Arc::new(Ear::default());
        let watcher = notify::recommended_watcher({
            let ear = Arc::clone(&ear);
            move |event: notify::Result<Event>| ear.hear(event.as_ref().ok())
        });
        let watcher = watcher.map_err(unwatched)?;
        let (folders, stamps) = Default::default();
        let mut watched = Self { watcher, ear, folders, files: Vec::new(), stamps };
        match watched.follow(files).trouble {
            None => Ok(watched),
            Some(trouble) => Err(trouble),
        }
    }

    /// Watches what leads to these now. It blocks.
    pub(crate) fn follow(&mut self, files: Vec<PathBuf>) -> Followed {
        let trail = Trail::to(&files);
        let others = trail.folders != self.folders || files != self.files;
        *self.ear.names() = trail.names;
        let mut trouble = None;
        for folder in &trail.folders {
            // Also those that are watched: one of this name may have taken the place of another.
            if let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                trouble = Some(unwatched(error));
            }
        }
        for gone in self.folders.difference(&trail.folders) {
            // It may be gone indeed.
            let _ = self.watcher.unwatch(gone);
        }
        (self.folders, self.files) = (trail.folders, files);
        Followed { others, trouble }
    }

    /// Remembers what the files look like. It blocks.
    pub(crate) fn remember(&mut self) {
        self.stamps = stamps(&self.files);
    }

    /// Whether the files look other than remembered. It blocks.
    pub(crate) fn look_other(&self) -> bool {
        stamps(&self.files) != self.stamps
    }

    /// Resolves when something has happened and it is quiet again, or it is time to look.
    ///
    /// # Cancel safety
    /// An event may be forgotten.
    pub(crate) async fn happened(&self) -> Happened {
        if timeout(LOOK_EVERY, self.ear.heard.notified()).await.is_err() {
            return Happened::Nothing;
        }
        let longest = Instant::now() + LONGEST_UNREST;
        while timeout_at(longest.min(Instant::now() + QUIET), self.ear.heard.notified())
            .await
            .is_ok()
        {}
        Happened::Something
    }
}

/// What following came to.
pub(crate) struct Followed {
    /// The way is another one than before.
    pub(crate) others: bool,
    /// Why not all of it is watched.
    pub(crate) trouble: Option<Error>,
}

/// Why a wait has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Something,
    /// It is only time to look.
    Nothing,
}

impl Ear {
    fn names(&self) -> std::sync::MutexGuard<'_, BTreeSet<OsString>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the watcher's thread calls; without an event it may have missed some.
    fn hear(&self, event: Option<&Event>) {
        if event.is_none_or(|event| self.concerns(event)) {
            self.heard.notify_one();
        }
    }

    fn concerns(&self, event: &Event) -> bool {
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        // Reading the files is an event too, and must not lead to reading them.
        if matches!(event.kind, EventKind::Access(_)) && event.kind != closed {
            return false;
        }
        let names = self.names();
        let known = |path: &PathBuf| path.file_name().is_some_and(|name| names.contains(name));
        event.need_rescan() || event.paths.is_empty() || event.paths.iter().any(known)
    }
}

/// What tells one content of a file from another, as far as can be told without reading it.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode: (u64, u64, i64, i64),
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |file: &PathBuf| {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        let metadata = fs::metadata(file).ok()?;
        Some(Stamp {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        })
    };
    files.iter().map(stamp).collect()
}

fn unwatched(error: notify::Error) -> Error {
    Error::inventory("the inventory's files cannot be watched").with_source(error)
}

#[cfg(test)]
mod tests;
