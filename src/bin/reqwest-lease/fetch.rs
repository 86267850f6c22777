//! `fetch`: one request through the pool.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use reqwest::Method;
use reqwest_lease::{Error, Inventory, LeaseInfo, LeaseMiddleware, LeaseStore as _, Pool};
use serde_json::json;
use url::Url;

use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::interrupt;
use super::output::Report;
use super::time;

/// Fetch a page through a leased endpoint
///
/// Fetches a page through a leased endpoint as a worker would, and tells how it went. It needs the
/// inventory with its passwords.
#[derive(Debug, Args)]
pub(crate) struct Fetch {
    /// The page
    #[arg(value_name = "URL")]
    url: String,
    /// Longest wait for an endpoint
    #[arg(long, default_value = "30s", value_parser = time::parse, value_name = "TIME")]
    max_wait: Duration,
    /// Longest time for all of it
    #[arg(long, default_value = "60s", value_parser = time::parse_some, value_name = "TIME")]
    within: Duration,
    /// Most endpoints to try
    #[arg(
        long,
        default_value_t = 3,
        value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    attempts: u32,
    /// Ask for the head alone
    #[arg(long)]
    head: bool,
    /// Where the body goes, a file that is not there yet; default: nowhere
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl Fetch {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let url = Url::parse(&self.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| Failure::usage("the page's address is no http or https URL"))?;
        if let Some(there) = self.to.as_ref().filter(|path| path.exists()) {
            return Err(Failure::new(Code::FAILED, format!("{} is there", there.display())));
        }
        let name = context.pool()?;
        let inventory = Inventory::from_file(context.needed_inventory("fetch")?).await?;
        let store = context.store().await?;
        let largest = store.status(&name).await?.config.largest_ttl;
        // What is over then is the exchange, and not the lease.
        let ttl = self.within.saturating_add(BEYOND).min(largest);
        let pool = Pool::builder(name, inventory)
            .store(store)
            .ttl(ttl)
            .max_wait(self.max_wait)
            .build()
            .await?;
        let told = tokio::select! {
            told = self.exchange(context, &pool, url) => told,
            _ = interrupt::wanted() => Err(Failure::interrupted()),
        };
        // However it ended, the endpoint is given back.
        pool.shutdown().await;
        told
    }

    async fn exchange(&self, context: &Context, pool: &Pool, url: Url) -> Result<Code, Failure> {
        let client = LeaseMiddleware::builder(pool.clone())
            .attempts(self.attempts)
            .timeout(self.within)
            .build()?
            .into_client();
        let begun = Instant::now();
        let method = if self.head { Method::HEAD } else { Method::GET };
        let sent = client.request(method, url).send().await;
        let mut response = sent.map_err(|error| failed(&error))?;
        let bytes = self.body(&mut response).await?;
        let took = begun.elapsed();
        let Some(info) = response.extensions().get::<LeaseInfo>() else {
            return Err(Failure::new(Code::FAILED, "the response came by no lease"));
        };
        let failed: Vec<_> = info.failed().iter().map(ToString::to_string).collect();
        let status = response.status().as_u16();
        let json = json!({
            "status": status, "outcome": info.outcome().as_str(), "bytes": bytes,
            "endpoint": info.endpoint().as_str(), "fence": info.fence().0,
            "lease_wait_seconds": info.lease_wait().as_secs_f64(),
            "budget_wait_seconds": info.budget_wait().as_secs_f64(),
            "took_seconds": took.as_secs_f64(), "hops": info.hops(),
            "attempts": info.attempts(), "failed": failed,
        });
        let mut facts = vec![
            ("status", status.to_string()),
            ("outcome", info.outcome().to_string()),
            ("endpoint", format!("{} (fence {})", info.endpoint(), info.fence())),
            ("waited", format!("{} for the lease", time::short(info.lease_wait()))),
            ("took", format!("{} for {bytes} bytes", time::short(took))),
            ("hops", info.hops().to_string()),
            ("attempts", info.attempts().to_string()),
        ];
        if !failed.is_empty() {
            facts.push(("failed", failed.join(" ")));
        }
        context.print(&Report::new(json).facts(&facts))?;
        Ok(Code::DONE)
    }

    /// Reads the body, and puts it where it is to go; says how long it is.
    async fn body(&self, response: &mut reqwest::Response) -> Result<usize, Failure> {
        let Some(path) = &self.to else { return read(response, &mut io::sink(), "").await };
        let name = path.display().to_string();
        let file = File::create_new(path);
        let file = file.map_err(|error| Failure::new(Code::FAILED, format!("{name}: {error}")))?;
        let mut unfinished = Unfinished(Some(path));
        let bytes = read(response, &mut &file, &name).await?;
        unfinished.0 = None;
        Ok(bytes)
    }
}

/// A file that goes when it is not finished, also when the fetch is told to end.
struct Unfinished<'a>(Option<&'a Path>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // There is nobody left to tell.
            let _ = fs::remove_file(path);
        }
    }
}

async fn read(
    response: &mut reqwest::Response,
    to: &mut impl io::Write,
    name: &str,
) -> Result<usize, Failure> {
    let mut bytes = 0;
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                bytes += chunk.len();
                let written = to.write_all(&chunk);
                written.map_err(|error| Failure::new(Code::FAILED, format!("{name}: {error}")))?;
            }
            Ok(None) => return Ok(bytes),
            Err(error) => {
                let info = response.extensions().get::<LeaseInfo>();
                let endpoint = info.map_or("", |info| info.endpoint().as_str());
                return Err(cut_off(&error).about(&format!("endpoint {endpoint}")));
            }
        }
    }
}

/// From the longest time for an exchange to the deadline of its lease.
const BEYOND: Duration = Duration::from_secs(10);

fn failed(error: &reqwest_middleware::Error) -> Failure {
    match (Error::find_in(error), error) {
        (Some(error), _) => error.clone().into(),
        (None, reqwest_middleware::Error::Reqwest(error)) => cut_off(error),
        (None, other) => Failure::new(Code::FAILED, other.to_string()),
    }
}

/// An error of the exchange, without the address.
fn cut_off(error: &reqwest::Error) -> Failure {
    if let Some(error) = Error::find(error) {
        return error.clone().into();
    }
    let what = if error.is_timeout() {
        "the exchange was not over in time"
    } else if error.is_connect() {
        "the site could not be reached through the endpoint"
    } else if error.is_body() || error.is_decode() {
        "the answer was cut off"
    } else {
        "the exchange failed"
    };
    let cause = |error: &dyn std::error::Error| {
        let mut last = error.source()?;
        while let Some(next) = last.source() {
            last = next;
        }
        Some(last.to_string())
    };
    let why = cause(error).map(|why| format!(": {why}")).unwrap_or_default();
    let code = if error.is_timeout() { Code::LATE } else { Code::FAILED };
    Failure::new(code, format!("{what}{why}"))
}
