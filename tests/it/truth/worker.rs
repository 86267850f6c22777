//! A process of eight tasks that lease in all the ways there are, and write down what they rely on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest_lease::{
    AcquireReply, AcquireRequest, CancelRequest, Endpoint, Error, Grant, HeldLease, Inventory,
    Kind, LeaseInfo, LeaseMiddleware, LeaseOptions, LeaseStore, Pool, QuarantineCode, RedisStore,
    Release, ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, Strike, Token, Verdict,
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::checker::Wrong;
use super::diary::{Diary, micros, wall};
use super::{COOLDOWN, ENDPOINTS, NAMESPACE, TASKS_EACH, TTL, id, pool_name, set_up};
use crate::support::SOON;
use crate::support::flaky::Dice;
use crate::support::redis::Server;
use crate::support::tap::Tap;

/// What a worker is told by its environment.
pub(super) const URL: &str = "REQWEST_LEASE_TRUTH_URL";
pub(super) const DIARY: &str = "REQWEST_LEASE_TRUTH_DIARY";
pub(super) const SEED: &str = "REQWEST_LEASE_TRUTH_SEED";
/// The time of day at which it ends, in microseconds.
pub(super) const UNTIL: &str = "REQWEST_LEASE_TRUTH_UNTIL";
pub(super) const PROXY: &str = "REQWEST_LEASE_TRUTH_PROXY";

/// The tests of `ground` start this one in processes of their own; by itself it works briefly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_works_until_its_time_is_over() {
    if std::env::var_os(URL).is_some() {
        let given = |name| std::env::var(name).unwrap();
        let (diary, seed) = (PathBuf::from(given(DIARY)), given(SEED).parse().unwrap());
        return work(&given(URL), &diary, seed, given(UNTIL).parse().unwrap(), &given(PROXY)).await;
    }
    let (server, tap) = (Server::start(&[]), Tap::start().await);
    let store = RedisStore::builder(server.url()).namespace(NAMESPACE).build().await.unwrap();
    set_up(&store, super::config()).await;
    let directory = tempfile::tempdir().unwrap();
    let diary = directory.path().join("diary");
    work(&server.url(), &diary, 1, wall() + 500_000, &tap.url()).await;
    assert!(std::fs::read_to_string(diary).unwrap().contains("begins"));
    assert_eq!(store.check(&pool_name()).await.unwrap(), []);
}

async fn work(url: &str, diary: &std::path::Path, seed: u64, until: u64, proxy: &str) {
    let diary = Diary::open(diary);
    let connect = async || RedisStore::builder(url).namespace(NAMESPACE).build().await;
    let store = loop {
        match connect().await {
            Ok(store) => break store,
            Err(error) => assert_eq!(error.kind(), Kind::StoreUnavailable),
        }
        sleep(Duration::from_millis(20)).await;
    };
    let endpoint = |nth| Endpoint::new(id(nth), proxy, None).unwrap();
    let inventory = Inventory::from_endpoints((0..ENDPOINTS).map(endpoint)).unwrap();
    let pool = Pool::builder(pool_name(), inventory).store(store.clone());
    let pool = pool.ttl(TTL).expiry_cooldown(COOLDOWN).max_wait(SOON).build().await.unwrap();
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    let worker = Arc::new(Worker { store, pool, client, diary, dice: Dice::new(seed) });
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS_EACH {
        let worker = worker.clone();
        tasks.spawn(async move {
            loop {
                match worker.dice.roll(10) {
                    0..5 => worker.lease_by_hand().await,
                    5..8 => worker.hold().await,
                    _ => worker.fetch().await,
                }
                if wall() >= until {
                    return;
                }
            }
        });
    }
    tasks.join_all().await;
    worker.pool.shutdown().await;
}

struct Worker {
    store: RedisStore,
    pool: Pool,
    client: ClientWithMiddleware,
    diary: Diary,
    dice: Dice,
}

/// A lease as a careful holder without this crate's pool knows it.
struct Own {
    token: Token,
    fence: u64,
    /// The deadline is no earlier than this.
    trust: u64,
    /// The deadline is no later than this.
    latest: u64,
    /// A call that could end it was not answered.
    doubt: bool,
}

impl Worker {
    fn millis(&self, most: u64) -> Duration {
        Duration::from_micros(self.dice.roll(most * 1000))
    }

    /// Most wait long enough; some drop the call under way.
    fn patience(&self) -> Duration {
        if self.dice.roll(8) == 0 { self.millis(3) } else { SOON }
    }

    async fn lease_by_hand(&self) {
        let tokens: Vec<_> = (0..1 + self.dice.roll(12) / 10).map(|_| Token::random()).collect();
        let mut request = AcquireRequest::new(pool_name(), tokens[0], TTL);
        request.tokens.clone_from(&tokens);
        request.expiry_cooldown = COOLDOWN;
        let (mut grants, mut asked, mut doubt) = (Vec::new(), 0, false);
        for _ in 0..4 {
            asked = wall();
            match timeout(self.patience(), self.store.acquire(request.clone())).await {
                Ok(Ok(AcquireReply::Granted(granted))) => {
                    grants = granted;
                    break;
                }
                Ok(Ok(AcquireReply::Cancelled)) => panic!("nobody has cancelled it"),
                Ok(Ok(_)) => {
                    sleep(self.millis(20)).await;
                    continue;
                }
                Ok(Err(error)) => self.may_happen(&error),
                Err(_) => self.diary.counts("dropped"),
            }
            doubt = true;
        }
        let answered = wall();
        let fences: Vec<_> = grants.iter().map(|grant| grant.fence.0).collect();
        let own: Vec<_> =
            grants.into_iter().map(|grant| self.own(grant, asked, answered)).collect();
        for lease in own {
            self.live_with(lease).await;
        }
        if doubt {
            // What was not answered may still take place.
            fences.into_iter().for_each(|fence| self.diary.ends(fence, wall()));
            for token in tokens {
                self.cancel(token).await;
            }
        }
    }

    fn own(&self, grant: Grant, asked: u64, answered: u64) -> Own {
        let (term, fence) = (grant.term.unwrap(), grant.fence.0);
        let (trust, latest) = (asked + micros(term.remaining), answered + micros(term.remaining));
        self.diary.begins(grant.endpoint, fence, answered.min(trust), trust);
        Own { token: term.token, fence, trust, latest, doubt: false }
    }

    async fn live_with(&self, mut own: Own) {
        let ttl = micros(TTL) / 1000;
        match self.dice.roll(32) {
            0 => return self.diary.counts("leaked"),
            1 => {
                sleep(self.millis(30)).await;
                self.diary.ends(own.fence, wall());
                return self.cancel(own.token).await;
            }
            2 | 3 | 7 => {
                // Before anybody else has noticed that the lease ran out, or when another has one.
                let most = if self.dice.roll(2) == 0 { 400 } else { 1 };
                let left = own.latest.saturating_sub(wall());
                sleep(Duration::from_micros(left) + self.millis(most)).await;
                self.diary.counts("overstayed");
                self.renew(&mut own).await;
            }
            4 => sleep(self.millis(ttl * 6 / 5)).await,
            5 | 6 => {
                for _ in 0..=self.dice.roll(4) {
                    sleep(TTL / 4 + self.millis(ttl / 4)).await;
                    self.renew(&mut own).await;
                }
            }
            _ => sleep(self.millis(50)).await,
        }
        self.release(&mut own).await;
    }

    async fn renew(&self, own: &mut Own) {
        let asked = wall();
        let request = RenewRequest::new(pool_name(), own.token, TTL);
        let Ok(reply) = timeout(self.patience(), self.store.renew(request)).await else {
            own.latest = u64::MAX;
            return;
        };
        match reply {
            Ok(RenewReply::Renewed(left)) => {
                self.judge(true, asked, own);
                own.latest = own.latest.max(wall() + micros(left));
                // What was lost and won again was not held in between.
                if wall() < own.trust {
                    own.trust = own.trust.max(asked + micros(left));
                    self.diary.lasts(own.fence, own.trust);
                }
            }
            Ok(_) => self.judge(false, asked, own),
            Err(error) => {
                own.latest = u64::MAX;
                self.may_happen(&error);
            }
        }
    }

    async fn release(&self, own: &mut Own) {
        let verdict = match self.dice.roll(40) {
            0 => Verdict::quarantine(QuarantineCode::Probe),
            1..6 => Verdict::cooldown(self.millis(40)),
            6..9 => Verdict::cooldown(self.millis(5)).with_strike(Strike::Add),
            9..12 => Verdict::default().with_strike(Strike::Reset),
            _ => Verdict::default(),
        };
        let release = Release::new(reqwest_lease::Claim::Lease(own.token), verdict, None);
        let request = ReleaseRequest::new(pool_name(), vec![release]);
        self.diary.ends(own.fence, wall());
        for _ in 0..3 {
            let asked = wall();
            match timeout(self.patience(), self.store.release(request.clone())).await {
                Ok(Ok(replies)) => {
                    return self.judge(replies[0] == ReleaseReply::Released, asked, own);
                }
                Ok(Err(error)) => self.may_happen(&error),
                Err(_) => self.diary.counts("dropped"),
            }
            own.doubt = true;
        }
    }

    /// Whether a call on a lease, asked for then and answered now, was rightly obeyed or refused.
    fn judge(&self, obeyed: bool, asked: u64, own: &Own) {
        let now = wall();
        if obeyed && asked > own.latest {
            let what = format!("{} at {asked}, latest {}", own.fence, own.latest);
            self.diary.wrong(Wrong::LateObeyed, what);
        } else if !obeyed && now < own.trust && !own.doubt {
            let what = format!("{} at {now}, trusted to {}", own.fence, own.trust);
            self.diary.wrong(Wrong::LostEarly, what);
        } else if !obeyed {
            self.diary.counts("not_owner");
        }
    }

    async fn cancel(&self, token: Token) {
        for _ in 0..3 {
            let request = CancelRequest::new(pool_name(), token, SOON);
            match timeout(self.patience(), self.store.cancel(request)).await {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => self.may_happen(&error),
                Err(_) => self.diary.counts("dropped"),
            }
        }
    }

    /// Keeps a lease of the pool's, which renews it.
    async fn hold(&self) {
        match timeout(self.patience(), self.pool.hold()).await {
            Ok(Ok(held)) => self.rely_on(&held).await,
            Ok(Err(error)) => self.may_happen(&error),
            Err(_) => self.diary.counts("dropped"),
        }
    }

    async fn rely_on(&self, held: &HeldLease) {
        let fence = held.fence().0;
        let now = wall();
        if !held.is_valid() {
            return;
        }
        self.diary.begins(held.endpoint(), fence, now, now);
        let longest = if self.dice.roll(24) == 0 { 3000 } else { 50 };
        let end = wall() + micros(self.millis(longest));
        if self.dice.roll(4) == 0 {
            let options = LeaseOptions::new().held(held);
            let request = self.client.get("http://site.test/drops/2").with_extension(options);
            if let Ok(Ok(_)) = timeout(self.patience(), request.send()).await {
                self.diary.counts("fetched");
            }
        }
        loop {
            let now = wall();
            if !held.is_valid() {
                return self.diary.counts("held_to_the_end");
            }
            self.diary.lasts(fence, now);
            if now >= end {
                return;
            }
            sleep(Duration::from_micros(20_000.min(end - now))).await;
        }
    }

    /// One request with a lease of its own.
    async fn fetch(&self) {
        let url = format!("http://site.test/drops/{}", 1 + self.dice.roll(20));
        let options = LeaseOptions::new().renew(self.dice.roll(4) == 0);
        let request = self.client.get(url).with_extension(options).send();
        let mut response = match timeout(self.patience(), request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return self.may_happen(Error::find_in(&error).unwrap()),
            Err(_) => return self.diary.counts("dropped"),
        };
        let info = response.extensions().get::<LeaseInfo>().unwrap().clone();
        let (fence, mut begun) = (info.fence().0, false);
        loop {
            // The lease may end with the bytes that a read returns.
            let before = wall();
            match response.chunk().await {
                Ok(Some(_)) if begun => self.diary.lasts(fence, before),
                Ok(Some(_)) => {
                    self.diary.begins(info.endpoint(), fence, before, before);
                    begun = true;
                }
                Ok(None) => return self.diary.counts("fetched"),
                Err(error) => return self.may_happen(Error::find(&error).unwrap()),
            }
            if begun && self.dice.roll(40) == 0 {
                return self.diary.counts("dropped");
            }
        }
    }

    fn may_happen(&self, error: &Error) {
        let expected =
            [Kind::PoolExhausted, Kind::PoolPaused, Kind::StoreUnavailable, Kind::LeaseExpired];
        assert!(expected.contains(&error.kind()), "{error}");
        self.diary.counts(&error.kind().to_string());
    }
}
