//! What is still to be fetched.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use reqwest_lease::Site;
use url::Url;

/// The pages to fetch: each address once, and only on the sites of the seeds.
#[derive(Default)]
pub(crate) struct Frontier {
    queue: VecDeque<Job>,
    seen: HashSet<Url>,
    sites: HashSet<Site>,
}

/// One page to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// Its address, without a fragment.
    pub(crate) url: Url,
    /// Whether the user asked for it by name.
    pub(crate) seed: bool,
    /// How long to wait first.
    pub(crate) pause: Duration,
    tries: u32,
}

/// How often a page is asked for when the failures are passing ones.
const MAX_TRIES: u32 = 3;

impl Frontier {
    /// Starts from these pages, whose sites are the ones to stay on.
    pub(crate) fn new(seeds: impl IntoIterator<Item = Url>) -> Self {
        let mut frontier = Self::default();
        for seed in seeds {
            frontier.stay_on(&seed);
            frontier.add(seed, true);
        }
        frontier
    }

    /// Counts the site of this page among those to stay on, as when a seed redirects to it.
    pub(crate) fn stay_on(&mut self, url: &Url) {
        self.sites.extend(Site::of(url));
    }

    /// Takes in a link, unless it is known already or leads away.
    pub(crate) fn offer(&mut self, url: Url) {
        if self.covers(&url) {
            self.add(url, false);
        }
    }

    /// Marks a page as fetched, by whichever address; false when it was known.
    pub(crate) fn reached(&mut self, url: &Url) -> bool {
        self.seen.insert(without_fragment(url.clone()))
    }

    /// The next page.
    pub(crate) fn next(&mut self) -> Option<Job> {
        self.queue.pop_front()
    }

    /// Puts a page back after a passing failure; false when it has had its tries.
    pub(crate) fn again(&mut self, mut job: Job, pause: Duration) -> bool {
        job.tries += 1;
        let more = job.tries < MAX_TRIES;
        if more {
            self.later(job, pause);
        }
        more
    }

    /// Puts a page back that was not tried at all.
    pub(crate) fn later(&mut self, job: Job, pause: Duration) {
        self.queue.push_back(Job { pause, ..job });
    }

    /// Whether this page is on one of the sites to stay on.
    pub(crate) fn covers(&self, url: &Url) -> bool {
        Site::of(url).is_some_and(|site| self.sites.contains(&site))
    }

    /// How many pages wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    fn add(&mut self, url: Url, seed: bool) {
        let url = without_fragment(url);
        if self.seen.insert(url.clone()) {
            self.queue.push_back(Job { url, seed, pause: Duration::ZERO, tries: 0 });
        }
    }
}

fn without_fragment(mut url: Url) -> Url {
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn all(mut frontier: Frontier) -> Vec<String> {
        std::iter::from_fn(|| frontier.next()).map(|job| job.url.to_string()).collect()
    }

    #[test]
    fn an_address_is_fetched_once_whatever_its_fragment() {
        let mut frontier = Frontier::new([url("http://a.test/#x"), url("http://a.test/")]);
        frontier.offer(url("http://a.test/b#one"));
        frontier.offer(url("http://a.test/b#two"));
        assert!(frontier.reached(&url("http://a.test/c")));
        frontier.offer(url("http://a.test/c"));
        assert_eq!(all(frontier), ["http://a.test/", "http://a.test/b"]);
    }

    #[test]
    fn links_to_other_sites_are_left_alone() {
        let mut frontier = Frontier::new([url("http://a.test/")]);
        frontier.offer(url("http://b.test/"));
        frontier.offer(url("mailto:x@a.test"));
        frontier.offer(url("https://a.test/secure"));
        assert_eq!(all(frontier), ["http://a.test/", "https://a.test/secure"]);
    }

    #[test]
    fn a_page_is_put_back_a_few_times() {
        let mut frontier = Frontier::new([url("http://a.test/")]);
        let mut tries = 0;
        while let Some(job) = frontier.next() {
            tries += 1;
            frontier.again(job, Duration::ZERO);
        }
        assert_eq!(tries, MAX_TRIES);
    }
}
