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

#[tokio::test]
async fn a_pause_and_passages_move_with_a_clock_set_back() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(Duration::from_micros(1), 5);
    let seat = Seat { passage: Passage { process: 0, number: 0 }, most: 1, hold: 60 * SECOND };
    assert!(matches!(bucket.reserve(PROBE, Some(&seat)).await.unwrap(), Reserved::Slot(_)));
    let ends: f64 = rig.server.ask(&format!("ZSCORE {KEY}:passages {}", seat.passage));
    let moved = format!("ZADD {KEY}:passages {:.0} {}", ends + HOUR_US as f64, seat.passage);
    let _: () = rig.server.ask(&moved);
    rig.step(HOUR_US);
    let other = Seat { passage: Passage { process: 0, number: 1 }, ..seat };
    let full = bucket.reserve(PROBE, Some(&other)).await.unwrap();
    assert!(matches!(full, Reserved::Full(left) if left <= 60 * SECOND), "{full:?}");

    bucket.pause(0, 20 * SECOND, BACKOFF).await.unwrap();
    rig.step(HOUR_US);
    let paused = bucket.reserve(PROBE, None).await.unwrap();
    assert!(matches!(paused, Reserved::Paused(pause) if pause.left <= 20 * SECOND), "{paused:?}");
}
