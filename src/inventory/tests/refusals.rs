//! One row for each kind of refusal: where it points, what it says, and that it repeats nothing.

use super::*;

/// Text, position and part of the message. `[E]` is a header with a valid id and url, 3 lines.
type Row<'a> = (&'a str, &'a str, &'a str);

const HEADER: &str = "[[endpoint]]\nid = 'a'\nurl = 'http://c4n4ry!:8080'\n";

fn check(rows: &[Row<'_>]) {
    for (text, position, fragment) in rows {
        let text = text.replace("[E]", HEADER);
        let error = read(&text).err().unwrap_or_else(|| panic!("taken: {text}"));
        let message = error.to_string();
        assert_eq!(error.kind(), crate::Kind::Inventory);
        assert!(message.starts_with(&format!("{position}: ")), "{message}\nof {text}");
        assert!(message.contains(fragment), "{message}\nof {text}");
        assert!(!everything(&error).contains("c4n4ry"), "{message}\nof {text}");
    }
}

#[test]
fn the_frame() {
    check(&[
        ("", "line 1, column 1", "no endpoints"),
        ("endpoint = []", "line 1, column 1", "no endpoints"),
        ("version = 1", "line 1, column 1", "no endpoints"),
        ("version = -1\n[E]", "line 1, column 11", "`version` must be 0 to"),
        ("version = 99999999999999999999\n[E]", "line 1, column 11", "`version` must be 0 to"),
        ("version = 'c4n4ry!'\n[E]", "line 1, column 11", "type string"),
        ("version = 1.5\n[E]", "line 1, column 11", "type float"),
        ("version = 2026-01-01\n[E]", "line 1, column 11", "type datetime"),
        ("c4n4ry = 1\n[E]", "line 1, column 1", "known keys here are version, endpoint"),
        ("'c4n4ry!' = 1\n[E]", "line 1, column 1", "unknown key"),
        ("[[c4n4ry]]\nid = 'a'\n", "line 1, column 3", "unknown key"),
        ("[endpoint]\nid = 'c4n4ry!'", "line 1, column 1", "[[endpoint]]"),
        ("endpoint = 'c4n4ry!'", "line 1, column 12", "array of tables"),
        ("endpoint = [{id='a',url='http://h:1'}, 'c4n4ry!']", "line 1, column 40", "endpoint 2: "),
    ]);
}

#[test]
fn ids_and_keys() {
    let long = format!("[[endpoint]]\nid = '{}'\nurl = 'http://h:1'", "a".repeat(65));
    let long_session = format!(
        "[[endpoint]]\nid = '{}'\nurl = 'http://h:1'\nusername = '{{session}}'\nsessions = 10",
        "a".repeat(61)
    );
    check(&[
        (
            "[[endpoint]]\nurl = 'http://c4n4ry!:1'",
            "line 1, column 1",
            "endpoint 1: `id` is missing",
        ),
        ("[[endpoint]]\nID = 'c4n4ry!'", "line 2, column 1", "endpoint 1: unknown key"),
        ("[[endpoint]]\nid = 'c4n4ry!'", "line 2, column 6", "byte 6"),
        ("[[endpoint]]\nid = ''", "line 2, column 6", "must not be empty"),
        ("[[endpoint]]\nid = 7", "line 2, column 6", "`id` must be a string"),
        (&long, "line 2, column 6", "at most 64 bytes"),
        (
            &long_session,
            "line 2, column 6",
            "a session's number behind it: a name has at most 64 bytes",
        ),
        ("[[endpoint]]\nid = 'a'\n", "line 1, column 1", "endpoint 1 (a): `url` is missing"),
        ("[E]c4n4ry = 'c4n4ry!'", "line 4, column 1", "id, url, username, password, provider"),
        (
            "[E]\n[E]",
            "line 6, column 6",
            "endpoint 2 (a): the id a is taken already, by the endpoint on line 2",
        ),
        (
            "[[endpoint]]\nid = 'g_s2'\nurl = 'http://h:1'\n[[endpoint]]\nid = 'g'\nurl = 'http://h:1'\n\
             username = 'c4n4ry!{session}'\nsessions = 3",
            "line 5, column 6",
            "endpoint 2 (g): the id g_s2 is taken already, by the endpoint on line 2",
        ),
        (
            "[[endpoint]]\nid = 'g'\nurl = 'http://h:1'\nusername = 'c4n4ry!{session}'\nsessions = 3\n\
             [[endpoint]]\nid = 'g_s2'\nurl = 'http://h:1'",
            "line 7, column 6",
            "by the endpoint on line 2",
        ),
    ]);
}

#[test]
#[cfg(feature = "socks")]
fn urls() {
    let of = |url: &str| format!("[[endpoint]]\nid = 'a'\nurl = '{url}'");
    for (url, fragment) in [
        ("ftp://c4n4ry!:1", "none of http, https"),
        ("http://", "no host"),
        ("http://c4n4ry!:0", "port 0"),
        ("socks5h://c4n4ry!", "no port"),
        ("c4n4ry!", "not a valid URL"),
        ("http://c4n4ry!:99999", "not a valid URL"),
        ("http://c4n4ry!:1/path", "more than scheme, host and port"),
        ("http://u:c4n4ry!%FF@h:1", "not UTF-8"),
        ("http://u:c4n4ry!%00@h:1", "control characters"),
        ("gw1.example.net:8080:user:c4n4ry!", "proxy list"),
        ("user:c4n4ry!@gw1.example.net:8080", "proxy list"),
    ] {
        check(&[(&of(url), "line 3, column 7", fragment)]);
    }
    check(&[("[[endpoint]]\nid = 'a'\nurl = 1", "line 3, column 7", "`url` must be a string")]);
}

#[test]
#[cfg(feature = "socks")]
fn credentials() {
    let long = "c4n4ry!".repeat(40);
    let socks = "[[endpoint]]\nid = 'a'\nurl = 'socks5h://h:1'\n";
    let long_user = format!("{socks}username = '{long}'\npassword = 'c4n4ry!'");
    let long_password = format!("{socks}username = 'c4n4ry!'\npassword = '{long}'");
    check(&[
        ("[E]password = 'c4n4ry!'", "line 4, column 12", "`password` needs `username`"),
        ("[E]username = 7", "line 4, column 12", "`username` must be a string"),
        ("[E]username = ['c4n4ry!']", "line 4, column 12", "type array"),
        ("[E]username = 'c4n4ry!'\npassword = 7", "line 5, column 12", "`password` must be"),
        ("[E]username = 'c4n4ry!'\npassword = true", "line 5, column 12", "type boolean"),
        (
            "[E]username = 'c4n4ry!'\npassword = {}",
            "line 5, column 12",
            "must have `env` or `file`",
        ),
        (
            "[E]username = 'u'\npassword = { env = 'PASSWORD', file = 'c4n4ry!' }",
            "line 5, column 39",
            "both `env` and `file`",
        ),
        (
            "[E]username = 'u'\npassword = { c4n4ry = 'c4n4ry!' }",
            "line 5, column 14",
            "known keys here are env, file",
        ),
        (
            "[E]username = 'u'\npassword = { env = 7 }",
            "line 5, column 20",
            "`env` must be a string",
        ),
        ("[E]username = 'u'\npassword = { env = '' }", "line 5, column 20", "name a variable"),
        ("[E]username = 'u'\npassword = { file = '' }", "line 5, column 21", "name a file"),
        (
            "[E]username = 'u'\npassword = { env = 'UNSET_1' }",
            "line 5, column 20",
            "variable UNSET_1 is not set",
        ),
        ("[E]username = 'u'\npassword = { env = 'EMPTY' }", "line 5, column 20", "EMPTY is empty"),
        (
            "[E]username = 'u'\npassword = { env = 'c4n4ry!' }",
            "line 5, column 20",
            "variable named here is not set",
        ),
        (
            "[E]username = 'u'\npassword = { file = 'c4n4ry!' }",
            "line 5, column 21",
            "file named here does not exist",
        ),
        (
            "[E]username = 'u'\npassword = { env = 'c4n4ry' }",
            "line 5, column 20",
            "variable named here is not set",
        ),
        (
            "[E]username = 'u'\npassword = { file = 'h:1:u:c4n4ry' }",
            "line 5, column 21",
            "file named here does not exist",
        ),
        (
            "[E]username = 'u'\npassword = { file = 'no/such.secret' }",
            "line 5, column 21",
            "file \"no/such.secret\" does not exist",
        ),
        (
            "[E]username = 'u'\n[endpoint.password]\nvault = 'c4n4ry!'",
            "line 6, column 1",
            "unknown",
        ),
        ("[E]username = 'u'\npassword.vault = 'c4n4ry!'", "line 5, column 10", "unknown"),
        (
            "[[endpoint]]\nid = 'a'\nurl = 'http://c4n4ry!:c4n4ry!@h:1'\nusername = 'c4n4ry!'",
            "line 3, column 7",
            "in the url and beside it",
        ),
        ("[E]username = 'c4n4ry!:c4n4ry!'", "line 4, column 12", "cannot contain a colon"),
        ("[E]username = \"c4n4ry!\\u0000\"", "line 4, column 12", "control characters"),
        ("[E]username = 'u'\npassword = \"c4n4ry!\\n\"", "line 5, column 12", "control characters"),
        (&long_user, "line 4, column 12", "at most 255 bytes"),
        (&long_password, "line 5, column 12", "at most 255 bytes"),
    ]);
}

#[test]
fn sessions_and_labels() {
    check(&[
        ("[E]weight = 0", "line 4, column 10", "`weight` must be 1 to 1000"),
        ("[E]weight = 1001", "line 4, column 10", "`weight` must be 1 to 1000"),
        ("[E]weight = -3", "line 4, column 10", "`weight` must be 1 to 1000"),
        ("[E]weight = 'c4n4ry!'", "line 4, column 10", "`weight` must be an integer"),
        ("[E]sessions = 0", "line 4, column 12", "`sessions` must be 1 to 10000"),
        ("[E]sessions = 10001", "line 4, column 12", "`sessions` must be 1 to 10000"),
        ("[E]sessions = 2", "line 4, column 12", "needs `{session}` in `username`"),
        ("[E]username = 'c4n4ry!'\nsessions = 2", "line 5, column 12", "needs `{session}`"),
        ("[E]username = 'c4n4ry!{session}'", "line 4, column 12", "needs `sessions`"),
        ("[E]tags = 'c4n4ry!'", "line 4, column 8", "`tags` must be an array of strings"),
        ("[E]tags = ['ok', 7]", "line 4, column 15", "`tags` must be an array of strings"),
        ("[E]tags = ['c4n4ry!', ' ']", "line 4, column 20", "`tags` must not be empty"),
        ("[E]tags = [\"c4n4ry!\\u001b\"]", "line 4, column 9", "control characters"),
        ("[E]provider = ''", "line 4, column 12", "`provider` must not be empty"),
        ("[E]group = 7", "line 4, column 9", "`group` must be a string"),
    ]);
}

#[test]
fn syntax() {
    check(&[
        ("[E]id = 'c4n4ry!'", "line 4, column 1", "not valid TOML: duplicate key"),
        ("[E]group = c4n4ry!", "line 4, column 9", "string values must be quoted"),
        ("[E]group = 'c4n4ry!", "line 4, column 17", "not valid TOML"),
        ("[E]tags = ['c4n4ry!' 'c4n4ry!']", "line 4, column 19", "missing comma"),
        ("[E]é = 'c4n4ry!'", "line 4, column 1", "not valid TOML"),
        ("[[endpoint]\nid = 'c4n4ry!'", "line 1, column 12", "unclosed array table"),
        ("gw1.example.net:8080:user:c4n4ry!\n", "line 1, column 1", "proxy list"),
        ("[E]\n10.0.0.1:8080:user:c4n4ry!\n", "line 5, column 1", "proxy list"),
        ("user:c4n4ry!@gw1.example.net:8080\n", "line 1, column 1", "proxy list"),
        ("http://user:c4n4ry!@gw1.example.net:8080\n", "line 1, column 1", "proxy list"),
        ("http://c4n4ry!:8080\nhttp://c4n4ry!:8080\n", "line 1, column 1", "proxy list"),
    ]);
}

#[test]
fn more_endpoints_than_memory_should_hold_are_refused() {
    let entry = |nth: usize| {
        format!(
            "[[endpoint]]\nid='g{nth}'\nurl='http://h:1'\nusername='{{session}}'\nsessions=10000\n"
        )
    };
    let text: String = (0..3).map(entry).collect();
    assert!(read(&text).unwrap_err().to_string().contains("at most 20000 endpoints"));
}

#[test]
fn columns_count_characters_and_crlf_lines_count_once() {
    check(&[
        ("[[endpoint]]\r\nid = 'a'\r\nurl = 'ftp://h:1'\r\n", "line 3, column 7", "scheme"),
        ("endpoint = [{ group = 'éé', id = '!' }]", "line 1, column 34", "byte 0"),
        ("\u{feff}[[endpoint]]\nid = '!'\n", "line 2, column 6", "byte 0"),
    ]);
}
