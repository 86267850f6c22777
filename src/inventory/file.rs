//! Files read whole, up to a limit.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Why a file was not taken, as the end of a sentence.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) why: String,
    pub(super) source: Option<io::Error>,
}

/// Reads a regular file of at most `limit` bytes as UTF-8. It blocks.
pub(super) fn read_text(path: &Path, limit: u64) -> Result<String, Unreadable> {
    let metadata = fs::metadata(path).map_err(cannot_be_read)?;
    if metadata.is_dir() {
        return Err(unfit("is a directory"));
    }
    // Opening a pipe would wait for its other end.
    if !metadata.is_file() {
        return Err(unfit("is not a regular file"));
    }
    let too_large = || unfit(format!("is larger than {} KiB", limit / 1024));
    if metadata.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot_be_read)?;
    // The file may have grown since.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(cannot_be_read)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    // The error of from_utf8 would carry the bytes along.
    String::from_utf8(bytes).map_err(|_| unfit("is not UTF-8"))
}

fn cannot_be_read(source: io::Error) -> Unreadable {
    let why = match source.kind() {
        io::ErrorKind::NotFound => "does not exist",
        io::ErrorKind::PermissionDenied => "may not be read",
        _ => "cannot be read",
    };
    Unreadable { why: why.to_owned(), source: Some(source) }
}

fn unfit(why: impl Into<String>) -> Unreadable {
    Unreadable { why: why.into(), source: None }
}
