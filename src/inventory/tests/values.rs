//! What is taken, and what it becomes.

use super::*;
#[cfg(feature = "socks")]
use crate::endpoint::Scheme;

#[test]
#[cfg(feature = "socks")]
fn the_whole_form_is_taken() {
    let folder = Folder::new();
    folder.write("gw.secret", "p@ss\n");
    let file = folder.write(
        "inventory.toml",
        r#"
version = 7

[[endpoint]]
id = "vn-a01"
url = "http://gw1.example.net:8080"
username = "worker"
password = { env = "PASSWORD" }
provider = "example"
group = "qa"
tags = ["residential"]
weight = 2

[[endpoint]]
id = "gw"
url = "socks5h://gw2.example.net:1080"
username = "acct-session-{session}"
password = { file = "gw.secret" }
sessions = 8
"#,
    );
    let variables = Variables::default();
    variables.set("PASSWORD", "secret");
    let snapshot = TomlSource::file(file).with_environment(variables.environment()).read().unwrap();
    assert_eq!(snapshot.len(), 9);
    assert_eq!(snapshot.version(), Some(7));
    assert_eq!(snapshot.warnings(), []);
    assert_eq!(ids(&snapshot)[..2], ["gw_s1", "gw_s2"]);

    let plain = snapshot.get(&id("vn-a01")).unwrap();
    assert_eq!(plain.proxy_url(), "http://worker:secret@gw1.example.net:8080");
    assert_eq!(plain.labels().provider.as_deref(), Some("example"));
    assert_eq!(plain.labels().group.as_deref(), Some("qa"));
    assert_eq!(plain.labels().tags, ["residential"]);
    assert_eq!(plain.labels().weight, 2);

    let session = snapshot.get(&id("gw_s8")).unwrap();
    assert_eq!(session.scheme(), Scheme::Socks5h);
    let url = "socks5h://acct%2Dsession%2D8:p%40ss@gw2.example.net:1080";
    assert_eq!(session.proxy_url(), url);
    assert_eq!(session.labels().weight, 1);
    assert!(snapshot.get(&id("gw")).is_none());
}

#[test]
fn credentials_may_be_absent_or_partly_empty() {
    for (lines, url) in [
        ("", "http://h:8080"),
        ("username = 'u'", "http://u:@h:8080"),
        ("username = ''\npassword = { env = 'PASSWORD' }", "http://:c4n4ry%21@h:8080"),
        ("username = 'u'\npassword = ''", "http://u:@h:8080"),
        ("username = 'u'\npassword.env = 'PASSWORD'", "http://u:c4n4ry%21@h:8080"),
        ("username = 'u'\n[endpoint.password]\nenv = 'PASSWORD'", "http://u:c4n4ry%21@h:8080"),
        (
            "username = 'u'\npassword = \"a:/?#@%41é\"",
            "http://u:a%3A%2F%3F%23%40%2541%C3%A9@h:8080",
        ),
    ] {
        let text = format!("[[endpoint]]\nid = 'a'\nurl = 'http://h:8080'\n{lines}");
        let snapshot = read(&text).unwrap_or_else(|error| panic!("{error}: {lines}"));
        assert_eq!(snapshot.get(&id("a")).unwrap().proxy_url(), url, "{lines}");
    }
}

#[test]
#[cfg(feature = "socks")]
fn what_is_better_done_otherwise_is_warned_of_with_its_line() {
    let text = r#"
[[endpoint]]
id = "a"
url = "socks5://h:1080"
username = "u{session}"
password = "c4n4ry!"
sessions = 3

[[endpoint]]
id = "b"
url = "http://u:c4n4ry!@h:8080"

[[endpoint]]
id = "c"
url = "socks4://h:1080"
"#;
    let snapshot = read(text).unwrap();
    let got: Vec<_> = snapshot
        .warnings()
        .iter()
        .map(|warning| (warning.line.unwrap(), warning.endpoint.as_str(), warning.concern))
        .collect();
    let expected = [
        (6, "a", Concern::InlinePassword),
        (4, "a", Concern::Socks5ResolvesLocally),
        (11, "b", Concern::CredentialsInUrl),
        (15, "c", Concern::Socks4ResolvesLocally),
    ];
    assert_eq!(got, expected);
    let printed: String = snapshot.warnings().iter().map(|w| format!("{w} {w:?}\n")).collect();
    assert!(printed.starts_with("line 6: endpoint a: the password is written"), "{printed}");
    assert!(!printed.contains(CANARY), "{printed}");
}

#[test]
#[cfg(feature = "socks")]
fn endpoints_made_in_code_are_checked_together() {
    let endpoint = |url: &str| Endpoint::new(id("a"), url, None).unwrap();
    let none: [Endpoint; 0] = [];
    assert!(Snapshot::new(none, None).is_err());
    let twice = [endpoint("http://h:1"), endpoint("http://h:2")];
    assert!(Snapshot::new(twice, None).unwrap_err().to_string().contains("endpoint a"));
    let mut heavy = endpoint("http://h:1");
    heavy.labels.weight = 1001;
    assert!(Snapshot::new([heavy], None).is_err());
    let socks = Snapshot::new([endpoint("socks5://h:1")], Some(3)).unwrap();
    assert_eq!(socks.warnings()[0].concern, Concern::Socks5ResolvesLocally);
    assert_eq!((socks.warnings()[0].line, socks.version()), (None, Some(3)));
}

/// What is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_warning_is_logged_once_for_all_endpoints_and_not_again() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    // With one subscriber alone, another test's thread may decide that an event interests nobody.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let entry = |name: &str| {
        format!("[[endpoint]]\nid='{name}'\nurl='http://h:1'\nusername='u'\npassword='c4n4ry!'\n")
    };
    let inventory = Inventory::from_toml(&(entry("a") + &entry("b") + &entry("c"))).unwrap();
    inventory.reload().await.unwrap();
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.matches("the password is written in the inventory").count(), 1, "{text}");
    assert!(text.contains("others=2") && !text.contains("c4n4ry"), "{text}");
}
