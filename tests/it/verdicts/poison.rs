//! Sites that nobody can reach, and what is left of the pool for those that anybody can.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use reqwest_lease::{Judge, LeaseMiddleware, LeaseOptions, Mode, State};
use tokio::net::TcpSocket;

use super::*;
use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::SOON;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::microsocks::Microsocks;
use crate::support::origin::{Origin, text};

const ENDPOINTS: usize = 10;
const REQUESTS: usize = 100;

/// Good and bad sites, all at once.
struct Sites {
    good: Origin,
    untrusted: Origin,
    closed: TcpSocket,
}

impl Sites {
    async fn new() -> Self {
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let hello = |_: &_| text(StatusCode::OK, "hello");
        Self { good: Origin::https(hello).await, untrusted: Origin::https(hello).await, closed }
    }

    /// A certificate that nobody trusts, a CONNECT or SOCKS request that is refused, an IPv6
    /// literal that leads nowhere, and a name that does not exist.
    fn bad(&self) -> [String; 4] {
        [
            self.untrusted.url("/"),
            format!("https://{}/", self.closed.local_addr().unwrap()),
            "https://[::1]:1/".to_owned(),
            // No label is so long, which every resolver knows without asking anybody.
            format!("https://{}.invalid/", "n".repeat(64)),
        ]
    }
}

/// Asks all bad sites, then the good one; how many endpoints serve that, and how many rest.
async fn poisoned(kit: &Kit, sites: &Sites) -> (usize, usize) {
    let client = LeaseMiddleware::builder(kit.pool.clone())
        .tls(sites.good.authority().client_config())
        .timeout(SOON)
        .build()
        .unwrap()
        .into_client();
    for url in sites.bad() {
        let ask = |_| async {
            let short = LeaseOptions::new().max_wait(Duration::ZERO);
            let request = client.get(&url).with_extension(short);
            assert!(request.send().await.is_err(), "{url}");
        };
        stream::iter(0..REQUESTS).for_each_concurrent(ENDPOINTS, ask).await;
    }
    kit.quiet().await;
    let list = kit.pool.list().await.unwrap();
    let resting = list.iter().filter(|member| member.state != State::Ready).count();
    let good = sites.good.url("/");
    let mut serving = BTreeSet::new();
    for _ in 0..REQUESTS {
        let short = LeaseOptions::new().max_wait(Duration::ZERO);
        if let Ok(response) = client.get(&good).with_extension(short).send().await {
            serving.insert(response.extensions().get::<LeaseInfo>().unwrap().endpoint().clone());
            response.bytes().await.unwrap();
            kit.quiet().await;
        }
    }
    (serving.len(), resting)
}

async fn with(at: (Kept, Mode), url: String, judge: impl Judge) -> (usize, usize) {
    let kit = Kit::new(at, &vec![url; ENDPOINTS], |builder| builder.judge(judge)).await;
    poisoned(&kit, &Sites::new().await).await
}

#[tokio::test]
async fn bad_sites_cost_no_endpoint_behind_a_forward_proxy() {
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    for at in EVERYWHERE {
        let left = with(at, proxy.url(), DefaultJudge::default()).await;
        assert_eq!(left, (ENDPOINTS, 0), "{at:?}");
    }
}

#[tokio::test]
async fn bad_sites_cost_no_endpoint_that_resolves_here() {
    let proxy = Microsocks::start(None);
    for at in [(Kept::Memory, Mode::Exclusive), (Kept::Memory, Mode::Shared)] {
        let left = with(at, proxy.url("socks5"), DefaultJudge::default()).await;
        assert_eq!(left, (ENDPOINTS, 0), "{at:?}");
    }
}

/// How many of ten gateways rest that hang up on every tunnel, after requests to one site.
async fn after_hanging_up(judge: impl Judge) -> usize {
    let gateway = FaultProxy::start(Fault::Drops).await;
    let at = (Kept::Memory, Mode::Exclusive);
    let kit = Kit::new(at, &vec![gateway.url(); ENDPOINTS], |builder| builder.judge(judge)).await;
    let client = LeaseMiddleware::builder(kit.pool.clone()).build().unwrap().into_client();
    for _ in 0..REQUESTS {
        let short = LeaseOptions::new().max_wait(Duration::ZERO);
        assert!(client.get("https://dead.test/").with_extension(short).send().await.is_err());
    }
    assert_eq!(kit.pool.list().await.unwrap().iter().map(|member| member.strikes).max(), Some(0));
    kit.pool.status().await.unwrap().cooling
}

#[tokio::test]
async fn a_dead_site_behind_gateways_that_hang_up_costs_one_of_them_a_moment() {
    let minute = Steps::new([Duration::from_secs(60)]);
    assert_eq!(after_hanging_up(DefaultJudge::default().mild(minute)).await, 1);
    /// What hangs up is dead.
    struct Strict;
    impl Judge for Strict {
        fn judge(&self, _: Evidence<'_>) -> Verdict {
            Verdict::cooldown(Duration::from_secs(60))
        }
    }
    assert_eq!(after_hanging_up(Strict).await, ENDPOINTS, "the twin");
}

#[tokio::test]
async fn treating_all_failures_alike_poisons_the_pool() {
    let proxy = ForwardProxy::start(Manners::default()).await.unwrap();
    let at = (Kept::Memory, Mode::Exclusive);
    let (serving, resting) = with(at, proxy.url(), AllAlike::new(Duration::from_secs(60))).await;
    assert_eq!((serving, resting), (0, ENDPOINTS));
}
