//! The server's clock is set, as it looks to a bucket that was written before.

use super::*;

const HOUR_US: i64 = 3_600_000_000;

#[tokio::test]
async fn a_clock_set_back_leaves_waits_as_they_were() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(10 * SECOND, 1);
    slot(&bucket).await;
    rig.step(HOUR_US);
    let wait = wait(&bucket).await;
    assert!(wait <= 10 * SECOND && wait > 8 * SECOND, "{wait:?}");
    assert_eq!(rig.limits.counts().clock_steps, 1);
    slot(&bucket).await;
    assert_eq!(rig.limits.counts().clock_steps, 1, "it is told once");
}

/// The twin: without the time of writing the site would be shut for an hour.
#[tokio::test]
async fn a_clock_set_back_would_shut_the_site() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(10 * SECOND, 1);
    slot(&bucket).await;
    let before = rig.state()[0];
    rig.step(HOUR_US);
    let mut state = rig.state();
    state[0] = before;
    let state: Vec<_> = state.iter().map(ToString::to_string).collect();
    let _: () = rig.server.ask(&format!("SET {KEY} {} KEEPTTL", state.join(":")));
    let wait = wait(&bucket).await;
    assert!(wait > 3_600 * SECOND, "{wait:?}");
}

#[tokio::test]
async fn a_clock_set_forward_allows_one_burst_and_no_more() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(10 * SECOND, 3);
    for _ in 0..10 {
        slot(&bucket).await;
    }
    rig.step(-HOUR_US);
    for _ in 0..3 {
        assert_eq!(wait(&bucket).await, Duration::ZERO);
    }
    assert!(wait(&bucket).await > 8 * SECOND);
}

/// The passages of a bucket, as they look to a clock that was set back by this.
fn move_passages(rig: &Rig, by: i64) {
    let all: Vec<String> = rig.server.ask(&format!("ZRANGE {KEY}:passages 0 -1 WITHSCORES"));
    for pair in all.chunks(2) {
        let ends: f64 = pair[1].parse().unwrap();
        let moved = format!("ZADD {KEY}:passages {:.0} {}", ends + by as f64, pair[0]);
        let _: () = rig.server.ask(&moved);
    }
}

fn seat(number: u64, most: u32) -> Seat {
    Seat { passage: Passage { process: 0, number }, most, hold: 60 * SECOND }
}

#[tokio::test]
async fn passages_stay_in_flight_when_the_clock_is_set_back_however_often_one_asks() {
    for steps in [30_000_000, HOUR_US] {
        let rig = Rig::start().await;
        let bucket = rig.bucket(Duration::from_micros(1), 5);
        for number in 0..2 {
            let reserved = bucket.reserve(PROBE, Some(&seat(number, 2))).await.unwrap();
            assert!(matches!(reserved, Reserved::Slot(_)));
        }
        move_passages(&rig, steps);
        rig.step(steps);
        let mut before = 60 * SECOND;
        for number in 2..12 {
            let full = bucket.reserve(PROBE, Some(&seat(number, 2))).await.unwrap();
            let Reserved::Full(left) = full else { panic!("{number}: {full:?}") };
            assert!(left <= before && left > 50 * SECOND, "{left:?} after {before:?}");
            before = left;
        }
        assert_eq!(bucket.enter(&seat(0, 2)).await.unwrap(), Room::Entered, "it keeps its place");
        assert!(matches!(bucket.enter(&seat(2, 2)).await.unwrap(), Room::Full(_)));
        assert_eq!(rig.limits.counts().clock_steps, 1);
    }
}

#[tokio::test]
async fn a_clock_set_back_is_met_by_every_command_and_passages_stay() {
    for nth in 0..5 {
        let rig = Rig::start().await;
        let bucket = rig.bucket(Duration::from_micros(1), 5);
        let reserved = bucket.reserve(PROBE, Some(&seat(0, 1))).await.unwrap();
        let Reserved::Slot(slot) = reserved else { panic!("{reserved:?}") };
        move_passages(&rig, HOUR_US);
        rig.step(HOUR_US);
        match nth {
            0 => drop(bucket.pause(0, Duration::ZERO, BACKOFF).await.unwrap()),
            1 => drop(bucket.undo(&slot).await.unwrap()),
            2 => bucket.settle(0, true).await.unwrap(),
            3 => drop(bucket.reset().await.unwrap()),
            _ => drop(bucket.enter(&seat(0, 1)).await.unwrap()),
        }
        bucket.reset().await.unwrap();
        for number in 1..4 {
            let full = bucket.reserve(PROBE, Some(&seat(number, 1))).await.unwrap();
            assert!(matches!(full, Reserved::Full(left) if left <= 60 * SECOND), "{nth} {full:?}");
        }
        bucket.leave(&[seat(0, 1).passage]).await.unwrap();
        let reserved = bucket.reserve(PROBE, Some(&seat(1, 1))).await.unwrap();
        assert!(matches!(reserved, Reserved::Slot(_)), "{nth} {reserved:?}");
    }
}

/// What is left of a pause that the bucket is in, or of its probe.
async fn left(bucket: &Bucket) -> Duration {
    match bucket.reserve(PROBE, None).await.unwrap() {
        Reserved::Paused(pause) => pause.left,
        Reserved::Probing(left) => left,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_pause_ends_when_the_clock_is_set_back_however_often_one_asks() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(Duration::from_micros(1), 5);
    bucket.pause(0, 2 * SECOND, BACKOFF).await.unwrap();
    rig.step(HOUR_US);
    let begun = std::time::Instant::now();
    let mut before = left(&bucket).await;
    assert!(before <= 2 * SECOND);
    while begun.elapsed() < SECOND {
        let left = left(&bucket).await;
        assert!(left < before, "{left:?} after {before:?}");
        before = left;
    }
    rig.pass(2 * SECOND);
    assert!(slot(&bucket).await.is_probe());
    rig.step(HOUR_US);
    let before = left(&bucket).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let after = left(&bucket).await;
    assert!(after + Duration::from_millis(50) <= before && before <= PROBE, "{before:?} {after:?}");
    assert_eq!(rig.limits.counts().clock_steps, 2, "each is told once");
}
