//! Users who lack a command that scripts use.

use std::collections::BTreeSet;

use super::scenes::{self, Scene, call};
use super::*;
use crate::redis::commands;
use crate::redis::keys::STATE;

/// The commands inside all scripts: their quoted words, as far as the server knows them.
async fn inner_commands(redis: &Redis) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for command in commands::ALL {
        for word in command.script.source.split('\'').skip(1).step_by(2) {
            if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase()) {
                words.insert(word.to_owned());
            }
        }
    }
    let mut known = BTreeSet::new();
    for word in words {
        let info: Vec<redis::Value> = redis.send(&format!("COMMAND INFO {word}")).await;
        if matches!(info[0], redis::Value::Array(_)) {
            known.insert(word);
        }
    }
    known
}

/// A store of a user who may do all but what `deny` takes away.
async fn limited(redis: &Redis) -> (RedisStore, String) {
    let user = format!("limited-{}", redis.namespace);
    redis.send::<()>(&format!("ACL SETUSER {user} on >word ~* &* +@all")).await;
    let url = redis.server.url().replace("redis://", &format!("redis://{user}:word@"));
    let builder = RedisStore::builder(url).namespace(&redis.namespace);
    let store = builder.call_timeout(support::redis::PATIENCE).build().await.unwrap();
    (store, user)
}

#[tokio::test]
async fn a_missing_command_leaves_all_as_it_was() {
    for (name, scene) in scenes::all().await {
        leaves_all_as_it_was(name, scene).await;
    }
}

async fn leaves_all_as_it_was(name: &str, scene: Scene) {
    let Scene { redis, held } = &scene;
    let (store, user) = limited(redis).await;
    let (good, good_content) = (scene.everything().await, scene.content().await);
    let inner = inner_commands(redis).await;
    assert!(inner.len() > 15 && inner.contains("ZREM"), "{inner:?}");
    for command in inner.iter().map(String::as_str).chain(["EVALSHA", "EVAL"]) {
        redis.send::<()>(&format!("ACL SETUSER {user} +@all -{}", command.to_lowercase())).await;
        if command == "EVAL" {
            redis.send::<()>("SCRIPT FLUSH").await;
        }
        let mut refusals = 0;
        for nth in 0.. {
            let Some(reply) = call(&store, &redis.pool(), held, nth).await else { break };
            let after = scene.content().await;
            if let Err(error) = reply {
                let told = format!("{name}: {command}, call {nth}: {error}");
                if error.kind() != Kind::InvalidCall {
                    assert_eq!(error.kind(), Kind::StoreRefused, "{told}");
                    assert!(error.to_string().starts_with("the store's user may not"), "{told}");
                    refusals += 1;
                }
                assert!(after == good_content, "{told}");
            }
            if after != good_content {
                scene.restore(&good).await;
            }
        }
        let everywhere = ["TIME", "HGET", "HMGET", "EVALSHA"];
        assert!(refusals > 10 || !everywhere.contains(&command), "{name}: {command} {refusals}");
    }
}

#[tokio::test]
async fn a_missing_key_leaves_all_as_it_was() {
    let names: Vec<_> = STATE.iter().copied().chain(["orders", "audit", "shun:*"]).collect();
    for (scene_name, scene) in scenes::all().await {
        let Scene { redis, held } = &scene;
        let (store, user) = limited(redis).await;
        let (good, good_content) = (scene.everything().await, scene.content().await);
        for missing in &names {
            let mut rules = redis::cmd("ACL");
            rules.arg("SETUSER").arg(&user).arg("resetkeys");
            for name in names.iter().filter(|name| *name != missing) {
                rules.arg(format!("~{}", redis.key(name)));
            }
            rules.exec_async(&mut redis.connection.clone()).await.unwrap();
            let mut refusals = 0;
            for nth in 0.. {
                let Some(reply) = call(&store, &redis.pool(), held, nth).await else { break };
                let after = scene.content().await;
                if let Err(error) = reply {
                    assert!(after == good_content, "{scene_name}: {missing}, call {nth}: {error}");
                    refusals += usize::from(error.kind() == Kind::StoreRefused);
                }
                if after != good_content {
                    scene.restore(&good).await;
                }
            }
            let least = match *missing {
                "shun:*" => 1,
                "audit" => 8,
                _ => 10,
            };
            assert!(refusals >= least, "{scene_name}: {missing} {refusals}");
        }
    }
}

#[tokio::test]
async fn the_missing_command_is_named() {
    let redis = pool(2).await;
    let (store, user) = limited(&redis).await;
    redis.send::<()>(&format!("ACL SETUSER {user} -zrem")).await;
    let request = AcquireRequest::new(redis.pool(), Token::random(), TTL);
    let error = store.acquire(request).await.unwrap_err();
    assert_eq!(error.to_string(), "the store's user may not run ZREM");
    assert_eq!((error.kind(), error.may_have_run()), (Kind::StoreRefused, false));
    assert!(!error.is_transient());
}

/// Twin: without the look at what the user may do, one endpoint is leased and ready at once.
#[tokio::test]
async fn without_the_look_half_a_call_is_written() {
    let redis = pool(2).await;
    let (_, user) = limited(&redis).await;
    redis.send::<()>(&format!("ACL SETUSER {user} -zrem")).await;
    let url = redis.server.url().replace("redis://", &format!("redis://{user}:word@"));
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let source = commands::ACQUIRE.script.source;
    let blind = source.replace("redis.acl_check_cmd", "type");
    assert_ne!(blind, source);
    for (source, written) in [(source, false), (&blind, true)] {
        let mut call = redis::cmd("EVAL");
        call.arg(source).arg(commands::ACQUIRE.keys.len());
        for name in commands::ACQUIRE.keys {
            call.arg(redis.key(name));
        }
        let args = ["1000000", "0", "0", "", "1", "0123456789abcdef0123456789abcdef"];
        call.arg(&args).exec_async(&mut connection).await.unwrap_err();
        let found = redis.store.check(&redis.pool()).await.unwrap();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.contains(&"e0 not in one place".to_owned()), written, "{found:?}");
    }
}
