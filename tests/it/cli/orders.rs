//! Orders are carried out wholly, or say that they are not.

use serde_json::Value;

use super::Rig;

async fn count(rig: &Rig, state: &str) -> Value {
    rig.json("status").await[state].clone()
}

#[tokio::test]
async fn an_order_on_many_is_refused_before_the_first_is_touched() {
    let rig = Rig::new().await;
    rig.set_up(1200).await;
    let ids: Vec<String> = (0..1200).map(|nth| format!("e{nth}")).collect();
    for order in ["disable", "remove", "drain", "quarantine", "enable"] {
        let mut words = vec![order.to_owned(), "--yes".to_owned()];
        words.extend(ids.clone());
        words.push("nobody".to_owned());
        let refused = rig.run(&words).await;
        assert_eq!(refused.code, 4, "{order}: {refused:?}");
        assert!(refused.err.contains("has no endpoint nobody"), "{order}: {refused:?}");
        assert_eq!(count(&rig, "ready").await, 1200, "{order}");
    }
    let mut words = vec!["disable".to_owned()];
    words.extend(ids);
    assert_eq!(rig.run(&words).await.code, 0);
    assert_eq!(count(&rig, "disabled").await, 1200);
}

#[tokio::test]
async fn labels_select_among_what_the_pool_has() {
    let rig = Rig::new().await;
    rig.set_up(2).await;
    let labelled = |number| super::inventory(number).replace("url =", "group = \"qa\"\nurl =");
    rig.file("next.toml", labelled(4));
    let disabled = rig.good("disable --inventory next.toml --group qa").await;
    assert_eq!(disabled.out, "disabled 2 endpoints\n");
    assert!(disabled.err.contains("warning: pool conformance has no endpoint e2 e3"));
    rig.file("other.toml", labelled(2).replace("\"e", "\"x"));
    let none = rig.words("enable --inventory other.toml --group qa").await;
    assert_eq!(none.code, 4, "{none:?}");
    assert_eq!(count(&rig, "disabled").await, 2);
}

#[tokio::test]
async fn syncs_at_the_same_time_all_end_well() {
    let rig = Rig::new().await;
    rig.set_up(1500).await;
    rig.file("next.toml", super::inventory(1500).replace("\"e", "\"f"));
    let sync = || rig.words("sync --inventory next.toml --yes");
    let (one, two, three, four) = tokio::join!(sync(), sync(), sync(), sync());
    for ended in [one, two, three, four] {
        assert_eq!(ended.code, 0, "{}", ended.err);
    }
    rig.good("sync --inventory next.toml --dry-run").await;
    assert_eq!(count(&rig, "members").await, 1500);
}

#[tokio::test]
async fn what_goes_is_named_before_it_is_confirmed() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    rig.file("next.toml", super::inventory(1));
    let asked = rig.words("sync --inventory next.toml").await;
    assert!(asked.err.contains("remove 2 of 3 endpoints (e1 e2): not confirmed"), "{asked:?}");
    let asked = rig.words("remove e1").await;
    assert!(asked.err.contains("remove 1 endpoint from pool conformance (e1)"), "{asked:?}");
    assert_eq!(count(&rig, "members").await, 3);
}

#[tokio::test]
async fn an_inventory_that_may_be_an_old_copy_is_told_of() {
    let rig = Rig::new().await;
    rig.file("proxies.toml", super::inventory(2).replace("version = 1", "version = 5"));
    rig.good("init --inventory proxies.toml").await;
    rig.file("old.toml", super::inventory(3));
    let dry = rig.words("sync --inventory old.toml --dry-run").await;
    assert!(dry.err.contains("has version 1, the pool 5 already"), "{dry:?}");
    assert_eq!((dry.code, rig.words("sync --inventory old.toml").await.code), (6, 4));
    rig.file("bare.toml", super::inventory(3).replace("version = 1", ""));
    let synced = rig.good("sync --inventory bare.toml").await;
    assert!(synced.err.contains("has no version, the pool 5"), "{synced:?}");
    assert_eq!(rig.json("status").await["version"], 5);
    // What is as it should be is not ordered again.
    let before = rig.json("audit").await;
    rig.good("sync --inventory bare.toml").await;
    assert_eq!(rig.json("audit").await, before);
}
