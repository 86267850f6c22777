//! Rates are exact, and a changed one is in force at once.

use super::*;
use crate::redis::Call;
use crate::redis::commands::BUDGET_RESERVE;

/// How many slots came due while `span` passed, and the real time on top.
async fn admitted(rig: &Rig, bucket: &Bucket, span: Duration) -> (u32, Duration) {
    let (begun, mut passed, mut count) = (std::time::Instant::now(), Duration::ZERO, 0);
    loop {
        let wait = wait(bucket).await;
        passed += wait;
        if passed >= span {
            return (count, begun.elapsed());
        }
        count += 1;
        rig.pass(wait);
    }
}

#[tokio::test]
async fn counts_are_within_one_of_theory() {
    for (interval, burst, span) in [
        (Duration::from_millis(1900), 1, Duration::from_secs(1900)),
        (Duration::from_millis(1900), 3, Duration::from_secs(1900)),
        (Duration::from_secs(86_400), 1, Duration::from_secs(300 * 86_400)),
    ] {
        let rig = Rig::start().await;
        let bucket = rig.bucket(interval, burst);
        let (count, real) = admitted(&rig, &bucket, span).await;
        let fits = |span: Duration| (span.as_nanos() / interval.as_nanos()) as u32;
        let (least, most) = (fits(span) + burst - 1, fits(span + real) + burst + 1);
        assert!((least..=most).contains(&count), "{count} of {least}..={most}, {interval:?}");
    }
}

#[tokio::test]
async fn what_is_charged_is_exact_to_the_microsecond() {
    let rig = Rig::start().await;
    for interval_us in [1, 400, 333_334, 1_900_000, 86_400_000_000] {
        let bucket = rig.bucket(Duration::from_micros(interval_us), 1_000);
        // Ten seconds ahead, so that the bucket does not fill meanwhile.
        let now: Vec<u64> = rig.server.ask("TIME");
        let now = now[0] * 1_000_000 + now[1];
        let tat = now + 10_000_000;
        let _: () = rig.server.ask(&format!("SET {KEY} {now}:{tat}:{interval_us}"));
        for _ in 0..2_500 {
            slot(&bucket).await;
        }
        assert_eq!(rig.tat(), tat + 2_500 * interval_us);
    }
}

#[tokio::test]
async fn a_burst_goes_at_once_and_the_next_waits_an_interval() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(10 * SECOND, 3);
    for _ in 0..3 {
        assert_eq!(wait(&bucket).await, Duration::ZERO);
    }
    for nth in 1..4 {
        let wait = wait(&bucket).await;
        assert!(wait <= nth * 10 * SECOND && wait > nth * 10 * SECOND - SECOND, "{wait:?}");
    }
}

#[tokio::test]
async fn slots_of_workers_are_one_row() {
    let rig = Rig::start().await;
    let other = Rig { limits: limits(&rig.server.url()).await, server: Server::start(&[]) };
    let workers = [rig.bucket(10 * SECOND, 1), other.bucket(10 * SECOND, 1)];
    for nth in 0..6 {
        let wait = wait(&workers[nth % 2]).await;
        let due = 10 * SECOND * nth as u32;
        assert!(wait <= due && wait + SECOND > due, "{nth}: {wait:?}");
    }
}

#[tokio::test]
async fn a_key_never_vanishes_before_its_time() {
    let rig = Rig::start().await;
    for interval in [Duration::from_micros(400), Duration::from_millis(1900), 86_400 * SECOND] {
        let _: () = rig.server.ask("FLUSHALL");
        let bucket = rig.bucket(interval, 1);
        for _ in 0..3 {
            slot(&bucket).await;
            let left: u64 = rig.server.ask(&format!("PTTL {KEY}"));
            let now: Vec<u64> = rig.server.ask("TIME");
            let ends = now[0] * 1_000_000 + now[1] + left * 1_000;
            assert!(ends > rig.tat() + 50_000_000, "a margin of less than 50 s");
        }
    }
}

/// The twin: a ttl in whole seconds, rounded down as elsewhere, forgets what was charged.
#[tokio::test]
async fn a_ttl_rounded_down_would_disable_the_limit() {
    let rig = Rig::start().await;
    let source = BUDGET_RESERVE.script.source;
    let rounded = source.replace(
        "'PX', math.ceil((ends - now) / 1000) + MARGIN_MS",
        "'EX', math.floor((ends - now) / 1000000)",
    );
    assert_ne!(rounded, source);
    let script = crate::redis::tests::script("rounded", rounded);
    let keys = [KEY.to_owned()];
    let args = ["1900000", "1", "30000000", "0"].map(|arg| arg.as_bytes().to_vec());
    let connection = &rig.limits.shared.handle.connection;
    connection.call(Call { script, keys: &keys, args: &args }).await.unwrap();
    let tat = rig.tat();
    let gone = |server: &Server| server.ask::<u64>(&format!("EXISTS {KEY}")) == 0;
    rig.server.wait_for("the key is gone", gone).await;
    let now: Vec<u64> = rig.server.ask("TIME");
    assert!(now[0] * 1_000_000 + now[1] < tat, "the slot that was charged is yet to come");
    let bucket = rig.bucket(Duration::from_millis(1900), 1);
    assert_eq!(wait(&bucket).await, Duration::ZERO, "one too many");
}

#[tokio::test]
async fn a_raised_rate_is_in_force_at_once() {
    let rig = Rig::start().await;
    let slow = rig.bucket(86_400 * SECOND, 1);
    for _ in 0..5 {
        slot(&slow).await;
    }
    let fast = rig.bucket(SECOND, 2);
    let wait = wait(&fast).await;
    assert!(wait <= SECOND, "{wait:?}");
    assert_eq!(rig.state()[2], 1_000_000);
}

#[tokio::test]
async fn a_lowered_rate_keeps_what_was_charged_in_requests() {
    let rig = Rig::start().await;
    let fast = rig.bucket(Duration::from_secs(1), 10);
    for _ in 0..10 {
        assert_eq!(wait(&fast).await, Duration::ZERO);
    }
    // In time, ten seconds that are charged would be next to nothing of a hundred.
    let slow = rig.bucket(Duration::from_secs(10), 10);
    let wait = wait(&slow).await;
    assert!(wait > 8 * SECOND && wait <= 10 * SECOND, "{wait:?}");
}

#[tokio::test]
async fn workers_with_old_and_new_rules_do_not_wind_each_other_up() {
    let rig = Rig::start().await;
    let (slow, fast) = (rig.bucket(10 * SECOND, 1), rig.bucket(SECOND, 1));
    for _ in 0..20 {
        slot(&slow).await;
        slot(&fast).await;
    }
    let wait = wait(&fast).await;
    assert!(wait <= 2 * SECOND, "{wait:?}");
}

#[tokio::test]
async fn a_slot_is_undone_only_if_it_is_the_last() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(10 * SECOND, 1);
    slot(&bucket).await;
    let before = rig.tat();
    let second = slot(&bucket).await;
    assert!(bucket.undo(&second).await.unwrap());
    assert_eq!(rig.tat(), before);
    assert!(!bucket.undo(&second).await.unwrap(), "once");
    let third = slot(&bucket).await;
    let last = slot(&bucket).await;
    let after = rig.tat();
    assert!(!bucket.undo(&third).await.unwrap());
    assert_eq!(rig.tat(), after, "else two would share a later slot");
    assert!(bucket.undo(&last).await.unwrap());
    let counts = rig.limits.counts();
    assert_eq!((counts.reservations, counts.undone, counts.lapsed), (4, 2, 2));
}

#[tokio::test]
async fn a_slot_of_another_rate_is_not_undone() {
    let rig = Rig::start().await;
    let (slow, fast) = (rig.bucket(10 * SECOND, 1), rig.bucket(SECOND, 1));
    let old = slot(&slow).await;
    slot(&fast).await;
    assert!(!slow.undo(&old).await.unwrap());
}
