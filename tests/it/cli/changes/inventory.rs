//! The inventory of a run, and the folder that it is in.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::password;

/// What the inventory says.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    pub(super) version: u64,
    pub(super) endpoints: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) url: String,
    pub(super) weight: u32,
    /// The number of its password.
    pub(super) password: usize,
}

impl Plan {
    pub(super) fn text(&self) -> String {
        let entry = |(id, entry): (&String, &Entry)| {
            format!(
                "[[endpoint]]\nid = \"{id}\"\nurl = \"{}\"\nweight = {}\nprovider = \"{}\"\n\
                 username = \"{id}\"\npassword = {{ file = \"{id}.secret\" }}\n",
                entry.url,
                entry.weight,
                provider(id)
            )
        };
        let endpoints: String = self.endpoints.iter().map(entry).collect();
        format!("version = {}\n{endpoints}", self.version)
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.endpoints.keys().cloned().collect()
    }

    /// The endpoints of a provider.
    pub(super) fn of(&self, name: &str) -> Vec<String> {
        self.endpoints.keys().filter(|id| provider(id) == name).cloned().collect()
    }
}

pub(super) fn provider(id: &str) -> &'static str {
    match id.as_bytes()[0] {
        b'n' => "north",
        b's' => "south",
        _ => "real",
    }
}

/// How files are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mount {
    /// Each by another one that is renamed over it, passwords first.
    Renamed,
    /// All at once by a link that is turned to another folder, as orchestrators do.
    Linked,
}

/// The folder that the program runs in and that the workers watch.
pub(super) struct Folder {
    path: PathBuf,
    mount: Mount,
    turns: usize,
}

impl Folder {
    /// With a link for each of these ids where links are turned.
    pub(super) fn new(path: &Path, mount: Mount, ids: &[String]) -> Self {
        if mount == Mount::Linked {
            let names = ids.iter().map(|id| format!("{id}.secret"));
            for name in names.chain([FILE.to_owned()]) {
                symlink(Path::new("..data").join(&name), path.join(&name)).unwrap();
            }
        }
        Self { path: path.to_owned(), mount, turns: 0 }
    }

    /// Replaces what is there by what the plan says.
    pub(super) fn put(&mut self, plan: &Plan) {
        self.put_text(plan, &plan.text());
    }

    /// The same with another text in the inventory's place.
    pub(super) fn put_text(&mut self, plan: &Plan, text: &str) {
        let secret = |(id, entry): (&String, &Entry)| {
            (format!("{id}.secret"), format!("{}\n", password(entry.password)))
        };
        let secrets = plan.endpoints.iter().map(secret);
        let files: Vec<_> = secrets.chain([(FILE.to_owned(), text.to_owned())]).collect();
        match self.mount {
            Mount::Renamed => files.iter().for_each(|(name, text)| self.rename(name, text)),
            Mount::Linked => self.turn(&files),
        }
    }

    fn rename(&self, name: &str, text: &str) {
        if fs::read_to_string(self.path.join(name)).is_ok_and(|there| there == text) {
            return;
        }
        fs::write(self.path.join("beside"), text).unwrap();
        fs::rename(self.path.join("beside"), self.path.join(name)).unwrap();
    }

    fn turn(&mut self, files: &[(String, String)]) {
        let last = self.path.join(format!("..{}", self.turns));
        self.turns += 1;
        let name = format!("..{}", self.turns);
        fs::create_dir(self.path.join(&name)).unwrap();
        for (file, text) in files {
            fs::write(self.path.join(&name).join(file), text).unwrap();
        }
        symlink(&name, self.path.join("..data_tmp")).unwrap();
        fs::rename(self.path.join("..data_tmp"), self.path.join("..data")).unwrap();
        let _ = fs::remove_dir_all(last);
    }

    /// The inventory's file.
    pub(super) fn file(&self) -> PathBuf {
        self.path.join(FILE)
    }
}

pub(super) const FILE: &str = "proxies.toml";
