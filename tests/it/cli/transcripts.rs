//! Commands with all that they say, in the order of a day's work.

use std::path::Path;

use super::PROGRAM;
use crate::support::redis::Server;

/// Runs transcripts against a server of their own. Each has pools of its own.
fn run(cases: &[&str]) {
    let server = Server::start(&["--appendonly", "yes"]);
    let tests = trycmd::TestCases::new();
    tests
        .register_bin("reqwest-lease", Path::new(PROGRAM))
        .timeout(super::RUNS_WITHIN)
        .env("LEASE_REDIS_URL", server.url())
        .env("LEASE_TIMEOUT", "30s")
        .env("USER", "kim")
        .env("COLUMNS", "100")
        .env("TZ", "UTC");
    for case in cases {
        tests.case(case);
    }
    // Before the server ends.
    tests.run();
}

#[test]
fn commands_say_what_they_did() {
    run(&["tests/it/cli/cases/*.trycmd"]);
}
