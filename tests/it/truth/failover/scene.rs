//! A pool, its holders and its servers.

use std::time::{Duration, Instant};

use reqwest_lease::{
    AcquireReply, AcquireRequest, Claim, EndpointId, Error, Fence, Grant, Kind, LeaseStore, Member,
    Order, PoolConfig, RedisStore, Release, ReleaseReply, ReleaseRequest, RenewReply, RenewRequest,
    Token, Verdict,
};
use tokio::time::sleep;

use crate::support::SOON;
use crate::truth::diary::{micros, wall};
use crate::truth::relay::Relay;
use crate::truth::server::Server;
use crate::truth::{connect, id, order, pool_name, prefix};

/// The largest, so nothing is granted for this long.
pub(super) const TTL: Duration = Duration::from_secs(2);

/// A lease as its holder knows it.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) token: Token,
    pub(super) endpoint: EndpointId,
    pub(super) fence: Fence,
    /// It may be relied on until then.
    pub(super) trust: u64,
}

impl Own {
    pub(super) fn new(grant: &Grant, asked: u64) -> Self {
        let term = grant.term.unwrap();
        Self {
            token: term.token,
            endpoint: grant.endpoint.clone(),
            fence: grant.fence,
            trust: asked + micros(term.remaining),
        }
    }

    pub(super) fn is_trusted(&self) -> bool {
        wall() < self.trust
    }
}

/// A pool of three endpoints, and the way to its present server.
pub(super) struct Scene {
    pub(super) store: RedisStore,
    pub(super) way: Relay,
}

impl Scene {
    pub(super) async fn on(server: &Server, hold: bool) -> Self {
        let way = Relay::start(server.port(), None, &[]).await;
        let store = connect(&way.url()).await;
        let mut config = PoolConfig::default();
        (config.largest_ttl, config.failover_hold) = (TTL, hold);
        order(&store, Order::Init(config.into())).await;
        order(&store, Order::Add((0..3).map(|nth| Member::new(id(nth))).collect())).await;
        Self { store, way }
    }

    /// Asks until the server answers.
    pub(super) async fn ask(&self) -> Result<Own, AcquireReply> {
        let (token, begun) = (Token::random(), Instant::now());
        loop {
            let asked = wall();
            let mut request = AcquireRequest::new(pool_name(), token, TTL);
            request.expiry_cooldown = Duration::ZERO;
            match self.store.acquire(request).await {
                Ok(AcquireReply::Granted(grants)) => {
                    return Ok(Own::new(&grants[0], asked));
                }
                Ok(reply) => return Err(reply),
                Err(error) => assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}"),
            }
            assert!(begun.elapsed() < SOON * 3, "no answer");
            sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) async fn lease(&self) -> Own {
        self.ask().await.unwrap()
    }

    pub(super) async fn renew(&self, own: &Own) -> RenewReply {
        self.store.renew(RenewRequest::new(pool_name(), own.token, TTL)).await.unwrap()
    }

    pub(super) async fn release(&self, own: &Own) -> Result<ReleaseReply, Error> {
        let release = Release::new(Claim::Lease(own.token), Verdict::default(), None);
        let request = ReleaseRequest::new(pool_name(), vec![release]);
        self.store.release(request).await.map(|replies| replies[0])
    }

    /// The next answer is that of a hold.
    pub(super) async fn holds_back(&self) -> u64 {
        let asked = wall();
        match self.ask().await {
            Err(AcquireReply::Hold(left)) => assert!(left <= TTL, "{left:?}"),
            other => panic!("a hold expected, not {other:?}"),
        }
        asked
    }

    /// All answers are those of a hold until the largest ttl is over.
    pub(super) async fn grants_after_a_hold(&self, since: u64) -> Own {
        let mut held = 0;
        loop {
            match self.ask().await {
                Ok(own) => {
                    let waited = wall() - since;
                    assert!(held > 10 && waited >= micros(TTL), "{held} {waited}");
                    return own;
                }
                Err(AcquireReply::Hold(_)) => held += 1,
                Err(other) => panic!("{other:?}"),
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// A lease that the server knows goes on through a hold, one that it lost is over before any
    /// other is granted.
    pub(super) async fn keeps_its_word(&self, known: [&Own; 2], lost: Option<&Own>) {
        let since = self.holds_back().await;
        assert!(matches!(self.renew(known[0]).await, RenewReply::Renewed(_)));
        assert_eq!(self.release(known[1]).await.unwrap(), ReleaseReply::Released);
        if let Some(lost) = lost {
            assert!(lost.is_trusted(), "the machine is too slow to show anything");
            assert_eq!(self.renew(lost).await, RenewReply::NotOwner);
        }
        let granted = self.grants_after_a_hold(since).await;
        let before = [known[0], known[1], lost.unwrap_or(known[0])];
        assert!(before.iter().all(|own| own.fence < granted.fence), "{granted:?} {before:?}");
        assert!(lost.is_none_or(|lost| !lost.is_trusted()), "{granted:?} {lost:?}");
        self.store_in_order().await;
    }

    pub(super) async fn store_in_order(&self) {
        assert_eq!(self.store.check(&pool_name()).await.unwrap(), []);
    }

    /// The twin: what was lost is leased to another while it is relied on.
    pub(super) async fn leases_twice(&self, lost: &Own) {
        for _ in 0..3 {
            let Ok(own) = self.ask().await else { break };
            if own.endpoint == lost.endpoint {
                assert!(own.is_trusted() && lost.is_trusted(), "the machine is too slow");
                return;
            }
        }
        panic!("{lost:?} was not leased to another");
    }

    /// Waits until all leases have run out.
    pub(super) async fn until_all_are_free(&self) {
        let begun = Instant::now();
        while self.store.status(&pool_name()).await.unwrap().leased > 0 {
            assert!(begun.elapsed() < SOON, "a lease does not run out");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A primary, its replica and the way between them.
pub(super) struct Pair {
    pub(super) primary: Server,
    pub(super) replica: Server,
    pub(super) link: Relay,
}

impl Pair {
    pub(super) async fn start(options: &[&str]) -> Self {
        let primary = Server::start(options);
        let link = Relay::start(primary.port(), None, &[]).await;
        let replica = Server::start(options);
        let _: () = replica.ask(&format!("REPLICAOF 127.0.0.1 {}", link.port()));
        follows(&replica).await;
        Self { primary, replica, link }
    }
}

pub(super) async fn follows(replica: &Server) {
    let up = |replica: &Server| {
        replica.info("replication").lines().any(|line| line == "master_link_status:up")
    };
    replica.wait_for("the replica follows", up).await;
}

/// Waits until a server has this lease.
pub(super) async fn knows(server: &Server, own: &Own) {
    let command = format!("ZSCORE {}leases {}", prefix(), own.endpoint);
    let known = |server: &Server| server.ask::<Option<String>>(&command).is_some();
    server.wait_for("the lease arrives", known).await;
}
