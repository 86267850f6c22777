//! What a worker process does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest_lease::{
    Budget, Budgets, Error, LeaseMiddleware, LeaseOptions, RedisStore, SharedLimits,
};
use reqwest_middleware::ClientWithMiddleware;

use crate::support::client::pool_of;

/// The work of a worker, if this process is one: URL of the web, URL of Redis, `shared`, `local`
/// or the share of a fallback, rate, burst, tasks, requests of each task and its longest time in
/// milliseconds, sites.
#[tokio::test]
async fn works() {
    let Ok(settings) = std::env::var("SHARED_BUDGETS_WORKER") else { return };
    let settings: Vec<&str> = settings.split(' ').collect();
    let [web, redis, mode, rate, burst, tasks, requests, time_ms, sites @ ..] = &settings[..]
    else {
        panic!("{settings:?}")
    };
    let budget = Budget::per_second(rate.parse().unwrap()).burst(burst.parse().unwrap());
    let (budgets, limits) = budgets(redis, mode, budget).await;
    let pool = pool_of(&vec![(*web).to_owned(); 20]).await;
    let client = LeaseMiddleware::builder(pool).budgets(budgets).build().unwrap().into_client();
    let client = Arc::new(client);
    let until = Instant::now() + Duration::from_millis(time_ms.parse().unwrap());
    let (tasks, requests): (usize, usize) = (tasks.parse().unwrap(), requests.parse().unwrap());
    let each = sites.iter().flat_map(|site| (0..tasks).map(move |_| *site));
    let all = join_all(each.map(|site| ask(&client, site, requests, until)));
    let (told, late) = super::timed(all).await;
    println!("told: late {}", late.as_micros());
    for line in told.into_iter().flatten() {
        println!("told: {line}");
    }
    if let Some(limits) = limits {
        let counts = limits.counts();
        println!("told: calls {}", counts.reservations);
        println!("told: lapsed {}", counts.undone + counts.lapsed);
    }
}

async fn budgets(redis: &str, mode: &str, budget: Budget) -> (Budgets, Option<SharedLimits>) {
    let builder = Budgets::builder().default(budget);
    if mode == "local" {
        return (builder.build().unwrap(), None);
    }
    let limits = SharedLimits::new(RedisStore::connect(redis).await.unwrap().connection());
    let limits = match mode.parse() {
        Ok(share) => limits.fallback_local(share),
        Err(_) => limits.refuse(),
    };
    (builder.shared(limits.clone()).build().unwrap(), Some(limits))
}

/// One task; what its requests came to.
async fn ask(
    client: &ClientWithMiddleware,
    site: &str,
    requests: usize,
    until: Instant,
) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..requests {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let options = LeaseOptions::new().max_wait(Duration::from_secs(7200));
        let request = client.get(format!("http://{site}/")).with_extension(options);
        let Ok(answer) = tokio::time::timeout(left, request.send()).await else { break };
        told.push(match answer {
            Ok(response) => {
                let status = response.status();
                let _ = response.bytes().await;
                status.as_u16().to_string()
            }
            Err(error) => {
                // A failed request is not tried again at once.
                tokio::time::sleep(Duration::from_millis(50)).await;
                Error::find_in(&error).map_or("other".to_owned(), |ours| ours.kind().to_string())
            }
        });
    }
    told
}
