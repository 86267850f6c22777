//! No password, user name or token leaves: not by logs, errors, `Debug` or panics.
//!
//! A child process logs everything at TRACE and prints every error and value that it meets; this
//! one searches what it said.

mod scenario;
mod search;
mod spy;
mod tell;
mod values;

use std::collections::HashSet;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::support::SOON;
use search::Secrets;

/// The core of each is all letters and digits, so that it shows through any escaping.
const PASSWORD: &str = "Kz7CanaryPassword9x/: %41é\"";
const PASSWORD_CORE: &str = "Kz7CanaryPassword9x";
const USER: &str = "Kz3CanaryUser5x@home";
const USER_CORE: &str = "Kz3CanaryUser5x";
/// For targets: user and password in the URL of a request.
const TARGET_CORE: &str = "Kz1CanaryTarget2x";

#[tokio::test]
async fn nothing_that_is_said_holds_a_secret() {
    let (said, secrets) = child("secrets::scenario::everything_is_told", "").await;
    for expected in [
        "TRACE",
        "log record",
        "tokens seen",
        "panicked at",
        "attempt failed",
        "send failed",
        "proxy_denied",
    ] {
        assert!(said.contains(expected), "the child did not say {expected}");
    }
    assert!(secrets.tokens() > 20, "{} tokens", secrets.tokens());
    let lines: HashSet<_> = said.lines().collect();
    let leaks: Vec<_> = lines.into_iter().flat_map(|line| secrets.found_in(line)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

/// The twin: each of these lines is found by the same search.
#[tokio::test]
async fn a_leaking_line_is_found() {
    let (said, secrets) = child("secrets::scenario::secrets_are_told", "lines").await;
    let leaks: Vec<_> = said.lines().filter(|line| line.contains("leak: ")).collect();
    assert_eq!(leaks.len(), 14, "{leaks:#?}");
    for leak in leaks {
        assert!(!secrets.found_in(leak).is_empty(), "not found: {leak}");
    }
}

/// The twin: without this crate's settings reqwest logs the password of its proxy.
#[tokio::test]
async fn a_verbose_connection_is_found() {
    let (said, secrets) = child("secrets::scenario::a_verbose_client_is_told", "lines").await;
    let leaks: Vec<_> = said.lines().filter(|line| !secrets.found_in(line).is_empty()).collect();
    assert!(leaks.iter().any(|line| line.contains("reqwest::connect")), "{leaks:#?}");
}

/// Runs a test in a process of its own, where it tells what it can.
async fn child(test: &str, leaks: &str) -> (String, Secrets) {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).stdin(Stdio::null());
    child.env(tell::DIRECTORY, directory.path()).env(tell::LEAKS, leaks);
    child.env("RUST_BACKTRACE", "1");
    let output = tokio::time::timeout(SOON * 6, child.output()).await.unwrap().unwrap();
    let said = [output.stdout, b"\n".to_vec(), output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if !(output.status.success() && said.contains("1 passed")) {
        let last: Vec<_> = said.lines().rev().take(60).collect();
        panic!("{test} failed, last line first: {last:#?}");
    }
    (said, secrets_of(directory.path()))
}

fn secrets_of(directory: &Path) -> Secrets {
    let mut secrets = Secrets::default();
    for core in [PASSWORD_CORE, USER_CORE, TARGET_CORE] {
        secrets.add_word(core);
    }
    let tokens = std::fs::read_to_string(directory.join(tell::TOKENS)).unwrap_or_default();
    tokens.lines().for_each(|token| secrets.add_token(token));
    secrets
}
