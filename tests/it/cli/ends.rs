//! How the program ends: codes, questions, readers that go away.

use std::process::Stdio;

#[cfg(any(feature = "redis-cluster", feature = "redis-sentinel"))]
use http::StatusCode;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use super::{PROGRAM, Rig};
#[cfg(any(feature = "redis-cluster", feature = "redis-sentinel"))]
use crate::support::{
    origin::{Origin, text},
    redis::Server,
    tinyproxy::Tinyproxy,
};

#[tokio::test]
async fn a_store_that_is_away_and_one_that_refuses_are_told_apart() {
    let rig = Rig::new().await;
    let with_url = async |url: String, line: &str| {
        let mut program = rig.program();
        Rig::end(program.env("LEASE_REDIS_URL", url).args(line.split(' '))).await
    };
    let nowhere = with_url("redis://127.0.0.1:9".into(), "status").await;
    assert_eq!(nowhere.code, 3, "{nowhere:?}");
    assert!(nowhere.err.contains("cannot be reached"), "{nowhere:?}");
    let doctor = with_url("redis://127.0.0.1:9".into(), "doctor").await;
    assert_eq!(doctor.code, 3, "{doctor:?}");
    assert!(doctor.out.contains("mend: check the address in LEASE_REDIS_URL"), "{doctor:?}");
    let stranger = with_url(rig.url().replace("kim:", "nobody:"), "status").await;
    assert_eq!(stranger.code, 4, "{stranger:?}");
    let senseless = with_url("c4n4ry".into(), "status").await;
    assert_eq!(senseless.code, 2, "{senseless:?}");
    assert_eq!(rig.words("status").await.code, 5);
    rig.set_up(2).await;
    assert_eq!(rig.words("status").await.code, 0);
}

#[tokio::test]
async fn the_url_comes_from_a_file_or_standard_input_as_well() {
    let rig = Rig::new().await;
    rig.set_up(2).await;
    rig.file("url", format!("{}\n", rig.url()));
    let mut program = rig.program();
    program.env_remove("LEASE_REDIS_URL");
    let ended = Rig::end(program.args(["status", "--redis-url-file", "url"])).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let mut program = rig.program();
    program.env_remove("LEASE_REDIS_URL").env("LEASE_REDIS_URL_FILE", "-").arg("status");
    let ended = Rig::fed(&mut program, &rig.url()).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let mut program = rig.program();
    let ended = Rig::end(program.env_remove("LEASE_REDIS_URL").arg("status")).await;
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains("LEASE_REDIS_URL"), "{ended:?}");
}

#[tokio::test]
async fn a_terminal_is_asked_before_what_cannot_be_taken_back() {
    let rig = Rig::new().await;
    rig.set_up(2).await;
    rig.good("pause").await;
    // Without a terminal nobody can be asked.
    assert_eq!(rig.words("destroy").await.code, 4);
    for (answer, code, status) in [("n\n", 4, 0), ("\n", 4, 0), ("y\n", 0, 5)] {
        let asked = terminal(&rig, "destroy", answer).await;
        assert!(asked.out.contains("erase pool conformance"), "{asked:?}");
        assert_eq!(asked.code, code, "{answer:?}: {asked:?}");
        assert_eq!(rig.words("status").await.code, status, "{answer:?}");
    }
}

/// A command on a terminal of its own.
fn on_terminal(rig: &Rig, line: &str) -> Command {
    on_terminal_of(rig, 100, line)
}

/// The same on one of so many columns.
fn on_terminal_of(rig: &Rig, columns: usize, line: &str) -> Command {
    let line = format!("stty cols {columns}; exec {PROGRAM} {line}");
    let ready = rig.program();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    for (name, value) in ready.as_std().get_envs() {
        script.env(name, value.unwrap_or_default());
    }
    script.env("TERM", "xterm").stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    script.current_dir(rig.path());
    script
}

/// Runs a command on a terminal, and answers what it asks.
async fn terminal(rig: &Rig, line: &str, answer: &str) -> super::Ended {
    Rig::fed(&mut on_terminal(rig, line), answer).await
}

/// Runs a command on a terminal of so many columns.
pub(super) async fn terminal_of(rig: &Rig, columns: usize, line: &str) -> super::Ended {
    Rig::fed(&mut on_terminal_of(rig, columns, line), "").await
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_failure() {
    let rig = Rig::new().await;
    rig.set_up(2000).await;
    let mut child = rig.program().arg("list").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().unwrap().starts_with("ENDPOINT"));
    drop(lines);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[tokio::test]
async fn watching_tells_a_document_a_line_until_nobody_reads() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    let mut program = rig.program();
    program.args(["status", "--watch=200ms", "--output", "json"]);
    let mut child = program.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for nth in 0..3 {
        let line = lines.next_line().await.unwrap().unwrap();
        let status: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(status["ready"], 3);
        assert_eq!(status["grants_per_second"].is_null(), nth == 0, "{line}");
    }
    drop(lines);
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

/// Watches on a terminal until it has shown this so often, and then interrupts it from the keyboard.
pub(super) async fn watched(rig: &Rig, terminal: &str, mark: &str, times: usize) -> String {
    let mut watching = on_terminal(rig, "status --watch=200ms");
    let mut child = watching.env("TERM", terminal).stdin(Stdio::piped()).spawn().unwrap();
    let mut screen = child.stdout.take().unwrap();
    // It stays open to the end, which a terminal would be told of too.
    let mut keyboard = child.stdin.take().unwrap();
    let (mut drawn, mut is_pressed) = (Vec::new(), false);
    let all = async {
        while screen.read_buf(&mut drawn).await.unwrap() > 0 {
            let shown = String::from_utf8_lossy(&drawn);
            if !is_pressed && shown.matches(mark).count() >= times {
                // The third character of the alphabet, with control held.
                keyboard.write_all(b"\x03").await.unwrap();
                is_pressed = true;
            }
        }
        child.wait_with_output().await.unwrap()
    };
    let ended = tokio::time::timeout(super::RUNS_WITHIN, all).await;
    let drawn = String::from_utf8_lossy(&drawn).into_owned();
    let ended = ended.unwrap_or_else(|_| panic!("no end, interrupted: {is_pressed}, {drawn:?}"));
    assert!(is_pressed, "it ended by itself: {ended:?}, {drawn:?}");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}, {drawn:?}");
    drawn
}

#[tokio::test]
async fn watching_on_a_terminal_draws_over_what_was_there_until_an_interrupt() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    // The second frame begins where the first did.
    watched(&rig, "xterm", "\x1b[H", 2).await;
}

#[tokio::test]
async fn each_command_has_help_a_manual_and_completions() {
    let rig = Rig::new().await;
    let help = rig.good("--help").await.out;
    for line in [
        "  0  done",
        "  1  failed",
        "  2  an argument",
        "  3  the store could not",
        "  4  refused",
        "  5  the pool is not set up",
        "  6  findings",
        "  7  not in time",
    ] {
        assert!(help.contains(line), "{line}\n{help}");
    }
    rig.good("man .").await;
    assert!(rig.path().join("reqwest-lease-sync.1").exists());
    assert!(rig.good("man").await.out.starts_with(".ie"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(rig.good(&format!("completions {shell}")).await.out.contains("reqwest-lease"));
    }
    for command in ["init", "sync", "drain", "probe", "doctor", "inventory import"] {
        let long = rig.good(&format!("{command} --help")).await.out;
        assert!(long.contains("Usage: reqwest-lease"), "{long}");
    }
}

/// All of a day's commands on a store that is found by these settings.
#[cfg(any(feature = "redis-cluster", feature = "redis-sentinel"))]
async fn is_looked_after(settings: &[(&str, &str)]) {
    let directory = tempfile::tempdir().unwrap();
    let proxy = Tinyproxy::start(None);
    let entry = |nth: usize| format!("[[endpoint]]\nid = 'e{nth}'\nurl = '{}'\n", proxy.url());
    let inventory: String = (0..3).map(entry).collect();
    std::fs::write(directory.path().join("proxies.toml"), inventory).unwrap();
    let origin = Origin::http(|_| text(StatusCode::OK, "hello")).await;
    for line in [
        "init",
        "list",
        "status",
        "sync --dry-run",
        "disable e0",
        "enable e0",
        "drain e1 --wait=1m",
        "enable e1",
        "quarantine e2 --reason probe",
        "fetch PAGE",
        "probe --all --url PAGE --quarantine",
        "list --state ready --limit 3",
        "pause",
        "resume",
        "remove e2 --yes",
        "sync --yes",
        "reap",
        "doctor",
        "doctor --repair",
        "bench --for 100ms",
        "audit",
        "pause",
        "destroy --yes",
    ] {
        let mut program = Command::new(PROGRAM);
        program
            .env_clear()
            .envs(settings.iter().copied())
            .env("LEASE_POOL", "vn")
            .env("LEASE_INVENTORY", "proxies.toml")
            .env("LEASE_TIMEOUT", "30s")
            .args(line.replace("PAGE", &origin.url("/")).split(' '))
            .current_dir(directory.path());
        let ended = Rig::end(&mut program).await;
        assert_eq!(ended.code, 0, "{line}: {ended:?}");
        if line.starts_with("probe") {
            assert!(ended.out.contains("3 of 3 endpoints passed"), "{ended:?}");
            assert!(ended.out.contains("taken out of quarantine: 1 (e2)"), "{ended:?}");
        }
    }
}

#[cfg(feature = "redis-cluster")]
#[tokio::test]
async fn a_pool_of_a_cluster_is_looked_after_as_any_other() {
    let server = Server::start(&["--cluster-enabled", "yes", "--appendonly", "yes"]);
    let mut connection = server.connection().await;
    let slots = redis::cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(0).arg(16383).to_owned();
    slots.exec_async(&mut connection).await.unwrap();
    let urls = format!("{0} {0}", server.url());
    is_looked_after(&[("LEASE_REDIS_URL", &urls), ("LEASE_CLUSTER", "true")]).await;
}

#[cfg(all(feature = "redis-cluster", feature = "redis-sentinel"))]
#[tokio::test]
async fn a_pool_that_sentinels_watch_is_looked_after_as_any_other() {
    let primary = Server::start(&["--appendonly", "yes"]);
    let watch = crate::redis_topologies::Watch::over(&primary).await;
    let urls = format!("redis://whoever {}", watch.urls().join(" "));
    is_looked_after(&[("LEASE_REDIS_URL", &urls), ("LEASE_SENTINEL", "pool")]).await;
    for (name, code) in [("pool", 5), ("stranger", 3)] {
        let mut program = Command::new(PROGRAM);
        program.env_clear().env("LEASE_REDIS_URL", &urls).env("LEASE_TIMEOUT", "30s");
        let ended = Rig::end(program.args(["status", "--pool", "vn", "--sentinel", name])).await;
        assert_eq!(ended.code, code, "{name}: {ended:?}");
    }
}
