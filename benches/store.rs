//! What a lease costs in memory: acquire and release, through the trait as the engine calls it.

// A bench that cannot go on stops.
#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::FutureExt;
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminRequest, EndpointId, LeaseStore, Member, MemoryStore, Mode,
    Order, Policy, PoolConfig, PoolName, Release, ReleaseRequest, Site, Token, Verdict,
};

criterion_group!(benches, pairs, tokens);
criterion_main!(benches);

const SIZES: [usize; 3] = [16, 10_000, 1_000_000];

fn pairs(criterion: &mut Criterion) {
    for (name, mode, policy) in [
        ("earliest", Mode::Exclusive, Policy::Earliest),
        ("least_assigned", Mode::Exclusive, Policy::LeastAssigned),
        ("random", Mode::Exclusive, Policy::Random),
        ("shared", Mode::Shared, Policy::LeastAssigned),
    ] {
        let mut group = criterion.benchmark_group(format!("acquire_release/{name}"));
        group.throughput(Throughput::Elements(1));
        for size in SIZES {
            // Filled once, and only when it is measured.
            let mut holder = None;
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                let holder = holder.get_or_insert_with(|| Holder::new(mode, policy, size));
                bencher.iter(|| holder.pair());
            });
        }
        group.finish();
    }
}

fn tokens(criterion: &mut Criterion) {
    criterion.bench_function("token", |bencher| bencher.iter(Token::random));
}

/// Takes a lease and gives it back, over and over.
struct Holder {
    store: Box<dyn LeaseStore>,
    pool: PoolName,
    site: Site,
    random: u64,
}

impl Holder {
    fn new(mode: Mode, policy: Policy, size: usize) -> Self {
        let store = Box::new(MemoryStore::new());
        let pool = PoolName::new("bench").unwrap();
        let mut config = PoolConfig::default();
        config.mode = mode;
        config.policy = policy;
        let id = |nth| EndpointId::new(format!("endpoint-{nth:07}")).unwrap();
        let members = (0..size).map(|nth| Member::new(id(nth))).collect();
        for order in [Order::Init(config.into()), Order::Add(members)] {
            let request = AdminRequest::new(pool.clone(), order);
            store.administer(request).now_or_never().unwrap().unwrap();
        }
        Self { store, pool, site: Site::parse("example.com").unwrap(), random: 1 }
    }

    fn pair(&mut self) {
        let mut request = AcquireRequest::new(self.pool.clone(), self.token(), TTL);
        request.site = Some(self.site.clone());
        request.random = self.next();
        let reply = self.store.acquire(request).now_or_never().unwrap().unwrap();
        let AcquireReply::Granted(grants) = reply else { panic!("{reply:?}") };
        let claim = grants[0].claim();
        let site = Some(self.site.clone());
        let releases = vec![Release::new(claim, Verdict::default(), site)];
        let request = ReleaseRequest::new(self.pool.clone(), releases);
        self.store.release(request).now_or_never().unwrap().unwrap();
    }

    /// Cheap, so that what is measured is the store; a drawn token is measured by itself.
    fn token(&mut self) -> Token {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        Token::from_bytes(bits.to_ne_bytes())
    }

    /// xorshift64
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

const TTL: Duration = Duration::from_secs(30);
