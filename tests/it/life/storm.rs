//! Everything at once: what was promised holds afterwards.

use std::sync::Arc;

use reqwest_lease::{LeaseOptions, Member, Order, PoolConfig, violations};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::support::SOON;
use crate::support::flaky::{Dice, Flaky};

const ENDPOINTS: usize = 8;
const TASKS: usize = 64;
const REQUESTS: usize = 30;

/// Short, for what is lost on the way back returns with its deadline.
const TTL: Duration = Duration::from_millis(500);

fn id(nth: u64) -> EndpointId {
    let name = char::from(b'a' + u8::try_from(nth).unwrap());
    EndpointId::new(name.to_string()).unwrap()
}

fn members() -> Order {
    let members = (0..ENDPOINTS as u64).map(|nth| Member::new(id(nth))).collect();
    Order::Add(members)
}

async fn world(taps: &[Tap], seed: u64) -> (Pool, Flaky, ClientWithMiddleware) {
    let flaky = Flaky::new(seed);
    let mut config = PoolConfig::default();
    config.largest_ttl = TTL;
    let (pool, client) = leased(taps, |builder| {
        builder.store(flaky.clone()).ttl(TTL).expiry_cooldown(millis(20)).max_wait(SOON)
    })
    .await;
    pool.administer(Order::Init(config.into())).await.unwrap();
    pool.administer(members()).await.unwrap();
    (pool, flaky, client)
}

/// One request with a fate of its own; says whether it was served.
async fn live(pool: &Pool, client: &ClientWithMiddleware, dice: &Dice) -> bool {
    let path = format!("/drops/{}", 1 + dice.roll(4));
    let mut options = LeaseOptions::new().renew(dice.roll(4) == 0);
    if dice.roll(8) == 0 {
        match pool.hold().await {
            Ok(held) => options = options.held(&held),
            Err(error) => return may_happen(error.kind()),
        }
    }
    let request = client.get(url(&path)).with_extension(options).send();
    let patience = if dice.roll(5) == 0 { millis(dice.roll(40)) } else { SOON * 2 };
    match timeout(patience, request).await {
        Err(_) => false,
        Ok(Err(error)) => may_happen(kind(&error)),
        Ok(Ok(response)) if dice.roll(8) == 0 => {
            drop(response);
            true
        }
        Ok(Ok(response)) => match response.bytes().await {
            Ok(_) => true,
            Err(error) => may_happen(Error::find(&error).unwrap().kind()),
        },
    }
}

fn may_happen(kind: Kind) -> bool {
    let expected =
        [Kind::PoolExhausted, Kind::PoolPaused, Kind::StoreUnavailable, Kind::LeaseExpired];
    assert!(expected.contains(&kind), "{kind}");
    false
}

/// An administrator without a plan.
async fn meddle(pool: Pool, dice: Arc<Dice>) {
    loop {
        let ids = vec![id(dice.roll(ENDPOINTS as u64))];
        let order = match dice.roll(12) {
            0 | 1 => Order::Disable(ids),
            2 => Order::Drain(ids),
            3 | 4 => Order::Remove(ids),
            5 => Order::Pause,
            6 | 7 => members(),
            8..=10 => Order::Enable(ids),
            _ => Order::Resume,
        };
        let paused = matches!(order, Order::Pause);
        // What was removed cannot be ordered about.
        let _ = pool.administer(order).await;
        sleep(millis(10)).await;
        if paused || dice.roll(2) == 0 {
            pool.administer(Order::Resume).await.unwrap();
            pool.administer(members()).await.unwrap();
            let all = (0..ENDPOINTS as u64).map(id).collect();
            pool.administer(Order::Enable(all)).await.unwrap();
        }
    }
}

async fn storm(seed: u64) {
    let taps = taps(ENDPOINTS).await;
    let (pool, flaky, client) = world(&taps, seed).await;
    let dice = Arc::new(Dice::new(seed));
    let administrator = tokio::spawn(meddle(pool.clone(), dice.clone()));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (pool, client, dice) = (pool.clone(), client.clone(), dice.clone());
        tasks.spawn(async move {
            let mut served = 0;
            for _ in 0..REQUESTS {
                served += usize::from(live(&pool, &client, &dice).await);
            }
            served
        });
    }
    let served: usize = tasks.join_all().await.into_iter().sum();
    assert!(served > TASKS * REQUESTS / 2, "only {served} were served");
    administrator.abort();
    let _ = administrator.await;
    calm(&pool, &flaky).await;
}

/// What must hold once all is over.
async fn calm(pool: &Pool, flaky: &Flaky) {
    pool.shutdown().await;
    let counts = pool.counts();
    let back = counts.releases + counts.not_owner + counts.releases_failed;
    assert_eq!(counts.grants, back, "{counts:?}");
    assert!(flaky.faults() > 40 && counts.cancels > 10, "{counts:?}");
    assert_eq!(counts.unknown_endpoints, 0);

    let all = (0..ENDPOINTS as u64).map(id).collect();
    for order in [Order::Resume, members(), Order::Enable(all)] {
        pool.administer(order).await.unwrap();
    }
    // Strays arrive, and what could not be given back runs out.
    sleep(TTL + millis(100)).await;
    let found = violations(&flaky.memory, pool.name()).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
    let status = pool.status().await.unwrap();
    assert_eq!((status.leased, status.members()), (0, ENDPOINTS), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_in_a_storm() {
    let long = std::env::var_os("REQWEST_LEASE_LONG").is_some_and(|long| long == "1");
    let end = Instant::now() + Duration::from_secs(60);
    for seed in 0..100 {
        storm(seed).await;
        if !long || Instant::now() > end {
            return;
        }
    }
}
