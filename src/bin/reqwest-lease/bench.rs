//! `bench`: leases a second on this server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminRequest, EndpointId, Error, Kind, LeaseStore as _, Member,
    Order, PoolConfig, PoolName, RedisStore, Release, ReleaseRequest, Setup, Token, Verdict,
};
use serde_json::json;

use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::init::{style, words};
use super::interrupt;
use super::output::Report;
use super::time;

/// Measure leases a second on this server, in a pool of its own
///
/// Takes and gives back leases as fast as the server can, in a pool of its own that is shaped like
/// --pool, where that is set up. The pool, reqwest-lease-bench, and its trail are removed at the
/// end; what a killed call left the next one removes, and asks first. Workers of other pools on the
/// server feel it.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// How long; at most a minute
    #[arg(long = "for", default_value = "3s", value_parser = time::parse, value_name = "TIME")]
    lasts: Duration,
    /// Calls at a time
    #[arg(long, default_value_t = 8, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,
    /// Endpoints in the pool; default: as many as --pool has, else 1000
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    endpoints: Option<u32>,
}

/// What a client measured: times of acquires and of releases.
#[derive(Default)]
struct Times {
    acquires: Vec<Duration>,
    releases: Vec<Duration>,
    empty: usize,
}

impl Bench {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let store = context.store().await?;
        let (config, number) = self.shape(context, &store).await?;
        let pool = PoolName::new(POOL)?;
        let by = context.by()?;
        let order = async |order: Order| {
            let request = AdminRequest::new(pool.clone(), order).by(by.clone());
            Ok::<_, Failure>(store.administer(request).await?)
        };
        if is_left(&store, &pool).await? {
            context
                .confirm(&format!("pool {pool} is there, perhaps of a killed bench: erase it"))?;
            order(Order::Pause).await?;
            order(Order::DestroyPool).await?;
        }
        let measured = tokio::select! {
            measured = self.measure(&order, &store, &pool, &config, number) => measured,
            _ = interrupt::wanted() => Err(Failure::interrupted()),
        };
        // What is left of it, however far it came.
        let paused = order(Order::Pause).await;
        let gone = order(Order::DestroyPool).await;
        let forgotten = store.forget_trail(&pool).await;
        let report = measured?;
        paused.and(gone)?;
        forgotten?;
        context.print(&report)?;
        Ok(Code::DONE)
    }

    /// Settings and size of the pool that is looked at.
    async fn shape(
        &self,
        context: &Context,
        store: &RedisStore,
    ) -> Result<(PoolConfig, usize), Failure> {
        let mut shape = (PoolConfig::default(), 1000);
        if context.names_a_pool() {
            let pool = context.pool()?;
            match store.status(&pool).await {
                Ok(status) => {
                    if status.leased > 0 {
                        context.confirm(&format!("workers use pool {pool} and will feel it"))?;
                    }
                    shape = (status.config.clone(), status.members().max(1));
                }
                Err(error) if error.kind() == Kind::PoolUninitialised => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(number) = self.endpoints {
            shape.1 = number as usize;
        }
        Ok(shape)
    }

    async fn measure(
        &self,
        order: &impl AsyncFn(Order) -> Result<reqwest_lease::AdminReply, Failure>,
        store: &RedisStore,
        pool: &PoolName,
        config: &PoolConfig,
        number: usize,
    ) -> Result<Report, Failure> {
        let id = |nth| EndpointId::new(format!("e{nth}"));
        let ids = (0..number).map(id).collect::<Result<Vec<_>, _>>()?;
        order(Order::Init(Setup::new(config.clone()).loading())).await?;
        let bar = ProgressBar::new(number as u64).with_style(style("loading"));
        for some in ids.chunks(1000) {
            order(Order::Load(some.iter().cloned().map(Member::new).collect())).await?;
            bar.inc(some.len() as u64);
        }
        order(Order::Open).await?;
        bar.finish_and_clear();
        let lasts = self.lasts.min(LONGEST);
        let begun = Instant::now();
        let times = run_clients(self.clients, store, pool, lasts).await?;
        Ok(report(&times, begun.elapsed(), self.clients, config, number))
    }
}

/// The pool that is measured. It has a name that one that was left behind is found by.
const POOL: &str = "reqwest-lease-bench";

/// Whether a call that was killed has left the pool behind. One that goes on changes it.
async fn is_left(store: &RedisStore, pool: &PoolName) -> Result<bool, Failure> {
    let look = async || match store.status(pool).await {
        Ok(status) => Ok(Some((status.fence, status.members()))),
        Err(error) if error.kind() == Kind::PoolUninitialised => Ok(None),
        Err(error) => Err(Failure::from(error)),
    };
    let Some(before) = look().await? else { return Ok(false) };
    // No proof that it is of nobody, so whoever calls is asked; only a reason to refuse at once.
    tokio::time::sleep(STANDS_STILL).await;
    match look().await? {
        Some(now) if now != before => Err(Failure::new(Code::REFUSED, "another bench is running")),
        there => Ok(there.is_some()),
    }
}

const STANDS_STILL: Duration = Duration::from_secs(1);

const LONGEST: Duration = Duration::from_secs(60);

async fn run_clients(
    clients: u32,
    store: &RedisStore,
    pool: &PoolName,
    lasts: Duration,
) -> Result<Times, Failure> {
    let over = Arc::new(AtomicBool::new(false));
    let client = |_| tokio::spawn(client(store.clone(), pool.clone(), over.clone()));
    let clients: Vec<_> = (0..clients).map(client).collect();
    tokio::time::sleep(lasts).await;
    over.store(true, Ordering::Relaxed);
    let mut all = Times::default();
    for client in clients {
        let times =
            client.await.map_err(|_| Failure::new(Code::FAILED, "a client broke down"))??;
        all.acquires.extend(times.acquires);
        all.releases.extend(times.releases);
        all.empty += times.empty;
    }
    Ok(all)
}

async fn client(store: RedisStore, pool: PoolName, over: Arc<AtomicBool>) -> Result<Times, Error> {
    let mut times = Times::default();
    while !over.load(Ordering::Relaxed) {
        let token = Token::random();
        let mut request = AcquireRequest::new(pool.clone(), token, Duration::from_secs(10));
        request.random = u64::from_ne_bytes(token.expose()[..8].try_into().unwrap_or_default());
        let begun = Instant::now();
        let AcquireReply::Granted(grants) = store.acquire(request).await? else {
            times.empty += 1;
            tokio::task::yield_now().await;
            continue;
        };
        times.acquires.push(begun.elapsed());
        let end =
            |grant: &reqwest_lease::Grant| Release::new(grant.claim(), Verdict::default(), None);
        let releases = grants.iter().map(end).collect();
        let begun = Instant::now();
        store.release(ReleaseRequest::new(pool.clone(), releases)).await?;
        times.releases.push(begun.elapsed());
    }
    Ok(times)
}

fn report(
    times: &Times,
    took: Duration,
    clients: u32,
    config: &PoolConfig,
    number: usize,
) -> Report {
    let (mode, policy) = words(config);
    let rate = times.acquires.len() as f64 / took.as_secs_f64();
    let (acquire, release) = (quantiles(&times.acquires), quantiles(&times.releases));
    let ms = |[half, most, all]: [Duration; 3]| {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        json!({"p50": ms(half), "p99": ms(most), "max": ms(all)})
    };
    let json = json!({
        "mode": mode, "policy": policy, "endpoints": number, "clients": clients,
        "seconds": took.as_secs_f64(), "leases": times.acquires.len(), "leases_per_second": rate,
        "empty": times.empty, "acquire_ms": ms(acquire), "release_ms": ms(release),
    });
    let row = |what: &str, times: [Duration; 3]| {
        std::iter::once(what.to_owned()).chain(times.map(time::short)).collect()
    };
    Report::new(json)
        .line(format!("{number} endpoints, {mode}, {policy}, {clients} calls at a time"))
        .line(format!("{rate:.0} leases a second, taken and given back"))
        .table(
            &["call", ">half within", ">99% within", ">all within"],
            vec![row("acquire", acquire), row("release", release)],
        )
}

fn quantiles(times: &[Duration]) -> [Duration; 3] {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = |share: f64| {
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * share) as usize).copied().unwrap_or_default()
    };
    [at(0.5), at(0.99), at(1.0)]
}
