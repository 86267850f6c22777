//! Where the passwords of a list go.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use reqwest_lease::EndpointId;

use super::files::Files;
use super::quoted;

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
                let id = id.as_str().to_ascii_uppercase().replace('-', "_");
                // No shell sets a variable that begins with a digit.
                let first = if id.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
                let name = format!("{first}{id}_PASSWORD");
                let reference = format!("{{ env = {} }}", quoted(&name));
                (name, reference)
            }
        };
        self.kept.push((name, password.to_owned()));
        self.references.insert(password.to_owned(), reference.clone());
        reference
    }

    /// How many there are.
    pub(super) fn number(&self) -> usize {
        self.kept.len()
    }

    /// The directory that has them.
    pub(super) fn directory(&self) -> Option<&Path> {
        match &self.place {
            Place::Files { directory, .. } => Some(directory),
            _ => None,
        }
    }

    /// The files with them.
    pub(super) fn written(&self) -> Files {
        match &self.place {
            Place::Nowhere => Vec::new(),
            Place::Files { directory, .. } => {
                let file = |(name, password): &(String, String)| {
                    (directory.join(name), format!("{password}\n"))
                };
                self.kept.iter().map(file).collect()
            }
            Place::Variables(path) => {
                let line = |(name, password): &(String, String)| {
                    format!("{name}={}\n", in_quotes(password))
                };
                vec![(path.clone(), self.kept.iter().map(line).collect())]
            }
        }
    }
}

/// Text as both a shell and systemd read it. Single quotes they read differently.
fn in_quotes(text: &str) -> String {
    let special = |character| matches!(character, '"' | '\\' | '$' | '`');
    let escape = |character| special(character).then_some('\\').into_iter().chain([character]);
    format!("\"{}\"", text.chars().flat_map(escape).collect::<String>())
}
