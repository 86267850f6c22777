//! Every command of the handbook, as it is written there.

use std::path::Path;

use http::StatusCode;

use super::{PROGRAM, RUNS_WITHIN};
use crate::attempts::Dead;
use crate::support::origin::{Origin, Visit, text};
use crate::support::redis::Server;
use crate::support::tinyproxy::Tinyproxy;

const HANDBOOK: &str = "docs/operations.md";

const README: &str = "README.md";

const NEXT: &str = "version = 2\n\
    [[endpoint]]\nid = \"vn-001\"\nurl = \"http://gw1.example.net:8080\"\nprovider = \"example\"\n\
    [[endpoint]]\nid = \"vn-002\"\nurl = \"http://gw2.example.net:8080\"\nprovider = \"example\"\n\
    [[endpoint]]\nid = \"vn-003\"\nurl = \"http://gw3.example.net:8080\"\nprovider = \"example\"\n\
    [[endpoint]]\nid = \"vn-005\"\nurl = \"http://gw5.example.net:8080\"\nprovider = \"example\"\n";

/// What the list becomes.
const PROXIES: &str = "version = 1\n\
    [[endpoint]]\nid = \"vn-001\"\nurl = \"http://gw1.example.net:8080\"\n\
    [[endpoint]]\nid = \"vn-002\"\nurl = \"http://gw2.example.net:8080\"\n\
    [[endpoint]]\nid = \"vn-003\"\nurl = \"http://gw3.example.net:8080\"\n\
    [[endpoint]]\nid = \"vn-004\"\nurl = \"http://gw4.example.net:8080\"\n";

/// Runs the commands of a page, in a directory with these files.
fn run(page: &str, files: &[(&str, &str)], probed: &str) {
    let server = Server::start(&["--appendonly", "yes"]);
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("page.md");
    std::fs::copy(page, &copy).unwrap();
    // Commands run in a copy of the first directory; the second one makes it last for all of them.
    let inside = directory.path().join("page.in");
    std::fs::create_dir(&inside).unwrap();
    std::fs::create_dir(directory.path().join("page.out")).unwrap();
    for (name, text) in files {
        std::fs::write(inside.join(name), text).unwrap();
    }
    let tests = trycmd::TestCases::new();
    tests
        .register_bin("reqwest-lease", Path::new(PROGRAM))
        .timeout(RUNS_WITHIN)
        .env("LEASE_REDIS_URL", server.url())
        .env("LEASE_POOL", "vn")
        .env("LEASE_INVENTORY", "proxies.toml")
        .env("LEASE_TIMEOUT", "30s")
        .env("LEASE_PROBE_URL", probed)
        .env("USER", "kim")
        .env("TZ", "UTC")
        .case(&copy);
    tests.run();
    if std::env::var_os("TRYCMD").is_some() {
        std::fs::copy(&copy, page).unwrap();
    }
}

#[test]
fn its_commands_do_what_it_says() {
    let (proxy, dead) = (Tinyproxy::start(Some(("worker", "secret-1"))), Dead::new());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let page = |visit: &Visit| text(StatusCode::OK, visit.peer.ip().to_string());
    let origin = runtime.block_on(Origin::http(page));
    let at = |url: String| url.trim_start_matches("http://").to_owned();
    let (good, dead) = (at(proxy.url()), at(dead.url()));
    let list = format!(
        "{good}:worker:secret-1\n{good}:worker:secret-2\n{good}:worker:secret-1\n\
         socks5h://{dead}\n"
    );
    run(HANDBOOK, &[("list.txt", &list), ("next.toml", NEXT)], &origin.url("/"));
}

#[test]
fn the_readmes_commands_do_what_it_says() {
    run(README, &[("proxies.toml", PROXIES)], "");
}

#[test]
fn it_names_all_commands_and_only_such_as_there_are() {
    let text = std::fs::read_to_string(HANDBOOK).unwrap();
    let help = std::process::Command::new(PROGRAM).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands: Vec<_> =
        commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in &commands {
        let named = [format!("`{command}"), format!("reqwest-lease {command}")];
        assert!(named.iter().any(|name| text.contains(name)), "{command} is not in the handbook");
    }
    for line in text.lines().filter_map(|line| line.strip_prefix("$ reqwest-lease ")) {
        let command = line.split_whitespace().next().unwrap();
        assert!(commands.contains(&command), "{line}");
    }
    for code in 0..=7 {
        let meaning = help.lines().find_map(|line| line.strip_prefix(&format!("  {code}  ")));
        let row = format!("| {code} | {} |", meaning.unwrap().trim());
        assert!(text.replace('`', "").contains(&row), "{row}");
    }
}
