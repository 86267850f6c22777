//! Saying everything: logs, errors with all their causes, values.

use std::error::Error;
use std::fmt::Debug;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Once;

use log::{LevelFilter, Log, Metadata, Record};
use reqwest_lease::Token;
use tracing_subscriber::filter::LevelFilter as Filter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Where the child leaves what only its parent may know.
pub(super) const DIRECTORY: &str = "REQWEST_LEASE_TELL_DIRECTORY";
/// Set for a child that leaks on purpose.
pub(super) const LEAKS: &str = "REQWEST_LEASE_TELL_LEAKS";
/// The file of all tokens, in hex.
pub(super) const TOKENS: &str = "tokens";

/// In a child, logs everything; other runs of the same test only go through the motions.
pub(super) fn everything() {
    static ONCE: Once = Once::new();
    if directory().is_none() {
        return;
    }
    ONCE.call_once(|| {
        log::set_logger(&Logger).unwrap();
        log::set_max_level(LevelFilter::Trace);
        tracing_subscriber::fmt()
            .with_max_level(Filter::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .init();
    });
}

fn directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Whether this is the child of a twin.
pub(super) fn leaks() -> bool {
    std::env::var(LEAKS).is_ok_and(|leaks| !leaks.is_empty())
}

struct Logger;

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        println!("log record {} {} {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}

/// Prints a value in both ways of `Debug`.
pub(super) fn value(what: &str, value: &impl Debug) {
    println!("{what}: {value:?}");
    println!("{what}: {value:#?}");
}

/// Prints an error and all its causes, in every way that there is.
pub(super) fn error(what: &str, error: &(dyn Error + 'static)) {
    let mut next = Some(error);
    while let Some(error) = next {
        println!("{what}: {error} / {error:#} / {error:?}");
        println!("{what}: {error:#?}");
        // An io::Error keeps what it wraps out of its causes.
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(|e| e.get_ref()) {
            self::error(what, inner);
        }
        next = error.source();
    }
}

/// Notes a token for the parent, in a file and nowhere else.
pub(super) fn token(token: Token) {
    let Some(directory) = directory() else { return };
    let hex: String = token.expose().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = std::fs::File::options();
    let mut file = file.append(true).create(true).open(directory.join(TOKENS)).unwrap();
    writeln!(file, "{hex}").unwrap();
    println!("tokens seen");
}
