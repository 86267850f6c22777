//! Budgets while all endpoints are taken.

use super::*;

/// An answer that takes as long.
fn slowly(mut answer: Answer, took: u64) -> Answer {
    answer.extensions_mut().insert(Takes(Duration::from_millis(took)));
    answer
}

#[tokio::test]
async fn who_waits_for_a_lease_sees_a_pause_that_begins_meanwhile() {
    let quick = Budgets::builder().default(Budget::per_second(1_000)).build().unwrap();
    let heedless = Budgets::builder().pauses(Pauses::none()).build().unwrap();
    for (budgets, asked) in [(Budgets::unlimited(), 1), (quick, 1), (heedless, 20)] {
        let web = Web::start(|_| slowly(refusal(StatusCode::TOO_MANY_REQUESTS, "60"), 50)).await;
        let (pool, client) = client(&web, 1, budgets.clone()).await;
        let mut tasks = JoinSet::new();
        for nth in 0..20 {
            let client = client.clone();
            tasks.spawn(async move {
                let options = LeaseOptions::new().max_wait(Duration::from_secs(20));
                ask(&client, &format!("http://a.test/{nth}"), options).await.map(drop)
            });
        }
        let ends = tasks.join_all().await;
        assert_eq!(web.asked().len(), asked, "{:?}", budgets.counts());
        for error in ends.into_iter().filter_map(Result::err) {
            assert_eq!(error.kind(), Kind::BudgetExceeded, "{error}");
            assert!(error.to_string().contains("by a pause it asked for"), "{error}");
        }
        assert_eq!(pool.status().await.unwrap().ready, 1);
    }
}

#[tokio::test]
async fn a_refusal_after_a_wait_for_a_lease_is_a_pause_of_its_own() {
    let answers = AtomicUsize::new(0);
    let web = Web::start(move |asked| {
        if asked.url.starts_with("http://b.test") {
            return slowly(text(StatusCode::OK, ""), 100);
        }
        match answers.fetch_add(1, Ordering::Relaxed) {
            1 => text(StatusCode::OK, "the probe"),
            _ => refusal(StatusCode::TOO_MANY_REQUESTS, "1"),
        }
    })
    .await;
    let budgets = Budgets::unlimited();
    let (_pool, client) = client(&web, 1, budgets.clone()).await;
    for status in [StatusCode::TOO_MANY_REQUESTS, StatusCode::OK] {
        let response = ask(&client, "http://a.test/", LeaseOptions::new()).await.unwrap();
        assert_eq!(response.status(), status);
    }
    let busy = ask(&client, "http://b.test/", LeaseOptions::new());
    let waiting = async {
        while !web.urls().iter().any(|url| url.starts_with("http://b.test")) {
            tokio::task::yield_now().await;
        }
        ask(&client, "http://a.test/", LeaseOptions::new()).await.unwrap().status()
    };
    let (busy, waited) = tokio::join!(busy, waiting);
    assert!(busy.is_ok() && waited == StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(budgets.counts().pauses, 2);
    let began = Instant::now();
    ask(&client, "http://a.test/", LeaseOptions::new()).await.unwrap();
    assert!(began.elapsed() > Duration::from_millis(900), "{:?}", began.elapsed());
}
