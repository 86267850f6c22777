//! No secret comes out: not by output, by state, by trail or by arguments.

use super::{CANARY, Rig};
use crate::support::eventually;

#[tokio::test]
async fn no_secret_is_shown_stored_or_put_into_arguments() {
    let rig = Rig::new().await;
    rig.file("list", format!("gw.test:1:worker:{CANARY}-1\nhttp://w:{CANARY}-2@gw2.test:1\n"));
    rig.good("inventory import list --to proxies.toml --secrets secrets").await;
    rig.file("inline.toml", format!("[[endpoint]]\nid = 'a'\nurl = 'http://u:{CANARY}@h:1'\n"));
    rig.file("broken.toml", format!("[[endpoint]]\nid = 'a'\nurl = 'h:1:u:{CANARY}'\n"));
    // Each call is looked through as it ends.
    for line in [
        "inventory check --inventory proxies.toml",
        "inventory check --inventory inline.toml",
        "inventory check --inventory broken.toml",
        "inventory import list",
        "init --inventory broken.toml",
        "init --inventory proxies.toml",
        "status",
        "list --inventory proxies.toml",
        "disable p-001",
        "add h:1:u:c4n4ry",
        "sync --inventory inline.toml --yes",
        "sync --inventory inline.toml --dry-run",
        "doctor --inventory inline.toml",
        "doctor --inventory broken.toml",
        "fetch --inventory inline.toml http://u:c4n4ry@127.0.0.1:9/ --within 1s",
        "fetch --inventory inline.toml http://127.0.0.1:9/c4n4ry --within 1s",
        "probe a --inventory inline.toml --url http://u:c4n4ry@127.0.0.1:9/c4n4ry --within 1s",
        "probe --all --inventory inline.toml --url http://127.0.0.1:9/?c4n4ry --quarantine --yes",
        "probe a --inventory inline.toml --url ftp://u:c4n4ry@h",
        "probe h:1:u:c4n4ry --inventory inline.toml --url http://127.0.0.1:9/",
        "audit",
        "acl",
        "reap --by http://u:c4n4ry@h",
        "status --output redis://u:c4n4ry@h",
        "status --pool=redis://u:c4n4ry@h",
        "bench --for 100ms --endpoints 5",
    ] {
        rig.words(line).await;
        rig.words(&format!("{line} --output json")).await;
    }

    let mut keys: Vec<String> = rig.redis.send("KEYS *").await;
    assert!(keys.iter().any(|key| key.ends_with(":audit")), "{keys:?}");
    for key in keys.drain(..) {
        let held: Vec<u8> = rig.redis.send(&format!("DUMP {key}")).await;
        let found = held.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
        assert!(!found && !key.contains(CANARY), "{key}");
    }

    let mut program = rig.program();
    let child = program.args(["status", "--watch"]).spawn().unwrap();
    let id = child.id().unwrap();
    let arguments = eventually("the program's arguments", || {
        let text = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        text.contains("--watch").then_some(text)
    });
    assert!(!arguments.await.contains(CANARY));
}

#[tokio::test]
async fn the_look_for_secrets_can_fail() {
    let rig = Rig::new().await;
    // A user's name is none, and stands in the inventory.
    rig.file("list", format!("gw.test:1:{CANARY}:word\n"));
    let mut program = rig.program();
    let output = program.args(["inventory", "import", "list", "--env-file", "env"]).output().await;
    let printed = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(printed.contains(CANARY), "{printed}");
}
