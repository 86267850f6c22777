//! Lists of proxies become inventories, and their passwords files that nobody else reads.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::Rig;

/// A password that both shells and systemd have their ways with.
const HARD: &str = "c4n4ry'\"$HOME`id`\\ä";

fn mode(rig: &Rig, name: &str) -> u32 {
    std::fs::metadata(rig.path().join(name)).unwrap().permissions().mode() & 0o777
}

fn text(rig: &Rig, name: &str) -> String {
    std::fs::read_to_string(rig.path().join(name)).unwrap()
}

/// Names of the files in the working directory.
fn names(rig: &Rig) -> Vec<String> {
    let names = std::fs::read_dir(rig.path()).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_login_is_sent_to_no_host_but_its_own() {
    let rig = Rig::new().await;
    rig.file("list", "user:1234:gw.test:8080\ngw.test:8080@user:1234\n");
    rig.good("inventory import list --to proxies.toml --secrets secrets").await;
    let toml = text(&rig, "proxies.toml");
    assert_eq!(toml.matches("http://gw.test:8080").count(), 1, "the same line twice: {toml}");
    assert_eq!(text(&rig, "secrets/p-001.secret"), "1234\n");
    for line in ["2001:db8::1:8080", "fe80:1:2:3::4:80", "gw:8080:user:1234"] {
        rig.file("list", line);
        let refused = rig.words("inventory import list --env-file env").await;
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{line}: {refused:?}");
    }
}

#[tokio::test]
async fn one_identity_becomes_one_endpoint() {
    let rig = Rig::new().await;
    rig.file("list", "gw.test:1:u:p\ngw.test:2\nu:p@gw.test:1\n");
    let line = "inventory import list --to proxies.toml --secrets secrets";
    let imported = rig.good(&format!("{line} --output json")).await;
    assert_eq!(imported.out, "{\"endpoints\":2,\"left_out\":1,\"passwords\":1}\n");
    assert!(imported.err.contains("repeat others are left out: 3"), "{imported:?}");
}

#[tokio::test]
async fn passwords_are_for_their_owner_alone_also_in_files_that_were_there() {
    let rig = Rig::new().await;
    rig.file("list", format!("gw.test:1:u:{HARD}\n"));
    rig.file("open", "x");
    rig.file("linked", "x");
    symlink("linked", rig.path().join("link")).unwrap();
    for name in ["open", "linked"] {
        let path = rig.path().join(name);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
    }
    for name in ["open", "link"] {
        let line = format!("inventory import list --env-file {name} --to {name}.toml");
        let refused = rig.words(&line).await;
        assert_eq!((refused.code, text(&rig, name).as_str()), (1, "x"), "{refused:?}");
        rig.good(&format!("{line} --force")).await;
        assert_eq!(mode(&rig, name), 0o600, "{name}");
        assert!(text(&rig, name).contains("P_001_PASSWORD="), "{name}");
    }
    assert!(rig.path().join("link").is_symlink());
    rig.good("inventory import list --secrets secrets --to secret.toml").await;
    assert_eq!((mode(&rig, "secrets"), mode(&rig, "secrets/p-001.secret")), (0o700, 0o600));
}

#[tokio::test]
async fn an_import_that_fails_leaves_nothing_and_can_be_repeated() {
    let rig = Rig::new().await;
    rig.file("list", "gw.test:1:u:p\ngw.test:2:u:q\n");
    rig.file("there", "x");
    for (line, code) in [
        ("--secrets secrets --to nowhere/proxies.toml", 1),
        ("--secrets secrets --to there", 1),
        ("--env-file same --to same", 2),
        ("--secrets there --to proxies.toml", 1),
        ("--env-file . --to proxies.toml --force", 1),
        ("--env-file /dev/null --to proxies.toml --force", 1),
        ("--secrets secrets --to proxies.toml --scheme ftp", 2),
    ] {
        let failed = rig.words(&format!("inventory import list {line}")).await;
        assert_eq!(failed.code, code, "{line}: {failed:?}");
        let left = names(&rig);
        let files =
            |name: &str| std::fs::read_dir(rig.path().join(name)).map_or(0, Iterator::count);
        assert!(left.iter().all(|name| ["list", "there", "secrets"].contains(&name.as_str())));
        assert_eq!(files("secrets"), 0, "{line}: {left:?}");
    }
    rig.good("inventory import list --secrets secrets --to proxies.toml").await;
    rig.good("inventory check --inventory proxies.toml").await;
}

#[tokio::test]
async fn a_shell_sets_the_variables_that_the_inventory_wants() {
    let rig = Rig::new().await;
    rig.file("list", format!("gw.test:1:u:{HARD}\n"));
    rig.good("inventory import list --env-file env --to proxies.toml --prefix 1a").await;
    // The words of a string in double quotes are the ones that systemd escapes too.
    let line = text(&rig, "env");
    assert_eq!(line, "_1A_001_PASSWORD=\"c4n4ry'\\\"\\$HOME\\`id\\`\\\\ä\"\n");
    let check = format!(
        "set -a; . ./env; test \"$_1A_001_PASSWORD\" = \"$WANTED\" && {} inventory check \
         --inventory proxies.toml",
        super::PROGRAM
    );
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", &check]).env("WANTED", HARD).current_dir(rig.path());
    let checked = Rig::end(&mut shell).await;
    assert_eq!(checked.code, 0, "{checked:?}");
}
