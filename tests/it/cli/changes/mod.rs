//! What an administrator changes while sixty-four tasks send requests.
//!
//! With correct behaviour no request fails here, nor an attempt of one: members come and go while
//! others are left, what is leased when its endpoint is taken out goes on to its end, who finds the
//! pool paused waits, and a password is refused only when all that began with it has ended.
//!
//! Fences order grants and orders without a clock: what the store had granted when a command had
//! returned has a number up to the one that it tells then, and all that comes later a higher one.
//!
//! | file | what it is about |
//! |---|---|
//! | `proxy` | a proxy that checks passwords and writes down who came with which |
//! | `inventory` | the inventory's file and those of its passwords, and how they are replaced |
//! | `work` | the tasks |
//! | `ledger` | the grants as the server wrote them down |
//! | `findings` | what was promised, looked for in all of that |
//! | `world` | all of it together |
//! | `orders` | the changes |
//! | `twins` | the same with guards turned off |

mod findings;
mod inventory;
mod ledger;
mod orders;
mod proxy;
mod twins;
mod work;
mod world;

use std::time::{Duration, Instant};

use self::findings::counted;
use self::inventory::Mount;
use self::orders::First;
use self::world::{Form, SOCKS, SPARE, World};
use super::CANARY;
use crate::support::flaky::Dice;

/// The text of a password.
fn password(number: usize) -> String {
    format!("{CANARY}-{number}")
}

fn strings(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// One after the other, so that they leave some of the machine to the other tests.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_fails_a_request_or_comes_too_late() {
    let _turn = TURN.lock().await;
    every_change(World::start(Form::redis(Mount::Renamed)).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_in_this_process_fails_a_request_or_comes_too_late() {
    let _turn = TURN.lock().await;
    every_change(World::start(Form::memory(Mount::Renamed)).await).await;
}

/// `REQWEST_LEASE_LONG=1` runs many more, each in an order of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_in_any_order_fail_no_request_and_do_not_come_too_late() {
    let _turn = TURN.lock().await;
    let long = std::env::var_os("REQWEST_LEASE_LONG").is_some_and(|long| long == "1");
    let (end, number) = (Instant::now() + Duration::from_secs(240), if long { 20 } else { 8 });
    for seed in 0..60 {
        random_changes(World::start(Form::redis(Mount::Linked)).await, seed, number).await;
        random_changes(World::start(Form::memory(Mount::Linked)).await, seed, number).await;
        if !long || Instant::now() > end {
            return;
        }
    }
}

/// A provider is left for another one, and nobody notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_whose_members_are_all_replaced_fails_no_request() {
    let _turn = TURN.lock().await;
    let (redis, memory) = (Form::redis(Mount::Renamed), Form::memory(Mount::Renamed));
    for (form, first) in [(redis, First::Workers), (redis, First::Pool), (memory, First::Workers)] {
        let mut world = World::start(form).await;
        let before = world.plan.ids();
        let before: Vec<_> = before.iter().map(String::as_str).collect();
        world.syncs(first, &SPARE, &before, &[]).await;
        world.goes_on().await;
        calms_down(world).await;
    }
}

/// One after the other.
async fn every_change(mut world: World) {
    world.syncs(First::Workers, &["n5"], &["s4"], &[("n1", 3)]).await;
    world.is_used("n5").await;
    world.syncs(First::Pool, &["s4", "s5"], &["n5"], &[("n1", 1)]).await;
    world.is_used("s5").await;
    for command in ["disable", "drain --wait=30s", "quarantine"] {
        let ids = strings(&["n1", SOCKS]);
        world.takes_out(command, &ids).await;
        world.goes_on().await;
        world.enables(&ids).await;
        world.is_used("n1").await;
    }
    world.takes_out_provider("north").await;
    world.goes_on().await;
    world.rotates("n2").await;
    world.enables_provider("north").await;
    world.pauses().await;
    world.rotates("s1").await;
    world.is_used("s1").await;
    world.mends_a_broken_file().await;
    world.rotates("s1").await;
    calms_down(world).await;
}

/// In an order of the seed's, several at a time.
async fn random_changes(mut world: World, seed: u64, number: usize) {
    let dice = Dice::new(seed);
    for _ in 0..number {
        let ids = world.plan.ids();
        let one = ids[dice.roll(ids.len() as u64) as usize].clone();
        let out: Vec<_> = ids.iter().filter(|id| world.promises.is_banned(id)).cloned().collect();
        let may_go = !out.contains(&one) && ids.len() - out.len() > 3;
        match dice.roll(10) {
            0 if may_go => world.takes_out("disable", &[one]).await,
            1 if may_go => world.takes_out("drain --wait=30s", &[one]).await,
            2 if may_go => world.takes_out("quarantine", &[one]).await,
            3 if out.is_empty() => {
                world.takes_out_provider(["north", "south"][dice.roll(2) as usize]).await;
            }
            4 => world.pauses().await,
            5 | 6 if one != SOCKS => world.rotates(&one).await,
            7 => {
                let first = [First::Workers, First::Pool][dice.roll(2) as usize];
                let spare = SPARE[dice.roll(2) as usize];
                let weights = [(one.as_str(), 1 + dice.roll(5) as u32)];
                match world.plan.endpoints.contains_key(spare) {
                    true if !out.contains(&spare.to_owned()) && one != spare => {
                        world.syncs(first, &[], &[spare], &weights).await;
                    }
                    true => {}
                    false => world.syncs(first, &[spare], &[], &weights).await,
                }
            }
            8 => world.mends_a_broken_file().await,
            _ if !out.is_empty() => world.enables(&out).await,
            _ => {}
        }
        world.goes_on().await;
    }
    let out: Vec<_> =
        world.plan.ids().into_iter().filter(|id| world.promises.is_banned(id)).collect();
    if !out.is_empty() {
        world.enables(&out).await;
    }
    calms_down(world).await;
}

/// Once all is over, everything was right, is back and in order.
async fn calms_down(mut world: World) {
    world.ends().await;
    let evidence = world.evidence();
    let broken = world.promises.broken(&evidence);
    println!(
        "{} requests, {} grants, {} passed by unknown, {:?}, {:?}; wrong: {:?}",
        evidence.sent.len(),
        evidence.granted.len(),
        world.pool.counts().unknown_endpoints,
        world.gates.iter().map(|(id, gate)| (id.as_str(), gate.accepted())).collect::<Vec<_>>(),
        world.began.elapsed(),
        counted(&broken)
    );
    assert!(broken.is_empty(), "{:#?}", &broken[..broken.len().min(20)]);
    let status = world.pool.status().await.unwrap();
    let counts = world.pool.counts();
    assert_eq!((status.leased, status.expired), (0, 0), "{status:?}");
    assert_eq!(counts.grants, counts.releases, "{counts:?}");
    if world.form.redis {
        let told = world.json("status").await;
        assert_eq!((told["leased"].as_u64(), told["expired"].as_u64()), (Some(0), Some(0)));
        // Passwords changed since; their versions are no difference to the pool.
        world.rig.good("sync --inventory proxies.toml").await;
        let doctor = world.rig.good("doctor --inventory proxies.toml").await;
        assert!(doctor.out.ends_with("nothing is wrong\n"), "{doctor:?}");
    }
}
