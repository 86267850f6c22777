use http::{HeaderMap, StatusCode};
use tokio::task::JoinSet;
use tokio::time::{advance, sleep};

use super::*;
use crate::error::Kind;

fn asks(after: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if !after.is_empty() {
        headers.insert("retry-after", after.parse().unwrap());
    }
    headers
}

impl Budgets {
    fn answer(&self, passage: &Passage, status: u16, headers: &HeaderMap) -> Option<Duration> {
        let status = StatusCode::from_u16(status).unwrap();
        self.answered(&Site::of(&example()).unwrap(), Some(443), passage, status, headers)
    }

    fn now_pass(&self) -> Passage {
        self.try_pass_for(&example()).expect("a slot is due")
    }

    /// One request that is refused.
    fn refuse(&self, after: &str) -> Duration {
        self.answer(&self.now_pass(), 429, &asks(after)).unwrap()
    }
}

async fn seconds_to_pass(budgets: &Budgets) -> f64 {
    let began = Instant::now();
    pass(budgets, &example()).await;
    (began.elapsed().as_secs_f64() * 100.0).round() / 100.0
}

#[tokio::test(start_paused = true)]
async fn a_site_is_paused_for_as_long_as_it_says() {
    for status in [429, 503] {
        let limited = only(Budget::per_second(1000).burst(10));
        let ruled = Budgets::builder().unlimited("example.com").build().unwrap();
        for budgets in [limited, Budgets::unlimited(), ruled] {
            let said = budgets.answer(&budgets.now_pass(), status, &asks("7"));
            assert_eq!(said, Some(ms(7_000)));
            assert!(budgets.try_pass_for(&example()).is_none());
            assert!(budgets.try_pass_for(&url("http://other.test")).is_some());
            let why = budgets.explain(&example());
            assert_eq!(why.paused(), Some(ms(7_000)));
            assert!(why.to_string().ends_with("; paused by the site for another 7.0s"), "{why}");
            assert_eq!(seconds_to_pass(&budgets).await, 7.0);
            assert_eq!(budgets.counts().pauses, 1);
        }
    }
    for status in [200, 301, 403, 404, 500, 502] {
        let budgets = Budgets::unlimited();
        assert_eq!(budgets.answer(&budgets.now_pass(), status, &asks("7")), None);
        assert_eq!(seconds_to_pass(&budgets).await, 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn without_pauses_a_refusal_changes_nothing() {
    let budgets = Budgets::builder().pauses(Pauses::none()).build().unwrap();
    assert_eq!(budgets.answer(&budgets.now_pass(), 429, &asks("7")), None);
    assert_eq!(seconds_to_pass(&budgets).await, 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_user_ends_a_pause_and_those_who_wait_go_on() {
    for budgets in [only(Budget::per_second(10)), Budgets::unlimited()] {
        budgets.refuse("60");
        let waiting = tokio::spawn({
            let budgets = budgets.clone();
            async move { seconds_to_pass(&budgets).await }
        });
        sleep(ms(1_000)).await;
        assert!(budgets.end_pause(&example()).await.unwrap());
        assert_eq!(waiting.await.unwrap(), 1.0);
        assert!(!budgets.end_pause(&example()).await.unwrap(), "once");
        // One that is over but for its probe counts as well.
        sleep(ms(200)).await;
        budgets.refuse("1");
        sleep(ms(2_000)).await;
        assert!(budgets.end_pause(&example()).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_told_at_once_to_who_cannot_wait_for_it() {
    let budgets = only(Budget::per_second(10));
    budgets.refuse("60");
    let error = budgets.turn_for(&example(), ms(30_000)).await.err().unwrap();
    assert_eq!(error.kind(), Kind::BudgetExceeded);
    assert_eq!(error.retry_after(), Some(ms(60_000)));
    assert!(error.to_string().contains("example.com by a pause it asked for"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn refusals_of_what_was_under_way_are_one_pause() {
    let budgets = only(Budget::per_second(1).burst(20));
    let out: Vec<_> = (0..20).map(|_| budgets.now_pass()).collect();
    for passage in &out[..10] {
        budgets.answer(passage, 429, &asks("2"));
        advance(ms(50)).await;
    }
    for passage in &out[10..] {
        budgets.answer(passage, 429, &asks(""));
        advance(ms(50)).await;
    }
    assert_eq!(budgets.counts().pauses, 1);
    // The last of them that says how long counts, and those that say nothing do not.
    assert_eq!(seconds_to_pass(&budgets).await, 1.45);
}

#[tokio::test(start_paused = true)]
async fn a_running_pause_is_never_shortened() {
    let budgets = only(Budget::per_second(1).burst(3));
    let out = [budgets.now_pass(), budgets.now_pass(), budgets.now_pass()];
    budgets.answer(&out[0], 429, &asks("100"));
    budgets.answer(&out[1], 429, &asks("1"));
    assert!(budgets.answer(&out[2], 200, &asks("")).is_none());
    assert_eq!(seconds_to_pass(&budgets).await, 100.0);
}

/// Ten requests that are answered after 200 ms; when they went out.
async fn after_the_pause(budgets: &Budgets, ok: bool) -> Vec<u128> {
    let starts = Starts::new();
    let mut tasks = JoinSet::new();
    for who in 0..10 {
        let (budgets, starts) = (budgets.clone(), starts.clone());
        tasks.spawn(async move {
            let passage = turn_with_slot(&budgets, &example()).await.spend();
            starts.note(who);
            sleep(ms(200)).await;
            if ok {
                budgets.answer(&passage, 200, &asks(""));
            }
        });
        tokio::task::yield_now().await;
    }
    tasks.join_all().await;
    assert_eq!(starts.order(), (0..10).collect::<Vec<_>>());
    starts.times().iter().map(|at| at.as_millis()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_with_one_request_and_then_the_rate_without_a_burst() {
    let budgets = only(Budget::per_second(10).burst(8));
    budgets.refuse("3");
    let times = after_the_pause(&budgets, true).await;
    // The probe, and what follows once it is answered: one interval apart.
    assert_eq!(times[0], 3_000);
    assert!((3_200..=3_202).contains(&times[1]), "{times:?}");
    for pair in times[1..].windows(2) {
        assert!((98..=102).contains(&(pair[1] - pair[0])), "{times:?}");
    }
    let budgets = only(Budget::per_second(10).burst(8));
    drop(budgets.now_pass());
    let without = after_the_pause(&budgets, true).await;
    assert!(without[6] == 0, "without a pause there is a burst: {without:?}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_never_answered_makes_the_next_one_the_probe() {
    let budgets = only(Budget::per_second(1_000).burst(8));
    budgets.refuse("3");
    let times = after_the_pause(&budgets, false).await;
    assert_eq!(times, (0..10).map(|nth| 3_000 + nth * 200).collect::<Vec<u128>>());
}

#[tokio::test(start_paused = true)]
async fn the_own_pause_doubles_until_it_has_been_quiet() {
    let budgets = only(Budget::per_second(10));
    let mut pauses = Vec::new();
    for _ in 0..7 {
        pauses.push(budgets.refuse("0").as_secs_f64());
        advance(ms(61_000)).await;
        // The site is heard in between, which does not end the doubling.
        budgets.answer(&budgets.now_pass(), 200, &asks(""));
        advance(ms(1_000)).await;
    }
    for (pause, least) in pauses.iter().zip([2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]) {
        assert!((least..=least * 1.1).contains(pause) && *pause <= 60.0, "{pauses:?}");
    }
    advance(ms(361_000)).await;
    assert!(budgets.refuse("-3").as_secs_f64() < 2.3);
}

/// Fifty tasks that go on as long as they may, at a site that always refuses; when it was asked
/// and how the tasks ended.
async fn fifty_at_a_refusing_site(after: &str, burst: u32) -> (Vec<Duration>, Vec<Error>, u64) {
    let budgets = only(Budget::per_second(100).burst(burst));
    let (starts, mut tasks) = (Starts::new(), JoinSet::new());
    for who in 0..50 {
        let (budgets, starts, after) = (budgets.clone(), starts.clone(), after.to_owned());
        tasks.spawn(async move {
            loop {
                let mut turn = budgets.turn_for(&example(), PATIENT).await?;
                turn.slot().await?;
                let passage = turn.spend();
                starts.note(who);
                sleep(ms(30)).await;
                budgets.answer(&passage, 429, &asks(&after));
            }
        });
    }
    let ends: Vec<Result<(), Error>> = tasks.join_all().await;
    let errors = ends.into_iter().map(Result::unwrap_err).collect();
    (starts.times(), errors, budgets.counts().pauses)
}

#[tokio::test(start_paused = true)]
async fn a_site_that_goes_on_refusing_is_asked_once_a_pause_and_then_given_up() {
    let date = std::time::SystemTime::now() + ms(1_000_000);
    let date = httpdate::fmt_http_date(date);
    for (after, least) in [
        ("2", 2_000),
        (&*date, 900_000),
        ("0", 2_000),
        ("864000", 3_600_000),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 2_000),
        ("rubbish", 2_000),
        ("", 2_000),
    ] {
        let (times, errors, pauses) = fifty_at_a_refusing_site(after, 5).await;
        // A burst, as many at the rate as fit into the time of an answer, and one a pause.
        let first = times.iter().filter(|at| **at < ms(40)).count();
        assert!(first <= 5 + 4, "{after}: {first}");
        assert_eq!(times.len(), first + 5, "{after}");
        for pair in times[first - 1..].windows(2) {
            assert!(pair[1] - pair[0] >= ms(least), "{after}: {times:?}");
        }
        assert_eq!(pauses, 6, "{after}");
        for error in errors {
            assert_eq!(error.kind(), Kind::SiteRefuses, "{after}: {error}");
            assert!(error.retry_after().unwrap() >= ms(1_900), "{after}: {error}");
            assert!(error.is_transient());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_given_up_site_is_tried_again_after_its_pause() {
    let pauses = Pauses::new().most_in_a_row(1);
    let budgets =
        Budgets::builder().default(Budget::per_second(10)).pauses(pauses).build().unwrap();
    for nth in 1..=2 {
        budgets.refuse("10");
        let turn = budgets.turn_for(&example(), PATIENT).await;
        assert_eq!(turn.is_err(), nth > 1);
        if let Err(error) = turn {
            let said = "example.com refused again after 1 pauses in a row, next chance in 10.0s";
            assert_eq!((error.kind(), error.to_string().as_str()), (Kind::SiteRefuses, said));
        }
        advance(ms(10_000)).await;
    }
    budgets.answer(&budgets.now_pass(), 200, &asks(""));
    advance(ms(100)).await;
    budgets.refuse("10");
    assert_eq!(seconds_to_pass(&budgets).await, 10.0, "the count began anew");
    assert_eq!(budgets.counts().refused_by_site, 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_pause_is_cut_and_counted() {
    let pauses = Pauses::new().longest(ms(5_000));
    let budgets = Budgets::builder().pauses(pauses).build().unwrap();
    assert_eq!(budgets.refuse("99999999999999999999999"), ms(5_000));
    assert_eq!(budgets.counts().pauses_cut, 1);
    for bad in [Pauses::new().longest(Duration::ZERO), Pauses::new().most_in_a_row(0)] {
        assert!(Budgets::builder().pauses(bad).build().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_a_failed_attempt_left_is_no_good_in_a_pause() {
    let budgets = only(Budget::per_second(1).burst(2));
    let (mut left, refused) = (budgets.now_pass(), budgets.now_pass());
    let site = Site::of(&example()).unwrap();
    assert!(budgets.gate(&site, None, &[]).lets(&mut left));
    budgets.answer(&refused, 429, &asks("1"));
    assert!(!budgets.gate(&site, None, &[]).lets(&mut left));
}

#[tokio::test(start_paused = true)]
async fn only_the_probe_is_tried_again_before_a_pause_is_known_to_be_over() {
    for budgets in [Budgets::unlimited(), only(Budget::per_second(1).burst(2))] {
        let (mut left, refused) = (budgets.now_pass(), budgets.now_pass());
        let site = Site::of(&example()).unwrap();
        budgets.answer(&refused, 429, &asks("1"));
        advance(ms(1_000)).await;
        let lets = |passage: &mut Passage| budgets.gate(&site, None, &[]).lets(passage);
        assert!(!lets(&mut left), "the probe is due");
        let mut probe = budgets.now_pass();
        assert!(!lets(&mut left), "the probe is out");
        assert!(lets(&mut probe), "it has failed on its first endpoint");
        // What is sent after a pause and refused is one of its own.
        advance(ms(100)).await;
        assert!(lets(&mut probe));
        budgets.answer(&probe, 429, &asks("1"));
        assert_eq!(budgets.counts().pauses, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_meets_a_pause_that_began_after_it_was_made() {
    let budgets = Budgets::builder().key("one", Budget::per_second(10)).build().unwrap();
    let (site, keys) = (Site::of(&example()).unwrap(), [Box::from("one")]);
    for keys in [&keys[..], &[]] {
        let mut turn = budgets.gate(&site, None, keys).turn(PATIENT).unwrap();
        turn.slot().await.unwrap();
        let mut heedless = budgets.gate(&site, None, keys).turn(PATIENT).unwrap();
        budgets.refuse("10");
        advance(ms(200)).await;
        assert!(keys.is_empty() == heedless.try_slot(), "without looking again it goes");
        let gate = budgets.gate(&site, None, keys);
        assert_eq!(gate.join(&mut turn, ms(100)).unwrap_err().kind(), Kind::BudgetExceeded);
        gate.join(&mut turn, PATIENT).unwrap();
        assert!(!turn.try_slot());
        let began = Instant::now();
        turn.slot().await.unwrap();
        assert_eq!(began.elapsed(), ms(9_800));
        drop(heedless);
        budgets.answer(&turn.spend(), 200, &HeaderMap::new());
        advance(ms(10_000)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_site_is_not_forgotten() {
    let budgets =
        Budgets::builder().default(Budget::per_second(1_000)).max_sites(16).build().unwrap();
    budgets.refuse("100");
    for host in 0..1_000 {
        let _ = budgets.try_pass_for(&url(&format!("http://h{host}.test")));
        advance(ms(10)).await;
    }
    assert!(budgets.counts().evicted > 900);
    assert!(budgets.try_pass_for(&example()).is_none());
    assert_eq!(seconds_to_pass(&budgets).await, 90.0);
}

#[tokio::test(start_paused = true)]
async fn hints_slow_down_and_never_speed_up() {
    let hint = |text: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("ratelimit", text.parse().unwrap());
        headers
    };
    let heeding = |budget: Budget| {
        let pauses = Pauses::new().rate_limit_hints(true);
        Budgets::builder().default(budget).pauses(pauses).build().unwrap()
    };
    let seconds = async |budgets: &Budgets, status, headers: &HeaderMap| {
        budgets.answer(&budgets.now_pass(), status, headers);
        (seconds_to_pass(budgets).await, seconds_to_pass(budgets).await)
    };
    let ten = Budget::per_second(10);
    let slow = hint(r#""a";r=5;t=20"#);
    assert_eq!(seconds(&heeding(ten), 200, &slow).await, (4.0, 4.0));
    assert_eq!(seconds(&only(ten), 200, &slow).await, (0.1, 0.1), "not unless asked for");
    assert_eq!(seconds(&heeding(ten), 302, &slow).await, (0.1, 0.1));
    let fast = hint(r#""a";r=500;t=1"#);
    assert_eq!(seconds(&heeding(ten), 200, &fast).await, (0.1, 0.1));
    assert_eq!(seconds(&heeding(ten), 200, &hint("a=b")).await, (0.1, 0.1));
    let mut both = slow;
    both.insert("retry-after", "1".parse().unwrap());
    assert_eq!(seconds(&heeding(ten), 429, &both).await.0, 1.0, "Retry-After wins");
    // A crawl delay of the user's own is not undone.
    let budgets = heeding(ten);
    drop(budgets.now_pass());
    budgets.slow(&Site::parse("example.com").unwrap(), ms(30_000), PATIENT);
    advance(ms(30_000)).await;
    budgets.answer(&budgets.now_pass(), 200, &hint(r#""a";r=5;t=20"#));
    assert_eq!(seconds_to_pass(&budgets).await, 30.0);
}
