//! A day in little: a pool with something of everything, and what it serves.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use reqwest_lease::{
    BanMark, DefaultClassifier, Judge, LeaseMiddleware, LeaseOptions, Mode, QuarantineCode, Site,
    State,
};

use super::*;
use crate::attempts::Dead;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::origin::text;
use crate::support::web::{Takes, Web};

/// Over https, where a refusal of credentials is certain at once.
const PAGES: [&str; 3] = ["https://a.test/", "https://b.test/", "https://public.test/"];
const BANNING: &str = "a.test";
const AT_ONCE: usize = 12;

/// A second of that day.
const SECOND: Duration = Duration::from_millis(1000 / 60);

/// The usual verdicts in that time.
fn usual() -> DefaultJudge {
    DefaultJudge::default()
        .unreachable(Steps::doubling(SECOND, 600 * SECOND))
        .mild(Steps::doubling(SECOND, 30 * SECOND))
        .shun(60 * SECOND)
        .ban(600 * SECOND)
}

/// Endpoints in their order: 2 dead, 2 with bad passwords, 3 banned, 1 slow, 12 fine.
struct Town {
    _dead: Dead,
    refusing: [FaultProxy; 2],
    banned: Vec<Web>,
    slow: Web,
    fine: Web,
    urls: Vec<String>,
}

impl Town {
    async fn new() -> Self {
        let dead = Dead::new();
        let refusing = [
            FaultProxy::start(Fault::RefusesCredentials).await,
            FaultProxy::start(Fault::RefusesCredentials).await,
        ];
        let mut banned = Vec::new();
        for _ in 0..3 {
            let web = Web::start(|asked| match asked.url.contains(BANNING) {
                true => text(StatusCode::FORBIDDEN, "you are banned"),
                false => text(StatusCode::OK, "hello"),
            });
            banned.push(web.await);
        }
        let slow = Web::start(|_| {
            let mut answer = text(StatusCode::OK, "hello");
            answer.extensions_mut().insert(Takes(Duration::from_millis(200)));
            answer
        });
        let (slow, fine) = (slow.await, Web::start(|_| text(StatusCode::OK, "hello")).await);
        let mut urls = vec![dead.url(), dead.url()];
        urls.extend(refusing.iter().map(FaultProxy::url));
        urls.extend(banned.iter().map(Web::url));
        urls.push(slow.url());
        urls.extend(vec![fine.url(); 12]);
        Self { _dead: dead, refusing, banned, slow, fine, urls }
    }

    /// Certificates of whichever web answers.
    fn tls(&self) -> tokio_rustls::rustls::ClientConfig {
        let webs = self.banned.iter().chain([&self.slow, &self.fine]);
        crate::support::tls::trusting(webs.map(Web::authority))
    }
}

/// What came of a day.
struct Day {
    kit: Kit,
    /// Requests that were not served.
    unserved: usize,
    /// How often each bad password was tried.
    tries: Vec<usize>,
    /// How many of the banned endpoints served other sites.
    serve: usize,
}

async fn day(at: (Kept, Mode), requests: usize, judge: impl Judge) -> Day {
    let town = Town::new().await;
    let kit = Kit::new(at, &town.urls, |builder| builder.judge(judge)).await;
    let marks = [BanMark::status(StatusCode::FORBIDDEN).and(BanMark::body("banned"))];
    let client = LeaseMiddleware::builder(kit.pool.clone())
        .tls(town.tls())
        .classifier(DefaultClassifier::new().ban_marks(Site::parse(BANNING).unwrap(), marks))
        .build()
        .unwrap()
        .into_client();
    let unserved = AtomicUsize::new(0);
    stream::iter(0..requests)
        .for_each_concurrent(AT_ONCE, |nth| {
            let (client, unserved) = (&client, &unserved);
            async move {
                let wait = LeaseOptions::new().max_wait(SOON);
                let request = client.get(PAGES[nth % PAGES.len()]).with_extension(wait);
                let served = match request.send().await {
                    Ok(response) => {
                        let status = response.status();
                        response.bytes().await.is_ok() && status == StatusCode::OK
                    }
                    Err(_) => false,
                };
                unserved.fetch_add(usize::from(!served), Ordering::Relaxed);
            }
        })
        .await;
    kit.quiet().await;
    let tries = town.refusing.iter().map(FaultProxy::tries).collect();
    let elsewhere = |web: &Web| web.urls().iter().any(|url| !url.contains(BANNING));
    let serve = town.banned.iter().filter(|web| elsewhere(web)).count();
    Day { kit, unserved: unserved.into_inner(), tries, serve }
}

fn requests() -> usize {
    let long = std::env::var_os("REQWEST_LEASE_LONG").is_some_and(|long| long == "1");
    if long { 5000 } else { 1500 }
}

async fn a_day(at: (Kept, Mode)) {
    let requests = requests();
    let Day { kit, unserved, tries, serve } = day(at, requests, usual()).await;
    println!("{at:?}: {unserved} of {requests} not served");
    assert!(unserved * 100 <= requests, "{unserved} of {requests}");
    assert_eq!(tries, [1, 1], "one refusal each");
    assert_eq!(serve, 3, "the banned ones are kept from one site alone");
    for (nth, member) in kit.pool.list().await.unwrap().into_iter().enumerate() {
        let parked = member.state == State::Quarantined(QuarantineCode::Credentials);
        assert_eq!(parked, (2..4).contains(&nth), "{member:?}");
        if nth >= 4 {
            assert_eq!((member.state, member.strikes), (State::Ready, 0), "{}", member.endpoint);
        }
    }
    assert_eq!(kit.pool.counts().brakes, 0);
}

#[tokio::test]
async fn a_pool_with_something_of_everything_serves() {
    a_day((Kept::Memory, Mode::Exclusive)).await;
}

#[tokio::test]
async fn a_pool_in_redis_with_something_of_everything_serves() {
    a_day((Kept::Redis, Mode::Exclusive)).await;
}

#[tokio::test]
async fn treating_all_failures_alike_serves_less() {
    let (at, requests) = ((Kept::Memory, Mode::Exclusive), requests());
    let Day { unserved, tries, .. } = day(at, requests, usual()).await;
    let Day { unserved: worse, tries: more, .. } = day(at, requests, AllAlike::new(SECOND)).await;
    println!(
        "not served of {requests}: {unserved}, all alike {worse}; \
         tries of bad passwords: {tries:?}, all alike {more:?}"
    );
    assert!(worse > unserved, "{worse} and {unserved}");
    assert!(more.iter().sum::<usize>() > tries.iter().sum::<usize>(), "{more:?} and {tries:?}");
}
