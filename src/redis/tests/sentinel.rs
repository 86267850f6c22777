//! A primary found through Sentinels, before and after a failover.

use super::server::{Server, free_port};
use super::*;

struct Watched {
    primary: Server,
    replica: Server,
    sentinels: Vec<Server>,
}

impl Watched {
    async fn start() -> Self {
        let primary = Server::start(&[]);
        let replica = Server::start(&["--replicaof", &format!("127.0.0.1 {}", primary.port())]);
        replica
            .wait_for("the replica follows", |replica| {
                replica.ask::<String>("INFO replication").contains("master_link_status:up")
            })
            .await;
        let sentinels: Vec<_> = (0..3).map(|_| Server::sentinel(&primary)).collect();
        for sentinel in &sentinels {
            sentinel
                .wait_for("all know each other", |sentinel| {
                    let told: String = sentinel.ask("INFO sentinel");
                    told.contains("slaves=1,sentinels=3")
                })
                .await;
        }
        Self { primary, replica, sentinels }
    }

    fn options(&self) -> ConnectOptions {
        let mut urls: Vec<_> = self.sentinels.iter().map(|server| server.url()).collect();
        // One that is not there costs nothing.
        urls.insert(0, format!("redis://127.0.0.1:{}", free_port()));
        let urls = urls.into_iter().map(Secret::new).collect();
        ConnectOptions::sentinel(urls, "pool", Secret::new("redis://whoever"))
    }
}

#[tokio::test]
async fn calls_succeed_again_after_a_failover() {
    let mut watched = Watched::start().await;
    let connection = Connection::connect(watched.options()).await.unwrap();
    assert_eq!(count(&connection).await, Ok(1));
    watched.primary.kill();
    let took = until_it_counts(&connection, Duration::from_secs(20)).await;
    println!("calls succeed again {took:?} after the primary died (down-after 500 ms)");
    assert!(watched.replica.runs() >= 1);
}

#[tokio::test]
async fn a_primary_that_sleeps_through_a_failover_is_left_for_good() {
    let watched = Watched::start().await;
    let connection = Connection::connect(watched.options()).await.unwrap();
    assert_eq!(count(&connection).await, Ok(1));
    watched.primary.signal("STOP");
    until_it_counts(&connection, Duration::from_secs(20)).await;
    let runs = watched.replica.runs();
    watched.primary.signal("CONT");
    for call in 1..=20 {
        assert_eq!(count(&connection).await, Ok(runs + call));
    }
}

#[tokio::test]
async fn an_ordered_failover_is_followed_by_the_same_call() {
    let watched = Watched::start().await;
    let connection = Connection::connect(watched.options()).await.unwrap();
    assert_eq!(count(&connection).await, Ok(1));
    let _: () = watched.sentinels[0].ask("SENTINEL FAILOVER pool");
    watched
        .primary
        .wait_for("it is demoted", |primary| {
            primary.ask::<String>("INFO replication").contains("role:slave")
        })
        .await;
    let took = until_it_counts(&connection, Duration::from_secs(10)).await;
    println!("calls succeed again {took:?} after the demotion");
    assert!(watched.replica.runs() >= 1);
}

#[tokio::test]
async fn a_name_that_no_sentinel_knows_is_told() {
    let server = Server::start(&[]);
    let sentinel = Server::sentinel(&server);
    let options = ConnectOptions::sentinel(
        vec![Secret::new(sentinel.url())],
        "other",
        Secret::new("redis://whoever"),
    );
    let error = Connection::connect(options).await.unwrap_err();
    assert_eq!(error.to_string(), "no Sentinel knows the primary");
}
