//! Each hop of a redirect is charged to its own site, and no lease is held through the wait.

use std::time::{Duration, Instant};

use http::StatusCode;
use reqwest_lease::{
    Budget, Budgets, DefaultClassifier, Endpoint, EndpointId, Error, Evidence, Inventory, Judge,
    Kind, LeaseInfo, LeaseMiddleware, LeaseOptions, Outcome, Pool, PoolName, Site, Verdict,
};
use reqwest_middleware::ClientWithMiddleware;

use crate::rig::client as client_builder;
use crate::support::client::{get, pool_of};
use crate::support::origin::text;
use crate::support::web::{Takes, Web, moved};
use crate::support::{SOON, eventually, timed};

/// Every page of a.test is at b.test now.
async fn moved_site() -> Web {
    Web::start(|asked| match asked.url.strip_prefix("http://a.test") {
        Some(path) => moved(302, format!("http://b.test{path}").as_bytes()),
        None => text(StatusCode::OK, "arrived"),
    })
    .await
}

async fn budgeted(urls: &[String], budgets: Budgets) -> (Pool, ClientWithMiddleware) {
    let pool = pool_of(urls).await;
    let builder = LeaseMiddleware::builder(pool.clone()).budgets(budgets);
    (pool, builder.build().unwrap().into_client())
}

/// When the web was asked for pages of this site, in order.
fn times(web: &Web, site: &str) -> Vec<Instant> {
    let start = format!("http://{site}/");
    let mut asked = web.asked();
    asked.retain(|asked| asked.url.starts_with(&start));
    asked.into_iter().map(|asked| asked.at).collect()
}

/// The most that the requests of any window are ahead of an even spread, in requests.
fn excess(times: &[Instant], interval: Duration) -> f64 {
    let windows = times.iter().enumerate().flat_map(|(first, from)| {
        times[first..].iter().enumerate().map(move |(more, to)| {
            more as f64 - (*to - *from).as_secs_f64() / interval.as_secs_f64()
        })
    });
    windows.fold(0.0, f64::max)
}

#[tokio::test]
async fn each_hop_is_charged_to_its_own_site() {
    const REQUESTS: usize = 15;
    let web = moved_site().await;
    let budgets = Budgets::builder()
        .site("a.test", Budget::per_second(40))
        .site("b.test", Budget::per_second(20))
        .build()
        .unwrap();
    let run = async |budgets: Budgets| {
        web.forget();
        let (_pool, client) = budgeted(&vec![web.url(); 8], budgets).await;
        let all = (0..REQUESTS).map(|nth| {
            let client = client.clone();
            tokio::spawn(async move {
                let response = client.execute(get(&format!("http://a.test/{nth}"), &[])).await;
                response.unwrap().extensions().get::<LeaseInfo>().unwrap().clone()
            })
        });
        let all = futures_util::future::join_all(all.collect::<Vec<_>>());
        let (infos, late) = timed(all).await;
        let mut waited = Duration::ZERO;
        for info in infos.into_iter().map(Result::unwrap) {
            assert_eq!((info.hops(), info.attempts()), (1, 1));
            waited = waited.max(info.budget_wait());
        }
        let (a, b) = (times(&web, "a.test"), times(&web, "b.test"));
        assert_eq!((a.len(), b.len()), (REQUESTS, REQUESTS));
        // A machine that is late by itself moves requests together.
        let beyond = |times: &[Instant], interval| {
            excess(times, interval) - late.as_secs_f64() / interval.as_secs_f64()
        };
        let interval = Duration::from_millis;
        (beyond(&a, interval(25)), beyond(&b, interval(50)), waited)
    };
    // A request may start one interval late, so a window may hold one more. Of some looks the
    // first without more counts: a busy machine is late again and again.
    let mut looks = Vec::new();
    let waited = loop {
        let (a, b, waited) = run(budgets.clone()).await;
        if a < 1.5 && b < 1.5 {
            break waited;
        }
        looks.push((a, b));
        assert!(looks.len() < 5, "{looks:?}");
    };
    // For both sites: one alone makes the last one wait for 350 ms.
    assert!(waited >= Duration::from_millis(500), "{waited:?}");
    let (a, b, waited) = run(Budgets::unlimited()).await;
    assert!(a > 2.0 && b > 2.0, "without budgets the check fails: {a} {b}");
    assert!(waited < Duration::from_millis(50), "{waited:?}");
}

/// The budget of b.test, with its one slot taken.
async fn spent(budget: Budget) -> (Web, Budgets) {
    let web = moved_site().await;
    let budgets = Budgets::builder().site("b.test", budget).build().unwrap();
    let (_pool, client) = budgeted(&[web.url()], budgets.clone()).await;
    client.execute(get("http://b.test/taken", &[])).await.unwrap();
    (web, budgets)
}

#[tokio::test]
async fn no_lease_is_held_while_a_hop_waits_for_its_budget() {
    let (web, budgets) = spent(Budget::per_second(1)).await;
    let (pool, client) = budgeted(&[web.url()], budgets).await;
    let moved = tokio::spawn({
        let client = client.clone();
        async move { client.execute(get("http://a.test/x", &[])).await }
    });
    eventually("the first hop", || times(&web, "a.test").first().copied()).await;
    let other = client.execute(get("http://c.test/", &[])).await.unwrap();
    assert_eq!(other.status(), StatusCode::OK);
    drop(other);
    assert_eq!(times(&web, "b.test").len(), 1, "the hop still waits");
    assert_eq!(pool.status().await.unwrap().ready, 1, "and holds nothing");
    let info = moved.await.unwrap().unwrap().extensions().get::<LeaseInfo>().unwrap().clone();
    assert_eq!(info.hops(), 1);
    assert!(info.budget_wait() > Duration::from_millis(500), "{info:?}");
    let (c, b) = (times(&web, "c.test")[0], times(&web, "b.test")[1]);
    assert!(c < b);
}

#[tokio::test]
async fn a_hop_goes_through_the_same_endpoint_after_its_wait_too() {
    for budget in [Budget::per_second(1000), Budget::per_second(4)] {
        let (web, budgets) = spent(budget).await;
        let url = |user: &str| web.url().replace("//", &format!("//{user}:x@"));
        let (_pool, client) = budgeted(&["one", "two", "three"].map(url), budgets).await;
        web.forget();
        // Those that have not been used yet would be next.
        client.execute(get("http://c.test/", &[])).await.unwrap();
        client.execute(get("http://a.test/", &[])).await.unwrap();
        let users: Vec<_> = web
            .asked()
            .iter()
            .map(|asked| asked.header("proxy-authorization").to_owned())
            .collect();
        assert_eq!(users[1], users[2]);
        assert_ne!(users[0], users[1]);
    }
}

#[tokio::test]
async fn a_hop_that_would_wait_too_long_fails_at_once_and_tells_when() {
    let (web, budgets) = spent(Budget::per_minute(6)).await;
    let (pool, client) = budgeted(&[web.url()], budgets).await;
    let ask = async |options: LeaseOptions, timeout| {
        let mut request = get("http://a.test/", &[]);
        *request.timeout_mut() = timeout;
        let began = Instant::now();
        let mut extensions = http::Extensions::new();
        extensions.insert(options);
        let error = client.execute_with_extensions(request, &mut extensions).await.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(4), "at once");
        Error::find_in(&error).unwrap().clone()
    };
    let short = LeaseOptions::new().max_wait(Duration::from_secs(5));
    for error in
        [ask(short, None).await, ask(LeaseOptions::new(), Some(Duration::from_secs(5))).await]
    {
        assert_eq!(error.kind(), Kind::BudgetExceeded);
        let after = error.retry_after().unwrap();
        assert!((7..=10).contains(&after.as_secs()), "{after:?}");
    }
    assert_eq!(times(&web, "b.test").len(), 1);
    assert_eq!(pool.status().await.unwrap().ready, 1);
}

#[tokio::test]
async fn a_requests_timeout_is_for_all_its_hops() {
    let web = Web::start(|asked| {
        let mut answer = match asked.url.strip_prefix("http://a.test/") {
            Some("3") => text(StatusCode::OK, "arrived"),
            Some(nth) => moved(302, (nth.parse::<u32>().unwrap() + 1).to_string().as_bytes()),
            None => text(StatusCode::NOT_FOUND, ""),
        };
        answer.extensions_mut().insert(Takes(Duration::from_millis(200)));
        answer
    })
    .await;
    let limit = Duration::from_millis(500);
    let request = |timeout| {
        let mut request = get("http://a.test/0", &[]);
        *request.timeout_mut() = timeout;
        request
    };
    let client = async |timeout: Option<Duration>, each: Option<Duration>| {
        let builder = LeaseMiddleware::builder(pool_of(&[web.url()]).await);
        let builder = match timeout {
            Some(timeout) => builder.timeout(timeout),
            None => builder,
        };
        let template = move |builder: reqwest::ClientBuilder| match each {
            Some(each) => builder.timeout(each),
            None => builder,
        };
        builder.template(template).build().unwrap().into_client()
    };
    for (client, timeout) in
        [(client(None, None).await, Some(limit)), (client(Some(limit), None).await, None)]
    {
        let began = Instant::now();
        let error = client.execute(request(timeout)).await.unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert!((limit..SOON).contains(&began.elapsed()));
    }
    let reqwest = client_builder().proxy(reqwest::Proxy::all(web.url()).unwrap());
    let error = reqwest.build().unwrap().execute(request(Some(limit))).await.unwrap_err();
    assert!(error.is_timeout(), "as reqwest does");
    let naive = client(None, Some(limit)).await.execute(request(None)).await.unwrap();
    assert_eq!(naive.status(), StatusCode::OK, "a timeout for each send is not up");
}

/// The judge keeps an endpoint from a site that banned it.
struct Shuns;

impl Judge for Shuns {
    fn judge(&self, evidence: Evidence) -> Verdict {
        match evidence.outcome {
            Outcome::Banned => Verdict::default().with_shun(Duration::from_secs(60)),
            _ => Verdict::default(),
        }
    }
}

/// A pool of two endpoints by name, with 403 and 302 of these sites as marks of a ban.
async fn banned(web: &Web, marks: &[(&str, StatusCode)]) -> (Pool, ClientWithMiddleware) {
    let endpoints = ["one", "two"].map(|user| {
        let url = web.url().replace("//", &format!("//{user}:x@"));
        Endpoint::new(EndpointId::new(user).unwrap(), &url, None).unwrap()
    });
    let inventory = Inventory::from_endpoints(endpoints).unwrap();
    let builder = Pool::builder(PoolName::new("test").unwrap(), inventory).judge(Shuns);
    let pool = builder.build().await.unwrap();
    let classifier = marks.iter().fold(DefaultClassifier::new(), |classifier, (site, status)| {
        classifier.ban_mark_of(Site::parse(site).unwrap(), *status)
    });
    let builder = LeaseMiddleware::builder(pool.clone()).classifier(classifier);
    (pool, builder.build().unwrap().into_client())
}

async fn endpoint_of(client: &ClientWithMiddleware, url: &str) -> String {
    let response = client.execute(get(url, &[])).await.unwrap();
    response.extensions().get::<LeaseInfo>().unwrap().endpoint().to_string()
}

#[tokio::test]
async fn a_redirect_that_bears_the_mark_of_a_ban_is_followed_through_another_endpoint() {
    let web = Web::start(|asked| match asked.url.as_str() {
        "http://a.test/" => moved(302, b"/sorry"),
        _ => text(StatusCode::OK, "arrived"),
    })
    .await;
    let (_pool, client) = banned(&web, &[("a.test", StatusCode::FOUND)]).await;
    assert_eq!(endpoint_of(&client, "http://a.test/").await, "two");
    assert_eq!(endpoint_of(&client, "http://a.test/x").await, "two", "the first one rests");
    // The twin: where it is no mark the redirect keeps its endpoint.
    let (_pool, client) = banned(&web, &[]).await;
    assert_eq!(endpoint_of(&client, "http://a.test/").await, "one");
}

#[tokio::test]
async fn a_redirect_to_a_site_that_an_endpoint_rests_for_goes_through_another() {
    let web = Web::start(|asked| match asked.url.as_str() {
        "http://a.test/" => moved(302, b"http://b.test/"),
        "http://b.test/ban" => text(StatusCode::FORBIDDEN, ""),
        _ => text(StatusCode::OK, "arrived"),
    })
    .await;
    let (_pool, client) = banned(&web, &[("b.test", StatusCode::FORBIDDEN)]).await;
    assert_eq!(endpoint_of(&client, "http://b.test/ban").await, "one");
    assert_eq!(endpoint_of(&client, "http://c.test/").await, "two", "the other's turn");
    assert_eq!(endpoint_of(&client, "http://a.test/").await, "two", "from the first to the other");
    let users = web.asked().into_iter().map(|asked| asked.header("proxy-authorization").to_owned());
    let users: Vec<_> = users.collect();
    assert_eq!(users.len(), 4);
    assert!(users[2] == users[0] && users[3] == users[1], "{users:?}");
}
