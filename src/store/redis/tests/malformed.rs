//! Values that no script writes.

use std::collections::BTreeMap;

use super::scenes::{self, Scene};
use super::*;
use crate::redis::commands;

const VALUES: [&str; 5] =
    ["x", "-7", "nan", "99999999999999999999999", "99999999999999999999999:1"];

/// All fields of the hashes of a pool, but notes: key and field.
async fn fields(redis: &Redis) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for name in ["meta", "requests", "weights", "strikes", "former", "parked", "orders"] {
        let key = redis.key(name);
        let fields: Vec<String> = redis.send(&format!("HKEYS {key}")).await;
        let fields = fields.into_iter().filter(|field| field != "note" && field != ".");
        all.extend(fields.map(|field| (key.clone(), field)));
        // And one that is not there yet: a weight and strikes of a member that has none.
        all.push((key, "e7".to_owned()));
    }
    all
}

/// Members that are in no place or in several; a pool that is not there has none.
async fn misplaced(redis: &Redis) -> Vec<String> {
    let prefix = redis.key("");
    let script = redis::Script::new(MISPLACED);
    script.key(prefix).invoke_async(&mut redis.connection.clone()).await.unwrap()
}

const MISPLACED: &str = r"
local call, prefix, found = redis.call, KEYS[1], {}
for _, id in ipairs(call('ZRANGE', prefix .. 'members', 0, -1)) do
  local places = call('HEXISTS', prefix .. 'parked', id)
  for _, name in ipairs({'ready', 'cooling', 'leases'}) do
    places = places + (call('ZSCORE', prefix .. name, id) and 1 or 0)
  end
  if places ~= 1 or not call('ZSCORE', prefix .. 'uses', id) then
    found[#found + 1] = id
  end
end
return found
";

#[tokio::test]
async fn a_value_of_no_sense_loses_no_endpoint_and_leaves_no_half_a_call() {
    for (name, scene) in scenes::all().await {
        if ["busy", "busy shared", "weighted", "loading"].contains(&name) {
            loses_nothing(name, scene).await;
        }
    }
}

async fn loses_nothing(name: &str, scene: Scene) {
    let good = scene.everything().await;
    let (mut errors, mut answers) = (BTreeMap::<String, usize>::new(), 0);
    let mut wrong = Vec::new();
    for (nth, (key, field)) in fields(&scene.redis).await.into_iter().enumerate() {
        // All of them for what all calls read, else two.
        let rest = if key.ends_with(":meta") { VALUES.len() } else { 2 };
        for value in (nth..nth + rest).map(|nth| VALUES[nth % VALUES.len()]) {
            scene.redis.send::<()>(&format!("HSET {key} {field} {value}")).await;
            let (damaged, content) = (scene.everything().await, scene.content().await);
            // One that says where a member is takes it out of all other places, or puts it into one
            // more.
            let before = misplaced(&scene.redis).await;
            for call in 0.. {
                let Some(reply) = scene.call(call).await else { break };
                let told = format!("{name}: {key} {field} {value}, call {call}: {reply:?}");
                let after = scene.content().await;
                match reply {
                    Err(error) if error.kind() != Kind::StoreUnavailable => {
                        if after != content {
                            wrong.push(told.clone());
                        }
                        *errors.entry(key.clone()).or_default() += 1;
                    }
                    _ => answers += 1,
                }
                let now = misplaced(&scene.redis).await;
                if !now.iter().all(|id| before.contains(id)) {
                    wrong.push(format!("{told}: {now:?}"));
                }
                if after != content {
                    scene.restore(&damaged).await;
                }
            }
        }
        scene.restore(&good).await;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!("{name}: {answers} answers, {errors:?}");
    assert!(answers > 1000, "{name}: {answers}");
}

/// Twin: where a damaged record of strikes is not passed over, half a release is written.
#[tokio::test]
async fn a_record_that_is_not_passed_over_loses_an_endpoint() {
    let source = commands::RELEASE.script.source;
    let blind = source.replace("count, struck_at = count or '0', struck_at or '0'", "");
    assert_ne!(blind, source);
    for (source, lost) in [(source, false), (&blind, true)] {
        let redis = pool(1).await;
        let held = grant(&redis).await;
        redis.send::<()>(&format!("HSET {} e0 x", redis.key("strikes"))).await;
        let mut call = redis::cmd("EVAL");
        call.arg(source).arg(commands::RELEASE.keys.len());
        for name in commands::RELEASE.keys {
            call.arg(redis.key(name));
        }
        let args = [&hex(token(&held)), "0", "add", "probe", "0", ""];
        let answer = call.arg(&args).exec_async(&mut redis.connection.clone()).await;
        assert_eq!(answer.is_err(), lost);
        assert_eq!(misplaced(&redis).await, if lost { vec!["e0"] } else { vec![] });
    }
}
