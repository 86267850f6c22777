//! What an inventory takes, refuses and keeps to itself.

mod files;
mod leaks;
mod refusals;
mod reload;
mod values;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::id::EndpointId;

use super::password::Environment;
use super::toml_source::TomlSource;
use super::*;

/// Put where secrets go. No id, variable or file name may hold its `!`, so that none is shown.
const CANARY: &str = "c4n4ry!";

/// Variables of a test's own.
#[derive(Clone, Default)]
struct Variables(Arc<Mutex<HashMap<String, OsString>>>);

impl Variables {
    fn set(&self, name: &str, value: impl Into<OsString>) {
        self.0.lock().unwrap().insert(name.to_owned(), value.into());
    }

    fn environment(&self) -> Environment {
        let variables = self.clone();
        Arc::new(move |name| variables.0.lock().unwrap().get(name).cloned())
    }
}

fn read(text: &str) -> Result<Snapshot, Error> {
    let variables = Variables::default();
    variables.set("PASSWORD", CANARY);
    variables.set("EMPTY", "");
    TomlSource::text(text).with_environment(variables.environment()).read()
}

/// All that a caller can print of an error.
fn everything(error: &Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text.push_str(&format!(" {source} {source:?}"));
        next = source.source();
    }
    text
}

fn id(name: &str) -> EndpointId {
    EndpointId::new(name).unwrap()
}

fn ids(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.iter().map(|endpoint| endpoint.id().as_str()).collect()
}

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("reqwest-lease-inventory-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
