//! What a site's robots.txt allows (RFC 9309).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use reqwest_lease::{Budgets, Site};
use reqwest_middleware::ClientWithMiddleware;
use texting_robots::Robot;
use tokio::sync::OnceCell;
use url::{Origin, Url};

use crate::fetch::{Failure, Fetched, fetch};

/// The rules of every site met so far, each fetched once, before the site's first page.
pub(crate) struct Robots {
    agent: String,
    known: Mutex<HashMap<Origin, Arc<OnceCell<Rules>>>>,
    news: Mutex<Vec<(Url, Result<Fetched, Failure>)>>,
}

impl Robots {
    /// For a crawler with this `User-Agent`, whose product name is what rules are looked up by.
    pub(crate) fn new(user_agent: &str) -> Self {
        let product = user_agent.split(|c: char| !matches!(c, 'A'..='Z' | 'a'..='z' | '_' | '-'));
        let agent = product.into_iter().next().unwrap_or_default().to_owned();
        Self { agent, known: Mutex::default(), news: Mutex::default() }
    }

    /// Why this page may not be fetched; `None` when it may.
    ///
    /// A `Crawl-delay` slows the site's budget down.
    pub(crate) async fn objection(
        &self,
        client: &ClientWithMiddleware,
        budgets: &Budgets,
        url: &Url,
    ) -> Option<Objection> {
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(url.origin()).or_default())
        };
        let rules = cell.get_or_init(|| self.learn(client, budgets, url)).await;
        rules.objection(url)
    }

    /// The files that were asked for since the last call, and what came of it.
    pub(crate) fn news(&self) -> Vec<(Url, Result<Fetched, Failure>)> {
        std::mem::take(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn learn(&self, client: &ClientWithMiddleware, budgets: &Budgets, url: &Url) -> Rules {
        let Ok(address) = url.join("/robots.txt") else { return Rules::Everything };
        let answer = ask(client, &address).await;
        let rules = match &answer {
            Ok(fetched) => Rules::read(&self.agent, fetched.status, &fetched.body),
            Err(failure) => Rules::Nothing(failure.to_string()),
        };
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push((address, answer));
        if let (Some(delay), Some(site)) = (rules.delay(), Site::of(url)) {
            budgets.slow(&site, delay, KEPT_FOR);
        }
        rules
    }
}

/// Why a page is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Objection {
    /// robots.txt says so.
    Disallowed,
    /// robots.txt could not be had, so nothing may be fetched.
    Unknown(String),
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disallowed => f.write_str("disallowed by robots.txt"),
            Self::Unknown(why) => write!(f, "robots.txt could not be fetched: {why}"),
        }
    }
}

/// How long a robots.txt may be gone by (RFC 9309 §2.4).
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// How much of a robots.txt is read; RFC 9309 §2.5 asks for 500 KiB at least.
const MAX_BYTES: usize = 512 * 1024;

const TRIES: usize = 3;

async fn ask(client: &ClientWithMiddleware, address: &Url) -> Result<Fetched, Failure> {
    let mut tries = 1;
    loop {
        match fetch(client, address, MAX_BYTES).await {
            Err(failure) if failure.transient && tries < TRIES => tries += 1,
            answer => return answer,
        }
    }
}

enum Rules {
    Everything,
    Nothing(String),
    Listed(Box<Robot>),
}

impl Rules {
    fn read(agent: &str, status: StatusCode, body: &[u8]) -> Self {
        if status.is_client_error() {
            return Self::Everything;
        }
        if !status.is_success() {
            return Self::Nothing(format!("the answer was {status}"));
        }
        match Robot::new(agent, body) {
            Ok(robot) => Self::Listed(Box::new(robot)),
            Err(error) => Self::Nothing(error.to_string()),
        }
    }

    fn objection(&self, url: &Url) -> Option<Objection> {
        match self {
            Self::Everything => None,
            Self::Nothing(why) => Some(Objection::Unknown(why.clone())),
            Self::Listed(robot) => (!robot.allowed(url.as_str())).then_some(Objection::Disallowed),
        }
    }

    fn delay(&self) -> Option<Duration> {
        let Self::Listed(robot) = self else { return None };
        let delay = Duration::try_from_secs_f32(robot.delay?).ok()?;
        (!delay.is_zero()).then_some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 0.5\n\n\
                          User-agent: other\nDisallow: /\n";

    fn objection(rules: &Rules, url: &str) -> Option<Objection> {
        rules.objection(&url.parse().unwrap())
    }

    #[test]
    fn listed_rules_are_kept_to() {
        let rules = Rules::read("me", StatusCode::OK, FILE);
        assert_eq!(objection(&rules, "http://a.test/x"), None);
        assert_eq!(objection(&rules, "http://a.test/private/x"), Some(Objection::Disallowed));
        assert_eq!(rules.delay(), Some(Duration::from_millis(500)));
        let rules = Rules::read("other", StatusCode::OK, FILE);
        assert_eq!(objection(&rules, "http://a.test/x"), Some(Objection::Disallowed));
    }

    #[test]
    fn no_file_allows_everything_and_a_broken_server_nothing() {
        let rules = Rules::read("me", StatusCode::NOT_FOUND, FILE);
        assert_eq!(objection(&rules, "http://a.test/private/x"), None);
        let rules = Rules::read("me", StatusCode::BAD_GATEWAY, FILE);
        assert!(matches!(objection(&rules, "http://a.test/x"), Some(Objection::Unknown(_))));
    }

    #[test]
    fn rules_are_looked_up_by_the_product_name() {
        assert_eq!(Robots::new("my-crawler/1.0 (+http://a.test)").agent, "my-crawler");
    }
}
