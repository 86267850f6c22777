//! Budgets while all endpoints are taken.

use reqwest_lease::{RedisStore, SharedLimits};

use super::*;
use crate::support::eventually;
use crate::support::redis::Server;

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
                let options = LeaseOptions::new().max_wait(Duration::from_secs(5));
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

/// A pool of two that eight tasks keep busy, where leases take longer than slots are kept.
async fn asked_beside_a_busy_site(budgets: Vec<Budgets>) {
    let web = Web::start(|asked| match asked.url.starts_with("http://b.test") {
        true => slowly(text(StatusCode::OK, ""), 30),
        false => text(StatusCode::OK, "here"),
    })
    .await;
    let (mut busy, mut asks) = (JoinSet::new(), JoinSet::new());
    for budgets in budgets {
        let (pool, client) = client(&web, 2, budgets).await;
        for nth in 0..8 {
            let client = client.clone();
            busy.spawn(async move {
                loop {
                    let url = format!("http://b.test/{nth}");
                    drop(ask(&client, &url, LeaseOptions::new()).await.unwrap().bytes().await);
                }
            });
        }
        asks.spawn(async move {
            while pool.status().await.unwrap().ready > 0 {
                tokio::task::yield_now().await;
            }
            for _ in 0..3 {
                let patient = LeaseOptions::new().max_wait(Duration::from_secs(15));
                let answer = ask(&client, "http://a.test/", patient).await.unwrap();
                assert_eq!(answer.text().await.unwrap(), "here");
            }
        });
    }
    asks.join_all().await;
}

async fn shared(redis: &Server, budget: Budget) -> (Budgets, SharedLimits) {
    let store = RedisStore::connect(&redis.url()).await.unwrap();
    let limits = SharedLimits::new(store.connection());
    let builder = Budgets::builder().site("a.test", budget);
    (builder.shared(limits.clone()).build().unwrap(), limits)
}

#[tokio::test]
async fn a_busy_pool_does_not_starve_a_fast_site() {
    let redis = Server::start(&[]);
    let budget = Budget::per_second(200);
    let local = Budgets::builder().site("a.test", budget).build().unwrap();
    asked_beside_a_busy_site(vec![local]).await;
    for budget in [budget, budget.in_flight(3)] {
        let (shared, limits) = shared(&redis, budget).await;
        asked_beside_a_busy_site(vec![shared]).await;
        // One slot that lapses and one that is used, and what was reserved ahead.
        assert!(limits.counts().reservations <= 3 * 3, "{:?}", limits.counts());
    }
}

#[tokio::test]
async fn busy_pools_of_many_workers_do_not_starve_their_site() {
    let redis = Server::start(&[]);
    for budget in [Budget::per_second(20), Budget::per_second(20).in_flight(50)] {
        let workers = futures_util::future::join_all((0..10).map(|_| shared(&redis, budget))).await;
        asked_beside_a_busy_site(workers.into_iter().map(|(budgets, _)| budgets).collect()).await;
    }
}

#[tokio::test]
async fn who_waits_for_a_lease_keeps_no_place_and_no_probe_from_other_workers() {
    let asked = AtomicUsize::new(0);
    let web = Web::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => refusal(StatusCode::TOO_MANY_REQUESTS, "1"),
        _ => text(StatusCode::OK, "here"),
    })
    .await;
    for (budget, first) in [(Budget::per_second(100), 429), (Budget::unpaced().in_flight(1), 200)] {
        let redis = Server::start(&[]);
        let ((one, limits), (other, _)) =
            (shared(&redis, budget).await, shared(&redis, budget).await);
        let ((pool, one), (_pool, other)) =
            (client(&web, 1, one).await, client(&web, 1, other).await);
        let response = ask(&one, "http://a.test/", LeaseOptions::new()).await.unwrap();
        assert_eq!(response.status().as_u16(), first);
        drop(response);
        let held = pool.hold().await.unwrap();
        let before = limits.counts().reservations;
        let waiting = tokio::spawn(async move {
            let patient = LeaseOptions::new().max_wait(Duration::from_secs(20));
            ask(&one, "http://a.test/", patient).await.unwrap()
        });
        eventually("it asks for the probe or the place", || {
            (limits.counts().reservations > before).then_some(())
        })
        .await;
        let patient = LeaseOptions::new().max_wait(Duration::from_secs(8));
        let response = ask(&other, "http://a.test/", patient).await.unwrap();
        assert_eq!(response.text().await.unwrap(), "here");
        // It is the next probe, and may have to wait for what became of this one.
        if first == 200 {
            drop(held);
            assert_eq!(waiting.await.unwrap().status(), StatusCode::OK);
        } else {
            waiting.abort();
        }
    }
}

#[tokio::test]
async fn a_failed_attempt_that_waits_for_an_endpoint_holds_up_nobody() {
    let web = Web::start(|_| text(StatusCode::OK, "here")).await;
    let budgets = Budgets::builder().default(Budget::per_second(20).in_flight(1)).build().unwrap();
    // Nobody listens at the first one, and the second one is taken.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let pool = pool_of(&[format!("http://{closed}"), web.url()]).await;
    let held = [pool.hold().await.unwrap(), pool.hold().await.unwrap()];
    let mut held = held.into_iter().filter(|held| held.endpoint().as_str() == "b");
    let taken = held.next().unwrap();
    drop(held);
    let builder = LeaseMiddleware::builder(pool.clone()).budgets(budgets.clone());
    let failing = builder.build().unwrap().into_client();
    let waiting = tokio::spawn(async move {
        let patient = LeaseOptions::new().attempts(2).max_wait(Duration::from_secs(20));
        ask(&failing, "http://a.test/1", patient).await.unwrap()
    });
    let (_pool, client) = client(&web, 1, budgets).await;
    while pool.status().await.unwrap().ready > 0 {
        tokio::task::yield_now().await;
    }
    let patient = LeaseOptions::new().max_wait(Duration::from_secs(5));
    let response = ask(&client, "http://a.test/2", patient).await.unwrap();
    assert_eq!(response.text().await.unwrap(), "here");
    drop(taken);
    let response = waiting.await.unwrap();
    assert_eq!((response.status(), info(&response).attempts()), (StatusCode::OK, 2));
}
