//! Eight processes of eight tasks on one pool, killed and started again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use reqwest_lease::{AdminRequest, LeaseStore, Order, RedisStore};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::checker::{End, Findings, Wrong, check};
use super::diary::{Diaries, micros, wall};
use super::layout::{DEADLINES_DO_NOT_COUNT, Flaw, OLD_TOKENS_END_LEASES, RELEASES_ARE_NEVER_LATE};
use super::relay::Relay;
use super::server::Server;
use super::{
    APPEND_ONLY, COOLDOWN, ENDPOINTS, NAMESPACE, TTL, aof, config, id, members, order, pool_name,
    prefix, set_up, worker,
};
use crate::support::SOON;
use crate::support::flaky::Dice;
use crate::support::tap::Tap;

const PROCESSES: u64 = 8;

/// One after the other, so that they leave some of the machine to the other tests.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_kept_every_promise() {
    let long = std::env::var_os("REQWEST_LEASE_LONG").is_some_and(|long| long == "1");
    let findings = run(if long { 60 } else { 5 }, &[]).await;
    assert!(findings.wrongs.is_empty(), "{:#?}", findings.wrongs);
    // Or nothing was tried.
    let reclaimed = findings.ended(End::Reclaimed);
    assert!(findings.terms.len() > 100 && findings.renewals > 0 && reclaimed > 0);
}

/// The twins: runs with one check of the scripts turned off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_that_are_turned_off_are_found() {
    finds(OLD_TOKENS_END_LEASES, &[Wrong::EndedByStranger, Wrong::GrantedEarly]).await;
    let wrongs = [Wrong::ReclaimedEarly, Wrong::BelievedTwice, Wrong::LostEarly];
    finds(DEADLINES_DO_NOT_COUNT, &wrongs).await;
    finds(RELEASES_ARE_NEVER_LATE, &[Wrong::ReleasedLate]).await;
}

/// Runs with a flaw until each of these has been found.
async fn finds(flaw: Flaw, wrongs: &[Wrong]) {
    let mut found = BTreeMap::new();
    for _ in 0..8 {
        found.append(&mut run(2, flaw).await.counted());
        if wrongs.iter().all(|wrong| found.contains_key(wrong)) {
            return;
        }
    }
    panic!("{wrongs:?} are not all among {found:?}");
}

/// The world of a run.
struct World {
    server: Server,
    tap: Tap,
    relays: [Relay; 2],
    store: RedisStore,
    directory: tempfile::TempDir,
    flawed: bool,
    until: u64,
    diaries: Diaries,
    started: usize,
    kills: usize,
}

struct Running {
    child: Child,
    diary: PathBuf,
}

async fn run(seconds: u64, flaw: Flaw) -> Findings {
    let _turn = TURN.lock().await;
    let mut world = World::start(seconds, flaw).await;
    let meddling = tokio::spawn(meddle(world.store.clone(), world.until));
    world.live_and_die().await;
    meddling.await.unwrap();
    if !world.flawed {
        world.calms_down().await;
    }
    world.findings()
}

impl World {
    async fn start(seconds: u64, flaw: Flaw) -> Self {
        let server = Server::start(APPEND_ONLY);
        let tap = Tap::start().await;
        let relays = [
            Relay::start(server.port(), Some(Dice::new(1)), flaw).await,
            Relay::start(server.port(), None, flaw).await,
        ];
        let store = RedisStore::builder(server.url()).namespace(NAMESPACE).build().await.unwrap();
        set_up(&store, config()).await;
        Self {
            server,
            tap,
            relays,
            store,
            directory: tempfile::tempdir().unwrap(),
            flawed: !flaw.is_empty(),
            until: wall() + seconds * 1_000_000,
            diaries: Diaries::default(),
            started: 0,
            kills: 0,
        }
    }

    /// Half of the processes reach the server by the relay that loses answers.
    fn spawn(&mut self, slot: usize) -> Running {
        let seed = self.started;
        self.started += 1;
        let diary = self.directory.path().join(format!("diary{seed}"));
        let url = match (slot % 2, self.flawed) {
            (0, _) => self.relays[0].url(),
            (_, true) => self.relays[1].url(),
            (_, false) => self.server.url(),
        };
        let output = self.directory.path().join(format!("output{seed}"));
        let output = std::fs::File::create(output).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "truth::worker::a_worker_works_until_its_time_is_over"])
            .args(["--nocapture"])
            .env(worker::URL, url)
            .env(worker::DIARY, &diary)
            .env(worker::SEED, seed.to_string())
            .env(worker::UNTIL, self.until.to_string())
            .env(worker::PROXY, self.tap.url())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .kill_on_drop(true);
        Running { child: child.spawn().unwrap(), diary }
    }

    async fn live_and_die(&mut self) {
        let dice = Dice::new(7);
        let mut running: Vec<_> = (0..PROCESSES as usize).map(|slot| self.spawn(slot)).collect();
        while wall() + 1_000_000 < self.until {
            sleep(Duration::from_millis(300 + dice.roll(500))).await;
            let slot = dice.roll(PROCESSES) as usize;
            let mut victim = std::mem::replace(&mut running[slot], self.spawn(slot));
            let alive = victim.child.try_wait().unwrap().is_none();
            assert!(alive, "{}", self.said(&victim.diary));
            let end = wall();
            victim.child.kill().await.unwrap();
            self.diaries.read(&victim.diary, end);
            self.kills += 1;
        }
        for mut one in running {
            let ended = tokio::time::timeout(SOON * 3, one.child.wait()).await.unwrap().unwrap();
            assert!(ended.success(), "{}", self.said(&one.diary));
            self.diaries.read(&one.diary, u64::MAX);
        }
    }

    /// The last that a worker said.
    fn said(&self, diary: &Path) -> String {
        let name = diary.file_name().unwrap().to_str().unwrap().replace("diary", "output");
        std::fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
    }

    /// Once all is over, everything is back and in order.
    async fn calms_down(&self) {
        for last in [Order::Resume, members(), Order::Enable((0..ENDPOINTS).map(id).collect())] {
            order(&self.store, last).await;
        }
        sleep(TTL * 3 + COOLDOWN).await;
        let status = self.store.status(&pool_name()).await.unwrap();
        let kept = status.leased + status.disabled + status.quarantined;
        assert_eq!((kept, status.members()), (0, ENDPOINTS), "{status:?}");
        assert_eq!(self.store.check(&pool_name()).await.unwrap(), []);
    }

    fn findings(self) -> Findings {
        let steps = aof::read(self.server.directory());
        let mut findings = check(&steps, &prefix(), micros(TTL));
        let (beliefs, counts) = (self.diaries.beliefs(), self.diaries.counts.clone());
        self.diaries.check(&mut findings);
        let lost: usize = self.relays.iter().map(Relay::lost).sum();
        let changed: usize = self.relays.iter().map(Relay::changed).sum();
        println!(
            "{} grants ({} released, {} cancelled, {} reclaimed, {} to a token that asked again), \
             {} renewals, {} steps, {beliefs} beliefs, {} kills, {lost} lost answers, \
             {changed} changed scripts; {counts:?}; wrong: {:?}",
            findings.terms.len(),
            findings.ended(End::Released),
            findings.ended(End::Cancelled),
            findings.ended(End::Reclaimed),
            findings.again,
            findings.renewals,
            findings.steps,
            self.kills,
            findings.counted(),
        );
        assert!(beliefs > 0 && self.kills > 0 && (lost > 0 || self.flawed));
        assert_eq!(changed > 0, self.flawed, "the scripts are not what the twin expects");
        findings
    }
}

/// An administrator without a plan.
async fn meddle(store: RedisStore, until: u64) {
    let dice = Dice::new(3);
    while wall() < until {
        let ids = vec![id(dice.roll(ENDPOINTS as u64) as usize)];
        let one = match dice.roll(8) {
            0 => Order::Disable(ids),
            1 => Order::Drain(ids),
            2 => Order::Remove(ids),
            3 => Order::Pause,
            _ => Order::Enable((0..ENDPOINTS).map(id).collect()),
        };
        // What was removed cannot be ordered about.
        let _ = store.administer(AdminRequest::new(pool_name(), one)).await;
        sleep(Duration::from_millis(20 + dice.roll(60))).await;
        for back in [Order::Resume, members()] {
            let _ = store.administer(AdminRequest::new(pool_name(), back)).await;
        }
        sleep(Duration::from_millis(50 + dice.roll(100))).await;
    }
}
