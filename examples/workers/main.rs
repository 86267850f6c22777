//! Four worker processes lease from one pool in Redis; one of them is killed in the middle of
//! requests, and the pool heals.
//!
//! `cargo run --example workers` starts a `redis-server` of its own; `-- --redis URL` takes
//! yours. Everything else, site and proxies too, is on loopback.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::Parser;
use reqwest_lease::{BoxError, PoolName};

mod foreman;
mod healing;
#[path = "../local/mod.rs"]
mod local;
mod server;
#[path = "../local/shared.rs"]
mod shared;
mod worker;

/// Shows a pool that four worker processes share, and one of them dies.
#[derive(Debug, Parser)]
#[command(name = "workers")]
struct Args {
    /// The Redis to keep the pool in [default: a redis-server of its own]
    #[arg(long, value_name = "URL", env = "LEASE_REDIS_URL", hide_env_values = true)]
    redis: Option<String>,

    /// Be a worker of this pool; endpoints and pages come by standard input
    #[arg(long, value_name = "POOL", hide = true, requires = "redis")]
    work_for: Option<PoolName>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough of it.
        Err(error) if is_broken_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workers: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), BoxError> {
    match (args.redis, args.work_for) {
        (Some(redis), Some(pool)) => worker::run(&redis, pool).await,
        (Some(redis), None) => foreman::run(&redis).await,
        (None, _) => {
            let server = server::Server::start().await?;
            foreman::run(&server.url()).await
        }
    }
}

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
