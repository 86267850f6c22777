//! The way to a file, and which events are on it.

use std::path::Path;

use notify::event::{CreateKind, DataChange, MetadataKind, ModifyKind, RemoveKind, RenameMode};
use tempfile::tempdir;

use super::*;

fn trail(file: &Path) -> Trail {
    Trail::to(&[file.to_owned()])
}

fn names(trail: &Trail) -> Vec<&str> {
    trail.names.iter().filter_map(|name| name.to_str()).collect()
}

fn ear(names: &[&str]) -> Ear {
    let ear = Ear::default();
    ear.names().extend(names.iter().map(OsString::from));
    ear
}

fn event(kind: EventKind, path: &str) -> Event {
    Event::new(kind).add_path(PathBuf::from(path))
}

#[test]
fn a_plain_file_is_watched_in_its_folder() {
    let folder = tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let trail = trail(&root.join("./sub/../proxies.toml"));
    assert_eq!(trail.folders, BTreeSet::from([root.clone()]));
    assert!(trail.names.contains(Path::new("proxies.toml").as_os_str()));
}

#[cfg(unix)]
#[test]
fn every_link_on_the_way_is_watched_where_it_is() {
    use std::os::unix::fs::symlink;
    let folder = tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("..2024_1")).unwrap();
    fs::write(root.join("..2024_1/proxies.toml"), "").unwrap();
    symlink("..2024_1", root.join("..data")).unwrap();
    symlink("..data/proxies.toml", root.join("proxies.toml")).unwrap();
    symlink(root.join("proxies.toml"), root.join("absolute.toml")).unwrap();

    let trail = trail(&root.join("absolute.toml"));
    assert_eq!(trail.folders, BTreeSet::from([root.clone(), root.join("..2024_1")]));
    for name in ["absolute.toml", "proxies.toml", "..data"] {
        assert!(names(&trail).contains(&name), "{name} in {trail:?}");
    }
}

#[cfg(unix)]
#[test]
fn links_in_a_circle_have_an_end() {
    let folder = tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::os::unix::fs::symlink("b", root.join("a")).unwrap();
    std::os::unix::fs::symlink("a", root.join("b")).unwrap();
    assert_eq!(trail(&root.join("a")).folders, BTreeSet::from([root]));
}

#[test]
fn of_a_missing_folder_the_nearest_one_above_is_watched() {
    let folder = tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let trail = trail(&root.join("later/on/proxies.toml"));
    assert_eq!(trail.folders, BTreeSet::from([root]));
    assert!(names(&trail).contains(&"later"));
}

#[test]
fn what_happens_to_a_name_is_heard_and_to_others_not() {
    let ear = ear(&["proxies.toml"]);
    for kind in [
        EventKind::Create(CreateKind::File),
        EventKind::Modify(ModifyKind::Data(DataChange::Any)),
        EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)),
        EventKind::Modify(ModifyKind::Name(RenameMode::To)),
        EventKind::Remove(RemoveKind::File),
        EventKind::Access(AccessKind::Close(AccessMode::Write)),
    ] {
        assert!(ear.concerns(&event(kind, "/etc/proxies.toml")), "{kind:?}");
        assert!(!ear.concerns(&event(kind, "/etc/proxies.toml.swp")), "{kind:?}");
    }
    assert!(ear.concerns(&Event::new(EventKind::Other)), "one that says nothing may be anything");
}

/// Else each reload would lead to the next one.
#[test]
fn reading_a_file_is_not_heard() {
    let ear = ear(&["proxies.toml"]);
    for access in [
        AccessKind::Open(AccessMode::Any),
        AccessKind::Read,
        AccessKind::Close(AccessMode::Read),
        AccessKind::Any,
    ] {
        assert!(!ear.concerns(&event(EventKind::Access(access), "/etc/proxies.toml")));
    }
}

fn watched(ear: &Arc<Ear>) -> Files {
    let (folders, stamps) = Default::default();
    let watcher = notify::recommended_watcher(|_: notify::Result<Event>| {}).unwrap();
    Files { watcher, ear: Arc::clone(ear), folders, files: Vec::new(), stamps }
}

#[tokio::test(start_paused = true)]
async fn many_events_in_a_row_are_one_and_those_without_end_too() {
    let ear = Arc::new(Ear::default());
    let files = watched(&ear);
    for (events, apart, took) in [(5, 50, 4 * 50 + 100), (1000, 50, 1000)] {
        let task = tokio::spawn({
            let ear = Arc::clone(&ear);
            async move {
                for _ in 0..events {
                    ear.heard.notify_one();
                    tokio::time::sleep(Duration::from_millis(apart)).await;
                }
            }
        });
        tokio::task::yield_now().await;
        let started = Instant::now();
        assert_eq!(files.happened().await, Happened::Something);
        let waited = started.elapsed().as_millis();
        assert!((took..took + 60).contains(&waited), "{waited} ms for {events}");
        task.abort();
        // The last one may have been left over.
        let _ = timeout(Duration::from_millis(1), ear.heard.notified()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_event_there_is_a_look_now_and_then() {
    let ear = Arc::new(Ear::default());
    let started = Instant::now();
    assert_eq!(watched(&ear).happened().await, Happened::Nothing);
    assert_eq!(started.elapsed(), LOOK_EVERY);
}

#[test]
fn a_look_sees_what_no_event_has_told() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("proxies.toml");
    let mut files = watched(&Arc::default());
    files.files = vec![file.clone()];
    files.remember();
    assert!(!files.look_other());
    fs::write(&file, "one").unwrap();
    assert!(files.look_other(), "it is there");
    files.remember();
    assert!(!files.look_other());
    fs::write(folder.path().join("other"), "two").unwrap();
    fs::rename(folder.path().join("other"), &file).unwrap();
    assert!(files.look_other(), "it is another one of the same length");
}
