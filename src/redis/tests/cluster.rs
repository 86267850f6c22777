//! Clusters: slots that move, nodes that die.

use std::time::Instant;

use super::hints::{heard, is_heard};
use super::server::{Server, free_port};
use super::*;
use crate::error::Kind;
use crate::redis::acl::Role;
use crate::redis::hints::listen;

/// Three primaries with a third of the slots each, and maybe a replica of the first.
pub(crate) struct Nodes {
    pub(crate) primaries: Vec<Server>,
    replica: Option<Server>,
}

impl Nodes {
    pub(crate) async fn start(with_replica: bool) -> Self {
        let primaries: Vec<_> = (0..3).map(|_| node()).collect();
        for (nth, range) in ["0 5460", "5461 10922", "10923 16383"].iter().enumerate() {
            let _: () = primaries[nth].ask(&format!("CLUSTER ADDSLOTSRANGE {range}"));
            let _: () = primaries[nth].ask(&format!("CLUSTER SET-CONFIG-EPOCH {}", nth + 1));
        }
        let replica = with_replica.then(node);
        for other in primaries[1..].iter().chain(&replica) {
            let bus: Vec<String> = other.ask("CONFIG GET cluster-port");
            let meet = format!("CLUSTER MEET 127.0.0.1 {} {}", other.port(), bus[1]);
            let _: () = primaries[0].ask(&meet);
        }
        if let Some(replica) = &replica {
            let id: String = primaries[0].ask("CLUSTER MYID");
            replica
                .wait_for("it knows its primary", |replica| {
                    replica.try_ask::<()>(&format!("CLUSTER REPLICATE {id}")).is_ok()
                })
                .await;
            replica
                .wait_for("it follows", |it| it.info("replication").contains("link_status:up"))
                .await;
        }
        let all = 3 + usize::from(with_replica);
        for server in primaries.iter().chain(&replica) {
            server
                .wait_for("the cluster stands", |server| {
                    let told: String = server.ask("CLUSTER INFO");
                    let nodes: String = server.ask("CLUSTER NODES");
                    let known = format!("cluster_known_nodes:{all}");
                    told.contains("cluster_state:ok")
                        && told.contains(&known)
                        && nodes.lines().filter(|line| line.contains("slave")).count() == all - 3
                })
                .await;
        }
        Self { primaries, replica }
    }

    fn options(&self) -> ConnectOptions {
        // One that is not there, and one that does.
        let gone = format!("redis://127.0.0.1:{}", free_port());
        let urls = [gone, self.primaries[1].url()];
        ConnectOptions::cluster(urls.map(Secret::new).into())
    }

    async fn connect(&self) -> Connection {
        Connection::connect(self.options()).await.unwrap()
    }
}

fn node() -> Server {
    // A bus of its own choice would be 10,000 ports up, which may be none.
    let bus = free_port().to_string();
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];
    Server::start(&[&options[..], &["--cluster-port", &bus]].concat())
}

/// Of the first, the second and the third primary.
pub(crate) const POOLS: [(&str, u16); 3] = [("b", 3300), ("c", 7365), ("a", 15_495)];

async fn lease(connection: &Connection, pool: &str) -> Result<i64, Fault> {
    let keys = [format!("lease:{{{pool}}}:meta")];
    let answer = connection.call(Call { script: &COUNT, keys: &keys, args: &[] });
    answer.await.map(|value| redis::from_redis_value(value).unwrap())
}

fn runs(server: &Server, pool: &str) -> i64 {
    let runs: Option<i64> = server.ask(&format!("GET lease:{{{pool}}}:meta"));
    runs.unwrap_or_default()
}

#[tokio::test]
async fn each_pool_is_served_by_its_node() {
    let nodes = Nodes::start(false).await;
    let connection = nodes.connect().await;
    for call in 1..=3 {
        for (nth, (pool, slot)) in POOLS.iter().enumerate() {
            let told: u16 = nodes.primaries[0].ask(&format!("CLUSTER KEYSLOT {pool}"));
            assert_eq!(told, *slot);
            assert_eq!(lease(&connection, pool).await, Ok(call));
            assert_eq!(runs(&nodes.primaries[nth], pool), call);
        }
    }
}

#[tokio::test]
async fn a_slot_that_moves_is_followed_and_each_call_runs_once() {
    let nodes = Nodes::start(false).await;
    let connection = nodes.connect().await;
    let [from, to, _] = &nodes.primaries[..] else { panic!() };
    let (pool, slot) = POOLS[0];
    let ids: [String; 2] = [from.ask("CLUSTER MYID"), to.ask("CLUSTER MYID")];
    let _: () = to.ask(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[0]));
    let _: () = from.ask(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[1]));
    // The key is nowhere yet: ASK sends each call on, by hash and by source.
    assert_eq!(lease(&connection, pool).await, Ok(1));
    assert_eq!(lease(&connection, pool).await, Ok(2));
    for server in [to, from] {
        let _: () = server.ask(&format!("CLUSTER SETSLOT {slot} NODE {}", ids[1]));
    }
    // Now MOVED.
    assert_eq!(lease(&connection, pool).await, Ok(3));
    assert_eq!(runs(to, pool), 3);
}

/// Moves the first pool's slot half-way: what is there stays, what is new goes to the other.
pub(crate) fn begin_to_move(nodes: &Nodes) -> [String; 2] {
    let [from, to, _] = &nodes.primaries[..] else { panic!() };
    let slot = POOLS[0].1;
    let ids: [String; 2] = [from.ask("CLUSTER MYID"), to.ask("CLUSTER MYID")];
    let _: () = to.ask(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[0]));
    let _: () = from.ask(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[1]));
    ids
}

#[tokio::test]
async fn a_worker_by_its_role_follows_a_slot_that_moves() {
    let nodes = Nodes::start(false).await;
    for node in &nodes.primaries {
        let _: () = node.ask(&Role::Worker.set_user("someone", "lease"));
        let _: () = node.ask("ACL SETUSER someone >word");
    }
    let url = format!("redis://someone:word@127.0.0.1:{}", nodes.primaries[1].port());
    let options = ConnectOptions::cluster(vec![Secret::new(url)]);
    let connection = Connection::connect(options).await.unwrap();
    begin_to_move(&nodes);
    let keys = [format!("lease:{{{}}}:meta", POOLS[0].0)];
    let call = Call { script: &super::acl::LEASE, keys: &keys, args: &[] };
    assert_eq!(connection.call(call).await, Ok(redis::Value::Int(1)));
    let there: i64 = nodes.primaries[1].ask("DBSIZE");
    assert_eq!(there, 1);
}

#[tokio::test]
async fn a_script_that_meets_a_key_elsewhere_is_a_matter_of_waiting() {
    let nodes = Nodes::start(false).await;
    let connection = nodes.connect().await;
    let (pool, slot) = POOLS[0];
    assert_eq!(lease(&connection, pool).await, Ok(1));
    let ids = begin_to_move(&nodes);
    let reads = Script::new(
        "reads",
        "#!lua\nredis.call('HGET', 'lease:{b}:orders', '*')\n\
         return redis.call('INCR', KEYS[1])\n",
    );
    let keys = [format!("lease:{{{pool}}}:meta")];
    let call = || connection.call(Call { script: &reads, keys: &keys, args: &[] });
    let fault = call().await.unwrap_err();
    let moving =
        Fault::Unavailable { message: "the store is moving its keys", may_have_run: false };
    assert_eq!(fault, moving);
    let [from, to, _] = &nodes.primaries[..] else { panic!() };
    let key = &keys[0];
    let _: () = from.ask(&format!("MIGRATE 127.0.0.1 {} {key} 0 1000", to.port()));
    for server in [to, from] {
        let _: () = server.ask(&format!("CLUSTER SETSLOT {slot} NODE {}", ids[1]));
    }
    assert_eq!(call().await, Ok(redis::Value::Int(2)));
}

#[tokio::test]
async fn hints_follow_their_slot() {
    let nodes = Nodes::start(false).await;
    let (pool, slot) = POOLS[0];
    let channel = format!("lease:{{{pool}}}:free");
    let mut hints = listen(nodes.connect().await, channel.clone());
    heard(&mut hints, "the first one").await;
    let [from, to, _] = &nodes.primaries[..] else { panic!() };
    is_heard(&mut hints, from, &channel).await;
    let id: String = to.ask("CLUSTER MYID");
    for server in [to, from] {
        let _: () = server.ask(&format!("CLUSTER SETSLOT {slot} NODE {id}"));
    }
    is_heard(&mut hints, to, &channel).await;
}

#[tokio::test]
async fn a_node_that_sleeps_costs_its_pools_alone_and_no_script_is_sent_again() {
    let nodes = Nodes::start(false).await;
    let connection = nodes.connect().await;
    let [first, ..] = &nodes.primaries[..] else { panic!() };
    for (pool, _) in POOLS {
        assert_eq!(lease(&connection, pool).await, Ok(1));
    }
    first.signal("STOP");
    let fault = in_time(lease(&connection, POOLS[0].0)).await.0.unwrap_err();
    assert_eq!(fault, Fault::lost("the store did not answer in time"));
    let begun = Instant::now();
    for (pool, _) in &POOLS[1..] {
        assert_eq!(lease(&connection, pool).await, Ok(2));
    }
    assert!(begun.elapsed() < AT_ONCE);
    first.signal("CONT");
    first.wait_for("the late script", |first| runs(first, POOLS[0].0) >= 2).await;
    assert_eq!(runs(first, POOLS[0].0), 2);
}

#[tokio::test]
async fn a_replica_that_is_promoted_serves_the_pools_of_the_dead() {
    let mut nodes = Nodes::start(true).await;
    let connection = nodes.connect().await;
    let (pool, _) = POOLS[0];
    assert_eq!(lease(&connection, pool).await, Ok(1));
    nodes.primaries[0].kill();
    let replica = nodes.replica.as_ref().unwrap();
    let begun = Instant::now();
    let mut promoted = None;
    while let Err(fault) = in_time(lease(&connection, pool)).await.0 {
        assert!(matches!(fault, Fault::Unavailable { .. }), "{fault:?}");
        if replica.info("replication").contains("role:master") {
            promoted.get_or_insert_with(Instant::now);
        }
        assert!(promoted.is_none_or(|promoted| promoted.elapsed() < Duration::from_secs(3)));
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let late = promoted.map(|promoted| promoted.elapsed());
    println!("served {:?} after the death, {late:?} after the promotion", begun.elapsed());
    for (pool, _) in &POOLS[1..] {
        lease(&connection, pool).await.unwrap();
    }
}

#[tokio::test]
async fn a_cluster_is_used_as_one_and_nothing_else_is() {
    let (cluster, single) = (node(), Server::start(&[]));
    let options = ConnectOptions::new(Secret::new(cluster.url()));
    let error = Connection::connect(options).await.unwrap_err();
    assert_eq!(error.kind(), Kind::StoreRefused);
    assert_eq!(error.to_string(), "the store is a cluster, but is not used as one");
    let options = ConnectOptions::cluster(vec![Secret::new(single.url())]);
    let error = Connection::connect(options).await.unwrap_err();
    assert_eq!(error.to_string(), "the store is used as a cluster, but is not one");
}
