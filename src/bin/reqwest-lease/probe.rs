//! `probe`: a request through each of some endpoints, on an administrator's word.

mod finding;
mod orders;
mod report;
mod round;
mod target;

use std::time::{Duration, Instant};

use clap::Args;
use reqwest_lease::{
    AdminName, Inventory, LeaseMiddleware, LeaseStore as _, MemberState, Pool, PoolName, RedisStore,
};
use url::Url;

use super::context::{Context, members};
use super::exit::Code;
use super::failure::Failure;
use super::output::{note, some};
use super::time;

use finding::Finding;
use orders::Changes;
use round::Round;
use target::{Target, Targets};

/// Send a request through endpoints, and tell which of them work
///
/// Sends a request to --url through each of some endpoints, and tells which of them work, how soon
/// and from which address, if the page answers with that. It needs the inventory with its passwords
/// and an administrator's rights.
///
/// An endpoint that can be granted is leased for it, and the lease ends with a verdict as a
/// worker's does: refused credentials put it into quarantine, one that is out of reach rests. One
/// that is leased is left to its holder, and one that rests after failures to its rest: they are asked
/// for now and then for as long as --within says, and busy or at rest after that. One that is
/// disabled or in quarantine is tried without a lease, and stays where it is.
#[derive(Debug, Args)]
pub(crate) struct Probe {
    /// The page; put one with a secret into the variable, for all can see arguments
    #[arg(long, env = "LEASE_PROBE_URL", hide_env_values = true, value_name = "URL")]
    url: Option<String>,
    /// Requests at a time, each of which takes an endpoint from the workers
    #[arg(long, default_value_t = 8, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=256))]
    parallel: u32,
    /// Longest wait for an endpoint that is in use, and then longest time for its request; at most
    /// an hour
    #[arg(long, default_value = "10s", value_parser = time::parse, value_name = "TIME")]
    within: Duration,
    /// Put those that failed into quarantine, and take those that passed out of it
    ///
    /// Failed are those that could not be reached or refused their credentials; any other failure
    /// may be the page's doing. A quarantine by an administrator's word is not ended. When more than
    /// half of them failed, which may be the network here, they are only put into quarantine with
    /// --yes.
    #[arg(long)]
    quarantine: bool,
    // Last: what comes after its labels would stand under their heading.
    #[command(flatten)]
    targets: Targets,
}

impl Probe {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let url = self.url()?;
        let (name, wanted) = (context.pool()?, self.targets.wanted()?);
        let inventory = Inventory::from_file(context.needed_inventory("probe")?).await?;
        let store = context.store().await?;
        let within = self.within.min(LONGEST);
        let ttl = (within + SPARE).min(permitted(&store, &name).await?);
        let before = members(&store, &name).await?;
        let targets = self.targets.resolve(wanted, &name, &before, &inventory.snapshot())?;
        can_grant(&store, &name, &targets).await?;
        let pool = Pool::builder(name.clone(), inventory)
            .store(store.clone())
            .ttl(ttl)
            .administrator(by(context)?)
            .build()
            .await?;
        let site = url.host_str().unwrap_or_default().to_owned();
        let begun = Instant::now();
        let middleware = LeaseMiddleware::builder(pool.clone()).build()?;
        let round = Round::new(middleware, url, within, self.parallel as usize);
        let (findings, ended) = round.run(targets).await;
        let took = begun.elapsed();
        // Leases are back when their verdicts are in force.
        pool.shutdown().await;
        let told = self.carry_out(context, &store, &findings, ended.is_none()).await;
        let (changes, now, trouble) = told;
        let report = report::report(&name, &site, took, &findings, &changes, &now);
        context.print(&report)?;
        let kept = orders::kept(&findings);
        if self.quarantine && ended.is_none() && !kept.is_empty() {
            let (number, ids) = (kept.len(), some(&kept));
            note(&format!(
                "hint: {number} passed and stay in quarantine by an administrator's word ({ids}): `reqwest-lease enable` ends that"
            ));
        }
        let ended = ended.map(|failure| match self.quarantine {
            true => failure.after("no quarantine was changed"),
            false => failure,
        });
        match ended.or(trouble) {
            Some(failure) => Err(failure),
            None => Ok(report::code(&findings)),
        }
    }

    /// The page, if there is time to ask for it.
    fn url(&self) -> Result<Url, Failure> {
        let text = self.url.as_ref().ok_or_else(|| {
            Failure::usage("which page? name it with --url or LEASE_PROBE_URL")
                .with_hint("one that answers with the caller's address tells the exit address too")
        })?;
        if self.within.is_zero() {
            return Err(Failure::usage("--within leaves no time"));
        }
        let url = Url::parse(text).ok();
        url.filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| Failure::usage("the page's address is no http or https URL"))
    }

    /// Gives the orders that were asked for, and looks where all of them are now.
    async fn carry_out(
        &self,
        context: &Context,
        store: &RedisStore,
        findings: &[Finding],
        whole: bool,
    ) -> (Changes, Vec<MemberState>, Option<Failure>) {
        let look = async || members(store, &context.pool()?).await;
        let now = match look().await {
            Ok(now) => now,
            Err(failure) => return (Changes::default(), Vec::new(), Some(failure)),
        };
        if !self.quarantine || !whole {
            return (Changes::default(), now, None);
        }
        let (changes, trouble) = orders::give(context, store, findings, &now).await;
        match look().await {
            Ok(now) => (changes, now, trouble),
            Err(failure) => (changes, now, trouble.or(Some(failure))),
        }
    }
}

/// Refuses a user who is no administrator, and tells the largest ttl.
async fn permitted(store: &RedisStore, pool: &PoolName) -> Result<Duration, Failure> {
    let rights = store.rights(pool).await?;
    if !(rights.order && rights.lease) {
        let what = "the store's user may not do this: a probe needs an administrator's rights";
        return Err(Failure::new(Code::REFUSED, what)
            .with_hint("`reqwest-lease acl administrator` prints a user who has them"));
    }
    Ok(store.status(pool).await?.config.largest_ttl)
}

/// Refuses to begin where the pool grants nothing and something would have to be leased.
async fn can_grant(store: &RedisStore, pool: &PoolName, targets: &[Target]) -> Result<(), Failure> {
    if !targets.iter().any(Target::needs_lease) {
        return Ok(());
    }
    let refuse = |what: &str, hint: &str| {
        Err(Failure::new(Code::REFUSED, format!("pool {pool} {what}")).with_hint(hint))
    };
    let status = store.status(pool).await?;
    match status.hold {
        _ if status.loading => refuse("is being loaded", "`reqwest-lease init` goes on with that"),
        _ if status.paused => refuse("is paused", "`reqwest-lease resume` ends a pause"),
        Some(left) => refuse(
            &format!("is on hold and grants nothing for {}", time::short(left)),
            "`reqwest-lease resume --now` ends a hold",
        ),
        None => Ok(()),
    }
}

/// A library's probe is somebody's; orders are given in the name that was given, or in nobody's.
fn by(context: &Context) -> Result<AdminName, Failure> {
    Ok(match context.by()? {
        Some(name) => name,
        None => AdminName::new("nobody")?,
    })
}

const LONGEST: Duration = Duration::from_secs(3600);

/// A lease outlasts its request.
const SPARE: Duration = Duration::from_secs(5);
