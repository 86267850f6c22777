//! Hints are heard, also after connections were lost and servers have changed.

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use super::server::{Server, words};
use super::*;
use crate::redis::acl::Role;
use crate::redis::hints::listen;

pub(super) const CHANNEL: &str = "lease:{t}:free";

/// Waits for a hint, at most for ten seconds.
pub(super) async fn heard(hints: &mut BoxStream<'static, ()>, what: &str) {
    let hint = tokio::time::timeout(Duration::from_secs(10), hints.next()).await;
    assert!(hint.is_ok_and(|hint| hint.is_some()), "no hint: {what}");
}

/// Publishes until it is heard: a listener may be on its way from one server to the next.
pub(super) async fn is_heard(hints: &mut BoxStream<'static, ()>, server: &Server, channel: &str) {
    let begun = Instant::now();
    while server.try_ask::<i64>(&format!("SPUBLISH {channel} 1")).unwrap_or(0) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "nobody listens");
        // The way there is part of the listening.
        let _ = tokio::time::timeout(Duration::from_millis(10), hints.next()).await;
    }
    heard(hints, "that was published").await;
}

#[tokio::test]
async fn what_is_published_is_heard_and_a_lost_connection_is_replaced() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    let mut hints = listen(connection, CHANNEL.to_owned());
    heard(&mut hints, "the first one, for what was missed").await;
    for _ in 0..3 {
        assert_eq!(server.ask::<i64>(&format!("SPUBLISH {CHANNEL} 1")), 1);
        heard(&mut hints, "one that was published").await;
    }
    let _: i64 = server.ask("CLIENT KILL TYPE pubsub");
    heard(&mut hints, "for what was missed meanwhile").await;
    assert_eq!(server.ask::<i64>(&format!("SPUBLISH {CHANNEL} 1")), 1);
    heard(&mut hints, "one over the new connection").await;
    drop(hints);
    server
        .wait_for("the connection ends with the listener", |server| {
            server.ask::<String>("CLIENT LIST TYPE pubsub").is_empty()
        })
        .await;
}

#[tokio::test]
async fn a_server_that_comes_back_is_listened_to_again() {
    let mut server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    let mut hints = listen(connection, CHANNEL.to_owned());
    heard(&mut hints, "the first one").await;
    server.kill();
    let waiting = tokio::time::timeout(Duration::from_millis(300), hints.next()).await;
    assert!(waiting.is_err(), "there is nobody to hear of");
    server.restart();
    is_heard(&mut hints, &server, CHANNEL).await;
}

#[tokio::test]
async fn a_server_that_sleeps_is_left() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    let mut hints = listen(connection, CHANNEL.to_owned());
    heard(&mut hints, "the first one").await;
    let id: String = server.ask("CLIENT LIST TYPE pubsub");
    server.signal("STOP");
    let woken = tokio::time::timeout(Duration::from_secs(4), hints.next()).await;
    assert!(woken.is_err());
    server.signal("CONT");
    heard(&mut hints, "over a new connection").await;
    let next: String = server.ask("CLIENT LIST TYPE pubsub");
    assert_ne!(id.split(' ').next(), next.split(' ').next());
}

#[tokio::test]
async fn workers_may_listen_in_their_namespace_and_nowhere_else() {
    let server = Server::start(&[]);
    let line = Role::Worker.set_user("someone", "lease");
    let _: () = server.ask(&line);
    let _: () = server.ask("ACL SETUSER someone >word");
    let worker = connect(&format!("redis://someone:word@127.0.0.1:{}", server.port())).await;
    let mut hints = listen(worker.clone(), CHANNEL.to_owned());
    heard(&mut hints, "the first one").await;
    worker.command(words(&format!("SPUBLISH {CHANNEL} 1"))).await.unwrap();
    heard(&mut hints, "its own").await;
    let mut others = listen(worker, "other:{t}:free".to_owned());
    let refused = tokio::time::timeout(Duration::from_millis(500), others.next()).await;
    assert!(refused.is_err());
}
