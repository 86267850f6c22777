//! Where the passwords of a list go.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use reqwest_lease::EndpointId;

use super::quoted;
use crate::exit::Code;
use crate::failure::Failure;

/// Keeps passwords, each once, until all of the list is known to be good.
pub(super) struct Keeper {
    place: Place,
    /// Password: what refers to it.
    references: HashMap<String, String>,
    /// Names with passwords, in order.
    kept: Vec<(String, String)>,
}

enum Place {
    Nowhere,
    /// Files of a directory, and how an inventory names that.
    Files {
        directory: PathBuf,
        named: PathBuf,
    },
    Variables(PathBuf),
}

impl Keeper {
    /// For a list without passwords.
    pub(super) fn nothing() -> Self {
        Self::new(Place::Nowhere)
    }

    /// In a directory, named as the inventory at `to` sees it.
    pub(super) fn files(directory: &Path, to: Option<&Path>) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
        let here = absolute(directory);
        let base = to.map(absolute).and_then(|to| to.parent().map(Path::to_owned));
        let named = base.and_then(|base| here.strip_prefix(base).ok().map(Path::to_owned));
        let named = named.unwrap_or(here);
        Self::new(Place::Files { directory: directory.to_owned(), named })
    }

    /// In variables that a file sets.
    pub(super) fn variables(path: &Path) -> Self {
        Self::new(Place::Variables(path.to_owned()))
    }

    fn new(place: Place) -> Self {
        Self { place, references: HashMap::new(), kept: Vec::new() }
    }

    /// Keeps a password; gives what the inventory has in its place.
    pub(super) fn keep(&mut self, id: &EndpointId, password: &str) -> String {
        if password.is_empty() {
            return "\"\"".to_owned();
        }
        if let Some(reference) = self.references.get(password) {
            return reference.clone();
        }
        let (name, reference) = match &self.place {
            Place::Files { named, .. } => {
                let name = format!("{id}.secret");
                let path = named.join(&name);
                (name, format!("{{ file = {} }}", quoted(&path.display().to_string())))
            }
            _ => {
                let name =
                    format!("{}_PASSWORD", id.as_str().to_ascii_uppercase().replace('-', "_"));
                let reference = format!("{{ env = {} }}", quoted(&name));
                (name, reference)
            }
        };
        self.kept.push((name, password.to_owned()));
        self.references.insert(password.to_owned(), reference.clone());
        reference
    }

    /// Writes them; says how many there are.
    pub(super) fn finish(self, force: bool) -> Result<usize, Failure> {
        match &self.place {
            Place::Nowhere => {}
            Place::Files { directory, .. } => {
                fs::create_dir_all(directory).map_err(|error| refused(directory, &error))?;
                for (name, password) in &self.kept {
                    create(&directory.join(name), &format!("{password}\n"), force)?;
                }
            }
            Place::Variables(path) => {
                let line = |(name, password): &(String, String)| {
                    format!("{name}='{}'\n", password.replace('\'', r"'\''"))
                };
                create(path, &self.kept.iter().map(line).collect::<String>(), force)?;
            }
        }
        Ok(self.kept.len())
    }
}

/// Writes a file that only its owner reads.
pub(super) fn create(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::new(Code::FAILED, format!("{}: {error}", path.display()));
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => failure.with_hint("--force writes over what is there"),
        _ => failure,
    }
}
