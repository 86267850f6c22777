use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use http_body_util::{BodyExt, StreamBody};

use super::*;
use crate::budget::Budgets;
use crate::classify::DefaultClassifier;
use crate::endpoint::{Endpoint, Scheme};
use crate::id::{EndpointId, PoolName};
use crate::inventory::Inventory;
use crate::pool::{Pool, Wants};
use crate::site::Site;

const TTL: Duration = Duration::from_secs(1);
const TRUST: Duration = Duration::from_millis(750);

async fn pool() -> Pool {
    let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), "http://127.0.0.1:1", None);
    let inventory = Inventory::from_endpoints([endpoint.unwrap()]).unwrap();
    Pool::builder(PoolName::new("vn").unwrap(), inventory).build().await.unwrap()
}

async fn hold(pool: &Pool) -> Hold {
    let wants = Wants { ttl: TTL, site: None, exclude: Vec::new(), prefer: None };
    Hold::Own(pool.lease(wants, Duration::ZERO).await.unwrap().0)
}

/// A body that never ends and never goes on.
async fn silence(pool: &Pool) -> LeasedBody {
    let silence = futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>();
    let passage = Budgets::unlimited().gate(&Site::parse("a.test").unwrap(), None, &[]).try_pass();
    let cargo = Cargo {
        hold: hold(pool).await,
        passage: passage.unwrap(),
        route: Route::new(Scheme::Http, false),
        classifier: Arc::new(DefaultClassifier::new()),
        outcome: Outcome::Success,
        preview: None,
        report: None,
    };
    LeasedBody::new(Body::wrap(StreamBody::new(silence)), cargo, false)
}

async fn leased(pool: &Pool) -> usize {
    pool.status().await.unwrap().leased
}

#[tokio::test(start_paused = true)]
async fn an_exchange_ends_when_its_trust_does_and_not_before() {
    let (pool, started) = (pool().await, Instant::now());
    let hold = hold(&pool).await;
    assert!(hold.within_trust(std::future::pending::<()>()).await.is_none());
    assert_eq!(started.elapsed(), TRUST);
}

/// As after a sleep of the whole process.
#[tokio::test(start_paused = true)]
async fn an_exchange_is_not_polled_past_its_trust() {
    let pool = pool().await;
    let hold = hold(&pool).await;
    let mut polls = 0;
    let exchange = std::future::poll_fn(|_| {
        polls += 1;
        Poll::<()>::Pending
    });
    let mut exchange = Box::pin(hold.within_trust(exchange));
    assert!(exchange.as_mut().now_or_never().is_none());
    tokio::time::advance(TRUST).await;
    assert_eq!(exchange.as_mut().now_or_never(), Some(None));
    drop(exchange);
    assert_eq!(polls, 1);
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_told_at_the_end_of_trust() {
    let (pool, started) = (pool().await, Instant::now());
    let mut body = silence(&pool).await;
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(Error::find(&*error).map(Error::kind), Some(Kind::LeaseExpired));
    assert!(started.elapsed() - TRUST <= Duration::from_millis(1), "{:?}", started.elapsed());
    assert_eq!((leased(&pool).await, pool.counts().expirations), (0, 1));
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_reads_ends_then_too() {
    let pool = pool().await;
    let mut body = pin!(silence(&pool).await);
    tokio::time::sleep(TRUST - Duration::from_millis(2)).await;
    assert_eq!(leased(&pool).await, 1);
    tokio::time::sleep(Duration::from_millis(4)).await;
    assert_eq!((leased(&pool).await, pool.counts().expirations), (0, 1));
    assert!(!body.is_end_stream());
    assert!(body.frame().now_or_never().unwrap().unwrap().is_err());
}
