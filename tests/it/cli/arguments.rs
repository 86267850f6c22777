//! Arguments and variables, also such as nobody would give on purpose.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::Rig;

#[tokio::test]
async fn arguments_that_are_no_text_or_out_of_range_are_refused() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    for word in ["frobnicate", "disable", "list"] {
        let words = [OsStr::new(word), OsStr::from_bytes(b"\xff\xfe")];
        assert_eq!(rig.run(&words).await.code, 2, "{word}");
    }
    for line in [
        "status --timeout 18446744073709551615",
        "status --timeout 0",
        "bench --for 99999999h",
        "fetch http://x/ --attempts 0",
        "fetch http://x/ --within 0",
        "add e1 --weight 0",
        "add e1 --weight 1001",
        "add e1 --count 2199023255553",
        "init --inventory proxies.toml --largest-ttl 0",
        "init --inventory proxies.toml --largest-ttl 2h",
        "bench --for 1ms --pool a.b",
        "acl worker --user a\\b",
        "acl --namespace a:b",
        "acl --namespace {a}",
    ] {
        let ended = rig.words(line).await;
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{line}: {ended:?}");
        assert!(!ended.err.contains("panicked"), "{ended:?}");
    }
    for user in ["", "a b", "a\nFLUSHALL", "a\""] {
        let ended = rig.run(&["acl", "worker", "--user", user]).await;
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{user:?}: {ended:?}");
    }
    rig.good("status --timeout 8760h").await;
}

#[tokio::test]
async fn an_empty_variable_is_none() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    let mut program = rig.program();
    for name in [
        "LEASE_INVENTORY",
        "LEASE_REDIS_URL_FILE",
        "LEASE_SENTINEL",
        "LEASE_CLUSTER",
        "LEASE_TIMEOUT",
        "LEASE_OUTPUT",
        "LEASE_BY",
    ] {
        program.env(name, "");
    }
    let ended = Rig::end(program.args(["disable", "e1"])).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    for (name, says) in [("LEASE_POOL", "which pool?"), ("LEASE_REDIS_URL", "where is the store?")]
    {
        let ended = Rig::end(rig.program().env(name, "").arg("status")).await;
        assert!(ended.code == 2 && ended.err.contains(says), "{name}: {ended:?}");
    }
    for (value, code) in [("0", 0), ("false", 0), ("no", 0), ("1", 4), ("true", 4), ("maybe", 2)] {
        let ended = Rig::end(rig.program().env("LEASE_CLUSTER", value).arg("status")).await;
        assert_eq!(ended.code, code, "{value}: {ended:?}");
    }
}

#[tokio::test]
async fn a_name_that_is_given_twice_counts_once() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    for (line, says) in [
        ("disable e0 e1 e0", "disabled 2 endpoints\n"),
        ("drain e0 e0", "draining 1 endpoint\n"),
        ("enable e0 e0 e1", "enabled 2 endpoints\n"),
        ("add e1 e1 --weight 7", "added or changed 1 endpoint\n"),
    ] {
        let ended = rig.good(line).await;
        assert!(ended.out.starts_with(says), "{line}: {ended:?}");
    }
    let trail = rig.json("audit --limit 1").await;
    assert_eq!((&trail[0]["number"], &trail[0]["endpoints"][0]), (&1.into(), &"e1".into()));
}

#[tokio::test]
async fn warnings_that_nobody_can_read_stop_nothing() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for line in ["list --inventory nowhere", "acl", "list --limit 1"] {
        let mut program = rig.program();
        let output = program.args(line.split(' ')).stderr(full()).output().await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}");
    }
    for (line, code) in [("--help", 1), ("status", 1), ("frobnicate", 2)] {
        let mut program = rig.program();
        program.args(line.split(' ')).stdout(full()).stderr(full());
        assert_eq!(program.status().await.unwrap().code(), Some(code), "{line}");
    }
}

#[tokio::test]
async fn one_endpoint_can_be_looked_at() {
    let rig = Rig::new().await;
    rig.set_up(20).await;
    let listed = rig.json("list e7 e3 e7").await;
    let ids: Vec<_> = listed.as_array().unwrap().iter().map(|member| &member["id"]).collect();
    assert_eq!(ids, ["e3", "e7"]);
    let nobody = rig.words("list e3 nobody").await;
    assert_eq!((nobody.code, nobody.out.as_str()), (4, ""), "{nobody:?}");
}

#[tokio::test]
async fn what_is_said_in_json_is_json_however_it_ends() {
    let rig = Rig::new().await;
    rig.file("broken.toml", "[[endpoint]]\n");
    rig.file("list.txt", "gw.test:1\n");
    let commands = [
        "init --inventory broken.toml",
        "list",
        "status",
        "audit",
        "reap",
        "doctor",
        "acl",
        "acl --user a",
        "pause",
        "resume",
        "resume --now",
        "disable e0",
        "enable nobody",
        "quarantine e1",
        "drain e0 --wait=0",
        "add e9",
        "remove e9",
        "remove e9 --yes",
        "sync --inventory proxies.toml",
        "sync --inventory proxies.toml --dry-run",
        "inventory check --inventory broken.toml",
        "inventory check --inventory proxies.toml --without-passwords",
        "inventory import list.txt --to new.toml --force",
        "inventory import broken.toml --to new.toml --force",
        "fetch http://127.0.0.1:9/ --inventory broken.toml",
        "bench --for 50ms --endpoints 5",
        "destroy",
        "destroy --yes",
    ];
    for set_up in [false, true] {
        if set_up {
            rig.set_up(3).await;
        }
        for command in commands {
            let ended = rig.words(&format!("{command} --output json")).await;
            let said = serde_json::from_str::<serde_json::Value>(&ended.out);
            let line = format!("{command}: {ended:?}");
            assert_eq!(ended.out.lines().count(), usize::from(said.is_ok()), "{line}");
            assert_eq!(ended.code == 0 || ended.code >= 6, said.is_ok(), "{line}");
            let told = ended.err.starts_with("reqwest-lease: ") || ended.err.starts_with("error: ");
            assert!(said.is_ok() || told, "{line}");
        }
    }
}
