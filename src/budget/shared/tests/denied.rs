//! Users who lack a command or a key, and keys of another kind: nothing is half done.

use std::collections::BTreeSet;

use super::*;
use crate::error::{Error, Kind};
use crate::redis::commands::ALL;

const PASSAGES: &str = "lease:budget:{a.test}:passages";

fn seat(number: u64, most: u32) -> Seat {
    Seat { passage: Passage { process: 0, number }, most, hold: 60 * SECOND }
}

/// The commands inside the scripts of budgets.
fn inner_commands() -> BTreeSet<&'static str> {
    let budgets = ALL.iter().filter(|command| command.script.name.starts_with("budget/"));
    let words = budgets.flat_map(|command| command.script.source.split("call('").skip(1));
    words.filter_map(|rest| rest.split('\'').next()).collect()
}

impl Rig {
    /// All that is stored, to compare and to restore.
    fn all(&self) -> Vec<(String, Vec<u8>, bool)> {
        let mut keys: Vec<String> = self.server.ask("KEYS *");
        keys.sort();
        let dump = |key: String| {
            let has_ttl = self.server.ask::<i64>(&format!("PTTL {key}")) > 0;
            (key.clone(), self.server.ask(&format!("DUMP {key}")), has_ttl)
        };
        keys.into_iter().map(dump).collect()
    }
}

/// Every call of a bucket, one after another; `None` behind the last.
async fn call(bucket: &Bucket, last: &Slot, nth: usize) -> Option<Result<(), Error>> {
    Some(match nth {
        0 => bucket.reserve(PROBE, None).await.map(drop),
        1 => bucket.reserve(PROBE, Some(&seat(1, 9))).await.map(drop),
        2 => bucket.reserve(PROBE, Some(&seat(1, 1))).await.map(drop),
        3 => bucket.enter(&seat(1, 9)).await.map(drop),
        4 => bucket.enter(&seat(0, 1)).await.map(drop),
        5 => bucket.leave(&[seat(0, 1).passage]).await,
        6 => bucket.pause(9, SECOND, BACKOFF).await.map(drop),
        7 => bucket.settle(1, true).await,
        8 => bucket.settle(1, false).await,
        9 => bucket.undo(last).await.map(drop),
        10 => bucket.reset().await.map(drop),
        _ => return None,
    })
}

/// Buckets in which scripts take one way or another: new, in use, paused, after a pause, with a
/// clock that was set back, and used up. The last slot that was reserved.
async fn scene(rig: &Rig, nth: usize) -> Slot {
    let _: () = rig.server.ask("FLUSHALL");
    let bucket = rig.bucket(10 * SECOND, 3);
    let reserved = bucket.reserve(PROBE, Some(&seat(0, 1))).await.unwrap();
    let Reserved::Slot(last) = reserved else { panic!("{reserved:?}") };
    if nth == 0 {
        let _: () = rig.server.ask("FLUSHALL");
    } else {
        bucket.enter(&seat(2, 9)).await.unwrap();
        // Its worker is dead.
        let _: () = rig.server.ask(&format!("ZADD {PASSAGES} 1 {}", seat(2, 9).passage));
    }
    if nth > 1 && nth < USED_UP {
        bucket.pause(0, SECOND, BACKOFF).await.unwrap();
    }
    if nth > 2 && nth < USED_UP {
        rig.pass(SECOND);
    }
    if nth == 4 {
        rig.step(3_600_000_000);
    }
    for _ in 0..if nth == USED_UP { 3 } else { 0 } {
        slot(&bucket).await;
    }
    last
}

const USED_UP: usize = 5;
const SCENES: usize = 6;

#[tokio::test]
async fn a_missing_command_or_key_leaves_all_as_it_was() {
    let rig = Rig::start().await;
    let url = rig.server.url().replace("redis://", "redis://limited:word@");
    let all = "ACL SETUSER limited on >word resetkeys ~* +@all";
    let _: () = rig.server.ask(all);
    let bucket = Bucket::new(limits(&url).await, "a.test", 10 * SECOND, 3);
    let inner = inner_commands();
    assert!(inner.len() > 8 && inner.contains("PEXPIRE"), "{inner:?}");
    let commands = inner.iter().map(|command| format!("-{}", command.to_lowercase()));
    let keys = [KEY, PASSAGES].map(|key| format!("resetkeys ~{key}"));
    for missing in commands.chain(keys) {
        let mut refusals = 0;
        for nth in 0..SCENES * 11 {
            let (nth_scene, nth_call) = (nth / 11, nth % 11);
            let last = scene(&rig, nth_scene).await;
            let _: () = rig.server.ask(all);
            let before = rig.all();
            let _: () = rig.server.ask(&format!("ACL SETUSER limited {missing}"));
            let done = call(&bucket, &last, nth_call).await.unwrap();
            let Err(error) = done else { continue };
            refusals += 1;
            let told = format!("{missing}, scene {nth_scene}, call {nth_call}: {error}");
            assert_eq!(error.kind(), Kind::StoreRefused, "{told}");
            assert!(error.to_string().starts_with("the store's user may not"), "{told}");
            assert!(rig.all() == before, "{told}");
        }
        assert!(refusals > 0, "{missing}");
    }
}

#[tokio::test]
async fn a_key_of_another_kind_leaves_all_as_it_was() {
    let rig = Rig::start().await;
    for key in [KEY, PASSAGES] {
        let mut refusals = 0;
        for nth in 0..SCENES * 11 {
            let (nth_scene, nth_call) = (nth / 11, nth % 11);
            let last = scene(&rig, nth_scene).await;
            let bucket = rig.bucket(10 * SECOND, 3);
            let _: u64 = rig.server.ask(&format!("DEL {key}"));
            let _: u64 = rig.server.ask(&format!("RPUSH {key} x"));
            let before = rig.all();
            if let Err(error) = call(&bucket, &last, nth_call).await.unwrap() {
                let told = format!("{key}, scene {nth_scene}, call {nth_call}: {error}");
                assert_eq!(error.kind(), Kind::StoreRefused, "{told}");
                assert!(rig.all() == before, "{told}");
                refusals += 1;
            }
            assert_eq!(rig.server.ask::<u64>(&format!("LLEN {key}")), 1);
        }
        assert!(refusals > 20, "{key} {refusals}");
    }
}

/// The twin: without the look at what the user may do, a slot is charged and no place taken.
#[tokio::test]
async fn without_the_look_a_slot_is_charged_without_a_place() {
    use crate::redis::Call;
    use crate::redis::commands::BUDGET_RESERVE;

    let rig = Rig::start().await;
    let _: () = rig.server.ask("ACL SETUSER limited on >word ~* +@all -zadd");
    let limited = limits(&rig.server.url().replace("redis://", "redis://limited:word@")).await;
    let source = BUDGET_RESERVE.script.source;
    let blind = source.replace("redis.acl_check_cmd(", "type(");
    assert_ne!(blind, source);
    let passage = seat(0, 1).passage.to_string();
    let args = ["1000", "1", "1000", "0", "1", &passage, "1000"];
    let args = args.map(|arg| arg.as_bytes().to_vec());
    let keys = [KEY.to_owned(), PASSAGES.to_owned()];
    for (source, written) in [(source.to_owned(), 0), (blind, 1)] {
        let script = crate::redis::tests::script("looks", source);
        let connection = &limited.shared.handle.connection;
        connection.call(Call { script, keys: &keys, args: &args }).await.unwrap_err();
        assert_eq!(rig.server.ask::<u64>("DBSIZE"), written);
    }
}
