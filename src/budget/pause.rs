//! What a site's "not now" (429, 503) does to its bucket.

use std::time::Duration;

use super::clock::{At, nanos};
use crate::random;

/// How 429 and 503 answers pause a site, for every endpoint of this process.
///
/// A pause lasts as long as `Retry-After` says (RFC 9110 section 10.2.3, in seconds or as a
/// date). Where the answer does not say, or says zero, a time that has passed, several or
/// nonsense, it lasts 2 s at first and twice as long each time, up to 60 s and with up to a tenth
/// more at random; five minutes without a pause end the doubling. Answers to requests that were
/// sent before the pause began belong to it: they can make it longer, but are no new one. A
/// pause ends with one request, and if the site answers that, the others follow at the
/// budget's rate without a burst.
///
/// - longest pause: 1 h; what a site says beyond it is cut, with a warning
/// - most pauses in a row: 5; then the site's waiting requests fail with
///   [`SiteRefuses`](crate::Kind::SiteRefuses), and newcomers until that pause is over
/// - rate limit hints: not read
///
/// ```
/// use std::time::Duration;
/// use reqwest_lease::{Budgets, Pauses};
///
/// let pauses = Pauses::new().longest(Duration::from_secs(600)).rate_limit_hints(true);
/// let budgets = Budgets::builder().pauses(pauses).build()?;
/// # Ok::<(), reqwest_lease::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Pauses {
    pub(super) longest: Duration,
    pub(super) most: u32,
    pub(super) hints: bool,
    pub(super) enabled: bool,
}

impl Pauses {
    /// The defaults.
    pub const fn new() -> Self {
        let longest = Duration::from_secs(3600);
        Self { longest, most: 5, hints: false, enabled: true }
    }

    /// No answer pauses a site.
    pub const fn none() -> Self {
        Self { enabled: false, ..Self::new() }
    }

    /// The longest pause that a site may ask for. Default 1 h; zero is refused when built.
    pub const fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// How many pauses in a row, each ended by one request that was refused again, are waited
    /// for. Default 5; zero is refused when built.
    pub const fn most_in_a_row(mut self, most: u32) -> Self {
        self.most = most;
        self
    }

    /// Whether the fields `RateLimit` and `RateLimit-Policy` of an IETF draft slow a site down
    /// (`draft-ietf-httpapi-ratelimit-headers`). Default no.
    ///
    /// What is left is spread evenly over the time that it has to last. They never raise a rate,
    /// `Retry-After` wins, and what cannot be parsed, counts other things than requests or comes
    /// with a redirect is ignored.
    pub const fn rate_limit_hints(mut self, read: bool) -> Self {
        self.hints = read;
        self
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        match (self.longest.is_zero(), self.most) {
            (true, _) => Err("the longest pause is zero"),
            (_, 0) => Err("the most pauses in a row are zero"),
            _ => Ok(()),
        }
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self::new()
    }
}

/// The last pause of a bucket, and what is remembered of those before.
pub(super) struct Pause {
    /// `None` before the first one.
    pub(super) began: Option<At>,
    pub(super) until: At,
    /// How many there were without a success, this one included.
    pub(super) nth: u32,
    /// How often the site's silence about the time was met with a doubled one.
    doublings: u32,
    pub(super) probe: Probe,
}

/// The one request that ends a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// It has not gone out yet, and nothing was stored up meanwhile.
    Due,
    Out,
    Answered,
}

/// What an answer came to.
pub(super) enum Event {
    /// A new pause began.
    Began,
    /// It belongs to the present pause.
    Known,
}

impl Pause {
    /// Before the first one.
    pub(super) fn none() -> Self {
        let until = At::default();
        Self { began: None, until, nth: 0, doublings: 0, probe: Probe::Answered }
    }

    /// A request that was sent at `sent` was refused, for as long as the site says, if it does.
    pub(super) fn refused(&mut self, sent: At, now: At, said: Option<Duration>) -> Event {
        if self.began.is_some_and(|began| sent <= began) {
            if let Some(until) =
                said.map(|said| now.after(said)).filter(|until| *until > self.until)
            {
                self.until = until;
                if self.probe == Probe::Answered {
                    self.probe = Probe::Due;
                }
            }
            return Event::Known;
        }
        if self.is_forgotten(now) {
            *self = Self::none();
        }
        let span = said.unwrap_or_else(|| {
            self.doublings += 1;
            own_pause(self.doublings - 1)
        });
        self.until = self.until.max(now.after(span));
        (self.began, self.probe) = (Some(now), Probe::Due);
        self.nth = self.nth.saturating_add(1);
        Event::Began
    }

    /// A server tells of a pause, the `nth` without a success.
    pub(super) fn told(&mut self, until: At, nth: u32, now: At) {
        if self.nth != nth || self.probe == Probe::Answered {
            self.began = Some(now);
        }
        (self.until, self.nth, self.probe) = (self.until.max(until), nth, Probe::Due);
    }

    /// A server lets one request find out whether the `nth` pause is over.
    pub(super) fn lets_probe(&mut self, nth: u32, now: At) {
        if self.nth != nth || self.probe == Probe::Answered {
            // The request goes out after it began, at this moment at the earliest.
            self.began = Some(now.minus(1));
        }
        (self.until, self.nth, self.probe) = (self.until.max(now), nth, Probe::Due);
    }

    /// A server that was asked at `asked` knows of no pause.
    pub(super) fn is_over(&mut self, asked: At) {
        if self.began.is_none_or(|began| began < asked) {
            (self.probe, self.nth) = (Probe::Answered, 0);
        }
    }

    /// A request that was sent at `sent` was answered; whether that ends what the pause began.
    pub(super) fn answered(&mut self, sent: At) -> bool {
        let ends = self.probe != Probe::Answered && sent >= self.until;
        if ends {
            (self.probe, self.nth) = (Probe::Answered, 0);
        }
        ends
    }

    pub(super) fn is_on(&self, now: At) -> bool {
        now < self.until
    }

    /// Whether nobody knows yet that it is over.
    pub(super) fn is_open(&self) -> bool {
        self.probe != Probe::Answered
    }

    /// Whether the site is not worth waiting for: it went on refusing after `most` pauses.
    pub(super) fn gives_up(&self, now: At, most: u32) -> bool {
        self.nth > most && self.is_on(now)
    }

    /// Whether nothing of it counts any more.
    pub(super) fn is_forgotten(&self, now: At) -> bool {
        now.since(self.until) > QUIET
    }
}

/// The pause after `doublings` others, where the site does not say how long.
fn own_pause(doublings: u32) -> Duration {
    let span = FIRST.saturating_mul(1 << doublings.min(16)).min(LAST);
    let jitter = random::number() % (nanos(span) / 10);
    (span + Duration::from_nanos(jitter)).min(LAST)
}

const FIRST: Duration = Duration::from_secs(2);
const LAST: Duration = Duration::from_secs(60);
const QUIET: Duration = Duration::from_secs(300);
