//! Stores with one guard turned off: each must make a property fail.

use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::error::{Error, Kind};
use crate::id::{AdminName, PoolName};
use crate::secret::Token;
use crate::store::conformance::{self, Fixture};
use crate::store::{
    AcquireReply, AcquireRequest, AdminReply, AdminRequest, AuditEntry, AuditRequest, CancelReply,
    CancelRequest, Claim, LeaseStore, ListRequest, MAX_BATCH, Member, MemberState, MemoryStore,
    Order, Policy, ReapReply, ReapRequest, Release, ReleaseReply, ReleaseRequest, RenewReply,
    RenewRequest, Status,
};
use crate::verdict::Strike;

/// What is wrong with a twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    Nothing,
    RepeatedTokenIsNew,
    ExclusionIgnored,
    PreferenceIgnored,
    ShunIgnored,
    TtlUnchecked,
    LongBatchCut,
    PauseIgnored,
    ExpiryReadyAtOnce,
    LostPoolLooksEmpty,
    LateRenewalGranted,
    LifetimeUnlimited,
    AnyTokenReleases,
    CooldownIgnored,
    QuarantineIgnored,
    StrikesIgnored,
    SuccessAlwaysResets,
    SuccessEndsCooldown,
    TombstoneIgnored,
    TombstoneForEver,
    CancelKeepsLease,
    ReapUnbounded,
    ReapIdle,
    ExpiredCountedAsLeased,
    MemberUnlisted,
    WeightsIgnored,
    CountsForgotten,
    DisableIgnored,
    QuarantineEndIsEnable,
    RemovalIgnored,
    EarliestShuffled,
    LeastAssignedByTime,
    LoadingIgnored,
    LoadStartsAtZero,
    LateLoadAdds,
    BadLoadCut,
    HoldIgnored,
    LossIgnored,
    OldGrantsCount,
    LossStrikesLost,
    DestroyIgnored,
    DestroyAtAnyTime,
    OrderUnrecorded,
    NobodyIsSomebody,
    NoChangeUnrecorded,
    RefusalRecorded,
    WorkRecorded,
    OldestFirst,
    LongOrderUncounted,
    TrailEndsWithPool,
    VersionForgotten,
    LastOrderStands,
    OldEvidenceCounts,
}

macro_rules! noticed {
    ($($test:ident: $flaw:ident breaks $property:ident;)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            assert!(holds(Flaw::Nothing, |twin| conformance::$property(twin).boxed()).await);
            assert!(!holds(Flaw::$flaw, |twin| conformance::$property(twin).boxed()).await);
        }
    )* };
}

noticed! {
    a_second_lease_for_a_token_is_noticed:
        RepeatedTokenIsNew breaks a_repeated_token_gets_the_same_lease;
    an_ignored_exclusion_is_noticed:
        ExclusionIgnored breaks an_excluded_endpoint_is_passed_over;
    an_ignored_preference_is_noticed:
        PreferenceIgnored breaks a_preferred_endpoint_comes_first;
    an_ignored_shun_is_noticed: ShunIgnored breaks a_shunned_endpoint_serves_other_sites;
    an_unchecked_ttl_is_noticed: TtlUnchecked breaks a_ttl_has_limits;
    a_cut_batch_is_noticed: LongBatchCut breaks an_acquire_has_one_to_sixteen_tokens;
    an_ignored_pause_is_noticed: PauseIgnored breaks a_paused_pool_grants_nothing;
    an_expiry_without_cooldown_is_noticed: ExpiryReadyAtOnce breaks a_silent_holder_is_waited_for;
    a_lost_pool_that_looks_empty_is_noticed:
        LostPoolLooksEmpty breaks an_unknown_pool_is_not_an_empty_one;
    a_late_renewal_is_noticed: LateRenewalGranted breaks a_renewal_after_the_deadline_is_refused;
    an_unlimited_lifetime_is_noticed:
        LifetimeUnlimited breaks a_renewal_ends_at_the_largest_lifetime;
    a_release_by_any_token_is_noticed: AnyTokenReleases breaks a_release_needs_the_right_token;
    a_late_release_that_harms_is_noticed:
        AnyTokenReleases breaks a_late_release_leaves_the_next_holder_alone;
    an_ignored_cooldown_is_noticed: CooldownIgnored breaks a_cooldown_keeps_the_endpoint_back;
    an_ignored_quarantine_is_noticed:
        QuarantineIgnored breaks a_quarantine_verdict_parks_the_endpoint;
    ignored_strikes_are_noticed: StrikesIgnored breaks strikes_follow_the_verdicts;
    a_late_reset_is_noticed:
        SuccessAlwaysResets breaks a_late_success_does_not_clear_a_newer_strike;
    an_undone_cooldown_is_noticed:
        SuccessEndsCooldown breaks a_shared_cooldown_is_not_undone_by_a_success;
    an_ignored_tombstone_is_noticed: TombstoneIgnored breaks a_tombstone_beats_a_late_acquire;
    an_eternal_tombstone_is_noticed: TombstoneForEver breaks a_tombstone_lapses;
    a_cancel_that_keeps_the_lease_is_noticed:
        CancelKeepsLease breaks a_cancel_frees_the_endpoint_at_once;
    an_unbounded_reap_is_noticed:
        ReapUnbounded breaks many_expiries_are_taken_back_in_bounded_steps;
    an_idle_reap_is_noticed: ReapIdle breaks a_reap_reports_what_it_did;
    a_status_that_hides_expiry_is_noticed:
        ExpiredCountedAsLeased breaks a_status_tells_recorded_from_valid;
    a_member_left_out_is_noticed: MemberUnlisted breaks a_status_counts_each_place;
    ignored_weights_are_noticed: WeightsIgnored breaks weights_are_kept_within_one_assignment;
    forgotten_counts_are_noticed: CountsForgotten breaks a_newcomer_starts_at_the_lowest_count;
    an_end_of_quarantine_that_undoes_orders_is_noticed:
        QuarantineEndIsEnable breaks the_end_of_a_quarantine_undoes_no_order;
    an_ignored_order_is_noticed: DisableIgnored breaks an_order_outdoes_a_verdict;
    an_order_that_replaces_another_is_noticed:
        LastOrderStands breaks orders_on_a_leased_endpoint_stand_side_by_side;
    evidence_of_before_that_counts_is_noticed:
        OldEvidenceCounts breaks a_shared_endpoint_that_was_enabled_is_judged_anew;
    an_ignored_removal_is_noticed: RemovalIgnored breaks a_leased_member_goes_when_its_lease_ends;
    a_shuffled_queue_is_noticed: EarliestShuffled breaks the_earliest_is_first_in_first_out;
    a_queue_for_shares_is_noticed: LeastAssignedByTime breaks every_assignment_counts;
    a_grant_from_a_loading_pool_is_noticed: LoadingIgnored breaks a_loading_pool_grants_nothing;
    a_load_without_weights_is_noticed:
        WeightsIgnored breaks an_opened_pool_grants_what_was_loaded;
    a_load_that_begins_anew_is_noticed: LoadStartsAtZero breaks a_load_can_be_run_again;
    a_late_load_is_noticed: LateLoadAdds breaks an_open_pool_is_not_loaded;
    an_order_ignored_while_loading_is_noticed:
        DisableIgnored breaks orders_hold_while_a_pool_is_loaded;
    a_load_of_the_good_alone_is_noticed: BadLoadCut breaks a_bad_member_keeps_out_the_whole_load;
    an_ignored_hold_is_noticed:
        HoldIgnored breaks a_pool_after_a_loss_waits_for_the_leases_of_before;
    a_hold_that_ends_with_the_load_is_noticed:
        HoldIgnored breaks a_lost_pool_is_loaded_while_it_holds;
    a_hold_without_end_is_noticed: LossIgnored breaks an_administrator_ends_a_hold_after_a_loss;
    fences_that_begin_again_are_noticed:
        LossIgnored breaks fences_after_a_loss_are_above_those_of_before;
    strikes_lost_at_large_fences_are_noticed:
        LossStrikesLost breaks strikes_are_counted_after_a_loss;
    a_grant_of_before_that_counts_is_noticed:
        OldGrantsCount breaks a_grant_of_before_a_loss_harms_nobody;
    a_pool_that_is_not_destroyed_is_noticed: DestroyIgnored breaks a_destroyed_pool_is_gone;
    a_pool_destroyed_in_use_is_noticed: DestroyAtAnyTime breaks a_pool_in_use_is_not_destroyed;
    an_order_without_a_record_is_noticed: OrderUnrecorded breaks every_order_is_recorded;
    a_made_up_name_is_noticed: NobodyIsSomebody breaks an_order_may_be_nobodys;
    an_unchanging_order_without_a_record_is_noticed:
        NoChangeUnrecorded breaks an_order_that_changes_nothing_is_recorded;
    a_recorded_refusal_is_noticed: RefusalRecorded breaks a_refused_order_is_not_recorded;
    recorded_work_is_noticed: WorkRecorded breaks work_is_not_recorded;
    a_trail_turned_round_is_noticed: OldestFirst breaks a_trail_comes_in_pages_newest_first;
    a_miscounted_long_order_is_noticed:
        LongOrderUncounted breaks a_long_order_names_some_of_its_endpoints;
    a_trail_that_ends_with_its_pool_is_noticed:
        TrailEndsWithPool breaks a_trail_outlasts_its_pool;
    a_forgotten_version_is_noticed: VersionForgotten breaks a_status_has_the_last_config_version;
}

#[test]
fn every_property_is_in_the_list() {
    let sources = [
        include_str!("acquire.rs"),
        include_str!("audit.rs"),
        include_str!("calls.rs"),
        include_str!("cancel.rs"),
        include_str!("expiry.rs"),
        include_str!("loading.rs"),
        include_str!("loss.rs"),
        include_str!("orders.rs"),
        include_str!("policies.rs"),
        include_str!("release.rs"),
        include_str!("renew.rs"),
        include_str!("report.rs"),
        include_str!("roster.rs"),
        include_str!("shared.rs"),
        include_str!("shuns.rs"),
    ];
    macro_rules! names {
        ($($property:ident)*) => { [$(stringify!($property)),*] };
    }
    let listed = crate::for_each_property!(names);
    let written = sources.iter().flat_map(|source| source.split("\npub async fn ").skip(1));
    let mut missing: Vec<_> = written.filter_map(|rest| rest.split('(').next()).collect();
    assert_eq!(missing.len(), listed.len());
    missing.retain(|name| !listed.contains(name));
    assert!(missing.is_empty(), "{missing:?}");
}

async fn holds(flaw: Flaw, property: impl for<'a> Fn(&'a Twin) -> BoxFuture<'a, ()>) -> bool {
    let twin = Twin { inner: MemoryStore::new(), flaw, last: Mutex::new(None) };
    AssertUnwindSafe(property(&twin)).catch_unwind().await.is_ok()
}

struct Twin {
    inner: MemoryStore,
    flaw: Flaw,
    /// The token of the last grant.
    last: Mutex<Option<Token>>,
}

impl Twin {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    async fn order(&self, pool: &PoolName, order: Order) {
        self.inner.administer(AdminRequest::new(pool.clone(), order)).await.unwrap();
    }

    fn spoil_acquire(&self, request: &mut AcquireRequest) {
        match self.flaw {
            Flaw::RepeatedTokenIsNew => request.tokens.fill_with(Token::random),
            Flaw::ExclusionIgnored => request.exclude.clear(),
            Flaw::PreferenceIgnored => request.prefer = None,
            Flaw::ShunIgnored => request.site = None,
            Flaw::TtlUnchecked => {
                request.ttl = request.ttl.clamp(Duration::from_secs(1), Duration::from_secs(120));
            }
            Flaw::LongBatchCut => request.tokens.truncate(MAX_BATCH),
            Flaw::ExpiryReadyAtOnce => request.expiry_cooldown = Duration::ZERO,
            _ => {}
        }
    }

    async fn spoil_release(&self, pool: &PoolName, release: &mut Release) {
        let verdict = &mut release.verdict;
        match (self.flaw, &mut release.claim) {
            (Flaw::CooldownIgnored, _) => verdict.cooldown = Duration::ZERO,
            (Flaw::QuarantineIgnored, _) => verdict.quarantine = None,
            (Flaw::StrikesIgnored, _) => verdict.strike = Strike::Keep,
            (Flaw::LossStrikesLost, Claim::Assignment { fence, .. })
                if fence.0 > u64::from(u32::MAX) =>
            {
                verdict.strike = Strike::Keep;
            }
            (Flaw::SuccessAlwaysResets, Claim::Assignment { fence, .. })
                if verdict.strike == Strike::Reset =>
            {
                let granted = self.inner.acquire(AcquireRequest::new(
                    pool.clone(),
                    Token::random(),
                    Duration::from_secs(1),
                ));
                granted.await.unwrap();
                *fence = self.inner.status(pool).await.unwrap().fence;
            }
            (Flaw::SuccessEndsCooldown, Claim::Assignment { endpoint, .. })
                if verdict.cooldown.is_zero() =>
            {
                let ids = || vec![endpoint.clone()];
                self.order(pool, Order::Disable(ids())).await;
                self.order(pool, Order::Enable(ids())).await;
            }
            _ => {}
        }
    }

    fn spoil_order(&self, order: &mut Order) {
        match (self.flaw, order) {
            (Flaw::LifetimeUnlimited, Order::Init(setup)) => {
                setup.config.largest_lifetime = Duration::MAX;
            }
            (Flaw::EarliestShuffled, Order::Init(setup)) => setup.config.policy = Policy::Random,
            (Flaw::LeastAssignedByTime, Order::Init(setup)) => {
                setup.config.policy = Policy::Earliest;
            }
            (Flaw::LossIgnored, Order::Init(setup)) => setup.after_loss = false,
            (Flaw::LoadStartsAtZero, Order::Load(members)) => {
                members.iter_mut().for_each(|member| member.assignments = Some(0));
            }
            (Flaw::BadLoadCut, Order::Load(members)) => members.truncate(1),
            (Flaw::WeightsIgnored, Order::Add(members) | Order::Load(members)) => {
                members.iter_mut().for_each(|member| member.weight = 1);
            }
            (Flaw::CountsForgotten, Order::Add(members)) => {
                let from_zero = |member: &mut Member| {
                    member.assignments.get_or_insert(0);
                };
                members.iter_mut().for_each(from_zero);
            }
            (Flaw::DisableIgnored, Order::Disable(ids)) => ids.clear(),
            (Flaw::QuarantineEndIsEnable, order) => {
                if let Order::EndQuarantine(ids, _) = order {
                    *order = Order::Enable(std::mem::take(ids));
                }
            }
            _ => {}
        }
    }
}

#[async_trait]
impl Fixture for Twin {
    fn store(&self) -> &dyn LeaseStore {
        self
    }

    async fn advance(&self, by: Duration) {
        tokio::time::advance(by).await;
    }
}

#[async_trait]
impl LeaseStore for Twin {
    async fn acquire(&self, mut request: AcquireRequest) -> Result<AcquireReply, Error> {
        self.spoil_acquire(&mut request);
        if self.has(Flaw::WorkRecorded) {
            self.order(&request.pool, Order::Disable(Vec::new())).await;
        }
        let reply = self.inner.acquire(request.clone()).await;
        if let Ok(AcquireReply::Granted(grants)) = &reply {
            *self.last.lock().unwrap() = grants[0].term.map(|term| term.token);
        }
        match reply {
            Ok(AcquireReply::Paused) if self.has(Flaw::PauseIgnored) => {
                self.order(&request.pool, Order::Resume).await;
                self.inner.acquire(request).await
            }
            Ok(AcquireReply::Loading) if self.has(Flaw::LoadingIgnored) => {
                self.order(&request.pool, Order::Open).await;
                self.inner.acquire(request).await
            }
            Ok(AcquireReply::Hold(_)) if self.has(Flaw::HoldIgnored) => {
                self.order(&request.pool, Order::EndHold).await;
                self.inner.acquire(request).await
            }
            Err(error)
                if error.kind() == Kind::PoolUninitialised
                    && self.has(Flaw::LostPoolLooksEmpty) =>
            {
                Ok(AcquireReply::Empty { next: None, restricted: false })
            }
            reply => reply,
        }
    }

    async fn renew(&self, request: RenewRequest) -> Result<RenewReply, Error> {
        let ttl = request.ttl;
        match self.inner.renew(request).await {
            Ok(RenewReply::NotOwner) if self.has(Flaw::LateRenewalGranted) => {
                Ok(RenewReply::Renewed(ttl))
            }
            reply => reply,
        }
    }

    async fn release(&self, mut request: ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        for release in &mut request.releases {
            self.spoil_release(&request.pool, release).await;
        }
        let replies = self.inner.release(request.clone()).await;
        for Release { claim, verdict, .. } in &request.releases {
            if let (true, Claim::Assignment { endpoint, .. }, Some(code)) =
                (self.has(Flaw::OldEvidenceCounts), claim, verdict.quarantine)
            {
                let order = Order::Quarantine(vec![endpoint.clone()], code);
                self.order(&request.pool, order).await;
            }
        }
        let last = *self.last.lock().unwrap();
        match (&replies, last) {
            (Ok(all), Some(token))
                if all[0] == ReleaseReply::NotOwner && self.has(Flaw::AnyTokenReleases) =>
            {
                request.releases[0].claim = Claim::Lease(token);
                self.inner.release(request).await
            }
            (Ok(all), _) if self.has(Flaw::OldGrantsCount) => {
                Ok(vec![ReleaseReply::Released; all.len()])
            }
            _ => replies,
        }
    }

    async fn cancel(&self, mut request: CancelRequest) -> Result<CancelReply, Error> {
        match self.flaw {
            Flaw::TombstoneIgnored => request.tombstone = Duration::ZERO,
            Flaw::TombstoneForEver => request.tombstone = Duration::MAX,
            Flaw::CancelKeepsLease => return Ok(CancelReply::Released),
            _ => {}
        }
        self.inner.cancel(request).await
    }

    async fn reap(&self, request: ReapRequest) -> Result<ReapReply, Error> {
        if self.has(Flaw::ReapIdle) {
            return Ok(ReapReply::default());
        }
        let mut reply = self.inner.reap(request.clone()).await?;
        while reply.more && self.has(Flaw::ReapUnbounded) {
            let next = self.inner.reap(request.clone()).await?;
            reply.reclaimed += next.reclaimed;
            reply.more = next.more;
        }
        Ok(reply)
    }

    async fn status(&self, pool: &PoolName) -> Result<Status, Error> {
        let mut status = self.inner.status(pool).await?;
        if self.has(Flaw::ExpiredCountedAsLeased) {
            status.leased += std::mem::take(&mut status.expired);
        }
        Ok(status)
    }

    async fn list(&self, request: ListRequest) -> Result<Vec<MemberState>, Error> {
        let mut page = self.inner.list(request).await?;
        if self.has(Flaw::MemberUnlisted) {
            page.pop();
        }
        Ok(page)
    }

    async fn audit(&self, request: AuditRequest) -> Result<Vec<AuditEntry>, Error> {
        if self.has(Flaw::TrailEndsWithPool) {
            self.inner.status(&request.pool).await?;
        }
        let mut page = self.inner.audit(request).await?;
        for entry in &mut page {
            match self.flaw {
                Flaw::NobodyIsSomebody => entry.by = AdminName::new("somebody").ok(),
                Flaw::LongOrderUncounted => entry.number = entry.endpoints.len(),
                _ => {}
            }
        }
        match self.flaw {
            Flaw::OldestFirst => page.reverse(),
            Flaw::OrderUnrecorded => page.retain(|entry| entry.order != "open"),
            Flaw::NoChangeUnrecorded => page.retain(|entry| entry.order != "resume"),
            _ => {}
        }
        Ok(page)
    }

    async fn administer(&self, mut request: AdminRequest) -> Result<AdminReply, Error> {
        self.spoil_order(&mut request.order);
        if let (true, Order::Quarantine(ids, _) | Order::Disable(ids)) =
            (self.has(Flaw::LastOrderStands), &request.order)
        {
            self.order(&request.pool, Order::Enable(ids.clone())).await;
        }
        let ignored = match request.order {
            Order::Remove(_) => self.has(Flaw::RemovalIgnored),
            Order::DestroyPool => self.has(Flaw::DestroyIgnored),
            _ => false,
        };
        if ignored {
            return Ok(AdminReply::new(1));
        }
        if self.has(Flaw::VersionForgotten) {
            request.config_version = None;
        }
        let (pool, order) = (request.pool.clone(), request.order.clone());
        match (self.inner.administer(request).await, order) {
            (Err(_), Order::Load(members)) if self.has(Flaw::LateLoadAdds) => {
                self.inner.administer(AdminRequest::new(pool, Order::Add(members))).await
            }
            (Err(_), Order::DestroyPool) if self.has(Flaw::DestroyAtAnyTime) => {
                self.order(&pool, Order::Pause).await;
                self.inner.administer(AdminRequest::new(pool, Order::DestroyPool)).await
            }
            (Err(error), _) if self.has(Flaw::RefusalRecorded) => {
                self.order(&pool, Order::Disable(Vec::new())).await;
                Err(error)
            }
            (reply, _) => reply,
        }
    }
}
