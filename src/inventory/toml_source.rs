//! TOML text or a TOML file as a source of endpoints.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::error::Error;
use crate::secret::Secret;

use super::document;
use super::file;
use super::password::{Environment, Lookup};
use super::snapshot::Snapshot;
use super::source::InventorySource;

/// TOML that is read again with every load.
#[derive(Clone)]
pub(super) struct TomlSource {
    origin: Origin,
    environment: Environment,
    withheld: bool,
    /// What the last load has read, or tried to.
    files: Arc<Mutex<Vec<PathBuf>>>,
}

#[derive(Clone)]
enum Origin {
    /// The text is a secret: passwords may be written in it.
    Text(Arc<Secret>),
    File(PathBuf),
}

impl TomlSource {
    pub(super) fn text(text: &str) -> Self {
        Self::new(Origin::Text(Arc::new(Secret::new(text))))
    }

    pub(super) fn file(path: impl Into<PathBuf>) -> Self {
        Self::new(Origin::File(path.into()))
    }

    fn new(origin: Origin) -> Self {
        let environment: Environment = Arc::new(|name| std::env::var_os(name));
        Self { origin, environment, withheld: false, files: Arc::default() }
    }

    /// Looks no password up.
    pub(super) fn without_passwords(self) -> Self {
        Self { withheld: true, ..self }
    }

    #[cfg(test)]
    pub(super) fn with_environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Reads the file, if it is one, and all that it refers to. It blocks.
    pub(super) fn read(&self) -> Result<Snapshot, Error> {
        let (lookup, text) = match &self.origin {
            Origin::Text(text) => (self.lookup(PathBuf::new()), Ok(Arc::clone(text))),
            Origin::File(path) => {
                let lookup = self.lookup(path.parent().map(Path::to_owned).unwrap_or_default());
                lookup.files.borrow_mut().push(path.clone());
                (lookup, read_file(path).map(|text| Arc::new(Secret::new(text))))
            }
        };
        let read = text.and_then(|text| {
            document::parse(text.expose(), &lookup).map_err(|error| match &self.origin {
                Origin::Text(_) => error,
                Origin::File(path) => error.within(format_args!("{path:?}")),
            })
        });
        self.has_read(lookup.files.into_inner(), read.is_err());
        read
    }

    fn lookup(&self, directory: PathBuf) -> Lookup {
        let lookup = Lookup::new(directory, Arc::clone(&self.environment));
        Lookup { withheld: self.withheld, ..lookup }
    }

    /// Notes the files of a load. One that failed has not come to all of them.
    fn has_read(&self, mut now: Vec<PathBuf>, failed: bool) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if failed {
            now.extend_from_slice(&files);
        }
        now.sort_unstable();
        now.dedup();
        *files = now;
    }
}

#[async_trait]
impl InventorySource for TomlSource {
    async fn load(&self) -> Result<Snapshot, Error> {
        let source = self.clone();
        tokio::task::spawn_blocking(move || source.read())
            .await
            .unwrap_or_else(|_| Err(Error::inventory("reading the inventory was cut off")))
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Enough for tens of thousands of endpoints.
const MAX_FILE: u64 = 16 * 1024 * 1024;

fn read_file(path: &Path) -> Result<String, Error> {
    file::read_text(path, MAX_FILE).map_err(|unreadable| {
        let error = Error::inventory(format!("the inventory file {path:?} {}", unreadable.why));
        match unreadable.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    })
}
