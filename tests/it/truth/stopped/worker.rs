//! What is stopped: a worker in the middle of its work.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::stream;
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, AuditEntry, AuditRequest, CancelReply,
    CancelRequest, Endpoint, Error, Inventory, Kind, LeaseMiddleware, LeaseOptions, LeaseStore,
    ListRequest, Member, MemberState, Order, Pool, PoolConfig, PoolName, ReapReply, ReapRequest,
    RedisStore, ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, Status,
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::time::{sleep, timeout};

use crate::truth::server::Server;
use crate::truth::witness::Witness;
use crate::truth::{connect, id, order, pool_name};

pub(super) const URL: &str = "REQWEST_LEASE_STOPPED_URL";
pub(super) const PROXY: &str = "REQWEST_LEASE_STOPPED_PROXY";
pub(super) const WORK: &str = "REQWEST_LEASE_STOPPED_WORK";
pub(super) const THREADS: &str = "REQWEST_LEASE_STOPPED_THREADS";
/// Set for a worker that trusts its lease for far too long.
pub(super) const TRUSTING: &str = "REQWEST_LEASE_STOPPED_TRUSTING";

pub(super) const TTL: Duration = Duration::from_secs(1);
pub(super) const COOLDOWN: Duration = Duration::from_millis(50);

/// What the worker is about when it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Reading a body that flows.
    Body,
    /// The same, with renewals.
    RenewedBody,
    /// About to send a request on a lease that it holds.
    Held,
    /// Sending a body that flows.
    Upload,
}

pub(super) const ALL: [Work; 4] = [Work::Body, Work::RenewedBody, Work::Held, Work::Upload];

/// The tests above start this one in processes of their own; by itself it is not stopped.
#[test]
fn a_worker_tells_that_its_lease_ran_out() {
    let given = |name| std::env::var(name).unwrap_or_default();
    let runtime = |threads| {
        let mut builder = match threads {
            1 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        builder.worker_threads(threads).enable_all().build().unwrap()
    };
    let Some(work) = ALL.into_iter().find(|work| format!("{work:?}") == given(WORK)) else {
        return runtime(2).block_on(async {
            let (server, witness) = (Server::start(&[]), Witness::start().await);
            let store = connect(&server.url()).await;
            order(&store, Order::Init(PoolConfig::default().into())).await;
            order(&store, Order::Add(vec![Member::new(id(0))])).await;
            let store = Trusting { store, trusting: false };
            let said = do_work(Work::Body, store, &witness.url()).await;
            assert_eq!(said, Kind::LeaseExpired.to_string());
            witness.is_left_alone().await;
        });
    };
    runtime(given(THREADS).parse().unwrap()).block_on(async {
        let store = connect(&given(URL)).await;
        let store = Trusting { store, trusting: !given(TRUSTING).is_empty() };
        let said = do_work(work, store, &given(PROXY)).await;
        println!("woken: {said}");
    });
}

async fn do_work(work: Work, store: Trusting, proxy: &str) -> String {
    let inventory = Inventory::from_endpoints([Endpoint::new(id(0), proxy, None).unwrap()]);
    let builder = Pool::builder(pool_name(), inventory.unwrap()).store(store);
    let pool = builder.ttl(TTL).expiry_cooldown(COOLDOWN).build().await.unwrap();
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    let ended = match work {
        Work::Body => read(&client, false).await,
        Work::RenewedBody => read(&client, true).await,
        Work::Held => ask(&client, &pool).await,
        Work::Upload => upload(&client).await,
    };
    // Whatever it would say of its lease has been said.
    pool.shutdown().await;
    ended.err().map_or("went on".to_owned(), |kind| kind.to_string())
}

pub(super) const SITE: &str = "http://site.test/";

async fn read(client: &ClientWithMiddleware, renew: bool) -> Result<(), Kind> {
    let options = LeaseOptions::new().renew(renew);
    let mut response = client.get(SITE).with_extension(options).send().await.unwrap();
    let mut chunks = 0;
    loop {
        let before = Instant::now();
        match response.chunk().await {
            Ok(_) if before.elapsed() > TTL => return Ok(()),
            Ok(chunk) => assert!(chunk.is_some()),
            Err(error) => return Err(Error::find(&error).unwrap().kind()),
        }
        chunks += 1;
        if chunks == 10 {
            println!("under way");
        }
    }
}

async fn ask(client: &ClientWithMiddleware, pool: &Pool) -> Result<(), Kind> {
    let held = pool.hold().await.unwrap();
    println!("under way");
    let go = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    go.await.unwrap().unwrap();
    let request = client.get(SITE).with_extension(LeaseOptions::new().held(&held));
    match request.send().await {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::find_in(&error).unwrap().kind()),
    }
}

/// Sends 500 pieces, one every 10 ms.
async fn upload(client: &ClientWithMiddleware) -> Result<(), Kind> {
    let pieces = stream::unfold(0, |sent| async move {
        sleep(Duration::from_millis(10)).await;
        if sent == 10 {
            println!("under way");
        }
        (sent < 500).then_some((Ok::<_, std::io::Error>("x"), sent + 1))
    });
    let started = Instant::now();
    let request = client.post(SITE).body(reqwest::Body::wrap_stream(pieces)).send();
    // A worker that goes on has shown it by then.
    match timeout(TTL * 3, request).await {
        Err(_) => Ok(()),
        Ok(Ok(_)) => panic!("answered after {:?}", started.elapsed()),
        Ok(Err(error)) => Err(Error::find_in(&error).unwrap().kind()),
    }
}

/// A store that may tell holders that they have much time left.
struct Trusting {
    store: RedisStore,
    trusting: bool,
}

#[async_trait]
impl LeaseStore for Trusting {
    async fn acquire(&self, request: AcquireRequest) -> Result<AcquireReply, Error> {
        let mut reply = self.store.acquire(request).await?;
        if let (AcquireReply::Granted(grants), true) = (&mut reply, self.trusting) {
            for term in grants.iter_mut().filter_map(|grant| grant.term.as_mut()) {
                term.remaining = TTL * 3600;
            }
        }
        Ok(reply)
    }

    async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error> {
        self.store.renew(request).await
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        self.store.release(request).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<CancelReply, Error> {
        self.store.cancel(request).await
    }

    async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
        self.store.reap(request).await
    }

    async fn status(&self, pool: &PoolName) -> Result<Status, Error> {
        self.store.status(pool).await
    }

    async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
        self.store.list(request).await
    }

    async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
        self.store.audit(request).await
    }

    async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        self.store.administer(request).await
    }
}
