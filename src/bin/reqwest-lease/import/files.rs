//! Files that only their owner reads, each whole or not there.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::exit::Code;
use crate::failure::Failure;

/// Files with what goes into them.
pub(super) type Files = Vec<(PathBuf, String)>;

/// Writes all of them or none, some into a directory. Without `force` none may be there before.
pub(super) fn write_all(
    files: &Files,
    directory: Option<&Path>,
    force: bool,
) -> Result<(), Failure> {
    let mut named = HashSet::with_capacity(files.len());
    for (path, _) in files {
        if !named.insert(path) {
            return Err(Failure::usage(format!("{} is named twice", path.display())));
        }
        look(path, force)?;
    }
    if let Some(directory) = directory {
        make(directory)?;
    }
    for (nth, (path, text)) in files.iter().enumerate() {
        if let Err(error) = write(path, text, force) {
            if !force {
                files[..nth].iter().for_each(|(path, _)| drop(fs::remove_file(path)));
            }
            return Err(refused(path, &error));
        }
    }
    Ok(())
}

/// Whether a file may be written, before the first one is.
fn look(path: &Path, force: bool) -> Result<(), Failure> {
    match fs::metadata(path) {
        Err(_) if path.is_symlink() => Err(Failure::new(
            Code::FAILED,
            format!("{} leads to what is not there", path.display()),
        )),
        Err(_) => Ok(()),
        Ok(there) if !there.is_file() => {
            Err(Failure::new(Code::FAILED, format!("{} is not a regular file", path.display())))
        }
        Ok(_) if force => Ok(()),
        Ok(_) => Err(refused(path, &io::ErrorKind::AlreadyExists.into())),
    }
}

/// Writes a file beside its place and puts it there when it is whole.
fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    // What a link leads to is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    let placed = file.write_all(text.as_bytes()).and_then(|()| match force {
        true => fs::rename(&beside, &path),
        // Unlike a rename, it fails where something has come to be in the meantime.
        false => fs::hard_link(&beside, &path),
    });
    // After a rename there is none.
    let _ = fs::remove_file(&beside);
    placed
}

/// Makes a directory that only its owner looks into, unless it is there.
fn make(path: &Path) -> Result<(), Failure> {
    if path.exists() && !path.is_dir() {
        return Err(Failure::new(Code::FAILED, format!("{} is no directory", path.display())));
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Failure::new(Code::FAILED, format!("{} is there", path.display()))
            .with_hint("--force writes over what is there");
    }
    Failure::new(Code::FAILED, format!("{}: {error}", path.display()))
}
