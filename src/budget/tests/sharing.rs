use tokio::time::{advance, sleep};

use super::super::sites::Kind;
use super::*;

#[tokio::test(start_paused = true)]
async fn a_slow_site_does_not_delay_another() {
    let budgets = only(Budget::per_hour(1));
    pass(&budgets, &example()).await;
    let waiter = tokio::spawn({
        let budgets = budgets.clone();
        async move { pass(&budgets, &example()).await }
    });
    tokio::task::yield_now().await;
    let began = Instant::now();
    pass(&budgets, &url("https://example.net/")).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    waiter.abort();
}

/// How long each of 200 requests to one site took, of which 100 a second arrive.
async fn waits(budgets: &Budgets) -> Vec<Duration> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let budgets = budgets.clone();
        tasks.spawn(async move {
            let began = Instant::now();
            pass(&budgets, &url("https://example.net/")).await;
            began.elapsed()
        });
        sleep(ms(10)).await;
    }
    let mut waits = tasks.join_all().await;
    waits.sort();
    waits
}

#[tokio::test(start_paused = true)]
async fn a_crowd_before_one_site_does_not_delay_another() {
    let rules = Budgets::builder().default(Budget::per_second(120).burst(3));
    let alone = waits(&rules.clone().build().unwrap()).await;
    let budgets = rules.site("example.com", Budget::per_second(1)).build().unwrap();
    let crowd: Vec<_> = (0..500)
        .map(|_| {
            let budgets = budgets.clone();
            tokio::spawn(async move { pass(&budgets, &example()).await })
        })
        .collect();
    let beside = waits(&budgets).await;
    assert!(beside[197] <= alone[197] + ms(10), "{:?} {:?}", beside[197], alone[197]);
    crowd.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn subdomains_share_one_bucket_and_default_sites_do_not() {
    let budgets = Budgets::builder()
        .default(Budget::per_second(1))
        .suffix("example.org", Budget::per_second(1))
        .build()
        .unwrap();
    assert!(budgets.try_pass_for(&url("http://a.example.org")).is_some());
    assert!(budgets.try_pass_for(&url("http://b.example.org")).is_none());
    assert!(budgets.try_pass_for(&url("http://a.test")).is_some());
    assert!(budgets.try_pass_for(&url("http://b.test:81")).is_some());
    assert!(budgets.try_pass_for(&url("https://b.test")).is_none(), "a port is not another site");
}

#[tokio::test(start_paused = true)]
async fn an_evicted_site_gets_no_more_than_its_rate() {
    let limits = Budget::per_second(1).burst(3);
    let budgets = Budgets::builder().default(limits).max_sites(1).build().unwrap();
    let starts = Starts::new();
    for round in 0..400 {
        if budgets.try_pass_for(&example()).is_some() {
            starts.note(round);
        }
        for other in 0..5 {
            let _ = budgets.try_pass_for(&url(&format!("http://h{round}-{other}.test")));
        }
        sleep(ms(50)).await;
    }
    assert!(starts.excess(ms(1_000), 3) <= 0.001, "{}", starts.excess(ms(1_000), 3));
    assert!(starts.times().len() >= 20);
    assert!(budgets.0.sites.len() <= 16, "{}", budgets.0.sites.len());
    assert!(budgets.counts().overflowed > 0 && budgets.counts().evicted > 0);
}

#[tokio::test(start_paused = true)]
async fn idle_sites_are_evicted_and_live_ones_stay() {
    let budgets = Budgets::builder().default(Budget::per_second(1)).max_sites(64).build().unwrap();
    let held = budgets.turn_for(&example(), PATIENT).await.unwrap();
    budgets.slow(&Site::parse("slow.test").unwrap(), ms(10), PATIENT);
    for host in 0..2_000 {
        pass(&budgets, &url(&format!("http://h{host}.test"))).await;
        advance(ms(100)).await;
    }
    assert!(budgets.0.sites.len() <= 64, "{}", budgets.0.sites.len());
    assert!(budgets.try_pass_for(&example()).is_none(), "its queue is still the same");
    assert!(budgets.0.sites.find(Kind::Site, "slow.test").is_some());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn newcomers_without_room_share_one_bucket_and_memory_is_bounded() {
    let limits = Budgets::builder().default(Budget::per_hour(1)).default_key(Budget::per_hour(1));
    let budgets = limits.max_sites(160).build().unwrap();
    let passed = (0..10_000)
        .filter(|host| budgets.try_pass_for(&url(&format!("http://h{host}.test"))).is_some());
    let passed = passed.count();
    // As many as are remembered, and one for all the others of each of 16 parts.
    let counts = budgets.counts();
    assert_eq!((counts.remembered, passed), (160, 160 + 16), "{counts:?}");
    assert_eq!(counts.overflowed, 10_000 - 160);
    assert_eq!(counts.evicted, 0);
    // Rested sites make room again.
    advance(ms(3_600_001)).await;
    assert!(budgets.try_pass_for(&url("http://another.test")).is_some());
    assert!(budgets.try_pass_for(&url("http://h9999.test")).is_some());
    assert!(budgets.counts().remembered <= 160);
}

async fn three_gaps(budgets: &Budgets) -> Vec<u128> {
    let mut gaps = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        pass(budgets, &example()).await;
        gaps.push(began.elapsed().as_millis());
    }
    gaps
}

#[tokio::test(start_paused = true)]
async fn a_slowed_site_keeps_its_delay_until_it_ends() {
    let site = Site::parse("example.com").unwrap();
    let unlimited = Budgets::builder().unlimited("example.com").build().unwrap();
    for budgets in [only(Budget::per_second(10)), Budgets::unlimited(), unlimited] {
        pass(&budgets, &example()).await;
        advance(ms(1_000)).await;
        budgets.slow(&site, ms(2_000), ms(60_000));
        three_gaps(&budgets).await;
        assert_eq!(three_gaps(&budgets).await, [2_000; 3]);
        assert_eq!(
            budgets.turn_for(&example(), ms(1_900)).await.err().unwrap().retry_after(),
            Some(ms(2_000))
        );
        advance(ms(60_000)).await;
        pass(&budgets, &example()).await;
        assert!(three_gaps(&budgets).await.iter().all(|gap| *gap <= 100));
    }
}

#[tokio::test(start_paused = true)]
async fn slowing_reaches_those_who_wait_already() {
    let budgets = only(Budget::per_second(10));
    let starts = Starts::new();
    let waiters: Vec<_> = (0..4)
        .map(|who| {
            let (budgets, starts) = (budgets.clone(), starts.clone());
            tokio::spawn(async move {
                pass(&budgets, &example()).await;
                starts.note(who);
            })
        })
        .collect();
    sleep(ms(50)).await;
    budgets.slow(&Site::parse("example.com").unwrap(), ms(3_000), PATIENT);
    for waiter in waiters {
        waiter.await.unwrap();
    }
    let times = starts.times();
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] >= ms(3_000), "{times:?}");
    }
    assert!(times[3] < ms(9_200), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn slowing_never_raises_a_rate() {
    let budgets = only(Budget::per_minute(1));
    pass(&budgets, &example()).await;
    budgets.slow(&Site::parse("example.com").unwrap(), ms(1), PATIENT);
    let began = Instant::now();
    pass(&budgets, &example()).await;
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn slowing_a_host_slows_its_ports() {
    let budgets = Budgets::builder()
        .site("example.com:8080", Budget::per_second(1_000))
        .unlimited("example.com")
        .build()
        .unwrap();
    budgets.slow(&Site::parse("example.com").unwrap(), ms(1_000), PATIENT);
    for at in ["http://example.com:8080", "http://example.com"] {
        pass(&budgets, &url(at)).await;
        advance(ms(900)).await;
        assert!(budgets.try_pass_for(&url(at)).is_none(), "{at}");
    }
    assert!(budgets.try_pass_for(&url("http://other.test")).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_delay_counts_from_the_start_and_not_from_its_slot() {
    let site = Site::parse("example.com").unwrap();
    for slowed_before in [true, false] {
        let budgets = only(Budget::per_second(1));
        if slowed_before {
            budgets.slow(&site, ms(2_000), PATIENT);
        }
        let turn = turn_with_slot(&budgets, &example()).await;
        advance(ms(900)).await;
        drop(turn.spend());
        if !slowed_before {
            budgets.slow(&site, ms(2_000), PATIENT);
        }
        let began = Instant::now();
        pass(&budgets, &example()).await;
        assert!(began.elapsed() >= ms(2_000), "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_site_without_a_limit_needs_no_queue_once_slowing_has_ended() {
    let budgets = Budgets::unlimited();
    budgets.slow(&Site::parse("example.com").unwrap(), ms(100), ms(1_000));
    advance(ms(1_001)).await;
    let held = turn_with_slot(&budgets, &example()).await;
    assert!(budgets.try_pass_for(&example()).is_some());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_delay_beyond_its_end() {
    let budgets = only(Budget::per_second(10));
    budgets.slow(&Site::parse("example.com").unwrap(), ms(10_000), ms(3_000));
    pass(&budgets, &example()).await;
    let refused = budgets.turn_for(&example(), Duration::ZERO).await.err().unwrap();
    assert_eq!(refused.retry_after(), Some(ms(3_000)));
    assert!(budgets.try_pass_for(&example()).is_none());
    let began = Instant::now();
    pass(&budgets, &example()).await;
    assert!(began.elapsed() <= ms(3_001), "{:?}", began.elapsed());
}
