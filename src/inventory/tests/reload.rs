//! What a reload keeps, changes and leaves alone.

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
