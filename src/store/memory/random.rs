//! Random sequences of calls, with the store beside its model.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::MemoryStore;
use super::model::{Answer, Model};
use super::tests::Memory;
use crate::conformance::Fixture;
use crate::id::EndpointId;
use crate::secret::Token;
use crate::site::Site;
use crate::store::{
    AcquireReply, AcquireRequest, AdminRequest, CancelRequest, Claim, Grant, LeaseStore,
    ListRequest, Member, MemberState, Mode, Order, Policy, PoolConfig, ReapRequest, Release,
    ReleaseRequest, RenewReply, RenewRequest, Setup, State, violations,
};
use crate::verdict::{QuarantineCode, Strike, Verdict};

const MEMBERS: u8 = 6;
const TOKENS: u8 = 8;

/// A call, with members, tokens and sites by number and times in seconds.
#[derive(Debug, Clone)]
pub(in crate::store) enum Step {
    Acquire { tokens: Vec<u8>, cooldown: u64, site: u8, exclude: u8, prefer: u8, random: u64 },
    Renew { token: u8, ttl: u64 },
    Release { nth: u8, verdict: Verdict, site: u8 },
    Cancel { token: u8, tombstone: u64 },
    Reap,
    Advance(u64),
    Order { kind: u8, members: Vec<u8> },
}

pub(in crate::store) fn step() -> impl Strategy<Value = Step> {
    let tokens = proptest::sample::subsequence((0..TOKENS).collect::<Vec<_>>(), 1..4);
    let members = proptest::sample::subsequence((0..MEMBERS).collect::<Vec<_>>(), 1..3);
    prop_oneof![
        8 => (tokens, 0..9_u64, 0..4_u8, 0..12_u8, 0..12_u8, any::<u64>()).prop_map(
            |(tokens, cooldown, site, exclude, prefer, random)| {
                Step::Acquire { tokens, cooldown, site, exclude, prefer, random }
            }
        ),
        2 => (0..TOKENS, 1..=20_u64).prop_map(|(token, ttl)| Step::Renew { token, ttl }),
        6 => (any::<u8>(), verdict(), 0..4_u8)
            .prop_map(|(nth, verdict, site)| Step::Release { nth, verdict, site }),
        2 => (0..TOKENS, 0..20_u64)
            .prop_map(|(token, tombstone)| Step::Cancel { token, tombstone }),
        1 => Just(Step::Reap),
        4 => (0..15_u64).prop_map(Step::Advance),
        3 => (0..10_u8, members).prop_map(|(kind, members)| Step::Order { kind, members }),
    ]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    (0..12_u64, 0..20_u64, 0..10_u8, 0..3_u8).prop_map(|(cooldown, shun, quarantine, strike)| {
        Verdict {
            cooldown: Duration::from_secs(cooldown.saturating_sub(4)),
            shun: (shun > 8).then(|| Duration::from_secs(shun)),
            quarantine: (quarantine == 0).then_some(QuarantineCode::Credentials),
            strike: [Strike::Keep, Strike::Add, Strike::Reset][usize::from(strike)],
        }
    })
}

pub(in crate::store) fn config() -> impl Strategy<Value = PoolConfig> {
    (0..4_usize).prop_map(|nth| PoolConfig {
        mode: if nth == 3 { Mode::Shared } else { Mode::Exclusive },
        policy: [Policy::Earliest, Policy::LeastAssigned, Policy::Random, Policy::Earliest][nth],
        largest_ttl: Duration::from_secs(20),
        largest_lifetime: Duration::from_secs(35),
        ..PoolConfig::default()
    })
}

/// `REQWEST_LEASE_LONG=1` runs many more, with a seed of their own.
#[test]
fn the_store_agrees_with_its_model() {
    let long = std::env::var_os("REQWEST_LEASE_LONG").is_some();
    let config_of_run = Config {
        cases: if long { 20_000 } else { 64 },
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = match long {
        true => TestRunner::new(config_of_run),
        false => {
            let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
            TestRunner::new_with_rng(config_of_run, seed)
        }
    };
    let steps = proptest::collection::vec(step(), 1..120);
    let result = runner.run(&(config(), steps), |(config, steps)| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(agree(&Memory(MemoryStore::new()), config, steps));
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// Sets a pool up and takes these steps with it and with the model; panics where they differ.
pub(in crate::store) async fn agree(fixture: &dyn Fixture, config: PoolConfig, steps: Vec<Step>) {
    let run =
        Run { fixture, store: fixture.store(), model: Model::new(config), grants: Vec::new() };
    run.all(steps).await;
}

#[cfg(feature = "redis")]
impl Step {
    /// The same without a site.
    pub(in crate::store) fn without_site(mut self) -> Self {
        if let Self::Acquire { site, .. } | Self::Release { site, .. } = &mut self {
            *site = u8::MAX;
        }
        self
    }

    pub(in crate::store) fn removes(&self) -> bool {
        matches!(self, Self::Order { kind: 0, .. })
    }
}

/// A store and its model, and the grants that may still be given back.
struct Run<'a> {
    fixture: &'a dyn Fixture,
    store: &'a dyn LeaseStore,
    model: Model,
    grants: Vec<Grant>,
}

impl Run<'_> {
    async fn all(mut self, steps: Vec<Step>) {
        self.set_up(steps.len().is_multiple_of(2)).await;
        for step in steps {
            self.step(step).await;
            let request = ListRequest { pool: self.fixture.pool(), after: None, limit: 100 };
            let listed = self.store.list(request).await.unwrap();
            assert_eq!(in_seconds(listed), self.model.list());
            assert_eq!(violations(self.store, &self.fixture.pool()).await.unwrap(), []);
        }
    }

    /// A pool that was loaded is like one that was added to.
    async fn set_up(&mut self, loaded: bool) {
        let setup = Setup { loading: loaded, ..Setup::new(self.model.config.clone()) };
        let order = async |order| {
            let request = AdminRequest::new(self.fixture.pool(), order);
            self.store.administer(request).await.unwrap();
        };
        order(Order::Init(setup)).await;
        let members: Vec<_> = (0..4).map(member).collect();
        if !loaded {
            return self.order(Order::Add(members)).await;
        }
        order(Order::Load(members.clone())).await;
        order(Order::Open).await;
        self.model.carry_out(&Order::Add(members));
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Acquire { tokens, cooldown, site, exclude, prefer, random } => {
                let mut request =
                    AcquireRequest::new(self.fixture.pool(), token(0), Duration::from_secs(10));
                request.tokens = tokens.into_iter().map(token).collect();
                request.expiry_cooldown = Duration::from_secs(cooldown);
                request.site = name_site(site);
                request.exclude = (exclude < MEMBERS).then(|| id(exclude)).into_iter().collect();
                request.prefer = (prefer < MEMBERS).then(|| id(prefer));
                request.random = random;
                self.acquire(request).await;
            }
            Step::Renew { token: nth, ttl } => {
                let (token, ttl) = (token(nth), Duration::from_secs(ttl));
                let reply =
                    self.store.renew(RenewRequest { pool: self.fixture.pool(), token, ttl }).await;
                let reply = match reply.unwrap() {
                    RenewReply::Renewed(left) => RenewReply::Renewed(second(left)),
                    reply => reply,
                };
                assert_eq!(reply, self.model.renew(token, ttl));
            }
            Step::Release { nth, verdict, site } => self.release(nth, verdict, site).await,
            Step::Cancel { token: nth, tombstone } => {
                let (token, tombstone) = (token(nth), Duration::from_secs(tombstone));
                let request = CancelRequest { pool: self.fixture.pool(), token, tombstone };
                let reply = self.store.cancel(request).await.unwrap();
                assert_eq!(reply, self.model.cancel(token, tombstone));
            }
            Step::Reap => {
                let reply =
                    self.store.reap(ReapRequest { pool: self.fixture.pool() }).await.unwrap();
                assert_eq!(reply.reclaimed, self.model.reap().reclaimed);
                assert!(!reply.more);
            }
            Step::Advance(seconds) => {
                let by = Duration::from_secs(seconds);
                self.fixture.advance(by).await;
                self.model.now += by;
            }
            Step::Order { kind, members } => self.some_order(kind, members).await,
        }
    }

    async fn acquire(&mut self, request: AcquireRequest) {
        let reply = self.store.acquire(request.clone()).await.unwrap();
        let grants = match &reply {
            AcquireReply::Granted(grants) => grants.clone(),
            _ => Vec::new(),
        };
        self.model.reap();
        let mut given = grants.iter();
        let mut last = Answer::Cancelled;
        for token in &request.tokens {
            let answer = self.model.acquire(*token, &request);
            match &answer {
                Answer::Has(endpoint, fence) => {
                    let grant = given.next().unwrap();
                    assert_eq!((&grant.endpoint, grant.fence.0), (endpoint, *fence));
                }
                Answer::OneOf(endpoints) => {
                    let grant = given.next().unwrap();
                    assert!(endpoints.contains(&grant.endpoint), "{grant:?} of {endpoints:?}");
                    self.model.granted(grant, *token, &request);
                }
                Answer::Cancelled => continue,
                Answer::Paused | Answer::Empty => {}
            }
            last = answer;
        }
        assert_eq!(given.next(), None);
        match last {
            _ if !grants.is_empty() => {}
            Answer::Cancelled => assert_eq!(reply, AcquireReply::Cancelled),
            Answer::Paused => assert_eq!(reply, AcquireReply::Paused),
            _ => assert!(matches!(reply, AcquireReply::Empty { .. }), "{reply:?}"),
        }
        self.grants.extend(grants);
    }

    async fn release(&mut self, nth: u8, verdict: Verdict, site: u8) {
        let claim = match self.grants.len() {
            0 => Claim::Lease(token(nth % TOKENS)),
            grants => self.grants[grants - 1 - usize::from(nth) % grants.min(8)].claim(),
        };
        let release = Release { claim, verdict, site: name_site(site) };
        let expected = self.model.release(&release);
        let request = ReleaseRequest::new(self.fixture.pool(), vec![release]);
        assert_eq!(self.store.release(request).await.unwrap(), [expected]);
    }

    async fn some_order(&mut self, kind: u8, members: Vec<u8>) {
        let known = members.iter().map(|nth| id(*nth)).filter(|id| self.model.has(id)).collect();
        let added = |nth: &u8| match nth {
            5 => member(5).with_assignments(3),
            nth => member(*nth),
        };
        self.order(match kind {
            0 => Order::Remove(known),
            1 => Order::Disable(known),
            2 => Order::Drain(known),
            3 | 4 => Order::Enable(known),
            5 => Order::Quarantine(known, QuarantineCode::Administrator),
            6 => Order::EndQuarantine(known, QuarantineCode::Administrator),
            7 => Order::Pause,
            8 => Order::Resume,
            _ => Order::Add(members.iter().map(added).take(1).collect()),
        })
        .await;
    }

    async fn order(&mut self, order: Order) {
        let expected = self.model.carry_out(&order);
        let request = AdminRequest::new(self.fixture.pool(), order);
        assert_eq!(self.store.administer(request).await.unwrap().changed, expected);
    }
}

/// Times left are whole seconds, but for a little real time that may have gone on.
fn in_seconds(mut members: Vec<MemberState>) -> Vec<MemberState> {
    for member in &mut members {
        if let State::Cooling(left) | State::Leased(left) = &mut member.state {
            *left = second(*left);
        }
    }
    members
}

fn second(left: Duration) -> Duration {
    Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0))
}

fn id(nth: u8) -> EndpointId {
    EndpointId::new(format!("e{nth}")).unwrap()
}

/// Two sites, or none.
fn name_site(nth: u8) -> Option<Site> {
    Site::parse(["a.example", "b.example"].get(usize::from(nth))?)
}

fn member(nth: u8) -> Member {
    Member::new(id(nth)).with_weight([1, 1, 2, 1, 1, 5][usize::from(nth)])
}

fn token(nth: u8) -> Token {
    Token::from_bytes([nth; 16])
}
