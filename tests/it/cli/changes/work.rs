//! Sixty-four tasks that send requests all the time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use reqwest_lease::{HeldLease, LeaseInfo, LeaseOptions, Pool};
use reqwest_middleware::ClientWithMiddleware;
use tokio::task::JoinSet;

use crate::support::eventually;
use crate::support::flaky::Dice;

pub(super) const TASKS: usize = 64;

/// What the tasks share.
pub(super) struct Work {
    pool: Pool,
    client: ClientWithMiddleware,
    /// Where the sites are: http and https.
    sites: [String; 2],
    /// Marks set so far.
    marks: AtomicUsize,
    requests: AtomicUsize,
    /// Each task's present request: how many marks had been set when it began.
    begun: Vec<AtomicUsize>,
    sent: Mutex<Vec<Sent>>,
    over: AtomicBool,
}

/// What became of a request.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) number: usize,
    /// Marks that had been set when it began.
    pub(super) begun: usize,
    pub(super) fence: u64,
    pub(super) endpoint: String,
    /// Why it failed, or attempts of it did.
    pub(super) trouble: Option<String>,
}

impl Work {
    pub(super) fn new(pool: Pool, client: ClientWithMiddleware, sites: [String; 2]) -> Arc<Self> {
        Arc::new(Self {
            pool,
            client,
            sites,
            marks: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            begun: (0..TASKS).map(|_| AtomicUsize::new(0)).collect(),
            sent: Mutex::default(),
            over: AtomicBool::new(false),
        })
    }

    pub(super) fn start(self: &Arc<Self>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for nth in 0..TASKS {
            tasks.spawn(Arc::clone(self).task(nth));
        }
        tasks
    }

    /// Sets a mark: what begins from now on has begun after it.
    pub(super) fn mark(&self) -> usize {
        self.marks.fetch_add(1, SeqCst)
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    pub(super) fn number_sent(&self) -> usize {
        self.sent.lock().unwrap().len()
    }

    /// Waits until so many requests more have ended.
    pub(super) async fn goes_on(&self, more: usize) {
        let enough = self.number_sent() + more;
        eventually("more requests", || (self.number_sent() >= enough).then_some(())).await;
    }

    /// Waits until all requests that began before the mark have ended.
    pub(super) async fn is_past(&self, mark: usize) {
        let past = || self.begun.iter().all(|begun| begun.load(SeqCst) > mark);
        eventually("the end of what had begun", || past().then_some(())).await;
    }

    /// Lets the tasks end after the request that they are at.
    pub(super) fn ends(&self) {
        self.over.store(true, SeqCst);
    }

    async fn task(self: Arc<Self>, nth: usize) {
        let dice = Dice::new(nth as u64);
        while !self.over.load(SeqCst) {
            if dice.roll(16) > 0 {
                self.request(nth, &dice, None).await;
                continue;
            }
            match self.pool.hold().await {
                Ok(held) => {
                    self.request(nth, &dice, Some(&held)).await;
                    self.request(nth, &dice, Some(&held)).await;
                }
                Err(error) => self.note(0, 0, Err(format!("no lease to hold: {error}"))),
            }
        }
    }

    async fn request(&self, nth: usize, dice: &Dice, held: Option<&HeldLease>) {
        let begun = self.marks.load(SeqCst);
        self.begun[nth].store(begun, SeqCst);
        let number = self.requests.fetch_add(1, SeqCst);
        // One of eight takes long enough to be in the middle of whatever comes.
        let takes = if dice.roll(8) == 0 { 40 } else { 1 };
        let url = format!("{}/{number}/{takes}", self.sites[dice.roll(2) as usize]);
        let options = held.map_or_else(LeaseOptions::new, |held| LeaseOptions::new().held(held));
        let done = tokio::time::timeout(LONGEST, self.fetch(&url, options)).await;
        self.note(number, begun, done.unwrap_or_else(|_| Err(format!("not within {LONGEST:?}"))));
    }

    async fn fetch(&self, url: &str, options: LeaseOptions) -> Result<LeaseInfo, String> {
        let response = self.client.get(url).with_extension(options).send().await;
        let response = response.map_err(|error| format!("{error:?}"))?;
        let info = response.extensions().get::<LeaseInfo>().unwrap().clone();
        if response.status() != StatusCode::OK {
            return Err(format!("{} through {}", response.status(), info.endpoint()));
        }
        response.bytes().await.map_err(|error| format!("{error:?}"))?;
        Ok(info)
    }

    fn note(&self, number: usize, begun: usize, done: Result<LeaseInfo, String>) {
        let mut sent = Sent { number, begun, fence: 0, endpoint: String::new(), trouble: None };
        match done {
            Ok(info) => {
                (sent.fence, sent.endpoint) = (info.fence().0, info.endpoint().to_string());
                if !info.failed().is_empty() {
                    sent.trouble = Some(format!("attempts failed: {:?}", info.failed()));
                }
            }
            Err(trouble) => sent.trouble = Some(trouble),
        }
        self.sent.lock().unwrap().push(sent);
    }
}

/// Longer than any wait that is right.
const LONGEST: Duration = Duration::from_secs(60);
