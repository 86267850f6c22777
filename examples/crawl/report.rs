//! What the crawl prints: a line per page, and a summary.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use reqwest_lease::{EndpointId, MemberState, Site, State};
use url::Url;

use crate::crawl::Turn;
use crate::fetch::{Failure, Fetched};
use crate::robots::Objection;
use crate::table::print;

/// Prints pages as they come and keeps the sums.
pub(crate) struct Report<W> {
    out: W,
    bar: ProgressBar,
    endpoint_width: usize,
    endpoints: BTreeMap<EndpointId, Sum>,
    sites: BTreeMap<Site, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    requests: u64,
    failures: u64,
    bytes: u64,
    cooldowns: u64,
    strikes: u32,
    waits: u64,
    waited: Duration,
}

impl<W: Write> Report<W> {
    /// Prints to `out`; a progress bar goes to stderr when that is a terminal.
    pub(crate) fn new(out: W, members: &[MemberState]) -> io::Result<Self> {
        let widths = members.iter().map(|member| member.endpoint.as_str().len());
        let mut report = Self {
            out,
            bar: bar(),
            endpoint_width: widths.chain(["ENDPOINT".len()]).max().unwrap_or_default(),
            endpoints: BTreeMap::new(),
            sites: BTreeMap::new(),
        };
        for member in members {
            report.endpoints.entry(member.endpoint.clone()).or_default().strikes = member.strikes;
        }
        report.line("STATUS", "ENDPOINT", &"WAITED", &"TOOK", &"URL")?;
        Ok(report)
    }

    /// One page, however it ended.
    pub(crate) fn page(&mut self, url: &Url, turn: &Turn, waiting: usize) -> io::Result<()> {
        self.bar.inc(1);
        self.bar.set_length(self.bar.position() + waiting as u64);
        self.count(url, turn);
        match turn {
            Turn::Fetched(fetched) => self.fetched(url, fetched),
            Turn::Failed(failure) => self.failed("failed", url, failure),
            Turn::PutBack(failure) => self.failed("again", url, failure),
            Turn::Barred(objection) => self.barred(url, objection),
        }
    }

    /// Takes notice of cooldowns: each failure in a row is one.
    pub(crate) fn members(&mut self, members: &[MemberState]) {
        for member in members {
            let sum = self.endpoints.entry(member.endpoint.clone()).or_default();
            sum.cooldowns += u64::from(member.strikes.saturating_sub(sum.strikes));
            sum.strikes = member.strikes;
        }
    }

    /// The sums, and how the endpoints stand at the end.
    pub(crate) fn summary(&mut self, members: &[MemberState]) -> io::Result<()> {
        self.bar.finish_and_clear();
        self.members(members);
        let state =
            |endpoint: &EndpointId| members.iter().find(|member| member.endpoint == *endpoint);
        let rows = self.endpoints.iter().map(|(endpoint, sum)| {
            let state = state(endpoint).map_or("gone", |member| word(member.state));
            sum.row(endpoint.as_str(), Some((sum.cooldowns, state)))
        });
        let mut table = vec![heads("endpoint", &["cooldowns", "state"])];
        table.extend(rows);
        print(&mut self.out, &table)?;
        let mut table = vec![heads("site", &[])];
        table.extend(self.sites.iter().map(|(site, sum)| sum.row(site.as_str(), None)));
        print(&mut self.out, &table)
    }

    /// A line of its own after the summary.
    pub(crate) fn closing(&mut self, line: fmt::Arguments<'_>) -> io::Result<()> {
        writeln!(self.out, "\n{line}")
    }

    fn count(&mut self, url: &Url, turn: &Turn) {
        let Some(site) = Site::of(url) else { return };
        match turn {
            Turn::Fetched(fetched) => {
                let (bytes, route) = (fetched.body.len() as u64, &fetched.route);
                self.sites.entry(site).or_default().add(route.hops, bytes, route.budget_wait);
                let sum = self.endpoints.entry(route.endpoint.clone()).or_default();
                sum.add(route.hops, bytes, route.lease_wait);
                self.blame(&route.failed);
            }
            Turn::Failed(failure) | Turn::PutBack(failure) => {
                self.sites.entry(site).or_default().failures += 1;
                self.blame(&failure.tried);
            }
            Turn::Barred(_) => {}
        }
    }

    fn blame(&mut self, endpoints: &[EndpointId]) {
        for endpoint in endpoints {
            self.endpoints.entry(endpoint.clone()).or_default().failures += 1;
        }
    }

    fn fetched(&mut self, url: &Url, fetched: &Fetched) -> io::Result<()> {
        let route = &fetched.route;
        let moved = if fetched.url == *url { "" } else { fetched.url.as_str() };
        let arrow = if moved.is_empty() { "" } else { " -> " };
        let (waited, took) = (Seconds(route.waited()), Seconds(fetched.took));
        let url = format_args!("{url}{arrow}{moved}");
        self.line(fetched.status.as_str(), route.endpoint.as_str(), &waited, &took, &url)
    }

    fn failed(&mut self, status: &str, url: &Url, failure: &Failure) -> io::Result<()> {
        let endpoint = failure.tried.last().map_or("-", EndpointId::as_str).to_owned();
        self.line(status, &endpoint, &"-", &"-", &format_args!("{url} {failure}"))
    }

    fn barred(&mut self, url: &Url, objection: &Objection) -> io::Result<()> {
        self.line("robots", "-", &"-", &"-", &format_args!("{url} {objection}"))
    }

    fn line(
        &mut self,
        status: &str,
        endpoint: &str,
        waited: &dyn fmt::Display,
        took: &dyn fmt::Display,
        rest: &dyn fmt::Display,
    ) -> io::Result<()> {
        let (out, width) = (&mut self.out, self.endpoint_width);
        self.bar.suspend(|| {
            writeln!(out, "{status:<6}  {endpoint:<width$}  {waited:>8}  {took:>8}  {rest}")
        })
    }
}

impl Sum {
    fn add(&mut self, hops: usize, bytes: u64, waited: Duration) {
        self.requests += 1 + hops as u64;
        self.bytes += bytes;
        self.waits += u64::from(waited >= Duration::from_millis(1));
        self.waited += waited;
    }

    fn row(&self, name: &str, endpoint: Option<(u64, &str)>) -> Vec<String> {
        let mut row = vec![
            name.to_owned(),
            self.requests.to_string(),
            self.failures.to_string(),
            BinaryBytes(self.bytes).to_string(),
            self.waits.to_string(),
            Seconds(self.waited).to_string(),
        ];
        if let Some((cooldowns, state)) = endpoint {
            row.extend([cooldowns.to_string(), state.to_owned()]);
        }
        row
    }
}

fn heads(first: &str, more: &[&str]) -> Vec<String> {
    let common = [first, "requests", "failures", "bytes", "waits", "waited"];
    common.iter().chain(more).map(|head| head.to_uppercase()).collect()
}

fn word(state: State) -> &'static str {
    match state {
        State::Ready => "ready",
        State::Cooling(_) => "cooling",
        State::Leased(_) => "leased",
        State::Expired => "expired",
        State::Disabled => "disabled",
        State::Quarantined(_) => "quarantined",
        _ => "other",
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} pages {per_sec} {elapsed}");
    let bar = ProgressBar::new(1);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.3}s", self.0.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_padded_like_text() {
        assert_eq!(format!("{:>8}", Seconds(Duration::from_millis(1500))), "  1.500s");
    }
}
