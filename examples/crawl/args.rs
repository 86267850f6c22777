//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;
use reqwest_lease::{Budget, PoolName};
use url::Url;

/// Crawls web sites through leased proxy endpoints.
///
/// Without arguments it starts a small site and three proxies on loopback, one of which dies
/// half-way, and crawls that. With an inventory and addresses it does the same for real: it
/// follows links that stay on the sites of the given pages, and keeps to robots.txt.
#[derive(Debug, Parser)]
#[command(name = "crawl")]
pub(crate) struct Args {
    /// Proxy endpoints, a TOML file
    #[arg(long, value_name = "FILE", requires = "urls")]
    pub(crate) inventory: Option<PathBuf>,

    /// Name of the pool of endpoints
    #[arg(long, value_name = "NAME", default_value = "crawl", value_parser = pool_name)]
    pub(crate) pool: PoolName,

    /// Keep the pool in this Redis, which other crawlers share; it is set up if need be
    #[cfg(feature = "redis")]
    #[arg(long, value_name = "URL", env = "LEASE_REDIS_URL", hide_env_values = true)]
    pub(crate) redis: Option<String>,

    /// Most pages to fetch
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) max_pages: NonZeroUsize,

    /// Most pages to fetch at the same time
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) concurrency: NonZeroUsize,

    /// Requests per second to one site, as in 2 or 0.5 [default: 1, or 100 to the site on loopback]
    #[arg(long, value_name = "R", value_parser = budget)]
    per_second: Option<Budget>,

    /// What to call itself; its product name is looked up in robots.txt
    #[arg(long, value_name = "S", default_value = USER_AGENT, value_parser = user_agent)]
    pub(crate) user_agent: String,

    /// Pages to start from
    #[arg(value_name = "URL", requires = "inventory", value_parser = page)]
    pub(crate) urls: Vec<Url>,
}

impl Args {
    /// How fast one site may be asked.
    pub(crate) fn budget(&self) -> Budget {
        let default = if self.inventory.is_some() { 1 } else { 100 };
        self.per_second.unwrap_or(Budget::per_second(default))
    }
}

const USER_AGENT: &str = concat!("reqwest-lease-crawl/", env!("CARGO_PKG_VERSION"));

fn pool_name(text: &str) -> Result<PoolName, String> {
    PoolName::new(text).map_err(|error| error.to_string())
}

/// A rate may be a fraction; counting by the day keeps it within a thousandth, down to 0.01.
fn budget(text: &str) -> Result<Budget, &'static str> {
    let rate: f64 = text.parse().map_err(|_| "not a number")?;
    let per_day = (rate * 86_400.0).round();
    if !(1.0..=f64::from(u32::MAX)).contains(&per_day) {
        return Err("not between one a day and 49,710 a second");
    }
    Ok(Budget::per_day(per_day as u32))
}

fn user_agent(text: &str) -> Result<String, &'static str> {
    let named = text.starts_with(|first: char| first.is_ascii_alphabetic());
    let sendable = http::HeaderValue::from_str(text).is_ok();
    (named && sendable).then(|| text.to_owned()).ok_or("it has to begin with a product name")
}

fn page(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|error| format!("{error}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(format!("{scheme} is not http or https")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::try_parse_from(line.split(' ')).map_err(|error| error.to_string())
    }

    #[test]
    fn rates_may_be_fractions() {
        let budget = |line| parse(line).unwrap().budget();
        assert_eq!(budget("crawl --per-second 0.5"), Budget::per_day(43_200));
        assert_eq!(budget("crawl --per-second 4"), Budget::per_day(4 * 86_400));
        for bad in ["0", "-1", "inf", "NaN", "1e30", "fast"] {
            let error = parse(&format!("crawl --per-second={bad}")).unwrap_err();
            assert!(error.contains("--per-second"), "{error}");
        }
    }

    #[test]
    fn pages_need_an_inventory_and_the_reverse() {
        let error = parse("crawl http://a.test/").unwrap_err();
        assert!(error.contains("--inventory <FILE>"), "{error}");
        let error = parse("crawl --inventory x.toml").unwrap_err();
        assert!(error.contains("<URL>"), "{error}");
        assert!(parse("crawl --inventory x.toml http://a.test/").is_ok());
        assert!(parse("crawl").is_ok());
    }

    #[test]
    fn what_cannot_be_crawled_is_refused() {
        let line = |url| format!("crawl --inventory x.toml {url}");
        assert!(parse(&line("ftp://a.test/")).unwrap_err().contains("ftp is not http"));
        assert!(parse(&line("a.test")).unwrap_err().contains("relative URL"));
        assert!(parse("crawl --user-agent 1x").unwrap_err().contains("product name"));
        assert!(parse("crawl --pool a{b").is_err());
        assert!(parse("crawl --max-pages 0").is_err());
    }
}
