//! TOML text or a TOML file as a source of endpoints.

use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        Self { origin, environment: Arc::new(|name| std::env::var_os(name)), withheld: false }
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
        let lookup = |directory| Lookup {
            directory,
            environment: Arc::clone(&self.environment),
            withheld: self.withheld,
        };
        match &self.origin {
            Origin::Text(text) => document::parse(text.expose(), &lookup(PathBuf::new())),
            Origin::File(path) => {
                let directory = path.parent().map(Path::to_owned).unwrap_or_default();
                document::parse(&read_file(path)?, &lookup(directory))
            }
        }
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
