//! A memory store behind a wire that fails as it is told.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, pending};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::name;
use crate::error::Error;
use crate::secret::Token;
use crate::store::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, AuditEntry, AuditRequest, CancelReply,
    CancelRequest, LeaseStore, ListRequest, MemberState, MemoryStore, Order, ReapReply,
    ReapRequest, ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, Status,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Call {
    Acquire,
    Renew,
    Release,
    Cancel,
    Reap,
    Administer,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// Nothing goes wrong.
    None,
    /// It does not take place.
    Unsent,
    /// It takes place, and its answer is lost.
    Lost,
    /// It takes place this much later, and its answer is lost at once.
    Stray(Duration),
    /// It takes place this much later, also when nobody waits for it any more.
    Late(Duration),
    /// It does not take place and has no end.
    Hangs,
    /// It does not take place, and panics.
    Panics,
    /// It does not take place, and is answered as if it had: of an acquire, that its tokens are
    /// cancelled.
    Swallowed,
}

/// One call that was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) call: Call,
    pub(super) token: Option<Token>,
    pub(super) batch: usize,
}

/// The store, reached over the wire. Clones are one.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) memory: MemoryStore,
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    next: Mutex<HashMap<Call, VecDeque<Fault>>>,
    always: Mutex<HashMap<Call, Fault>>,
    made: Mutex<Vec<Made>>,
    forgets_tokens: Mutex<bool>,
}

impl Wire {
    pub(super) fn new() -> Self {
        Self { memory: MemoryStore::new(), line: Arc::default() }
    }

    /// Faults of the next calls of this sort.
    pub(super) fn next(&self, call: Call, faults: &[Fault]) {
        self.line.next.lock().unwrap().entry(call).or_default().extend(faults);
    }

    /// The fault of all other calls of this sort.
    pub(super) fn always(&self, call: Call, fault: Fault) {
        self.line.always.lock().unwrap().insert(call, fault);
    }

    /// Grants anew for a token that is repeated.
    pub(super) fn forget_tokens(&self) {
        *self.line.forgets_tokens.lock().unwrap() = true;
    }

    pub(super) fn made(&self, call: Call) -> Vec<Made> {
        self.line.made.lock().unwrap().iter().filter(|made| made.call == call).copied().collect()
    }

    /// An administrator's order, past the wire.
    pub(super) async fn order(&self, order: Order) {
        self.memory.administer(AdminRequest::new(name(), order)).await.unwrap();
    }

    async fn call<T: Send + 'static>(
        &self,
        call: Call,
        token: Option<Token>,
        batch: usize,
        run: impl Future<Output = Result<T, Error>> + Send + 'static,
        swallowed: impl FnOnce() -> T + Send,
    ) -> Result<T, Error> {
        self.line.made.lock().unwrap().push(Made { call, token, batch });
        let next = self.line.next.lock().unwrap().get_mut(&call).and_then(VecDeque::pop_front);
        let always = self.line.always.lock().unwrap().get(&call).copied();
        match next.or(always).unwrap_or(Fault::None) {
            Fault::None => run.await,
            Fault::Unsent => Err(lost()),
            Fault::Lost => run.await.and_then(|_| Err(lost())),
            Fault::Stray(after) => {
                drop(later(after, run));
                Err(lost())
            }
            Fault::Late(after) => later(after, run).await.unwrap(),
            Fault::Hangs => pending().await,
            Fault::Panics => panic!("the wire is live"),
            Fault::Swallowed => Ok(swallowed()),
        }
    }
}

fn later<T: Send + 'static>(
    after: Duration,
    run: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    tokio::spawn(async move {
        sleep(after).await;
        run.await
    })
}

fn lost() -> Error {
    Error::store_unavailable("the wire is cut")
}

#[async_trait]
impl LeaseStore for Wire {
    async fn acquire(&self, mut request: AcquireRequest) -> Result<AcquireReply, Error> {
        let (memory, token) = (self.memory.clone(), request.tokens[0]);
        if *self.line.forgets_tokens.lock().unwrap() {
            request.tokens.fill_with(Token::random);
        }
        let batch = request.tokens.len();
        let run = async move { memory.acquire(request).await };
        self.call(Call::Acquire, Some(token), batch, run, || AcquireReply::Cancelled).await
    }

    async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error> {
        let (memory, token, ttl) = (self.memory.clone(), request.token, request.ttl);
        let run = async move { memory.renew(request).await };
        self.call(Call::Renew, Some(token), 1, run, || RenewReply::Renewed(ttl)).await
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        let (memory, batch) = (self.memory.clone(), request.releases.len());
        let run = async move { memory.release(request).await };
        let swallowed = || vec![ReleaseReply::Released; batch];
        self.call(Call::Release, None, batch, run, swallowed).await
    }

    async fn cancel(&self, request: CancelRequest) -> Result<CancelReply, Error> {
        let (memory, token) = (self.memory.clone(), request.token);
        let run = async move { memory.cancel(request).await };
        self.call(Call::Cancel, Some(token), 1, run, || CancelReply::Tombstoned).await
    }

    async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
        let memory = self.memory.clone();
        let run = async move { memory.reap(request).await };
        self.call(Call::Reap, None, 1, run, ReapReply::default).await
    }

    async fn status(&self, pool: &crate::id::PoolName) -> Result<Status, Error> {
        self.memory.status(pool).await
    }

    async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
        self.memory.list(request).await
    }

    async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
        self.memory.audit(request).await
    }

    async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
        let memory = self.memory.clone();
        let run = async move { memory.administer(request).await };
        self.call(Call::Administer, None, 1, run, AdminReply::default).await
    }

    fn hints(&self, pool: &crate::id::PoolName) -> Option<BoxStream<'static, ()>> {
        self.memory.hints(pool)
    }
}
