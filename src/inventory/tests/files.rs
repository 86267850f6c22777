//! Inventory files and password files.

use super::*;

fn with_password_file(content: impl AsRef<[u8]>) -> Result<Snapshot, Error> {
    with_password_file_in(&Folder::new(), content)
}

fn with_password_file_in(folder: &Folder, content: impl AsRef<[u8]>) -> Result<Snapshot, Error> {
    folder.write("gw.secret", content);
    let text = "[[endpoint]]\nid = 'a'\nurl = 'http://h:1'\nusername = 'u'\n\
                password = { file = 'gw.secret' }";
    TomlSource::file(folder.write("inventory.toml", text)).read()
}

fn refusal(result: Result<Snapshot, Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), crate::Kind::Inventory);
    assert!(!everything(&error).contains("c4n4ry"), "{error:?}");
    error.to_string()
}

#[test]
fn one_line_end_of_a_password_file_is_stripped() {
    for content in ["pass", "pass\n", "pass\r\n"] {
        let snapshot = with_password_file(content).unwrap();
        assert_eq!(snapshot.get(&id("a")).unwrap().proxy_url(), "http://u:pass@h:1", "{content:?}");
    }
    let spaced = with_password_file(" pass \n").unwrap();
    assert_eq!(spaced.get(&id("a")).unwrap().proxy_url(), "http://u:%20pass%20@h:1");
}

#[test]
fn unfit_password_files_are_refused_by_name() {
    let folder = Folder::new();
    let inventory = folder.path().join("inventory.toml");
    let start = format!(
        "{inventory:?}, line 5, column 21: endpoint 1 (a): the password file \"gw.secret\" "
    );
    for (content, fragment) in [
        (b"".to_vec(), "is empty"),
        (b"\n".to_vec(), "is empty"),
        (b"c4n4ry!\n\n".to_vec(), "more than one line"),
        (b"c4n4ry!\0".to_vec(), "control characters"),
        (b"c4n4ry!\xff".to_vec(), "is not UTF-8"),
        (b"c4n4ry!".repeat(10_000), "is larger than 64 KiB"),
    ] {
        let message = refusal(with_password_file_in(&folder, content));
        assert!(message.starts_with(&start) && message.contains(fragment), "{message}");
    }
}

#[test]
fn a_folder_or_a_missing_file_is_no_password() {
    let folder = Folder::new();
    for (file, fragment) in [("sub", "is a directory"), ("none", "does not exist")] {
        let _ = fs::create_dir(folder.path().join("sub"));
        let text = format!(
            "[[endpoint]]\nid = 'a'\nurl = 'http://h:1'\nusername = 'u'\npassword.file = '{file}'"
        );
        let source = TomlSource::file(folder.write("inventory.toml", text));
        assert!(refusal(source.read()).contains(fragment));
    }
}

#[test]
fn an_absolute_password_file_is_taken_as_it_is() {
    let folder = Folder::new();
    let secret = folder.write("gw.secret", "pass");
    let text = format!(
        "[[endpoint]]\nid = 'a'\nurl = 'http://h:1'\nusername = 'u'\npassword.file = '{}'",
        secret.display()
    );
    assert!(read(&text).is_ok());
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf8_is_refused_by_name() {
    use std::os::unix::ffi::OsStringExt as _;
    let variables = Variables::default();
    variables.set("PASSWORD", OsString::from_vec(b"c4n4ry!\xff".to_vec()));
    let text =
        "[[endpoint]]\nid = 'a'\nurl = 'http://h:1'\nusername = 'u'\npassword.env = 'PASSWORD'";
    let source = TomlSource::text(text).with_environment(variables.environment());
    assert!(refusal(source.read()).contains("variable PASSWORD is not UTF-8"));
}

#[tokio::test]
async fn unfit_inventory_files_are_refused_by_name() {
    let folder = Folder::new();
    let large = folder.write("large.toml", "");
    fs::File::options().write(true).open(&large).unwrap().set_len((16 << 20) + 1).unwrap();
    for (path, fragment) in [
        (folder.path().join("none.toml"), "none.toml\" does not exist"),
        (folder.path().to_owned(), "is a directory"),
        (folder.write("bytes.toml", b"# c4n4ry! \xff"), "bytes.toml\" is not UTF-8"),
        (large, "is larger than 16384 KiB"),
    ] {
        let error = Inventory::from_file(path).await.unwrap_err();
        assert!(error.to_string().contains(fragment), "{error}");
        assert!(!everything(&error).contains("c4n4ry"), "{error:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_endless_file_is_not_read() {
    let error = Inventory::from_file("/dev/zero").await.unwrap_err();
    assert!(error.to_string().contains("is not a regular file"), "{error}");
}

#[tokio::test]
async fn a_tool_that_looks_no_password_up_reads_the_rest() {
    let folder = Folder::new();
    let text = "version = 3\n[[endpoint]]\nid = 'a'\nurl = 'http://h:1'\nusername = 'u'\n\
                password = { file = 'missing' }\nweight = 2\n\
                [[endpoint]]\nid = 'b'\nurl = 'http://h:2'\nusername = 'u'\n\
                password = { env = 'MISSING_AS_WELL' }\n";
    let path = folder.write("inventory.toml", text);
    assert!(Inventory::from_file(&path).await.is_err());
    let snapshot = Snapshot::from_file_without_passwords(&path).await.unwrap();
    assert_eq!((snapshot.len(), snapshot.version()), (2, Some(3)));
    assert_eq!(snapshot.get(&id("a")).unwrap().labels().weight, 2);
}
