//! One pause for all workers.

use super::*;

async fn is_paused(bucket: &Bucket) -> Pause {
    match bucket.reserve(PROBE, None).await.unwrap() {
        Reserved::Paused(pause) => pause,
        other => panic!("{other:?}"),
    }
}

async fn is_probing(bucket: &Bucket) -> Duration {
    match bucket.reserve(PROBE, None).await.unwrap() {
        Reserved::Probing(left) => left,
        other => panic!("{other:?}"),
    }
}

/// Pauses for a time that the site named; what there is to wait then.
async fn asked(bucket: &Bucket, known: u64, seconds: u64) -> Option<Pause> {
    bucket.pause(known, Duration::from_secs(seconds), BACKOFF).await.unwrap()
}

fn about(pause: Pause, seconds: u64) -> bool {
    let seconds = Duration::from_secs(seconds);
    pause.left <= seconds && pause.left + Duration::from_millis(900) > seconds
}

#[tokio::test]
async fn every_worker_learns_of_a_pause_by_its_next_call_and_nothing_is_charged() {
    let rig = Rig::start().await;
    let workers = [rig.bucket(SECOND, 5), rig.bucket(SECOND, 5)];
    let known = slot(&workers[0]).await.known;
    let before = rig.tat();
    asked(&workers[0], known, 20).await.unwrap();
    for worker in &workers {
        let pause = is_paused(worker).await;
        assert!(about(pause, 20) && pause.level == 1, "{pause:?}");
    }
    assert_eq!(rig.tat(), before);
}

#[tokio::test]
async fn answers_to_what_was_admitted_before_are_one_event() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(SECOND, 5);
    let slots = [slot(&bucket).await, slot(&bucket).await, slot(&bucket).await];
    let none = Duration::ZERO;
    for slot in &slots {
        let pause = bucket.pause(slot.known, none, BACKOFF).await.unwrap().unwrap();
        assert!(about(pause, 2) && pause.level == 1, "{pause:?}");
    }
    // The twin: as of now, each would be an event of its own.
    for level in 2..4 {
        let pause = bucket.pause(u64::from(level) - 1, none, BACKOFF).await.unwrap().unwrap();
        assert!(about(pause, 1 << level) && pause.level == level, "{pause:?}");
    }
}

#[tokio::test]
async fn a_pause_is_lengthened_and_never_shortened() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(SECOND, 1);
    assert!(about(asked(&bucket, 0, 20).await.unwrap(), 20));
    assert!(about(asked(&bucket, 0, 5).await.unwrap(), 20));
    assert!(about(asked(&bucket, 0, 40).await.unwrap(), 40));
    let own = bucket.pause(1, Duration::ZERO, BACKOFF).await.unwrap().unwrap();
    assert!(about(own, 40) && own.level == 2, "{own:?}");
    assert!(bucket.reset().await.unwrap(), "but on a user's word");
    assert_eq!(wait(&bucket).await, Duration::ZERO);
    assert!(!bucket.reset().await.unwrap());
}

#[tokio::test]
async fn pauses_double_up_to_the_longest() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(SECOND, 1);
    for (known, seconds) in [2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
        let pause = bucket.pause(known as u64, Duration::ZERO, BACKOFF).await.unwrap().unwrap();
        assert!(about(pause, seconds), "{pause:?}");
        rig.pass(2 * Duration::from_secs(seconds));
    }
}

#[tokio::test]
async fn one_request_of_all_probes_and_a_success_brings_the_rate_without_a_burst() {
    let rig = Rig::start().await;
    let workers = [rig.bucket(SECOND, 5), rig.bucket(SECOND, 5)];
    asked(&workers[0], 0, 20).await.unwrap();
    rig.pass(20 * SECOND);
    let probe = slot(&workers[1]).await;
    assert!(probe.is_probe() && probe.wait.is_zero() && probe.known == 1);
    for worker in &workers {
        let left = is_probing(worker).await;
        assert!(left <= PROBE && left > PROBE - SECOND, "{left:?}");
    }
    // The bucket would be full again by now.
    rig.pass(10 * SECOND);
    workers[1].settle(probe.known, true).await.unwrap();
    let mut due = Duration::ZERO;
    for nth in 0..4 {
        let next = slot(&workers[nth % 2]).await;
        assert!(!next.is_probe());
        assert!(next.wait <= due && next.wait + Duration::from_millis(900) > due, "{next:?}");
        due += SECOND;
    }
    // A pause later starts from the beginning.
    assert_eq!(asked(&workers[0], 1, 20).await.unwrap().level, 1);
}

#[tokio::test]
async fn a_probe_that_fails_is_a_further_pause() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(SECOND, 5);
    for level in 1..6 {
        let pause = bucket.pause(level - 1, Duration::ZERO, BACKOFF).await.unwrap().unwrap();
        assert_eq!(u64::from(pause.level), level);
        rig.pass(60 * SECOND);
        assert!(slot(&bucket).await.is_probe());
        is_probing(&bucket).await;
    }
}

#[tokio::test]
async fn a_probe_without_an_end_is_followed_by_another() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(SECOND, 5);
    asked(&bucket, 0, 20).await.unwrap();
    rig.pass(20 * SECOND);
    assert!(slot(&bucket).await.is_probe());
    is_probing(&bucket).await;
    rig.pass(PROBE);
    let second = slot(&bucket).await;
    assert!(second.is_probe(), "its worker is dead");
    bucket.settle(second.known, false).await.unwrap();
    let third = slot(&bucket).await;
    assert!(third.is_probe(), "it never reached the site");
    assert!(bucket.undo(&third).await.unwrap());
    assert!(slot(&bucket).await.is_probe(), "it was never sent");
}

#[tokio::test]
async fn late_news_of_an_earlier_pause_change_nothing() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(SECOND, 5);
    asked(&bucket, 0, 20).await.unwrap();
    asked(&bucket, 1, 20).await.unwrap();
    bucket.settle(1, true).await.unwrap();
    assert_eq!(is_paused(&bucket).await.level, 2, "a late success ends no newer pause");
    rig.pass(20 * SECOND);
    assert!(slot(&bucket).await.is_probe());
    assert_eq!(asked(&bucket, 1, 40).await.unwrap().left, Duration::ZERO);
    is_probing(&bucket).await;
    bucket.settle(2, true).await.unwrap();
    assert_eq!(asked(&bucket, 1, 40).await, None);
    assert!(!slot(&bucket).await.is_probe());
}

#[tokio::test]
async fn a_pause_outlives_the_bucket_and_is_remembered_for_an_hour() {
    let rig = Rig::start().await;
    let bucket = rig.bucket(SECOND, 1);
    asked(&bucket, 0, 864_000).await.unwrap();
    let left: u64 = rig.server.ask(&format!("PTTL {KEY}"));
    assert!(left > 864_000_000 + 3_600_000, "{left}");
}
