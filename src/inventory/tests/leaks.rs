//! No text of an inventory comes out where it does not belong.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

const VALID: &str = r#"# c4n4ry!
version = 7

[[endpoint]]
id = "vn-a01"
url = "http://c4n4ry!.example.net:8080"
username = "c4n4ry!"
password = "c4n4ry!"
provider = "c4n4ry!"
group = 'c4n4ry!'
tags = ["c4n4ry!", """c4n4ry!"""]
weight = 2

[[endpoint]]
id = "gw"
url = "socks5h://gw2.example.net:1080"
username = "c4n4ry!-{session}"
password = { env = "PASSWORD" }
sessions = 3

[[endpoint]]
id = "in-url"
url = "http://c4n4ry!:c4n4ry!@gw3.example.net:8080"
"#;

#[test]
#[cfg(feature = "socks")]
fn debug_shows_counts_only() {
    let snapshot = read(VALID).unwrap();
    let inventory = Inventory::new(snapshot.clone(), snapshot.clone());
    let debug = format!("{snapshot:?} {inventory:?} {inventory:#?}");
    assert!(debug.contains("endpoints: 5"), "{debug}");
    for secret in ["c4n4ry", "example", "8080", "http"] {
        assert!(!debug.contains(secret), "{debug}");
    }
}

#[test]
fn the_check_for_leaks_can_fail() {
    let error = toml::de::DeTable::parse("a = c4n4ry!\n").unwrap_err();
    assert!(error.to_string().contains(CANARY));
    assert!(everything(&Error::inventory("x").with_source(error)).contains(CANARY));
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
    ] {
        assert!(read(&text).is_err());
    }
}

/// One change to a text.
#[derive(Debug, Clone)]
enum Mutation {
    Remove(Index, usize),
    Insert(Index, String),
    /// Copies a piece of the text to another place, a secret to where an id was, say.
    Copy(Index, usize, Index),
    Line(Index, Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let piece = prop_oneof!["[\\[\\]{}=\"'.,:#\\\\\n]{1,3}", "\\PC{0,4}", "[a-z0-9]{1,5}"];
    prop_oneof![
        (any::<Index>(), 1..30_usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        (any::<Index>(), piece).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        (any::<Index>(), 1..30_usize, any::<Index>())
            .prop_map(|(from, length, to)| Mutation::Copy(from, length, to)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Mutation::Line(from, to)),
    ]
}

impl Mutation {
    fn apply(&self, text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        let piece = |from: usize, length: usize| chars.iter().skip(from).take(length);
        let insert = |at: usize, new: &str| {
            piece(0, at).copied().chain(new.chars()).chain(piece(at, usize::MAX).copied()).collect()
        };
        let place = |index: &Index| index.index(chars.len() + 1);
        match self {
            Self::Remove(at, length) => {
                let at = place(at);
                piece(0, at).chain(piece(at + length, usize::MAX)).collect()
            }
            Self::Insert(at, new) => insert(place(at), new),
            Self::Copy(from, length, to) => {
                insert(place(to), &piece(place(from), *length).collect::<String>())
            }
            Self::Line(from, to) => {
                let mut lines: Vec<&str> = text.lines().collect();
                if !lines.is_empty() {
                    let line = lines.remove(from.index(lines.len()));
                    lines.insert(to.index(lines.len() + 1), line);
                }
                lines.join("\n")
            }
        }
    }
}

fn cases() -> u32 {
    if std::env::var_os("REQWEST_LEASE_LONG").is_some_and(|long| long == "1") {
        50_000
    } else {
        500
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_mutation_panics_or_leaks(mutations in proptest::collection::vec(mutation(), 1..6)) {
        let text = mutations.iter().fold(VALID.to_owned(), |text, next| next.apply(&text));
        match read(&text) {
            Ok(snapshot) => {
                let printed = format!("{snapshot:?} {:?}", snapshot.warnings());
                prop_assert!(!printed.contains(CANARY));
            }
            Err(error) => {
                prop_assert!(error.to_string().starts_with("line "), "{}", error);
                prop_assert!(!everything(&error).contains(CANARY), "{}", error);
            }
        }
    }
}
