//! What a site's answer says of its limits.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use url::Url;

use super::hints::hint;
use super::line::Line;
use super::pause::{Event, Probe};
use super::queue::{Limits, Queue, wake};
use super::retry_after::retry_after;
use super::rules::Rule;
use super::schedule::By;
use super::turn::Passage;
use super::{Budgets, Inner};
use crate::error::Error;
use crate::site::Site;

impl Budgets {
    /// Heeds an answer that is the site's own, to the request that this passage was for. How
    /// long the site is paused from now on, if it is.
    pub(crate) fn answered(
        &self,
        site: &Site,
        port: Option<u16>,
        passage: &Passage,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<Duration> {
        let inner = &*self.0;
        let refused =
            matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        if refused && inner.common.pauses.enabled {
            return Some(inner.refused(site, port, passage, headers));
        }
        if !refused
            && inner.common.is_watched()
            && let Some(queue) = inner.known(site, port)
        {
            queue.succeeded(passage);
        }
        if inner.common.pauses.hints
            && !status.is_redirection()
            && let Some((delay, window)) = hint(headers)
        {
            let longest = inner.common.pauses.longest;
            inner.slow(site, port, By::Hint, delay.min(longest), window.min(longest));
        }
        None
    }
}

impl Budgets {
    /// Ends the pause of the site of a URL, and forgets those before it; whether there was one.
    /// What is charged stays charged.
    ///
    /// Where the budget is shared it ends the pause in this process and for those that have not met
    /// it; the others were told how long it lasts, and wait. A URL that no site can be asked for
    /// has no pause.
    ///
    /// # Errors
    /// [`StoreUnavailable`](crate::Kind::StoreUnavailable) and
    /// [`StoreRefused`](crate::Kind::StoreRefused) of shared budgets; then the pause goes on.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the pause of the other processes or ends it.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), reqwest_lease::Error> {
    /// use reqwest_lease::{Budget, Budgets};
    ///
    /// let budgets = Budgets::builder().suffix("example.org", Budget::per_second(1)).build()?;
    /// let url = "https://www.example.org/".parse().unwrap();
    /// assert!(!budgets.end_pause(&url).await?, "there is none");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn end_pause(&self, url: &Url) -> Result<bool, Error> {
        let (inner, port) = (&*self.0, url.port_or_known_default());
        let Some(site) = Site::of(url) else { return Ok(false) };
        // One that only other processes know may be paused as well.
        let queue = match inner.rules.find(&site, port) {
            Rule::None => inner.known(&site, port),
            _ => Some(inner.bucket(&site, port)),
        };
        match queue {
            Some(queue) => queue.end_pause().await,
            None => Ok(false),
        }
    }
}

impl Inner {
    fn refused(
        &self,
        site: &Site,
        port: Option<u16>,
        passage: &Passage,
        headers: &HeaderMap,
    ) -> Duration {
        let said = retry_after(headers);
        let longest = self.common.pauses.longest;
        let cut = said.is_some_and(|said| said > longest);
        if cut {
            self.common.counters.pauses_cut.add_one();
            let (said, longest) = (said.unwrap_or_default().as_secs(), longest.as_secs());
            tracing::warn!(%site, said, longest, "the site asked for a longer pause than allowed");
        }
        self.common.watch();
        let refusal = self.bucket(site, port).refused(passage, said.map(|said| said.min(longest)));
        let (left, nth) = (refusal.left, refusal.nth);
        if refusal.is_new {
            self.common.counters.pauses.add_one();
            let (left_ms, gives_up) = (left.as_millis(), nth > self.common.pauses.most);
            if gives_up {
                tracing::warn!(%site, nth, left_ms, "the site goes on refusing after its pauses");
            } else {
                tracing::debug!(%site, nth, left_ms, "the site asked for a pause");
            }
        }
        left
    }

    /// The bucket of a site, if it has one.
    fn known(&self, site: &Site, port: Option<u16>) -> Option<Arc<Queue>> {
        match self.rules.find(site, port) {
            Rule::Port(_, queue)
            | Rule::Host(queue)
            | Rule::Suffix(_, queue)
            | Rule::Domain(_, queue) => Some(Arc::clone(queue)),
            Rule::Default(_, of) => self.sites.find(super::Kind::Site, of),
            Rule::None => self.sites.find(super::Kind::Site, site.as_str()),
        }
    }

    /// How long a site's present pause still lasts.
    pub(super) fn paused(&self, site: &Site, port: Option<u16>) -> Option<Duration> {
        let queue = self.known(site, port)?;
        let now = queue.now();
        let state = queue.state();
        let pause = state.pause.as_deref().filter(|pause| pause.is_on(now))?;
        Some(pause.until.since(now))
    }
}

/// What a refusal came to.
struct Refused {
    is_new: bool,
    left: Duration,
    nth: u32,
}

impl Queue {
    fn refused(self: &Arc<Self>, passage: &Passage, said: Option<Duration>) -> Refused {
        let now = self.now();
        let (refused, until, lapsed, wakers) = {
            let mut state = self.state();
            let pause = state.pause();
            let is_new = matches!(pause.refused(passage.sent, now, said), Event::Began);
            let (until, nth) = (pause.until, pause.nth);
            let refused = Refused { is_new, left: until.since(now), nth };
            // After the pause, slots begin anew.
            let lapsed = state.schedule.forget_kept();
            let wakers = state.line.as_deref_mut().map(Line::wake_all);
            (refused, until, lapsed, wakers)
        };
        if let Limits::Remote(limiter) = &self.limiter {
            lapsed.into_iter().for_each(|slot| limiter.lapsed(slot));
            limiter.paused(until, refused.nth, said.is_some(), passage.admission(self));
        }
        wake(wakers.into_iter().flatten());
        refused
    }

    async fn end_pause(&self) -> Result<bool, Error> {
        let was_shared = match &self.limiter {
            Limits::Remote(limiter) => limiter.end_pause().await?,
            Limits::None | Limits::Local(_) => false,
        };
        let (pause, wakers) = {
            let mut state = self.state();
            state.ask_anew();
            (state.pause.take(), state.line.as_deref_mut().map(Line::wake_all))
        };
        wake(wakers.into_iter().flatten());
        Ok(was_shared || pause.is_some_and(|pause| pause.probe != Probe::Answered))
    }

    fn succeeded(self: &Arc<Self>, passage: &Passage) {
        let waker = {
            let mut state = self.state();
            let Some(pause) = state.pause.as_deref_mut() else { return };
            if !pause.answered(passage.sent) {
                return;
            }
            // The others start at the rate, whatever came due while the probe was out.
            self.restart(&mut state.schedule, self.now());
            state.line.as_deref_mut().and_then(Line::signal)
        };
        if let Limits::Remote(limiter) = &self.limiter
            && let Some(probe) = passage.admission(self).filter(|admission| admission.probe)
        {
            limiter.succeeded(probe);
        }
        wake(waker);
    }
}
