//! Crawls web sites through leased proxy endpoints.
//!
//! `cargo run --example crawl` needs nothing else; `-- --help` tells how to crawl for real.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::Parser as _;
use reqwest_lease::{BoxError, Budgets, Inventory, LeaseMiddleware, Pool};
use url::Url;

use crate::args::Args;
use crate::crawl::Crawler;
use crate::demo::Demo;
use crate::fetch::chain;
use crate::report::Report;
use crate::robots::Robots;

mod args;
mod crawl;
mod demo;
mod fetch;
mod frontier;
mod links;
#[path = "../local/mod.rs"]
mod local;
mod report;
mod robots;
#[cfg(feature = "redis")]
#[path = "../local/shared.rs"]
mod shared;
mod table;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough of it.
        Err(error) if is_broken_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crawl: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), BoxError> {
    let Some(file) = &args.inventory else {
        let demo = Demo::start().await?;
        return crawl(&args, demo.inventory()?, vec![demo.front_page()?], Some(&demo)).await;
    };
    let inventory = Inventory::from_file(file).await?;
    for warning in inventory.snapshot().warnings() {
        eprintln!("crawl: {warning}");
    }
    crawl(&args, inventory, args.urls.clone(), None).await
}

async fn crawl(
    args: &Args,
    inventory: Inventory,
    seeds: Vec<Url>,
    demo: Option<&Demo>,
) -> Result<(), BoxError> {
    let crawler = crawler(args, inventory).await?;
    let mut report = Report::new(io::stdout(), &crawler.pool.list().await?)?;
    let tally = crawler.run(seeds, &mut report).await?;
    crawler.pool.shutdown().await;
    report.summary(&crawler.pool.list().await?)?;
    if let Some((requests, direct)) = demo.map(Demo::requests) {
        report.closing(format_args!(
            "{requests} requests reached the site, {direct} of them direct"
        ))?;
    }
    if tally.pages == 0 {
        return Err(tally.why_none().into());
    }
    Ok(())
}

async fn crawler(args: &Args, inventory: Inventory) -> Result<Crawler, BoxError> {
    let budgets = Budgets::builder().default(args.budget()).build()?;
    let pool = pool(args, inventory).await?;
    let user_agent = args.user_agent.clone();
    let middleware = LeaseMiddleware::builder(pool.clone())
        .budgets(budgets.clone())
        .template(move |builder| builder.user_agent(user_agent.clone()).gzip(true))
        .build()?;
    Ok(Crawler {
        pool,
        budgets,
        client: middleware.into_client(),
        robots: Robots::new(&args.user_agent),
        max_pages: args.max_pages.get(),
        concurrency: args.concurrency.get(),
    })
}

/// The pool in memory, or with other crawlers in Redis.
async fn pool(args: &Args, inventory: Inventory) -> Result<Pool, BoxError> {
    let builder = Pool::builder(args.pool.clone(), inventory);
    #[cfg(feature = "redis")]
    if let Some(url) = &args.redis {
        let store = reqwest_lease::RedisStore::connect(url.clone()).await?;
        let pool = builder.store(store).build().await?;
        shared::set_up(&pool).await?;
        return Ok(pool);
    }
    Ok(builder.build().await?)
}

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
