//! Servers that are down, asleep or slow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::proxy::{Fault as Broken, Proxy};
use super::server::{Server, free_port};
use super::*;
use crate::error::Kind;

#[tokio::test]
async fn a_server_that_is_down_is_told_at_once() {
    let options = ConnectOptions::new(Secret::new(format!("redis://127.0.0.1:{}", free_port())));
    let begun = Instant::now();
    let error = Connection::connect(options).await.unwrap_err();
    println!("connect with the server down: {:?}", begun.elapsed());
    assert!(begun.elapsed() < IN_TIME);
    assert_eq!(error.kind(), Kind::StoreUnavailable);
    assert_eq!(error.to_string(), "the store cannot be reached: nothing listens there");
    assert!(!error.may_have_run());
    for (url, why) in [
        ("redis://nowhere.invalid", "its name leads to no address"),
        ("unix:///nowhere/redis.sock", "there is no such socket"),
    ] {
        let error = Connection::connect(ConnectOptions::new(Secret::new(url.to_owned()))).await;
        let told = error.unwrap_err().to_string();
        assert_eq!(told, format!("the store cannot be reached: {why}"), "{url}");
    }
}

#[tokio::test]
async fn a_server_that_answers_nothing_is_told_within_the_connect_timeout() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port()).await;
    proxy.set(Broken::Blackhole);
    let begun = Instant::now();
    let error = Connection::connect(ConnectOptions::new(Secret::new(proxy.url()))).await;
    assert_eq!(error.unwrap_err().kind(), Kind::StoreUnavailable);
    let took = begun.elapsed();
    println!("connect to a black hole: {took:?}");
    assert!(took < Duration::from_millis(1500), "{took:?}");
}

#[tokio::test]
async fn a_killed_server_fails_fast_and_is_found_again_on_its_port() {
    let mut server = Server::start(&["--appendonly", "yes"]);
    let connection = connect(&server.url()).await;
    assert_eq!(count(&connection).await, Ok(1));
    server.kill();
    let mut slowest = Duration::ZERO;
    for _ in 0..200 {
        let (fault, took) = fails_in_time(&connection).await;
        assert!(matches!(fault, Fault::Unavailable { .. }), "{fault:?}");
        slowest = slowest.max(took);
    }
    println!("slowest of 200 calls with the server down: {slowest:?}");
    assert!(slowest < AT_ONCE, "{slowest:?}");
    server.restart();
    let took = until_it_counts(&connection, Duration::from_secs(3)).await;
    println!("calls succeed again {took:?} after the restart");
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_waited_for() {
    let mut server = Server::start(&[
        "--save",
        "3600 1000000",
        "--key-load-delay",
        "400",
        "--loading-process-events-interval-bytes",
        "1024",
    ]);
    let fill = "for i = 1, 5000 do redis.call('SET', 'k' .. i, string.rep('x', 64)) end";
    server.fill(fill);
    let connection = connect(&server.url()).await;
    let _: () = server.ask("SAVE");
    server.kill();
    server.restart();
    let loads = Instant::now();
    let mut told = Vec::new();
    let counted = loop {
        match in_time(count(&connection)).await.0 {
            Ok(counted) => break counted,
            Err(fault) => told.push(fault),
        }
        assert!(loads.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    println!("loaded and counted after {:?}", loads.elapsed());
    let loading = Fault::unavailable("the store is loading its data");
    assert!(told.contains(&loading), "{told:?}");
    assert_eq!(counted, 1);
}

#[tokio::test]
async fn calls_that_were_never_sent_say_so() {
    let mut server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    server.kill();
    let _ = fails_in_time(&connection).await;
    let (fault, _) = fails_in_time(&connection).await;
    assert_eq!(fault, Fault::unavailable("the store cannot be reached: nothing listens there"));
}

#[tokio::test]
async fn attempts_to_connect_are_spaced_and_one_at_a_time() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port()).await;
    let connection = connect(&proxy.url()).await;
    proxy.set(Broken::Refuse);
    let before = proxy.accepted();
    let until = Instant::now() + Duration::from_secs(2);
    let calls = (0..20).map(|_| async {
        let mut calls = 0;
        while Instant::now() < until {
            count(&connection).await.unwrap_err();
            calls += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        calls
    });
    let calls: usize = futures_util::future::join_all(calls).await.into_iter().sum();
    let attempts = proxy.accepted() - before;
    println!("{calls} calls in 2 s made {attempts} attempts to connect");
    assert!(calls > 200 && (3..=12).contains(&attempts), "{calls} {attempts}");
}

#[tokio::test]
async fn a_stopped_server_fails_in_time_and_is_used_again_when_it_goes_on() {
    let server = Server::start(&[]);
    let connection = connect(&server.url()).await;
    assert_eq!(count(&connection).await, Ok(1));
    let before = server.clients();
    server.signal("STOP");
    let (fault, _) = fails_in_time(&connection).await;
    assert_eq!(fault, Fault::lost("the store did not answer in time"));
    for _ in 0..4 {
        let (fault, _) = fails_in_time(&connection).await;
        assert!(matches!(fault, Fault::Unavailable { .. }), "{fault:?}");
    }
    server.signal("CONT");
    let took = until_it_counts(&connection, Duration::from_secs(3)).await;
    println!("calls succeed again {took:?} after SIGCONT");
    assert!(server.clients().iter().all(|id| !before.contains(id)));
}

#[tokio::test]
async fn one_timeout_alone_does_not_cost_the_connection() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port()).await;
    let connection = Arc::new(connect(&proxy.url()).await);
    assert_eq!(count(&connection).await, Ok(1));
    proxy.set(Broken::Delay(Duration::from_millis(550)));
    // Ten calls that time out together are one silence.
    let calls = (0..10).map(|_| count(&connection));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap_err(), Fault::lost("the store did not answer in time"));
    }
    proxy.set(Broken::Pass);
    until_it_counts(&connection, Duration::from_secs(3)).await;
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn a_dropped_call_leaves_the_connection_to_the_others() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port()).await;
    let connection = connect(&proxy.url()).await;
    proxy.set(Broken::Delay(Duration::from_millis(50)));
    for _ in 0..5 {
        let dropped = tokio::time::timeout(Duration::from_millis(10), count(&connection)).await;
        assert!(dropped.is_err());
    }
    proxy.set(Broken::Refuse);
    server.wait_for("the proxy's connection ends", |server| server.clients().is_empty()).await;
    server.wait_for("the holder knows", |_| !connection.holder().is_open()).await;
    proxy.set(Broken::Delay(Duration::from_millis(50)));
    // The one that begins the attempt to connect goes; the attempt stays.
    let dropped = tokio::time::timeout(Duration::from_millis(10), count(&connection)).await;
    assert!(dropped.is_err());
    until_it_counts(&connection, Duration::from_secs(3)).await;
}

#[tokio::test]
async fn a_connection_outlives_the_runtime_that_made_it() {
    let server = Server::start(&[]);
    let url = server.url();
    let elsewhere = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(connect(&url))
    });
    let connection = elsewhere.join().unwrap();
    until_it_counts(&connection, Duration::from_secs(3)).await;
}
