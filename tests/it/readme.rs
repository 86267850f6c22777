//! The README's commands are run, and its code is kept short.

use std::process::Stdio;

use crate::support::cargo;

const README: &str = include_str!("../../README.md");

/// The lines of all code blocks of one language.
fn blocks(language: &str) -> Vec<Vec<&'static str>> {
    let mut found = Vec::new();
    let mut lines = README.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let block = lines.by_ref().take_while(|line| *line != "```").collect();
            if info == language {
                found.push(block);
            }
        }
    }
    found
}

/// The commands in code blocks, and those in running text.
fn commands() -> Vec<&'static str> {
    let inline = README.split('`').skip(1).step_by(2).filter(|text| text.starts_with("cargo "));
    blocks("sh").concat().into_iter().chain(inline).collect()
}

#[test]
fn every_command_of_the_readme_runs() {
    let commands = commands();
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        // This very test is part of it.
        if command == "tests/run" {
            continue;
        }
        let mut words = command.split(' ');
        assert_eq!(words.next(), Some("cargo"), "{command}");
        let status = cargo().args(words).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{command}");
    }
}

#[test]
fn the_quick_start_has_at_most_twenty_lines() {
    let code = &blocks("rust,no_run")[0];
    let lines = code.iter().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 20, "{lines} lines");
}
