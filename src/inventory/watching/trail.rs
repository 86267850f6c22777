//! What leads to a file: the folder that it is in, and each symbolic link on the way.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folders in which something can happen to a file, and the names of what it happens to.
///
/// A file that is replaced by renaming another one over it, an orchestrator's `..data` link that is
/// turned to a new folder, and a link to a whole release all show as an event on one of the names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Trail {
    pub(super) folders: BTreeSet<PathBuf>,
    pub(super) names: BTreeSet<OsString>,
}

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

impl Trail {
    /// Follows the way to all of these, as far as there is one.
    pub(super) fn to(files: &[PathBuf]) -> Self {
        let mut trail = Self::default();
        for file in files {
            // A path that is not absolute now may be another one later.
            trail.follow(&std::path::absolute(file).unwrap_or_else(|_| file.clone()));
        }
        trail
    }

    fn follow(&mut self, file: &Path) {
        let (mut at, mut links) = (PathBuf::new(), 0);
        let mut way: VecDeque<OsString> = parts(file).collect();
        while let Some(part) = way.pop_front() {
            match Path::new(&part).components().next() {
                Some(Component::ParentDir) => drop(at.pop()),
                Some(Component::CurDir) => {}
                _ => {
                    let here = at.join(&part);
                    match fs::read_link(&here) {
                        Ok(target) if links < MOST_LINKS => {
                            links += 1;
                            self.add(&at, &part);
                            // An absolute target takes the place of all before it.
                            parts(&target).rev().for_each(|part| way.push_front(part));
                        }
                        _ => at = here,
                    }
                }
            }
        }
        self.add_existing(&at);
    }

    /// The file in its folder; where there is no such folder, what is missing in the nearest one.
    fn add_existing(&mut self, file: &Path) {
        let mut ways = file.ancestors().zip(file.ancestors().skip(1));
        if let Some((name, folder)) = ways.find(|(_, folder)| folder.is_dir())
            && let Some(name) = name.file_name()
        {
            self.add(folder, name);
        }
    }

    fn add(&mut self, folder: &Path, name: &OsStr) {
        self.folders.insert(folder.to_owned());
        self.names.insert(name.to_owned());
        // The folder itself may go.
        self.names.extend(folder.file_name().map(OsStr::to_owned));
    }
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().map(|component| component.as_os_str().to_owned())
}
