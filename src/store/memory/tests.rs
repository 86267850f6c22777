//! What only this store can be asked: limits of time to the nanosecond, clones, poll counts.

use std::time::Duration;

use async_trait::async_trait;

use super::MemoryStore;
use crate::id::{EndpointId, PoolName};
use crate::secret::Token;
use crate::store::conformance::{self, Fixture};
use crate::store::{
    AcquireReply, AcquireRequest, AdminRequest, Claim, LeaseStore, Member, Order, PoolConfig,
    Release, ReleaseReply, ReleaseRequest,
};
use crate::verdict::Verdict;

const TTL: Duration = Duration::from_secs(30);

fn pool() -> PoolName {
    PoolName::new("vn").unwrap()
}

async fn store(ids: &[&str]) -> MemoryStore {
    let store = MemoryStore::new();
    let members = ids.iter().map(|id| Member::new(EndpointId::new(id).unwrap())).collect();
    for order in [Order::Init(PoolConfig::default().into()), Order::Add(members)] {
        store.administer(AdminRequest::new(pool(), order)).await.unwrap();
    }
    store
}

async fn acquire(store: &MemoryStore, token: Token) -> AcquireReply {
    store.acquire(AcquireRequest::new(pool(), token, TTL)).await.unwrap()
}

async fn release(store: &MemoryStore, token: Token, verdict: Verdict) -> ReleaseReply {
    let releases = vec![Release { claim: Claim::Lease(token), verdict, site: None }];
    store.release(ReleaseRequest::new(pool(), releases)).await.unwrap()[0]
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_valid_before_its_deadline_and_not_at_it() {
    let store = store(&["a"]).await;
    let token = Token::random();
    acquire(&store, token).await;
    tokio::time::advance(TTL - Duration::from_millis(1)).await;
    assert_eq!(store.status(&pool()).await.unwrap().leased, 1);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(store.status(&pool()).await.unwrap().expired, 1);
    assert_eq!(release(&store, token, Verdict::default()).await, ReleaseReply::NotOwner);
}

#[tokio::test(start_paused = true)]
async fn the_next_chance_is_exact() {
    let store = store(&["a"]).await;
    let token = Token::random();
    acquire(&store, token).await;
    let empty = |next| AcquireReply::Empty { next: Some(next), restricted: false };
    assert_eq!(acquire(&store, Token::random()).await, empty(TTL));
    release(&store, token, Verdict::cooldown(Duration::from_secs(7))).await;
    assert_eq!(acquire(&store, Token::random()).await, empty(Duration::from_secs(7)));
    tokio::time::advance(Duration::from_secs(7)).await;
    assert!(matches!(acquire(&store, Token::random()).await, AcquireReply::Granted(_)));
}

#[tokio::test(start_paused = true)]
async fn clones_share_their_pools() {
    let store = store(&["a"]).await;
    let clone = store.clone();
    assert!(matches!(acquire(&store, Token::random()).await, AcquireReply::Granted(_)));
    assert!(matches!(acquire(&clone, Token::random()).await, AcquireReply::Empty { .. }));
}

#[test]
fn every_call_is_ready_at_its_first_poll() {
    use futures_util::FutureExt;
    let store = store(&["a"]).now_or_never().unwrap();
    assert!(store.answers_at_once());
    let token = Token::random();
    assert!(acquire(&store, token).now_or_never().is_some());
    let released = release(&store, token, Verdict::default()).now_or_never();
    assert_eq!(released, Some(ReleaseReply::Released));
}

pub(super) struct Memory(pub(super) MemoryStore);

#[async_trait]
impl Fixture for Memory {
    fn store(&self) -> &dyn LeaseStore {
        &self.0
    }

    async fn advance(&self, by: Duration) {
        tokio::time::advance(by).await;
    }
}

mod properties {
    use super::*;

    macro_rules! hold_in_memory {
        ($($property:ident)*) => { $(
            #[tokio::test(start_paused = true)]
            async fn $property() {
                conformance::$property(&Memory(MemoryStore::new())).await;
            }
        )* };
    }
    crate::for_each_property!(hold_in_memory);
}
