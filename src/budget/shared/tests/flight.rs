//! Places in flight, over all workers.

use super::*;

const HOLD: Duration = Duration::from_secs(60);

fn seat(process: u64, number: u64, most: u32) -> Seat {
    Seat { passage: Passage { process, number }, most, hold: HOLD }
}

async fn is_full(bucket: &Bucket, seat: &Seat) -> Duration {
    match bucket.reserve(PROBE, Some(seat)).await.unwrap() {
        Reserved::Full(left) => left,
        other => panic!("{other:?}"),
    }
}

async fn entered(bucket: &Bucket, seat: &Seat) -> bool {
    match bucket.reserve(PROBE, Some(seat)).await.unwrap() {
        Reserved::Slot(slot) => slot.entered,
        other => panic!("{other:?}"),
    }
}

impl Rig {
    fn flying(&self) -> u64 {
        self.server.ask(&format!("ZCARD {KEY}:passages"))
    }

    /// Lets time pass for the passages.
    fn let_fly(&self, time: Duration) {
        let all: Vec<String> = self.server.ask(&format!("ZRANGE {KEY}:passages 0 -1 WITHSCORES"));
        for pair in all.chunks(2) {
            let ends: f64 = pair[1].parse().unwrap();
            let ends = ends - time.as_micros() as f64;
            let _: () = self.server.ask(&format!("ZADD {KEY}:passages {ends:.0} {}", pair[0]));
        }
    }
}

#[tokio::test]
async fn no_more_are_in_flight_than_may_be_whoever_sends_them() {
    let rig = Rig::start().await;
    let workers =
        [rig.bucket(Duration::from_micros(1), 1), rig.bucket(Duration::from_micros(1), 1)];
    for (nth, worker) in workers.iter().enumerate() {
        assert!(entered(worker, &seat(nth as u64, 0, 2)).await);
    }
    let before = rig.tat();
    for (nth, worker) in workers.iter().enumerate() {
        let left = is_full(worker, &seat(nth as u64, 1, 2)).await;
        assert!(left <= HOLD && left > HOLD - SECOND, "{left:?}");
    }
    assert_eq!(rig.tat(), before, "nothing is charged");
    workers[0].leave(&[Passage { process: 0, number: 0 }]).await.unwrap();
    assert!(entered(&workers[1], &seat(1, 1, 2)).await);
    is_full(&workers[0], &seat(0, 1, 2)).await;
    assert_eq!(rig.flying(), 2);
}

#[tokio::test]
async fn a_dead_workers_places_come_back() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(Duration::from_micros(1), 1);
    for nth in 0..3 {
        assert!(entered(&bucket, &seat(9, nth, 3)).await);
    }
    is_full(&bucket, &seat(1, 0, 3)).await;
    rig.let_fly(HOLD);
    assert!(entered(&bucket, &seat(1, 0, 3)).await);
    assert_eq!(rig.flying(), 1);
}

#[tokio::test]
async fn a_slot_for_later_takes_no_place_before() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(10 * SECOND, 1);
    assert!(entered(&bucket, &seat(0, 0, 1)).await);
    bucket.leave(&[Passage { process: 0, number: 0 }]).await.unwrap();
    let later = seat(0, 1, 1);
    assert!(!entered(&bucket, &later).await);
    assert_eq!(rig.flying(), 0);
    assert_eq!(bucket.enter(&later).await.unwrap(), Room::Entered);
    assert!(matches!(bucket.enter(&seat(0, 2, 1)).await.unwrap(), Room::Full(_)));
}

#[tokio::test]
async fn a_passage_that_takes_longer_keeps_its_place() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(Duration::from_micros(1), 1);
    assert!(entered(&bucket, &seat(0, 0, 1)).await);
    for _ in 0..3 {
        rig.let_fly(HOLD / 2);
        assert_eq!(bucket.enter(&seat(0, 0, 1)).await.unwrap(), Room::Entered);
        assert!(is_full(&bucket, &seat(0, 1, 1)).await > HOLD - SECOND);
    }
    let left: u64 = rig.server.ask(&format!("PTTL {KEY}:passages"));
    assert!(left > 60_000, "{left}");
}

#[tokio::test]
async fn the_key_outlives_its_longest_passage() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(Duration::from_micros(1), 1);
    bucket.enter(&seat(0, 0, 9)).await.unwrap();
    bucket.enter(&Seat { hold: 100 * HOLD, ..seat(0, 1, 9) }).await.unwrap();
    bucket.enter(&seat(0, 2, 9)).await.unwrap();
    let left: u64 = rig.server.ask(&format!("PTTL {KEY}:passages"));
    assert!(left > 6_000_000, "{left}");
}

#[tokio::test]
async fn many_places_are_given_back_at_once() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(Duration::from_micros(1), 1);
    let all: Vec<_> = (0..1_500).map(|number| Passage { process: 7, number }).collect();
    for passage in &all[..20] {
        let seat = Seat { passage: *passage, most: 20, hold: HOLD };
        assert_eq!(bucket.enter(&seat).await.unwrap(), Room::Entered);
    }
    bucket.leave(&all).await.unwrap();
    assert_eq!(rig.flying(), 0);
}
