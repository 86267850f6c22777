//! `doctor`: what is wrong, in plain sentences, each with the command that mends it.

mod inventory;
mod members;
mod pool;
mod server;
mod user;

use std::time::SystemTime;

use clap::Args;
use reqwest_lease::{LeaseStore as _, RedisStore};

use super::acl::Role;
use super::context::Context;
use super::diagnosis::Diagnosis;
use super::exit::Code;
use super::failure::Failure;
use super::output::count;
use super::reap;

/// Look for what is wrong with server, user, pool and inventory
///
/// Looks for what is wrong: version, persistence, memory and replicas of the server, the rights of
/// its user, the pool's layout, state and invariants, and what differs from the inventory. It reads
/// in short calls, also while the pool is in use.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Mend what can be mended while the pool is in use; it goes into the trail
    #[arg(long)]
    repair: bool,
    /// The role that this user should have: what it lacks and what it has beyond are findings
    #[arg(long, value_enum)]
    role: Option<Role>,
}

impl Doctor {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let pool = context.pool()?;
        // A server that may evict the pool is for the doctor to tell of.
        let store = match context.builder()?.allow_eviction(true).build().await {
            Ok(store) => store,
            Err(error) => return unusable(context, error.into()),
        };
        if self.repair {
            user::may_repair(&store, &pool).await?;
        }
        let mut diagnosis = match self.examine(context, &store).await {
            Ok(diagnosis) => diagnosis,
            Err(failure) if failure.code() == Code::UNREACHABLE => {
                return unusable(context, failure);
            }
            Err(failure) => return Err(failure),
        };
        if self.repair && !diagnosis.has(pool::TYPES) && !diagnosis.has(pool::SETTINGS) {
            let mut mended = Vec::new();
            if diagnosis.has(pool::EXPIRED) {
                let (leases, _) = reap::all(&store, &pool).await?;
                mended.push(format!("took back {}", count(leases, "lease")));
            }
            if diagnosis.has(members::STATE) {
                let repairs = store.repair(&pool, context.by()?).await?;
                if repairs > 0 {
                    mended.push(format!("{} in the pool's state", count(repairs, "repair")));
                }
            }
            diagnosis = self.examine(context, &store).await?;
            diagnosis.mended(mended);
        }
        let code = if diagnosis.is_sound() { Code::DONE } else { Code::FINDINGS };
        context.print(&diagnosis.report())?;
        Ok(code)
    }

    async fn examine(&self, context: &Context, store: &RedisStore) -> Result<Diagnosis, Failure> {
        let (mut diagnosis, pool) = (Diagnosis::default(), context.pool()?);
        let asked = SystemTime::now();
        match store.report(&pool).await {
            Ok(report) => server::examine(&report, asked, SystemTime::now(), &mut diagnosis),
            Err(error) => diagnosis.unknown(format!("the server's state: {error}")),
        }
        let rights = match store.rights(&pool).await {
            Ok(rights) => {
                user::examine(&rights, self.role, context, &mut diagnosis);
                Some(rights)
            }
            Err(error) => {
                diagnosis.unknown(format!("what this user may do: {error}"));
                None
            }
        };
        let (remains, settings) =
            (store.remains(&pool).await.ok(), store.settings(&pool).await.ok());
        let explained = settings
            .as_ref()
            .is_some_and(|settings| pool::examine_settings(settings, context, &mut diagnosis));
        match store.status(&pool).await {
            Ok(status) => {
                let status = match status.expired {
                    0 => status,
                    _ if self.repair => status,
                    _ => pool::await_workers(store, status, context).await?,
                };
                pool::examine(&status, context, &mut diagnosis);
                if let Some(remains) = &remains {
                    pool::examine_types(remains, context, &mut diagnosis);
                }
                members::examine(store, &status, rights.as_ref(), context, &mut diagnosis).await?;
                inventory::examine(store, &status, context, &mut diagnosis).await?;
            }
            Err(_) if explained => {}
            Err(error) => {
                pool::examine_refusal(error, remains, settings, context, &mut diagnosis)?;
            }
        }
        Ok(diagnosis)
    }
}

/// A server that there is no working with is the one finding.
fn unusable(context: &Context, failure: Failure) -> Result<Code, Failure> {
    if failure.code() == Code::USAGE {
        return Err(failure);
    }
    let mut diagnosis = Diagnosis::default();
    let known = MENDS.iter().find(|(what, _)| failure.message().contains(what));
    let mend = match known {
        Some((_, mend)) => mend,
        None if failure.code() == Code::UNREACHABLE => {
            "check the address in LEASE_REDIS_URL, and whether the server runs and answers"
        }
        None => "use a server that fits, Redis 7.0 or Valkey 7.2 or newer",
    };
    diagnosis.error("server", failure.message(), mend.to_owned());
    context.print(&diagnosis.report())?;
    Ok(failure.code())
}

/// What the library says of a server that it cannot use, and what mends that.
const MENDS: [(&str, &str); 8] = [
    ("replica", "put the primary's address into LEASE_REDIS_URL, or use Sentinel or a cluster"),
    (
        "credentials",
        "check user and password in LEASE_REDIS_URL; `reqwest-lease acl` prints what users need",
    ),
    (
        "user may not",
        "run the command of `reqwest-lease acl observer` for this user, or of its role",
    ),
    ("loading its data", "wait: it is reading its files after a start"),
    ("busy with a long script", "wait, or end the script with SCRIPT KILL; who sends it?"),
    (
        "cluster is down",
        "see `redis-cli --cluster check`: slots without a primary, or too few nodes",
    ),
    ("is a cluster, but", "give --cluster, and the URLs of some of its nodes"),
    ("as a cluster, but", "leave --cluster out"),
];
