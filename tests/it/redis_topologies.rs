//! The store has the same properties through Sentinels and in a cluster.
//!
//! Servers of a topology take seconds to agree, so all properties share them, each with a
//! namespace and a pool of its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream;
use redis::FromRedisValue;
use reqwest_lease::conformance;
use reqwest_lease::{PoolName, RedisStore, RedisStoreBuilder};

use crate::support::program::{Program, free_port};
use crate::support::redis::{PATIENCE, Redis, Server, program};

/// A property, by name.
type Property = (&'static str, fn(Redis) -> BoxFuture<'static, Redis>);

macro_rules! properties {
    ($($property:ident)*) => {
        const PROPERTIES: &[Property] = &[$((stringify!($property), |redis| {
            Box::pin(async move {
                conformance::$property(&redis).await;
                redis
            })
        })),*];
    };
}
reqwest_lease::for_each_property!(properties);

/// Each property holds on a pool that `fixture` makes; the names of those that do not.
async fn hold(fixture: impl AsyncFn(usize) -> Redis) {
    let holds = async |(nth, (name, property)): (usize, &Property)| {
        let redis = fixture(nth).await;
        let check = async |redis: Redis| match redis.store.check(&redis.pool).await {
            Ok(found) => assert!(found.is_empty(), "{name}: {found:?}"),
            Err(error) => assert_eq!(error.kind(), reqwest_lease::Kind::PoolUninitialised),
        };
        match tokio::spawn(property(redis)).await {
            Ok(redis) => {
                check(redis).await;
                None
            }
            Err(_) => Some(*name),
        }
    };
    let all = stream::iter(PROPERTIES.iter().enumerate()).map(holds).buffer_unordered(4);
    let failed: Vec<_> = all.filter_map(std::future::ready).collect().await;
    assert!(failed.is_empty(), "{} of {}: {failed:?}", failed.len(), PROPERTIES.len());
}

async fn redis(builder: RedisStoreBuilder, server: Arc<Server>, nth: usize) -> Redis {
    let (namespace, pool) = (format!("n{nth}"), PoolName::new(format!("p{nth}")).unwrap());
    let builder = builder.namespace(&namespace).connect_timeout(PATIENCE).call_timeout(PATIENCE);
    let store = builder.build().await.unwrap();
    Redis { store, namespace, pool, connection: server.connection().await, server }
}

#[tokio::test]
async fn all_properties_hold_through_sentinels() {
    let primary = Arc::new(Server::start(&[]));
    let watch = Watch::over(&primary).await;
    hold(async |nth| {
        let builder = RedisStore::sentinel(watch.urls(), "pool", "redis://whoever");
        redis(builder, primary.clone(), nth).await
    })
    .await;
}

/// Three Sentinels that watch a primary by the name of `pool`.
pub(crate) struct Watch(Vec<Program>);

impl Watch {
    pub(crate) async fn over(primary: &Server) -> Self {
        let watch = Self((0..3).map(|_| sentinel(primary)).collect());
        for url in watch.urls() {
            until(&url, "INFO sentinel", |told: String| told.contains("sentinels=3")).await;
        }
        watch
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(|it| format!("redis://{}", it.address())).collect()
    }
}

fn sentinel(primary: &Server) -> Program {
    Program::start(&program(), "redis-server", |port, directory| {
        let file = directory.join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor pool 127.0.0.1 {} 2\n",
            directory.display(),
            primary.port(),
        );
        std::fs::write(&file, text).unwrap();
        vec![file.display().to_string(), "--sentinel".to_owned()]
    })
}

#[tokio::test]
async fn all_properties_hold_in_a_cluster() {
    let nodes: Vec<_> = (0..3).map(|_| Arc::new(node())).collect();
    for (nth, range) in ["0 5460", "5461 10921", "10922 16383"].iter().enumerate() {
        let url = nodes[nth].url();
        ask::<()>(&url, &format!("CLUSTER ADDSLOTSRANGE {range}")).await.unwrap();
        ask::<()>(&url, &format!("CLUSTER SET-CONFIG-EPOCH {}", nth + 1)).await.unwrap();
    }
    for other in &nodes[1..] {
        let bus: Vec<String> = ask(&other.url(), "CONFIG GET cluster-port").await.unwrap();
        let meet = format!("CLUSTER MEET 127.0.0.1 {} {}", other.port(), bus[1]);
        ask::<()>(&nodes[0].url(), &meet).await.unwrap();
    }
    for node in &nodes {
        let stands = |told: String| {
            told.contains("cluster_state:ok") && told.contains("cluster_known_nodes:3")
        };
        until(&node.url(), "CLUSTER INFO", stands).await;
    }
    hold(async |nth| {
        let builder = RedisStore::cluster([nodes[nth % 3].url()]);
        let slot = format!("CLUSTER KEYSLOT p{nth}");
        let slot: usize = ask(&nodes[0].url(), &slot).await.unwrap();
        redis(builder, nodes[(slot / 5461).min(2)].clone(), nth).await
    })
    .await;
    let mut used = Vec::new();
    for node in &nodes {
        used.push(ask::<usize>(&node.url(), "DBSIZE").await.unwrap());
    }
    assert!(used.iter().all(|keys| *keys > 100), "{used:?}");
}

fn node() -> Server {
    // A bus of its own choice would be 10,000 ports up, which may be none.
    let bus = free_port().to_string();
    Server::start(&["--cluster-enabled", "yes", "--cluster-port", &bus])
}

async fn ask<T: FromRedisValue>(url: &str, command: &str) -> redis::RedisResult<T> {
    let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    let mut words = command.split(' ');
    let mut asked = redis::cmd(words.next().unwrap());
    for word in words {
        asked.arg(word);
    }
    asked.query_async(&mut connection).await
}

async fn until(url: &str, command: &str, good: impl Fn(String) -> bool) {
    let begun = std::time::Instant::now();
    while !ask(url, command).await.is_ok_and(&good) {
        assert!(begun.elapsed() < Duration::from_secs(20), "never: {command}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
