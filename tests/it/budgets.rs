//! Budgets along the whole way: through a proxy, at an origin that notes what it is asked.

mod busy;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{Extensions, HeaderValue, StatusCode};
use reqwest::{Request, Response};
use reqwest_lease::{
    Budget, Budgets, Error, Kind, LeaseInfo, LeaseLayer, LeaseMiddleware, LeaseOptions, Outgoing,
    Pauses, Pool, Sender,
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt};

use crate::support::SOON;
use crate::support::client::{chain, get, pool_of};
use crate::support::origin::{Answer, text};
use crate::support::web::{Takes, Web, moved};

/// When the web was asked for pages of this site, in order.
fn times(web: &Web, site: &str) -> Vec<Instant> {
    let start = format!("http://{site}/");
    let mut asked = web.asked();
    asked.retain(|asked| asked.url.starts_with(&start));
    asked.into_iter().map(|asked| asked.at).collect()
}

/// The most by which any window holds more than `rate x window + burst`.
fn excess(times: &[Instant], rate: f64, burst: f64) -> f64 {
    let windows = times.iter().enumerate().flat_map(|(first, from)| {
        times[first..]
            .iter()
            .enumerate()
            .map(move |(more, to)| (more + 1) as f64 - burst - (*to - *from).as_secs_f64() * rate)
    });
    windows.fold(f64::MIN, f64::max)
}

async fn client(web: &Web, endpoints: usize, budgets: Budgets) -> (Pool, ClientWithMiddleware) {
    let pool = pool_of(&vec![web.url(); endpoints]).await;
    let builder = LeaseMiddleware::builder(pool.clone()).budgets(budgets);
    (pool, builder.build().unwrap().into_client())
}

async fn ask(
    client: &ClientWithMiddleware,
    url: &str,
    options: LeaseOptions,
) -> Result<Response, Error> {
    let mut extensions = Extensions::new();
    extensions.insert(options);
    let answer = client.execute_with_extensions(get(url, &[]), &mut extensions).await;
    answer.map_err(|error| Error::find_in(&error).unwrap().clone())
}

fn info(response: &Response) -> LeaseInfo {
    response.extensions().get::<LeaseInfo>().unwrap().clone()
}

fn refusal(status: StatusCode, after: &str) -> Answer {
    let mut answer = text(status, "not now");
    answer.headers_mut().insert("retry-after", HeaderValue::from_str(after).unwrap());
    answer
}

#[tokio::test]
async fn no_window_of_a_thousand_requests_holds_more_than_rate_and_burst() {
    let web = Web::start(|_| text(StatusCode::OK, "")).await;
    let run = async |budgets: Budgets| {
        web.forget();
        let pool = pool_of(&vec![web.url(); 16]).await;
        let layer = LeaseLayer::builder(pool).budgets(budgets).build_layer().unwrap();
        let sends = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sends);
        let service = layer.layer(tower::service_fn(move |outgoing: Outgoing| {
            seen.lock().unwrap().push(Instant::now());
            Sender.oneshot(outgoing)
        }));
        let mut tasks = JoinSet::new();
        for nth in 0..1_000 {
            let request: Request = get(&format!("http://a.test/{nth}"), &[]);
            let service = service.clone();
            tasks.spawn(async move { service.oneshot(request).await.unwrap().bytes().await });
        }
        tasks.join_all().await.into_iter().for_each(|body| drop(body.unwrap()));
        let mut sends = sends.lock().unwrap().clone();
        sends.sort();
        (times(&web, "a.test").len(), excess(&sends, 200.0, 10.0))
    };
    let budget = Budget::per_second(200).burst(10);
    let (asked, over) = run(Budgets::builder().default(budget).build().unwrap()).await;
    assert_eq!(asked, 1_000);
    // A request may start as late as its slot is kept, so that a window holds one more.
    assert!(over <= 1.1, "{over}");
    let (asked, over) = run(Budgets::unlimited()).await;
    assert!(asked == 1_000 && over > 20.0, "without budgets the check fails: {over}");
}

#[tokio::test]
async fn an_empty_pool_hoards_no_slots_for_when_it_fills() {
    let web = Web::start(|_| text(StatusCode::OK, "")).await;
    let budget = Budget::per_second(5).burst(2);
    let (pool, client) = client(&web, 1, Budgets::builder().default(budget).build().unwrap()).await;
    let held = pool.hold().await.unwrap();
    let mut tasks = JoinSet::new();
    for nth in 0..20 {
        let client = client.clone();
        tasks.spawn(async move {
            ask(&client, &format!("http://a.test/{nth}"), LeaseOptions::new()).await.unwrap();
        });
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(web.asked().is_empty());
    drop(held);
    let full = Instant::now();
    tasks.join_all().await;
    let times = times(&web, "a.test");
    let first_second = times.iter().filter(|at| **at < full + Duration::from_secs(1)).count();
    assert!(first_second <= 5 + 2, "{first_second}");
    assert!(excess(&times, 5.0, 2.0) <= 1.1, "{}", excess(&times, 5.0, 2.0));
    assert_eq!(times.len(), 20);
}

/// Each page leads to the next lower one on the other site.
fn to_and_fro(asked: &crate::support::web::Asked) -> Answer {
    let (site, nth) = asked.url.trim_start_matches("http://").split_once("/").unwrap();
    let other = if site == "a.test" { "b.test" } else { "a.test" };
    match nth.parse::<u32>().unwrap() {
        0 => text(StatusCode::OK, "arrived"),
        nth => moved(302, format!("http://{other}/{}", nth - 1).as_bytes()),
    }
}

#[tokio::test]
async fn two_sites_that_lead_to_each_other_stay_within_both_budgets() {
    let web = Web::start(|asked| {
        let mut answer = to_and_fro(asked);
        answer.extensions_mut().insert(Takes(Duration::from_millis(5)));
        answer
    })
    .await;
    let budget = Budget::per_second(40).in_flight(1);
    let budgets = Budgets::builder().site("a.test", budget).site("b.test", budget);
    let budgets = budgets.build().unwrap();
    let (_pool, client) = client(&web, 8, budgets.clone()).await;
    let mut tasks = JoinSet::new();
    for nth in 0..8 {
        let client = client.clone();
        tasks.spawn(async move {
            let from = ["http://a.test/4", "http://b.test/4"][nth % 2];
            let response = ask(&client, from, LeaseOptions::new()).await.unwrap();
            assert_eq!(info(&response).hops(), 4);
            assert_eq!(response.text().await.unwrap(), "arrived");
        });
    }
    let all = tokio::time::timeout(SOON, tasks.join_all()).await;
    all.expect("nobody waits with a place in hand");
    for site in ["a.test", "b.test"] {
        let times = times(&web, site);
        assert_eq!(times.len(), 20);
        assert!(excess(&times, 40.0, 1.0) <= 1.1, "{}", excess(&times, 40.0, 1.0));
    }
}

#[tokio::test]
async fn a_redirect_to_nowhere_has_taken_its_turn_and_gives_its_place_back() {
    let web = Web::start(|asked| match asked.url.as_str() {
        "http://public.test/in" => moved(302, b"http://169.254.169.254/latest/meta-data"),
        _ => chain(&[("http://a.test/", "http://b.test/"), ("http://b.test/", "http://a.test/")])(
            asked,
        ),
    })
    .await;
    for (url, kind, asked) in [
        ("http://a.test/", Kind::TooManyRedirects, 11),
        ("http://public.test/in", Kind::TargetRefused, 1),
    ] {
        web.forget();
        let budget = Budget::per_second(100).in_flight(1);
        let budgets = Budgets::builder().default(budget).build().unwrap();
        let (pool, client) = client(&web, 1, budgets.clone()).await;
        let error = ask(&client, url, LeaseOptions::new()).await.unwrap_err();
        assert_eq!((error.kind(), web.asked().len()), (kind, asked));
        assert_eq!(pool.status().await.unwrap().ready, 1);
        // Its slot is spent, and its place in flight is not.
        let error = ask(&client, url, LeaseOptions::new()).await.unwrap_err();
        assert_eq!((error.kind(), web.asked().len()), (kind, 2 * asked));
        let first = times(&web, url.split('/').nth(2).unwrap());
        assert!(excess(&first, 100.0, 1.0) <= 1.1);
    }
}

#[tokio::test]
async fn fifty_tasks_ask_a_refusing_site_once_a_pause_and_cost_no_endpoint() {
    let web = Web::start(|_| refusal(StatusCode::TOO_MANY_REQUESTS, "1")).await;
    let pauses = Pauses::new().most_in_a_row(2);
    let budgets = Budgets::builder().default(Budget::per_second(20).burst(4)).pauses(pauses);
    let budgets = budgets.build().unwrap();
    let (pool, client) = client(&web, 8, budgets.clone()).await;
    let (mut tasks, returned) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..50 {
        let (client, returned) = (client.clone(), Arc::clone(&returned));
        tasks.spawn(async move {
            loop {
                let options = LeaseOptions::new();
                let response = ask(&client, "http://a.test/", options).await?;
                assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
                assert_eq!(info(&response).attempts(), 1);
                returned.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let ends: Vec<Result<(), Error>> = tasks.join_all().await;
    for end in ends {
        let error = end.unwrap_err();
        assert_eq!(error.kind(), Kind::SiteRefuses, "{error}");
        assert!(error.retry_after().unwrap() <= Duration::from_secs(1));
    }
    let times = times(&web, "a.test");
    assert_eq!(returned.load(Ordering::Relaxed), times.len());
    // A burst and what the rate let out until the first answer, then one a pause.
    let pauses = times.windows(2).filter(|pair| pair[1] - pair[0] > Duration::from_millis(900));
    assert_eq!(pauses.count(), 2);
    assert!(times.len() <= 4 + 6 + 2, "{}", times.len());
    assert_eq!(budgets.counts().pauses, 3);
    let status = pool.status().await.unwrap();
    assert_eq!((status.ready, status.cooling), (8, 0));
}

/// Refuses the first request for a second, and answers the others.
async fn grudging() -> Web {
    let asked = AtomicUsize::new(0);
    Web::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => refusal(StatusCode::SERVICE_UNAVAILABLE, "1"),
        _ => text(StatusCode::OK, "here"),
    })
    .await
}

#[tokio::test]
async fn a_refusal_is_returned_and_the_next_request_waits() {
    let web = grudging().await;
    let (_pool, client) = client(&web, 3, Budgets::unlimited()).await;
    let began = Instant::now();
    let first = ask(&client, "http://a.test/", LeaseOptions::new()).await.unwrap();
    assert_eq!(first.status(), StatusCode::SERVICE_UNAVAILABLE);
    let other = ask(&client, "http://b.test/", LeaseOptions::new()).await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(900), "another site does not wait");
    assert_eq!(info(&other).pauses(), 0);
    let next = ask(&client, "http://a.test/", LeaseOptions::new()).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(990));
    assert_eq!((next.status(), info(&next).pauses()), (StatusCode::OK, 1));
    assert!(info(&next).budget_wait() > Duration::from_millis(500));
}

#[tokio::test]
async fn a_request_that_waits_pauses_out_is_sent_again_after_it() {
    let web = grudging().await;
    let budgets = Budgets::builder().default(Budget::per_second(100).in_flight(1)).build();
    let (_pool, client) = client(&web, 2, budgets.unwrap()).await;
    let options = LeaseOptions::new().wait_out_pauses(true).attempts(1);
    let response = ask(&client, "http://a.test/", options).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!((info(&response).attempts(), info(&response).pauses()), (1, 1));
    let times = times(&web, "a.test");
    assert!(times.len() == 2 && times[1] - times[0] >= Duration::from_millis(990));
    // One without the time for it gets the answer itself.
    let web = grudging().await;
    let (_pool, client) = self::client(&web, 2, Budgets::unlimited()).await;
    let hurried = LeaseOptions::new().wait_out_pauses(true).max_wait(Duration::from_millis(500));
    let response = ask(&client, "http://a.test/", hurried).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_place_in_flight_is_taken_until_the_body_has_ended() {
    let web = Web::start(|_| text(StatusCode::OK, "a body")).await;
    let budgets = Budgets::builder().default(Budget::unpaced().in_flight(1)).build().unwrap();
    let (_pool, client) = client(&web, 4, budgets).await;
    let unread = ask(&client, "http://a.test/1", LeaseOptions::new()).await.unwrap();
    let short = LeaseOptions::new().max_wait(Duration::from_millis(100));
    let error = ask(&client, "http://a.test/2", short).await.unwrap_err();
    assert_eq!(error.kind(), Kind::BudgetExceeded);
    assert!(error.to_string().contains("in flight"), "{error}");
    assert!(error.retry_after().is_some());
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { ask(&client, "http://a.test/3", LeaseOptions::new()).await }
    });
    assert!(ask(&client, "http://b.test/", LeaseOptions::new()).await.is_ok());
    assert_eq!(web.urls(), ["http://a.test/1", "http://b.test/"]);
    assert_eq!(unread.text().await.unwrap(), "a body");
    assert_eq!(waiting.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_charged_key_holds_for_all_sites_and_hops() {
    let web = Web::start(to_and_fro).await;
    let budgets = Budgets::builder()
        .default(Budget::per_second(1_000))
        .key("account-7", Budget::per_second(20))
        .build()
        .unwrap();
    let (_pool, client) = client(&web, 4, budgets).await;
    let run = async |options: LeaseOptions| {
        web.forget();
        let all = (0..4).map(|nth| {
            let (client, options) = (client.clone(), options.clone());
            tokio::spawn(async move {
                let from = ["http://a.test/2", "http://b.test/2"][nth % 2];
                ask(&client, from, options).await.unwrap().bytes().await.unwrap();
            })
        });
        for one in all.collect::<Vec<_>>() {
            one.await.unwrap();
        }
        let mut times = [times(&web, "a.test"), times(&web, "b.test")].concat();
        times.sort();
        assert_eq!(times.len(), 12);
        excess(&times, 20.0, 1.0)
    };
    let over = run(LeaseOptions::new().charge("account-7").charge("unruled")).await;
    assert!(over <= 1.1, "{over}");
    let over = run(LeaseOptions::new()).await;
    assert!(over > 2.0, "without the key the check fails: {over}");
}

#[tokio::test]
async fn a_waiting_request_fails_when_its_site_goes_on_refusing() {
    let web = Web::start(|_| refusal(StatusCode::TOO_MANY_REQUESTS, "1")).await;
    let budgets = Budgets::builder().pauses(Pauses::new().most_in_a_row(1)).build().unwrap();
    let (pool, client) = client(&web, 2, budgets).await;
    let options = LeaseOptions::new().wait_out_pauses(true);
    let error = ask(&client, "http://a.test/", options).await.unwrap_err();
    assert_eq!(error.kind(), Kind::SiteRefuses);
    assert_eq!(web.asked().len(), 2);
    assert_eq!(pool.status().await.unwrap().ready, 2);
}
