//! Servers that answer, and say no.

use super::proxy::{Fault as Broken, Proxy};
use super::server::Server;
use super::*;
use crate::error::Kind;

#[tokio::test]
async fn a_full_server_is_unavailable_and_nothing_ran() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    assert_eq!(count(&connection).await, Ok(1));
    let _: () = server.ask("CONFIG SET maxmemory 1");
    let (fault, _) = fails_in_time(&connection).await;
    assert_eq!(fault, Fault::unavailable("the store is out of memory"));
    assert_eq!(server.runs(), 1);
    let _: () = server.ask("CONFIG SET maxmemory 0");
    assert_eq!(count(&connection).await, Ok(2));
}

#[tokio::test]
async fn a_server_that_cannot_save_is_unavailable() {
    let server = Server::start(&["--save", "3600 1000000", "--dbfilename", "blocked"]);
    let connection = connect(&server.url()).await;
    std::fs::create_dir(server.directory().join("blocked")).unwrap();
    let _ = server.try_ask::<String>("SET other 1");
    let _ = server.try_ask::<String>("BGSAVE");
    server
        .wait_for("a save fails", |server| {
            server.info("persistence").contains("rdb_last_bgsave_status:err")
        })
        .await;
    let (fault, _) = fails_in_time(&connection).await;
    assert_eq!(fault, Fault::unavailable("the store cannot save its data"));
}

#[tokio::test]
async fn a_server_without_its_replicas_is_unavailable() {
    let server = Server::start(&["--min-replicas-to-write", "1"]);
    let connection = connect(&server.url()).await;
    let (fault, _) = fails_in_time(&connection).await;
    assert_eq!(fault, Fault::unavailable("the store has too few replicas"));
}

#[tokio::test]
async fn a_busy_server_is_waited_for_and_then_unavailable() {
    let server = Server::start(&["--busy-reply-threshold", "20"]);
    let connection = connect(&server.url()).await;
    assert_eq!(count(&connection).await, Ok(1));
    let endless = server.spawn_endless_script();
    server.wait_for("it is busy", |server| server.try_ask::<String>("PING").is_err()).await;
    fails_after_waiting(&connection, "the store is busy with a long script").await;
    let waiting = tokio::spawn({
        let connection = connection.clone();
        async move { count(&connection).await }
    });
    let _: () = server.ask("SCRIPT KILL");
    endless.join().unwrap();
    assert_eq!(waiting.await.unwrap(), Ok(2));
}

/// Asks until the server's word is the last one: the deadline may come while it is asked again.
async fn fails_after_waiting(connection: &Connection, message: &'static str) {
    for _ in 0..5 {
        let (fault, took) = fails_in_time(connection).await;
        assert!(took > Duration::from_millis(200), "{took:?} {fault}");
        if fault == Fault::unavailable(message) {
            return;
        }
        assert!(matches!(fault, Fault::Unavailable { .. }), "{fault:?}");
    }
    panic!("never: {message}");
}

#[tokio::test]
async fn what_will_pass_is_waited_for_and_then_unavailable() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port()).await;
    let connection = connect(&proxy.url()).await;
    for (words, message) in [
        ("LOADING Redis is loading the dataset in memory", "the store is loading its data"),
        ("TRYAGAIN Multiple keys request during rehashing", "the store is moving its keys"),
        ("CLUSTERDOWN The cluster is down", "the store's cluster is down"),
        ("MASTERDOWN Link with MASTER is down", "the store has lost its primary"),
    ] {
        proxy.set(Broken::Answer(words));
        fails_after_waiting(&connection, message).await;
        let waiting = tokio::spawn({
            let connection = connection.clone();
            async move { count(&connection).await }
        });
        tokio::task::yield_now().await;
        proxy.set(Broken::Pass);
        waiting.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_will_not_pass_is_refused_without_a_word_of_the_server() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port()).await;
    let connection = connect(&proxy.url()).await;
    for words in [
        "WRONGTYPE canary",
        "NOAUTH canary",
        "NOPERM canary",
        "CROSSSLOT canary",
        "MOVED 1 canary:7000",
        "ASK 1 canary:7000",
        "ERR ACL failure in script: User canary has no permissions",
        "ERR Error compiling script canary",
        "ERR canary",
    ] {
        proxy.set(Broken::Answer(words));
        let (fault, took) = fails_in_time(&connection).await;
        assert!(took < AT_ONCE, "{words} {took:?}");
        assert!(matches!(fault, Fault::Refused { .. }), "{words} {fault:?}");
        let error = crate::Error::from(fault);
        assert_eq!(error.kind(), Kind::StoreRefused);
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        proxy.set(Broken::Pass);
        count(&connection).await.unwrap();
    }
}

#[tokio::test]
async fn an_error_of_our_own_script_keeps_its_code() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    let thrown = Script::new("throws", "#!lua\nreturn redis.error_reply('TOO_NEW schema 9')\n");
    let fault = run(&connection, &thrown).await.unwrap_err();
    assert_eq!(fault, Fault::Script { code: "TOO_NEW".into() });
}

#[tokio::test]
async fn errors_inside_scripts_are_refused() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    let _: () = server.ask("SET lease:{t}:meta text");
    for source in [
        "#!lua\nreturn redis.call('HGET', KEYS[1], 'a')\n",
        "#!lua\nreturn nothing.at.all\n",
        "#!lua\nthis is not lua\n",
        "#!lua flags=unheard-of\nreturn 1\n",
        "#!lua\nreturn redis.call('NOSUCH')\n",
    ] {
        let script = Script::new("bad", source);
        let fault = run(&connection, &script).await.unwrap_err();
        assert!(matches!(fault, Fault::Refused { .. }), "{source} {fault:?}");
    }
}

#[tokio::test]
async fn wrong_credentials_are_refused_and_never_told() {
    let server = Server::start(&["--requirepass", "right"]);
    let at = format!("127.0.0.1:{}", server.port());
    for (login, message) in [
        ("", "the store asks for credentials"),
        (":canary@", "the store refused the credentials"),
        ("canary:canary@", "the store refused the credentials"),
    ] {
        let options = ConnectOptions::new(Secret::new(format!("redis://{login}{at}")));
        assert!(!format!("{options:?}").contains("canary"));
        let error = Connection::connect(options).await.unwrap_err();
        assert_eq!(error.kind(), Kind::StoreRefused);
        let told = format!("{error} {error:?}");
        assert!(told.contains(message), "{told}");
        assert!(!told.contains("canary") && !told.contains(&at), "{told}");
    }
    for login in [":right@", "default:right@"] {
        let connection = connect(&format!("redis://{login}{at}/3")).await;
        count(&connection).await.unwrap();
        assert!(!format!("{connection:?}").contains("right"));
    }
}

#[tokio::test]
async fn a_password_set_on_a_running_server_is_met_at_the_next_connection() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    let proxy = Proxy::start(server.port()).await;
    let late = connect(&proxy.url()).await;
    let _: () = server.ask("CONFIG SET requirepass fresh");
    count(&connection).await.unwrap();
    proxy.set(Broken::Refuse);
    until_refused(&late).await;
    proxy.set(Broken::Pass);
    let fault = until_refused(&late).await;
    assert_eq!(fault, Fault::refused("the store asks for credentials"));
}

/// Waits out the rest after failed attempts.
async fn until_refused(connection: &Connection) -> Fault {
    let begun = std::time::Instant::now();
    loop {
        let (fault, _) = fails_in_time(connection).await;
        let unreached = fault.to_string().starts_with("the store cannot be reached");
        if unreached || matches!(fault, Fault::Refused { .. }) || begun.elapsed().as_secs() > 3 {
            return fault;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_user_who_is_deleted_is_refused() {
    let server = Server::start(&[]);
    let _: () = server.ask("ACL SETUSER guest on >word ~* +@all");
    let connection = connect(&format!("redis://guest:word@127.0.0.1:{}", server.port())).await;
    count(&connection).await.unwrap();
    let _: i64 = server.ask("ACL DELUSER guest");
    let _ = fails_in_time(&connection).await;
    let (fault, _) = fails_in_time(&connection).await;
    assert_eq!(fault, Fault::refused("the store refused the credentials"));
}
