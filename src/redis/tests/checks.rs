//! What is asked of a server at connect.

use super::server::{Server, words};
use super::*;
use crate::error::Kind;
use crate::redis::check::Info;

#[tokio::test]
async fn a_server_that_evicts_is_refused_unless_allowed() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru"]);
    let options = || ConnectOptions::new(Secret::new(server.url()));
    let error = Connection::connect(options()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::StoreRefused);
    assert!(error.to_string().contains("may evict"), "{error}");
    let mut allowed = options();
    allowed.allow_eviction = true;
    let connection = Connection::connect(allowed).await.unwrap();
    assert_eq!(count(&connection).await, Ok(1));
}

#[tokio::test]
async fn a_user_who_may_not_ask_for_info_is_refused() {
    let server = Server::start(&[]);
    let _: () = server.ask("ACL SETUSER blind on >word ~* +@all -info");
    let url = format!("redis://blind:word@127.0.0.1:{}", server.port());
    let error = Connection::connect(ConnectOptions::new(Secret::new(url))).await.unwrap_err();
    assert_eq!(error.kind(), Kind::StoreRefused);
    assert_eq!(error.to_string(), "the store's user may not do this");
}

#[tokio::test]
async fn a_unix_socket_is_as_good() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket").display().to_string();
    let server = Server::start(&["--unixsocket", &path]);
    let connection = connect(&format!("unix://{path}?db=2")).await;
    assert_eq!(count(&connection).await, Ok(1));
    let size = connection.command(words("DBSIZE")).await.unwrap();
    assert_eq!((size, server.runs()), (redis::Value::Int(1), 0));
}

#[tokio::test]
async fn a_server_is_checked_again_at_each_reconnect() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    assert_eq!(count(&connection).await, Ok(1));
    let _: () = server.ask("CONFIG SET maxmemory-policy allkeys-lru");
    assert_eq!(count(&connection).await, Ok(2), "the connection stands");
    let _: i64 = server.ask("CLIENT KILL TYPE normal");
    server.wait_for("the connection is closed", |_| !connection.holder().is_open()).await;
    let fault = count(&connection).await.unwrap_err();
    assert!(matches!(fault, Fault::Refused { .. }), "{fault:?}");
    let _: () = server.ask("CONFIG SET maxmemory-policy noeviction");
    until_it_counts(&connection, Duration::from_secs(3)).await;
}

#[tokio::test]
async fn a_call_without_time_left_is_not_sent() {
    let server = Server::start(&[]);
    let mut options = ConnectOptions::new(Secret::new(server.url()));
    options.call_timeout = Duration::ZERO;
    let connection = Connection::connect(options).await.unwrap();
    let fault = count(&connection).await.unwrap_err();
    assert!(matches!(fault, Fault::Unavailable { may_have_run: false, .. }), "{fault:?}");
    assert_eq!(server.runs(), 0);
}

#[tokio::test]
async fn what_a_restart_loses_is_told_by_a_real_server() {
    let told = async |server: &Server| {
        let info: String = server.ask("INFO");
        Info::from_reply(redis::Value::BulkString(info.into_bytes())).loses()
    };
    let server = Server::start(&["--save", "3600 1000000", "--dbfilename", "taken"]);
    assert!(told(&server).await.unwrap().contains("has taken no snapshot yet"));
    let _: () = server.ask("SET any 1");
    let _: () = server.ask("SAVE");
    assert!(told(&server).await.unwrap().contains("after its last snapshot"));
    std::fs::remove_file(server.directory().join("taken")).unwrap();
    std::fs::create_dir(server.directory().join("taken")).unwrap();
    let _: String = server.ask("BGSAVE");
    server
        .wait_for("a save fails", |server| {
            server.info("persistence").contains("rdb_last_bgsave_status:err")
        })
        .await;
    assert!(told(&server).await.unwrap().contains("its last snapshot failed"));
    let server = Server::start(&["--appendonly", "yes"]);
    assert_eq!(told(&server).await, None);
}
