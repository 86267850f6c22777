//! Requests whose futures, or whose runtimes, are left alone in the middle.

use std::thread;

use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::site::Site;

fn at(site: &str) -> Wants {
    Wants { site: Site::parse(site), ..wants() }
}

/// A lease without a wait, or else with one, and how long that took.
async fn any_lease(pool: &Pool, wants: Wants) -> (Lease, Duration) {
    let started = Instant::now();
    let lease = match pool.lease_now(wants.clone(), seconds(30)).await.unwrap().0 {
        Now::Lease(lease) => lease,
        Now::Later(doubt) => pool.lease_after(wants, seconds(30), doubt).await.unwrap().0,
    };
    (lease, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_polled_holds_up_nobody_who_wants_the_same() {
    let (pool, wire) = pool_of(&["a", "b", "c"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Late(millis(10)));
    let mut parked = Box::pin(pool.lease_now(at("s.test"), seconds(30)));
    assert!(futures_util::poll!(&mut parked).is_pending());
    let (_lease, took) = any_lease(&pool, at("s.test")).await;
    assert!(took <= millis(25), "{took:?}");
    // The one that was not polled has what was asked for for it.
    let Now::Lease(_own) = parked.await.unwrap().0 else { panic!("no lease") };
    assert_eq!((leased(&wire).await, wire.made(Call::Acquire).len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_polled_holds_up_nobody_while_it_is_dry() {
    let (pool, wire) = pool_of(&["a", "b", "c"], |builder| builder).await;
    let held = [lease(&pool).await, lease(&pool).await, lease(&pool).await];
    wire.always(Call::Acquire, Fault::Late(millis(10)));
    let mut parked = Box::pin(pool.lease_now(at("s.test"), HOUR));
    assert!(futures_util::poll!(&mut parked).is_pending());
    let others = ["other.test", "third.test"].map(|site| {
        let pool = pool.clone();
        tokio::spawn(async move { any_lease(&pool, at(site)).await })
    });
    sleep(millis(100)).await;
    drop(held);
    for other in others {
        let (_lease, took) = other.await.unwrap();
        assert!(took <= millis(500), "{took:?}");
    }
    drop(parked);
    settle().await;
    assert_eq!(leased(&wire).await, 0);
}

/// As many questions as there may be in the air at once.
#[tokio::test(start_paused = true)]
async fn many_requests_that_are_not_polled_hold_up_nobody() {
    let ids: Vec<_> = (0..40).map(|number| format!("e{number}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let (pool, wire) = pool_of(&ids, |builder| builder).await;
    wire.always(Call::Acquire, Fault::Late(millis(10)));
    let mut parked = Vec::new();
    for nth in 0..20 {
        let mut one = Box::pin(pool.lease_now(at(&format!("s{nth}.test")), seconds(30)));
        assert!(futures_util::poll!(&mut one).is_pending());
        parked.push(one);
    }
    let (_lease, took) = any_lease(&pool, at("other.test")).await;
    assert!(took <= millis(50), "{took:?}");
    drop(parked);
    settle().await;
    assert_eq!(leased(&wire).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_polled_ends_no_shutdown_late() {
    let (pool, wire) = pool_of(&["a"], |builder| builder).await;
    wire.always(Call::Acquire, Fault::Hangs);
    let mut parked = Box::pin(pool.lease_now(wants(), HOUR));
    assert!(futures_util::poll!(&mut parked).is_pending());
    pool.shutdown().await;
    let Err(error) = parked.await else { panic!("an answer") };
    assert_eq!(error.kind(), Kind::PoolClosed);
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A pool of these endpoints, and a driven runtime on which it was built.
fn at_home(wire: &Wire, ids: &[&str]) -> (Pool, Runtime) {
    let home = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let pool = home.block_on(async {
        wire.order(Order::Init(PoolConfig::default().into())).await;
        wire.order(members(ids)).await;
        Pool::builder(name(), inventory(ids)).store(wire.clone()).ttl(TTL).build().await.unwrap()
    });
    (pool, home)
}

#[test]
fn a_runtime_that_is_not_driven_any_more_holds_up_nobody() {
    let (wire, idle, driven) = (Wire::new(), runtime(), runtime());
    let (pool, home) = at_home(&wire, &["a"]);
    let held = home.block_on(lease(&pool));
    // A request that is given up, and whatever it leaves behind on its runtime.
    idle.block_on(async {
        assert!(tokio::time::timeout(millis(50), pool.lease(wants(), HOUR)).await.is_err());
    });
    let gives_back = thread::spawn(move || drop(held));
    let (_lease, waited) = driven.block_on(pool.lease(wants(), seconds(20))).unwrap();
    assert!(waited < seconds(5), "{waited:?}");
    gives_back.join().unwrap();
}

/// While somebody waits already.
#[test]
fn a_runtime_that_stops_being_driven_holds_up_nobody() {
    let (wire, idle, driven) = (Wire::new(), runtime(), runtime());
    let (pool, home) = at_home(&wire, &["a"]);
    let held = home.block_on(lease(&pool));
    let waits = idle.block_on(async {
        let mut first = Box::pin(pool.lease(wants(), HOUR));
        assert!(futures_util::poll!(&mut first).is_pending());
        let pool = pool.clone();
        let waits = thread::spawn(move || driven.block_on(pool.lease(wants(), seconds(20))));
        sleep(millis(400)).await;
        waits
    });
    let started = std::time::Instant::now();
    drop(held);
    let _lease = waits.join().unwrap().unwrap();
    assert!(started.elapsed() < seconds(5), "{:?}", started.elapsed());
}

/// A question in the air there is given up: its answer may come and nobody hears it.
#[test]
fn a_question_of_a_runtime_that_is_not_driven_is_given_up() {
    let (wire, idle, driven) = (Wire::new(), runtime(), runtime());
    let (pool, home) = at_home(&wire, &["a", "b"]);
    wire.next(Call::Acquire, &[Fault::Late(millis(20))]);
    let parked = pool.clone();
    idle.spawn(async move { parked.lease(wants(), HOUR).await.map(drop) });
    idle.block_on(async {
        while wire.made(Call::Acquire).is_empty() {
            tokio::task::yield_now().await
        }
    });
    let (lease, waited) = driven.block_on(pool.lease(wants(), seconds(20))).unwrap();
    assert!(waited < seconds(5), "{waited:?}");
    // Driven again it has nothing to say.
    idle.block_on(async { sleep(millis(50)).await });
    assert!(lease.is_trusted());
    assert_eq!((home.block_on(leased(&wire)), pool.counts().cancels), (1, 1));
}

#[test]
fn a_shutdown_waits_for_no_runtime_that_is_not_driven() {
    let (wire, idle) = (Wire::new(), runtime());
    let (pool, home) = at_home(&wire, &["a"]);
    let _held = home.block_on(lease(&pool));
    idle.block_on(async {
        assert!(tokio::time::timeout(millis(50), pool.lease(wants(), HOUR)).await.is_err());
    });
    home.block_on(async {
        assert!(tokio::time::timeout(seconds(20), pool.shutdown()).await.is_ok());
    });
}
