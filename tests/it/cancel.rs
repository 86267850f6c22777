//! A future dropped at any await point gives back what it holds.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, StatusCode, header};
use reqwest_lease::{Budget, Budgets, LeaseMiddleware, Pool};
use reqwest_middleware::ClientWithMiddleware;

use crate::local::proxy::{ForwardProxy, Manners};
use crate::requests::pool;
use crate::support::eventually;
use crate::support::origin::{Origin, text};

/// Polls a future at most so often, then gives up on it.
struct AtMost<F> {
    future: Pin<Box<F>>,
    polls: usize,
}

impl<F: Future> Future for AtMost<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        match self.future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.polls == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

async fn at_most<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    AtMost { future: Box::pin(future), polls }.await
}

async fn nothing_is_held(pool: &Pool) {
    let status = pool.status().await.unwrap();
    assert_eq!((status.leased, status.expired), (0, 0), "a lease was leaked");
    assert_eq!(status.ready + status.cooling, status.members());
}

/// A redirect, then a page in chunks: every kind of await point.
async fn world() -> (Origin, ForwardProxy) {
    let origin = Origin::http(|visit| match visit.path.as_str() {
        "/start" => {
            let mut response = text(StatusCode::FOUND, "");
            response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/page"));
            response
        }
        _ => text(StatusCode::OK, vec![b'x'; 300_000]),
    })
    .await;
    (origin, ForwardProxy::start(Manners::default()).await.unwrap())
}

async fn fetch(client: &ClientWithMiddleware, url: &str) -> usize {
    client.get(url).send().await.unwrap().bytes().await.unwrap().len()
}

/// Drops the request at its first poll, its second, ... until one comes to its end.
async fn drop_at_every_poll(pool: &Pool, client: &ClientWithMiddleware, url: &str) -> usize {
    for polls in 0.. {
        let done = at_most(polls, fetch(client, url)).await;
        nothing_is_held(pool).await;
        if done.is_some() {
            return polls;
        }
    }
    unreachable!("the loop has no end")
}

#[tokio::test]
async fn a_request_dropped_at_any_poll_leaves_no_lease() {
    let (origin, proxy) = world().await;
    let pool = pool(&[&proxy]).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    let polls = drop_at_every_poll(&pool, &client, &origin.url("/start")).await;
    assert!(polls > 3, "the request had only {polls} polls: nothing was cancelled in the middle");
    assert_eq!(fetch(&client, &origin.url("/start")).await, 300_000);
    assert!(pool.counts().grants > 3);
    assert_eq!(pool.counts().grants, pool.counts().releases);
}

#[tokio::test]
async fn a_request_dropped_while_it_waits_for_its_budget_leaves_no_lease() {
    let (origin, proxy) = world().await;
    let pool = pool(&[&proxy]).await;
    let budgets = Budgets::builder().default(Budget::per_second(50)).build().unwrap();
    let builder = LeaseMiddleware::builder(pool.clone()).budgets(budgets);
    let client = builder.build().unwrap().into_client();
    drop_at_every_poll(&pool, &client, &origin.url("/start")).await;
}

#[tokio::test]
async fn a_request_dropped_while_it_waits_for_a_lease_gives_its_place_up() {
    let (origin, proxy) = world().await;
    let pool = pool(&[&proxy]).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    let held = pool.hold().await.unwrap();
    let page = origin.url("/page");
    for polls in 1..5 {
        let waiting =
            tokio::time::timeout(Duration::from_millis(5), at_most(polls, fetch(&client, &page)));
        assert!(!matches!(waiting.await, Ok(Some(_))), "the endpoint was held");
    }
    let mut next = pin!(fetch(&client, &page));
    assert!(futures_util::poll!(&mut next).is_pending());
    drop(held);
    assert_eq!(next.await, 300_000);
    nothing_is_held(&pool).await;
}

#[tokio::test]
async fn a_body_dropped_unread_half_read_or_read_gives_the_lease_back() {
    let (origin, proxy) = world().await;
    let pool = pool(&[&proxy]).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    for chunks in 0..3 {
        let mut response = client.get(origin.url("/page")).send().await.unwrap();
        for _ in 0..chunks {
            response.chunk().await.unwrap().unwrap();
        }
        assert_eq!(pool.status().await.unwrap().leased, 1);
        drop(response);
        nothing_is_held(&pool).await;
    }
}

#[tokio::test]
async fn an_aborted_task_gives_its_lease_back() {
    let origin = Origin::http(|_| text(StatusCode::OK, vec![b'x'; 4_000_000])).await;
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let pool = pool(&[&proxy]).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    let url = origin.url("/");
    let task = tokio::spawn(async move {
        let _response = client.get(url).send().await.unwrap();
        std::future::pending::<()>().await;
    });
    eventually("the request is under way", || (!origin.visits().is_empty()).then_some(())).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    nothing_is_held(&pool).await;
}

/// The twin: what is never dropped is seen as a leak by the same look.
#[tokio::test]
async fn a_forgotten_response_is_seen_as_a_leaked_lease() {
    let (origin, proxy) = world().await;
    let pool = pool(&[&proxy]).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    std::mem::forget(client.get(origin.url("/page")).send().await.unwrap());
    let seen = tokio::spawn(async move { nothing_is_held(&pool).await }).await;
    assert!(seen.unwrap_err().is_panic());
}
