//! Every command of the handbook, as it is written there.

use std::path::Path;

use super::{PROGRAM, RUNS_WITHIN};
use crate::support::redis::Server;

const HANDBOOK: &str = "docs/operations.md";

const LIST: &str = "gw1.example.net:8080:worker:secret-1\n\
    gw2.example.net:8080:worker:secret-2\n\
    gw3.example.net:8080:worker:secret-1\n\
    socks5h://gw4.example.net:1080\n";

const NEXT: &str = "version = 2\n\
    [[endpoint]]\nid = \"vn-001\"\nurl = \"http://gw1.example.net:8080\"\nprovider = \"example\"\n\
    [[endpoint]]\nid = \"vn-002\"\nurl = \"http://gw2.example.net:8080\"\nprovider = \"example\"\n\
    [[endpoint]]\nid = \"vn-003\"\nurl = \"http://gw3.example.net:8080\"\nprovider = \"example\"\n\
    [[endpoint]]\nid = \"vn-005\"\nurl = \"http://gw5.example.net:8080\"\nprovider = \"example\"\n";

#[test]
fn its_commands_do_what_it_says() {
    let server = Server::start(&["--appendonly", "yes"]);
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("operations.md");
    std::fs::copy(HANDBOOK, &copy).unwrap();
    // Commands run in a copy of the first directory; the second one makes it last for all of them.
    let files = directory.path().join("operations.in");
    std::fs::create_dir(&files).unwrap();
    std::fs::create_dir(directory.path().join("operations.out")).unwrap();
    std::fs::write(files.join("list.txt"), LIST).unwrap();
    std::fs::write(files.join("next.toml"), NEXT).unwrap();
    let tests = trycmd::TestCases::new();
    tests
        .register_bin("reqwest-lease", Path::new(PROGRAM))
        .timeout(RUNS_WITHIN)
        .env("LEASE_REDIS_URL", server.url())
        .env("LEASE_POOL", "vn")
        .env("LEASE_INVENTORY", "proxies.toml")
        .env("LEASE_TIMEOUT", "30s")
        .env("USER", "kim")
        .env("TZ", "UTC")
        .case(&copy);
    tests.run();
    if std::env::var_os("TRYCMD").is_some() {
        std::fs::copy(&copy, HANDBOOK).unwrap();
    }
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
