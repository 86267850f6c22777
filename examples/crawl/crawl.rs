//! The crawl itself: pages under way, links found, tries counted.

use std::io::{self, Write};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http::StatusCode;
use reqwest_lease::{Budgets, Pool};
use reqwest_middleware::ClientWithMiddleware;
use url::Url;

use crate::fetch::{Failure, Fetched, fetch};
use crate::frontier::{Frontier, Job};
use crate::links::links;
use crate::report::Report;
use crate::robots::{Objection, Robots};

/// What a crawl works with.
pub(crate) struct Crawler {
    pub(crate) pool: Pool,
    pub(crate) budgets: Budgets,
    pub(crate) client: ClientWithMiddleware,
    pub(crate) robots: Robots,
    pub(crate) max_pages: usize,
    pub(crate) concurrency: usize,
}

/// How one try at a page ended.
pub(crate) enum Turn {
    /// It is there.
    Fetched(Fetched),
    /// It is not, for good.
    Failed(Failure),
    /// It is not yet, and will be asked for again.
    PutBack(Failure),
    /// robots.txt keeps it out.
    Barred(Objection),
}

impl From<Result<Fetched, Failure>> for Turn {
    fn from(answer: Result<Fetched, Failure>) -> Self {
        answer.map_or_else(Self::Failed, Self::Fetched)
    }
}

/// How a crawl ended.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Answers, whatever their status.
    answers: usize,
    /// Pages that were fetched.
    pub(crate) pages: usize,
    /// Why the last page that was not fetched was not.
    last_trouble: Option<String>,
}

impl Tally {
    fn answered(&mut self, status: StatusCode) {
        self.answers += 1;
        if status.is_success() {
            self.pages += 1;
        } else {
            self.last_trouble = Some(format!("the answer was {status}"));
        }
    }

    /// Why there is no page at all.
    pub(crate) fn why_none(&self) -> String {
        let why = self.last_trouble.as_deref().unwrap_or("there was nothing to fetch");
        format!("no page was fetched: {why}")
    }
}

/// The most that is read of a page.
const MAX_PAGE_BYTES: usize = 4 << 20;

impl Crawler {
    /// Crawls from these pages to the end or to the most pages.
    pub(crate) async fn run<W: Write>(
        &self,
        seeds: Vec<Url>,
        report: &mut Report<W>,
    ) -> io::Result<Tally> {
        let mut frontier = Frontier::new(seeds);
        let mut under_way = FuturesUnordered::new();
        let mut tally = Tally::default();
        loop {
            while under_way.len() < self.concurrency
                && tally.answers + under_way.len() < self.max_pages
                && let Some(job) = frontier.next()
            {
                under_way.push(self.visit(job));
            }
            let Some((job, turn)) = under_way.next().await else { return Ok(tally) };
            for (url, answer) in self.robots.news() {
                report.page(&url, &answer.into(), frontier.len() + under_way.len())?;
            }
            let url = job.url.clone();
            let turn = settle(job, turn, &mut frontier, &mut tally);
            report.page(&url, &turn, frontier.len() + under_way.len())?;
            self.notice_trouble(&turn, report).await;
        }
    }

    async fn visit(&self, job: Job) -> (Job, Turn) {
        if let Some(objection) = self.robots.objection(&self.client, &self.budgets, &job.url).await
        {
            return (job, Turn::Barred(objection));
        }
        tokio::time::sleep(job.pause).await;
        let turn = fetch(&self.client, &job.url, MAX_PAGE_BYTES).await.into();
        (job, turn)
    }

    async fn notice_trouble<W: Write>(&self, turn: &Turn, report: &mut Report<W>) {
        let smooth = matches!(turn, Turn::Fetched(fetched) if fetched.route.failed.is_empty());
        if !smooth && let Ok(members) = self.pool.list().await {
            report.members(&members);
        }
    }
}

fn settle(job: Job, turn: Turn, frontier: &mut Frontier, tally: &mut Tally) -> Turn {
    match &turn {
        Turn::Fetched(fetched) => {
            tally.answered(fetched.status);
            follow(&job, fetched, frontier);
        }
        Turn::Failed(failure) => {
            tally.last_trouble = Some(failure.to_string());
            let pause = failure.retry_after.unwrap_or_default();
            if failure.is_wait() {
                frontier.later(job, pause);
                return put_back(turn);
            }
            if failure.transient && frontier.again(job, pause) {
                return put_back(turn);
            }
        }
        Turn::PutBack(_) => {}
        Turn::Barred(objection) => tally.last_trouble = Some(objection.to_string()),
    }
    turn
}

fn put_back(turn: Turn) -> Turn {
    match turn {
        Turn::Failed(failure) => Turn::PutBack(failure),
        other => other,
    }
}

fn follow(job: &Job, fetched: &Fetched, frontier: &mut Frontier) {
    if job.seed {
        frontier.stay_on(&fetched.url);
    }
    let new = frontier.reached(&fetched.url) || fetched.url == job.url;
    if new && fetched.html && fetched.status.is_success() && frontier.covers(&fetched.url) {
        for link in links(&fetched.url, &String::from_utf8_lossy(&fetched.body)) {
            frontier.offer(link);
        }
    }
}
