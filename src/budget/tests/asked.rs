//! A limiter that asks a server, as the queue sees it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::time::{advance, sleep, timeout};

use super::super::local::{Admission, Known, Limiter, Reply, Reservation, Slot};
use super::super::place::{Holding, Place, Readiness};
use super::*;
use crate::error::Kind;

/// A server that takes 20 ms, and grants a slot each 100 ms and `most` places.
#[derive(Default)]
struct Server {
    asked: AtomicUsize,
    next: AtomicU64,
    lapsed: Mutex<Vec<u64>>,
    taken: Mutex<Vec<u64>>,
    most: usize,
    fails: AtomicBool,
    paused: Mutex<Vec<u32>>,
}

struct Asks(Arc<Server>);

impl Limiter for Asks {
    fn reserve(&self, from: At, _: bool) -> Reservation {
        let server = Arc::clone(&self.0);
        server.asked.fetch_add(1, Ordering::Relaxed);
        Reservation::Asked(Box::pin(async move {
            sleep(ms(20)).await;
            if server.fails.load(Ordering::Relaxed) {
                return Err(Error::store_unavailable("no answer"));
            }
            let mut taken = server.taken.lock().unwrap();
            if taken.len() >= server.most {
                return Ok(Reply::Full { again: from.after(ms(1_000)) });
            }
            let nth = server.next.fetch_add(1, Ordering::Relaxed);
            taken.push(nth);
            let slot = Slot { at: At::default().after(ms(100 * nth)), place: Some(nth) };
            Ok(Reply::Slot(slot, Known::Nothing))
        }))
    }

    fn try_reserve(&self, _: At, _: At) -> Option<At> {
        None
    }

    fn restart(&self, _: At) {}

    fn lapsed(&self, slot: Slot) {
        self.0.lapsed.lock().unwrap().push(slot.place.unwrap());
        self.left(slot.place.unwrap());
    }

    fn left(&self, place: u64) {
        self.0.taken.lock().unwrap().retain(|taken| *taken != place);
    }

    fn paused(&self, _: At, nth: u32, _: bool, _: Option<Admission>) {
        self.0.paused.lock().unwrap().push(nth);
    }
}

fn asking(server: Server) -> (Arc<Server>, Arc<Queue>) {
    let (server, budgets) = (Arc::new(server), only(Budget::per_second(10)));
    let limit = Arc::clone(&budgets.queue(&example()).limit);
    let queue = Queue::with(Limits::Remote(Arc::new(Asks(Arc::clone(&server)))), limit);
    (server, Arc::new(queue))
}

fn place(queue: &Arc<Queue>, ticket: u64) -> Place {
    Place::enter(queue, "example.com", ticket, queue.now(), (queue.now(), PATIENT)).unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_server_is_asked_once_an_admission() {
    let (server, queue) = asking(Server { most: 100, ..Server::default() });
    let began = Instant::now();
    let waiters: Vec<_> = (0..50)
        .map(|ticket| {
            let mut place = place(&queue, ticket);
            tokio::spawn(async move {
                assert_eq!(place.ready(Holding::Nothing).await.unwrap(), Readiness::Ready);
                let now = place.now();
                place.spend(now)
            })
        })
        .collect();
    for waiter in waiters {
        assert!(waiter.await.unwrap().is_some(), "its place is given back with it");
    }
    assert_eq!(server.asked.load(Ordering::Relaxed), 50);
    assert!(server.taken.lock().unwrap().is_empty());
    assert!(began.elapsed() >= ms(4_900), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_head_that_gives_up_while_the_server_is_asked_orphans_nothing() {
    let (server, queue) = asking(Server { most: 100, ..Server::default() });
    let (mut first, mut second) = (place(&queue, 1), place(&queue, 2));
    assert!(timeout(ms(5), first.ready(Holding::Nothing)).await.is_err());
    drop(first);
    second.ready(Holding::Nothing).await.unwrap();
    assert_eq!(server.asked.load(Ordering::Relaxed), 1, "the next one has the first one's slot");
    drop(second.spend(queue.now()));
    // Nobody is left for the next one.
    let mut last = place(&queue, 3);
    assert!(timeout(ms(5), last.ready(Holding::Nothing)).await.is_err());
    drop(last);
    advance(ms(50)).await;
    sleep(ms(1)).await;
    assert_eq!(*server.lapsed.lock().unwrap(), [1]);
    assert!(server.taken.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_full_server_is_asked_again_when_it_says_or_a_place_comes_free_here() {
    let (server, queue) = asking(Server { most: 1, ..Server::default() });
    let mut one = place(&queue, 1);
    one.ready(Holding::Nothing).await.unwrap();
    let held = one.spend(queue.now());
    let mut two = place(&queue, 2);
    let freed = tokio::spawn(async move {
        sleep(ms(3_500)).await;
        drop(held);
    });
    let began = Instant::now();
    two.ready(Holding::Nothing).await.unwrap();
    freed.await.unwrap();
    assert!((3_520..=3_550).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert_eq!(server.asked.load(Ordering::Relaxed), 6);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_fails_with_is_told_to_the_head_alone() {
    let (server, queue) = asking(Server { fails: true.into(), ..Server::default() });
    let (mut one, mut two) = (place(&queue, 1), place(&queue, 2));
    assert_eq!(one.ready(Holding::Nothing).await.unwrap_err().kind(), Kind::StoreUnavailable);
    drop(one);
    assert_eq!(two.ready(Holding::Nothing).await.unwrap_err().kind(), Kind::StoreUnavailable);
    assert_eq!(server.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_fault_does_not_hit_those_who_come_later() {
    let (server, queue) = asking(Server { most: 100, ..Server::default() });
    server.fails.store(true, Ordering::Relaxed);
    let mut one = place(&queue, 1);
    assert!(timeout(ms(5), one.ready(Holding::Nothing)).await.is_err());
    // It is told, and leaves without having looked.
    sleep(ms(50)).await;
    drop(one);
    server.fails.store(false, Ordering::Relaxed);
    advance(ms(60_000)).await;
    let mut two = place(&queue, 2);
    assert_eq!(two.ready(Holding::Nothing).await.unwrap(), Readiness::Ready);
}

#[tokio::test(start_paused = true)]
async fn with_a_lease_in_hand_only_who_let_a_slot_lapse_goes_before_its_next_one() {
    for lets_go in [true, false] {
        let (server, queue) = asking(Server { most: 100, ..Server::default() });
        let mut place = place(&queue, 1);
        if lets_go {
            place.ready(Holding::Nothing).await.unwrap();
            place.lapse();
            assert!(server.lapsed.lock().unwrap().is_empty(), "it is kept for the grace");
            sleep(ms(101)).await;
            place.lapse();
            assert_eq!(*server.lapsed.lock().unwrap(), [0]);
            assert!(server.taken.lock().unwrap().is_empty(), "its place went back");
        }
        // Others have reserved all slots of the next five seconds.
        server.next.store(50, Ordering::Relaxed);
        let began = Instant::now();
        let ready = place.ready(Holding::Lease).await.unwrap();
        assert_eq!(ready, if lets_go { Readiness::Ready } else { Readiness::Far });
        assert!(began.elapsed() <= ms(21), "{:?}", began.elapsed());
        // The slot is kept for who comes without a lease.
        place.ready(Holding::Nothing).await.unwrap();
        assert_eq!(began.elapsed() >= ms(4_000), !lets_go, "{:?}", began.elapsed());
        drop(place.spend(queue.now()));
    }
}
