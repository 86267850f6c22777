//! What a reload keeps, changes and leaves alone.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::*;

fn three(password: &str, last: &str) -> String {
    format!(
        "version = 1\n\
         [[endpoint]]\nid = 'a'\nurl = 'http://h:1'\n\
         [[endpoint]]\nid = 'b'\nurl = 'http://h:2'\nusername = 'u'\npassword = {password}\n\
         [[endpoint]]\nid = '{last}'\nurl = 'http://h:3'\n"
    )
}

async fn open(folder: &Folder, variables: &Variables, text: &str) -> Inventory {
    let file = folder.write("inventory.toml", text);
    let source = TomlSource::file(file).with_environment(variables.environment());
    Inventory::open(source).await.unwrap()
}

#[tokio::test]
async fn unchanged_endpoints_stay_and_the_others_are_told() {
    let (folder, variables) = (Folder::new(), Variables::default());
    let inventory = open(&folder, &variables, &three("'old'", "c")).await;
    let old = inventory.snapshot();
    folder.write("inventory.toml", three("'new'", "d").replace("version = 1", "version = 2"));
    let reloaded = inventory.reload().await.unwrap();
    assert_eq!(reloaded.added, [id("d")]);
    assert_eq!(reloaded.changed, [id("b")]);
    assert_eq!(reloaded.removed, [id("c")]);
    assert_eq!(reloaded.version, Some(2));
    assert_eq!(inventory.generation(), 2);

    let new = inventory.clone().snapshot();
    assert_eq!(ids(&new), ["a", "b", "d"]);
    assert!(Arc::ptr_eq(old.get(&id("a")).unwrap(), new.get(&id("a")).unwrap()));
    assert!(!Arc::ptr_eq(old.get(&id("b")).unwrap(), new.get(&id("b")).unwrap()));
    assert_eq!(ids(&old), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_reload_that_changes_nothing_is_no_new_generation() {
    let (folder, variables) = (Folder::new(), Variables::default());
    let text = three("'old'", "c");
    let inventory = open(&folder, &variables, &text).await;
    folder.write("inventory.toml", format!("# a comment\n{text}"));
    assert!(inventory.reload().await.unwrap().is_unchanged());
    assert_eq!(inventory.generation(), 1);
    folder.write("inventory.toml", text.replace("version = 1", "version = 2"));
    assert!(inventory.reload().await.unwrap().is_unchanged());
    assert_eq!((inventory.generation(), inventory.snapshot().version()), (2, Some(2)));
}

#[tokio::test]
async fn a_broken_file_leaves_everything_as_it_was() {
    let (folder, variables) = (Folder::new(), Variables::default());
    let inventory = open(&folder, &variables, &three("'old'", "c")).await;
    let old = inventory.snapshot();
    for broken in ["", "gw1:8080:user:c4n4ry!", "[[endpoint]]\nid = 'a'\nurl = 'ftp://h'"] {
        folder.write("inventory.toml", broken);
        assert!(inventory.reload().await.is_err());
    }
    fs::remove_file(folder.path().join("inventory.toml")).unwrap();
    assert!(inventory.reload().await.is_err());
    assert!(Arc::ptr_eq(&old, &inventory.snapshot()));
    assert_eq!(inventory.generation(), 1);
}

#[tokio::test]
async fn another_password_in_the_same_place_is_a_change() {
    let (folder, variables) = (Folder::new(), Variables::default());
    variables.set("PASSWORD", "one");
    let by_variable = open(&folder, &variables, &three("{ env = 'PASSWORD' }", "c")).await;
    variables.set("PASSWORD", "two");
    assert_eq!(by_variable.reload().await.unwrap().changed, [id("b")]);

    folder.write("b.secret", "one");
    let by_file = open(&folder, &variables, &three("{ file = 'b.secret' }", "c")).await;
    folder.write("b.secret", "two");
    assert_eq!(by_file.reload().await.unwrap().changed, [id("b")]);
    assert!(by_file.reload().await.unwrap().is_unchanged());
}

#[tokio::test]
async fn other_labels_are_a_change() {
    let (folder, variables) = (Folder::new(), Variables::default());
    let text = "[[endpoint]]\nid = 'a'\nurl = 'http://h:1'\n";
    let inventory = open(&folder, &variables, text).await;
    folder.write("inventory.toml", format!("{text}weight = 2\n"));
    assert_eq!(inventory.reload().await.unwrap().changed, [id("a")]);
    assert_eq!(inventory.snapshot().get(&id("a")).unwrap().labels().weight, 2);
}

#[tokio::test]
async fn an_inventory_from_text_or_code_can_be_reloaded() {
    let text = Inventory::from_toml("[[endpoint]]\nid = 'a'\nurl = 'http://h:1'").unwrap();
    assert!(text.reload().await.unwrap().is_unchanged());
    let endpoint = Endpoint::new(id("a"), "http://h:1", None).unwrap();
    let code = Inventory::from_endpoints([endpoint]).unwrap();
    assert!(code.reload().await.unwrap().is_unchanged());
    assert_eq!(code.generation(), 1);
}

/// Gives version 1 at once, and each later version when it is let go.
#[derive(Clone, Default)]
struct Slow {
    loads: Arc<AtomicU64>,
    go: Arc<Notify>,
}

#[async_trait]
impl InventorySource for Slow {
    async fn load(&self) -> Result<Snapshot, Error> {
        let version = self.loads.fetch_add(1, Ordering::Relaxed) + 1;
        if version > 1 {
            self.go.notified().await;
        }
        Snapshot::new([Endpoint::new(id("a"), "http://h:1", None).unwrap()], Some(version))
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_reload_changes_nothing_and_blocks_no_other() {
    let source = Slow::default();
    let inventory = Inventory::open(source.clone()).await.unwrap();
    let short = Duration::from_millis(1);
    assert!(tokio::time::timeout(short, inventory.reload()).await.is_err());
    assert_eq!((inventory.generation(), inventory.snapshot().version()), (1, Some(1)));
    source.go.notify_one();
    assert_eq!(inventory.reload().await.unwrap().version, Some(3));
}

#[tokio::test(start_paused = true)]
async fn an_older_answer_never_replaces_a_newer_one() {
    let source = Slow::default();
    let inventory = Inventory::open(source.clone()).await.unwrap();
    let reload = || {
        let inventory = inventory.clone();
        tokio::spawn(async move { inventory.reload().await.unwrap().version })
    };
    let (first, second) = (reload(), reload());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(source.loads.load(Ordering::Relaxed), 2, "the second load waits for the first");
    source.go.notify_one();
    assert_eq!(first.await.unwrap(), Some(2));
    source.go.notify_one();
    assert_eq!(second.await.unwrap(), Some(3));
    assert_eq!(inventory.snapshot().version(), Some(3));
}
