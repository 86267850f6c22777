//! Terminals of all kinds, and the shells in them.

use std::process::Stdio;

use tokio::process::Command;

use super::ends::watched;
use super::{Ended, PROGRAM, Rig};

/// Runs a command on a terminal with so many columns.
async fn on_columns(rig: &Rig, columns: usize, line: &str) -> Ended {
    let ready = rig.program();
    let mut script = Command::new("script");
    let command = format!("stty columns {columns}; {PROGRAM} {line}");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    for (name, value) in ready.as_std().get_envs() {
        script.env(name, value.unwrap_or_default());
    }
    script.env("TERM", "xterm").current_dir(rig.path()).stdin(Stdio::null());
    Rig::end(&mut script).await
}

#[tokio::test]
async fn a_narrow_terminal_gets_words_and_not_letters() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    for columns in [20, 40, 80, 200] {
        let told = on_columns(&rig, columns, "status").await;
        assert!(told.out.contains("run out, not taken back"), "{columns}: {told:?}");
    }
    // Where there is room for some words, the last column is broken between them.
    let long = "a-name-of-some-length";
    rig.good(&format!("add {long}-1 {long}-2 {long}-3")).await;
    let told = on_columns(&rig, 110, "audit --limit 1").await;
    assert!(told.out.lines().all(|line| line.trim_end().len() <= 110), "{told:?}");
    assert_eq!(told.out.matches(long).count(), 3, "{told:?}");
    assert!(told.out.lines().count() > 2, "{told:?}");
}

#[tokio::test]
async fn a_terminal_that_cannot_draw_gets_lines() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    let dumb = watched(&rig, "dumb", "ENDPOINTS", 2).await;
    assert!(!dumb.contains('\x1b'), "{dumb:?}");
    let able = watched(&rig, "xterm", "ENDPOINTS", 1).await;
    assert!(able.contains("\x1b[H"), "{able:?}");
}

#[tokio::test]
async fn bash_completes_subcommands_and_their_values() {
    let rig = Rig::new().await;
    let script = rig.good("completions bash").await.out;
    rig.file("completions.bash", script);
    for (words, wanted) in [
        ("reqwest-lease ''", "disable"),
        ("reqwest-lease list --state ''", "quarantined"),
        ("reqwest-lease inventory ''", "import"),
        ("reqwest-lease inventory import --sec", "--secrets"),
        ("reqwest-lease --output ''", "json"),
    ] {
        let ask = format!(
            "source completions.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); \
             $(complete -p reqwest-lease | grep -o '_reqwest[^ ]*') reqwest-lease \
             \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &ask]).current_dir(rig.path());
        let told = Rig::end(&mut bash).await;
        assert!(told.out.split_whitespace().any(|word| word == wanted), "{words}: {told:?}");
    }
}

#[tokio::test]
async fn manual_pages_go_to_a_directory_that_is_made() {
    let rig = Rig::new().await;
    rig.good("man pages/man1").await;
    assert!(rig.path().join("pages/man1/reqwest-lease-inventory-import.1").exists());
}
