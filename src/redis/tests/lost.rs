//! Answers that are lost: a script runs once a call, or the caller is told that it may have.

use super::proxy::{Fault as Broken, Proxy};
use super::server::Server;
use super::*;

#[tokio::test]
async fn a_script_whose_answer_is_lost_is_not_sent_again() {
    for (broken, message) in [
        (Broken::LoseAndClose, "the connection to the store was lost"),
        (Broken::LoseAndStall, "the store did not answer in time"),
    ] {
        let server = Server::start(&[]);
        let proxy = Proxy::start(server.port()).await;
        let connection = connect(&proxy.url()).await;
        let (mut calls, mut lost) = (0, 0);
        while lost < 8 {
            if count(&connection).await.is_err() {
                lost += 1;
            } else {
                proxy.set(broken);
                let (fault, _) = fails_in_time(&connection).await;
                assert_eq!(fault, Fault::lost(message));
                assert!(crate::Error::from(fault).may_have_run());
                (calls, lost) = (calls + 1, lost + 1);
            }
            calls += 1;
            assert_eq!(server.runs(), calls, "{broken:?}");
        }
    }
}

#[tokio::test]
async fn a_stalled_connection_is_left_after_two_calls_in_silence() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port()).await;
    let connection = connect(&proxy.url()).await;
    assert_eq!(count(&connection).await, Ok(1));
    proxy.set(Broken::LoseAndStall);
    for _ in 0..2 {
        fails_in_time(&connection).await;
    }
    assert_eq!(count(&connection).await, Ok(4));
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn a_flushed_script_is_sent_by_its_source_and_runs_once() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    for call in 1..=3 {
        assert_eq!(count(&connection).await, Ok(call));
        let _: () = server.ask("SCRIPT FLUSH");
    }
    assert_eq!(server.runs(), 3);
    let stats: String = server.ask("INFO commandstats");
    assert!(!stats.contains("cmdstat_script|load"), "{stats}");
    assert!(stats.contains("cmdstat_eval:calls=3"), "{stats}");
}

#[tokio::test]
async fn many_calls_at_once_run_once_each_on_one_connection() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port()).await;
    let connection = connect_with_patience(&proxy.url()).await;
    let calls = futures_util::future::join_all((0..2_000).map(|_| count(&connection))).await;
    let mut counts: Vec<_> = calls.into_iter().map(Result::unwrap).collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=2_000).collect::<Vec<_>>());
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn a_connection_that_closed_while_idle_costs_no_call() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    assert_eq!(count(&connection).await, Ok(1));
    let _: i64 = server.ask("CLIENT KILL TYPE normal");
    server.wait_for("the connection is gone", |server| server.clients().is_empty()).await;
    server.wait_for("the holder knows", |_| !connection.holder().is_open()).await;
    assert_eq!(count(&connection).await, Ok(2));
}
