//! Primaries that change.

use super::proxy::Proxy;
use super::server::Server;
use super::*;
use crate::error::Kind;

#[tokio::test]
async fn a_demoted_primary_is_left_for_the_new_one() {
    let (old, new) = (Server::start(&[]), Server::start(&[]));
    let proxy = Proxy::start(old.port()).await;
    let connection = connect(&proxy.url()).await;
    assert_eq!(count(&connection).await, Ok(1));
    let _: () = old.ask(&format!("REPLICAOF 127.0.0.1 {}", new.port()));
    proxy.lead_to(new.port());
    // READONLY ran nothing: the same call goes to the new primary.
    assert_eq!(count(&connection).await, Ok(1));
    assert_eq!((proxy.accepted(), new.runs()), (2, 1));
}

#[tokio::test]
async fn a_demoted_primary_with_no_other_is_read_only_until_promoted() {
    let (server, other) = (Server::start(&[]), Server::start(&[]));
    let connection = connect(&server.url()).await;
    assert_eq!(count(&connection).await, Ok(1));
    let _: () = server.ask(&format!("REPLICAOF 127.0.0.1 {}", other.port()));
    for _ in 0..20 {
        let (fault, took) = fails_in_time(&connection).await;
        let message = "the store is read-only: the server is a replica";
        assert_eq!(fault, Fault::unavailable(message));
        assert!(took < AT_ONCE, "{took:?}");
    }
    let _: () = server.ask("REPLICAOF NO ONE");
    let took = until_it_counts(&connection, Duration::from_secs(3)).await;
    println!("calls succeed again {took:?} after the promotion");
}

/// Twin: without the holder a connection stays where it is for ever.
#[tokio::test]
async fn a_bare_connection_stays_with_the_demoted_primary() {
    let (old, new) = (Server::start(&[]), Server::start(&[]));
    let proxy = Proxy::start(old.port()).await;
    let client = redis::Client::open(proxy.url()).unwrap();
    let mut bare = client.get_multiplexed_async_connection().await.unwrap();
    let _: () = old.ask(&format!("REPLICAOF 127.0.0.1 {}", new.port()));
    proxy.lead_to(new.port());
    let key = key();
    let call = Call { script: &COUNT, keys: &key, args: &[] };
    for _ in 0..5 {
        let error = call.by_source().exec_async(&mut bare).await.unwrap_err();
        assert_eq!(error.code(), Some("READONLY"));
    }
}

#[tokio::test]
async fn a_replica_is_no_store() {
    let (primary, replica) = (Server::start(&[]), Server::start(&[]));
    let _: () = replica.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    let options = ConnectOptions::new(Secret::new(replica.url()));
    let error = Connection::connect(options).await.unwrap_err();
    assert_eq!(error.kind(), Kind::StoreUnavailable);
    assert!(!error.may_have_run());
}
