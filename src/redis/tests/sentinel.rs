//! A primary found through Sentinels, before and after a failover.

use std::time::Instant;

use super::hints::{CHANNEL, heard, is_heard};
use super::server::{Server, free_port};
use super::*;
use crate::redis::address::Place;
use crate::redis::hints::listen;

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
                replica.info("replication").contains("master_link_status:up")
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

    /// How many Sentinels name this server.
    fn naming(&self, server: &Server) -> usize {
        let names = |sentinel: &&Server| {
            let named: (String, u16) = sentinel.ask("SENTINEL GET-MASTER-ADDR-BY-NAME pool");
            named.1 == server.port()
        };
        self.sentinels.iter().filter(names).count()
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
    // How long the Sentinels need to agree is theirs; a split vote costs them seconds.
    let agreed = async {
        let begun = Instant::now();
        while watched.naming(&watched.replica) < 2 {
            assert!(begun.elapsed() < Duration::from_secs(30), "no failover");
            let _ = in_time(count(&connection)).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        begun.elapsed()
    };
    let agreed = agreed.await;
    let took = until_it_counts(&connection, Duration::from_secs(3)).await;
    println!("Sentinels agreed after {agreed:?}, calls succeed again {took:?} later");
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
async fn an_ordered_failover_is_followed_while_the_old_primary_still_takes_writes() {
    let watched = Watched::start().await;
    let connection = Connection::connect(watched.options()).await.unwrap();
    assert_eq!(count(&connection).await, Ok(1));
    let before = watched.replica.runs();
    let _: () = watched.sentinels[0].ask("SENTINEL FAILOVER pool");
    watched.sentinels[0]
        .wait_for("most name the replica", |_| watched.naming(&watched.replica) >= 2)
        .await;
    let begun = Instant::now();
    while connection.holder().place() != Some(at(&watched.replica)) {
        count(&connection).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(3));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("moved {:?} after the Sentinels agreed", begun.elapsed());
    assert!(watched.replica.runs() >= before);
    assert!(watched.primary.info("replication").contains("role:master"));
}

#[tokio::test]
async fn hints_are_those_of_the_primary_of_the_moment() {
    let watched = Watched::start().await;
    let connection = Connection::connect(watched.options()).await.unwrap();
    let mut hints = listen(connection, CHANNEL.to_owned());
    heard(&mut hints, "the first one").await;
    is_heard(&mut hints, &watched.primary, CHANNEL).await;
    let _: () = watched.sentinels[0].ask("SENTINEL FAILOVER pool");
    watched.sentinels[0]
        .wait_for("most name the replica", |_| watched.naming(&watched.replica) >= 2)
        .await;
    is_heard(&mut hints, &watched.replica, CHANNEL).await;
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

fn at(server: &Server) -> Place {
    Place::Tcp { host: "127.0.0.1".into(), port: server.port() }
}

/// One Sentinel that still names the old primary, before two that name the new one.
fn lagging() -> (Server, Server, Vec<Server>) {
    let (old, new) = (Server::start(&[]), Server::start(&[]));
    let sentinels = [&old, &new, &new].map(Server::sentinel).into();
    (old, new, sentinels)
}

#[tokio::test]
async fn one_sentinel_that_lags_behind_leads_nobody_to_the_old_primary() {
    let (old, _new, sentinels) = lagging();
    let urls = || sentinels.iter().map(|server| Secret::new(server.url())).collect();
    for _ in 0..20 {
        let options = ConnectOptions::sentinel(urls(), "pool", Secret::new("redis://whoever"));
        assert_eq!(
            count(&Connection::connect(options).await.unwrap()).await.ok().map(|_| ()),
            Some(())
        );
    }
    assert_eq!(old.runs(), 0);
}

#[tokio::test]
async fn one_sentinel_is_believed_when_no_other_answers() {
    let (old, _new, mut sentinels) = lagging();
    let urls = sentinels.iter().map(|server| Secret::new(server.url())).collect();
    sentinels[1].kill();
    sentinels[2].signal("STOP");
    let options = ConnectOptions::sentinel(urls, "pool", Secret::new("redis://whoever"));
    count(&Connection::connect(options).await.unwrap()).await.unwrap();
    assert_eq!(old.runs(), 1);
}
