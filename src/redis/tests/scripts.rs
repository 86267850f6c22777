//! The headers of `lua/` are true, and its words are this crate's.

use std::collections::BTreeSet;

use crate::redis::commands::{self, Command};
use crate::redis::words::{code, head};

/// The parts of a header: purpose, keys, arguments, first words of replies.
struct Header {
    purpose: String,
    keys: String,
    args: String,
    replies: Vec<String>,
}

fn header(command: &Command) -> Header {
    let comment = command.header.lines().map_while(|line| line.strip_prefix("--"));
    let comment = comment.collect::<Vec<_>>().join("\n");
    let (purpose, rest) = comment.split_once("\n KEYS:").expect("a line of KEYS");
    let (keys, rest) = rest.split_once("\n ARGV:").expect("a line of ARGV");
    let (args, replies) = rest.split_once("\n Replies:\n").expect("a line of Replies");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = |line: &str| {
        line.strip_prefix("   ")
            .filter(|line| !line.starts_with(' '))
            .map(|line| line.split([' ', ':']).next().unwrap_or_default().to_owned())
    };
    Header {
        purpose: words(purpose),
        keys: words(keys),
        args: words(args),
        replies: replies.lines().filter_map(first).collect(),
    }
}

#[test]
fn headers_tell_keys_and_arguments_as_they_are_sent() {
    for command in commands::ALL {
        let Header { purpose, keys, args, .. } = header(command);
        let name = command.script.name;
        assert!(purpose.ends_with('.'), "{name}");
        let optional = |key: &&str| key.ends_with(['*', '?']);
        let fixed: Vec<_> = keys.split(' ').take_while(|key| !optional(key)).collect();
        assert_eq!(fixed.join(" "), command.keys.join(" "), "{name}");
        assert_eq!(args, command.args, "{name}");
    }
}

#[test]
fn headers_tell_all_replies_and_only_those() {
    let known: BTreeSet<_> = head::ALL.iter().copied().collect();
    let mut used = BTreeSet::new();
    for command in commands::ALL {
        let source = command.script.source;
        let told: BTreeSet<_> = header(command).replies.into_iter().collect();
        let given: BTreeSet<_> = quoted(source, "{'", "'").filter(|w| known.contains(*w)).collect();
        // A reply that is built up begins on a line of its own.
        let given = given.into_iter().chain(
            source
                .lines()
                .filter_map(|line| line.trim().strip_prefix('\'')?.split('\'').next())
                .filter(|word| known.contains(*word)),
        );
        let given: BTreeSet<_> = given.map(str::to_owned).collect();
        for word in &told {
            assert!(given.contains(word), "{} never answers {word}", command.script.name);
        }
        let body: BTreeSet<_> = quoted(command.header, "{'", "'").map(str::to_owned).collect();
        for word in body.iter().filter(|word| known.contains(word.as_str())) {
            assert!(told.contains(word), "{} does not tell of {word}", command.script.name);
        }
        used.extend(told);
    }
    assert_eq!(used.iter().map(String::as_str).collect::<BTreeSet<_>>(), known);
}

#[test]
fn scripts_raise_codes_of_the_table() {
    let codes: BTreeSet<_> = commands::ALL
        .iter()
        .flat_map(|command| quoted(command.script.source, "err = '", " "))
        .collect();
    assert_eq!(codes, code::ALL.iter().copied().collect());
}

#[test]
fn scripts_keep_to_the_rules() {
    for command in commands::ALL {
        let (name, source) = (command.script.name, command.script.source);
        assert!(source.starts_with("#!lua"), "{name}");
        assert!(command.header.lines().count() < 80, "{name} is too long");
        for banned in ["math.random", "redis.call(", "redis.pcall(", "os.", "SCRIPT"] {
            assert!(!source.contains(banned), "{name} has {banned}");
        }
        assert_eq!(source.matches("'TIME'").count(), 1, "{name}");
    }
}

#[test]
fn arguments_are_told_apart() {
    assert!(commands::ACQUIRE.takes(&[
        "ttl_us",
        "cooldown_us",
        "random",
        "prefer",
        "tokens",
        "token",
        "token",
        "exclude",
    ]));
    let least = ["ttl_us", "cooldown_us", "random", "prefer", "tokens"];
    assert!(!commands::ACQUIRE.takes(&least));
    let release = ["token", "cooldown_us", "strike", "quarantine", "shun_us"];
    assert!(commands::RELEASE.takes(&[&release[..], &release, &["hint"]].concat()));
    assert!(!commands::RELEASE.takes(&[&release[..4], &["hint"]].concat()));
    assert!(commands::REAP.takes(&[]) && !commands::REAP.takes(&["id"]));
}

/// What stands between two marks.
fn quoted<'a>(source: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    source.split(open).skip(1).filter_map(move |rest| rest.split(close).next())
}
