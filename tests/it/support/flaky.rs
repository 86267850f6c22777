//! A store in memory behind a connection that is slow and loses things.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use reqwest_lease::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, AuditEntry, AuditRequest, CancelReply,
    CancelRequest, Error, LeaseStore, ListRequest, MemberState, MemoryStore, PoolName, ReapReply,
    ReapRequest, ReleaseReply, ReleaseRequest, RenewReply, RenewRequest, Status,
};
use tokio::time::sleep;

/// Numbers that look random and are the same for the same seed (splitmix64).
#[derive(Default)]
pub(crate) struct Dice(AtomicU64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number below `faces`.
    pub(crate) fn roll(&self, faces: u64) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % faces
    }
}

/// The store. Of 150 workers' calls two do not take place, two lose their answers and two
/// take place later. Administrators' calls go well.
#[derive(Clone)]
pub(crate) struct Flaky {
    pub(crate) memory: MemoryStore,
    dice: Arc<Dice>,
    faults: Arc<AtomicUsize>,
}

/// What happens to a call.
enum Fate {
    Well,
    Unsent,
    Lost,
    Stray,
}

impl Flaky {
    pub(crate) fn new(seed: u64) -> Self {
        let dice = Arc::new(Dice::new(seed));
        Self { memory: MemoryStore::new(), dice, faults: Arc::default() }
    }

    /// Calls that went wrong so far.
    pub(crate) fn faults(&self) -> usize {
        self.faults.load(Ordering::Relaxed)
    }

    async fn fate(&self) -> Fate {
        if self.dice.roll(5) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let fate = match self.dice.roll(150) {
            0 | 1 => Fate::Unsent,
            2 | 3 => Fate::Lost,
            4 | 5 => Fate::Stray,
            _ => return Fate::Well,
        };
        self.faults.fetch_add(1, Ordering::Relaxed);
        fate
    }
}

macro_rules! flaky {
    ($($call:ident($request:ty) -> $reply:ty;)*) => {
        #[async_trait]
        impl LeaseStore for Flaky {
            $(async fn $call(&self, request: $request) -> Result<$reply, Error> {
                let lost = Error::store_unavailable("the connection is lost");
                match self.fate().await {
                    Fate::Well => self.memory.$call(request).await,
                    Fate::Unsent => Err(lost),
                    Fate::Lost => self.memory.$call(request).await.and(Err(lost)),
                    Fate::Stray => {
                        let (memory, after) = (self.memory.clone(), self.dice.roll(50));
                        tokio::spawn(async move {
                            sleep(Duration::from_millis(after)).await;
                            memory.$call(request).await
                        });
                        Err(lost)
                    }
                }
            })*

            async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
                self.memory.reap(request).await
            }

            async fn status(&self, pool: &PoolName) -> Result<Status, Error> {
                self.memory.status(pool).await
            }

            async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
                self.memory.list(request).await
            }

            async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
                self.memory.audit(request).await
            }

            async fn administer(&self, request: AdminRequest) -> Result<AdminReply, Error> {
                self.memory.administer(request).await
            }
        }
    };
}

flaky! {
    acquire(AcquireRequest) -> AcquireReply;
    renew(RenewRequest) -> RenewReply;
    release(ReleaseRequest) -> Vec<ReleaseReply>;
    cancel(CancelRequest) -> CancelReply;
}
