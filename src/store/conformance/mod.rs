//! What every store must do, one function per property.
//!
//! A store's tests implement [`Fixture`] and run each property on a fresh fixture by way of
//! [`for_each_property!`](crate::for_each_property). A property panics when it does not hold.
//!
//! ```
//! use std::time::Duration;
//! use reqwest_lease::conformance::{self, Fixture};
//! use reqwest_lease::{LeaseStore, MemoryStore};
//!
//! struct Memory(MemoryStore);
//!
//! #[async_trait::async_trait]
//! impl Fixture for Memory {
//!     fn store(&self) -> &dyn LeaseStore {
//!         &self.0
//!     }
//!
//!     async fn advance(&self, by: Duration) {
//!         tokio::time::advance(by).await;
//!     }
//! }
//!
//! macro_rules! hold_in_memory {
//!     ($($property:ident)*) => { $(
//!         #[tokio::test(start_paused = true)]
//!         async fn $property() {
//!             conformance::$property(&Memory(MemoryStore::new())).await;
//!         }
//!     )* };
//! }
//! reqwest_lease::for_each_property!(hold_in_memory);
//! ```

// A panic is how a property fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod acquire;
mod audit;
mod calls;
mod cancel;
mod expiry;
mod loading;
mod loss;
mod orders;
mod policies;
mod release;
mod renew;
mod report;
mod roster;
mod scene;
mod shared;
mod shuns;
#[cfg(test)]
mod twins;

use std::time::Duration;

use async_trait::async_trait;

pub use acquire::*;
pub use audit::*;
pub use calls::*;
pub use cancel::*;
pub use expiry::*;
pub use loading::*;
pub use loss::*;
pub use orders::*;
pub use policies::*;
pub use release::*;
pub use renew::*;
pub use report::*;
pub use roster::*;
pub use shared::*;
pub use shuns::*;

use super::LeaseStore;
use crate::id::PoolName;

/// A store under test and its time. One fixture serves one property.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The store.
    fn store(&self) -> &dyn LeaseStore;

    /// Lets this much of the store's time pass: a step of a paused clock, or a shift of what is
    /// recorded. Real time may go on beside it, up to two seconds in one property.
    async fn advance(&self, by: Duration);

    /// The pool that the property sets up; it must not exist. Default `conformance`.
    fn pool(&self) -> PoolName {
        PoolName::new("conformance").expect("a plain name")
    }
}

/// Calls a macro with the names of all properties of [`conformance`](crate::conformance).
#[macro_export]
macro_rules! for_each_property {
    ($callback:ident) => {
        $callback! {
            a_grant_has_a_token_and_the_time_asked_for
            an_endpoint_has_one_holder_at_a_time
            a_repeated_token_gets_the_same_lease
            a_repeated_token_gets_its_lease_in_a_paused_pool
            a_token_whose_lease_ran_out_gets_a_new_one
            a_batch_is_granted_as_far_as_endpoints_go
            a_repeated_batch_keeps_its_leases_and_gets_more
            fences_grow_with_every_grant
            an_empty_pool_tells_when_to_ask_again
            a_pool_with_nothing_on_its_way_names_no_time
            an_excluded_endpoint_is_passed_over
            an_excluded_endpoint_is_no_chance
            a_preferred_endpoint_comes_first
            pools_share_nothing
            a_clean_release_is_granted_again_at_once
            a_cooldown_keeps_the_endpoint_back
            a_release_needs_the_right_token
            a_lease_is_released_once
            a_release_after_the_deadline_changes_nothing
            a_late_release_leaves_the_next_holder_alone
            a_batch_of_releases_is_answered_in_order
            a_lease_is_not_released_by_its_fence
            a_quarantine_verdict_parks_the_endpoint
            strikes_follow_the_verdicts
            an_order_outdoes_a_verdict
            a_renewal_moves_the_deadline
            a_renewal_never_moves_a_deadline_closer
            a_renewal_ends_at_the_largest_lifetime
            a_renewal_after_the_deadline_is_refused
            a_late_renewal_leaves_the_next_holder_alone
            a_renewal_never_outlives_the_end
            a_renewal_is_allowed_under_orders_and_pause
            a_cancel_frees_the_endpoint_at_once
            a_tombstone_beats_a_late_acquire
            a_cancelled_lease_is_not_granted_again
            a_batch_skips_cancelled_tokens
            a_tombstone_lapses
            many_tombstones_lapse
            a_late_cancel_leaves_the_next_holder_alone
            a_cancel_does_not_undo_an_order
            a_silent_holder_is_waited_for
            a_late_look_does_not_lengthen_the_cooldown
            an_expiry_without_cooldown_is_ready_at_once
            an_expiry_does_not_undo_an_order
            a_reap_reports_what_it_did
            many_expiries_are_taken_back_in_bounded_steps
            an_acquire_takes_back_a_bounded_number
            an_expired_lease_is_never_granted_again
            a_shunned_endpoint_serves_other_sites
            a_shun_ends_when_it_said
            a_shorter_shun_does_not_cut_a_longer_one
            a_shun_outdoes_a_preference
            a_shun_without_a_site_shuns_nothing
            a_shared_endpoint_has_many_holders
            a_shared_pool_grants_the_least_assigned
            a_shared_batch_is_granted_in_full
            a_shared_cooldown_is_not_undone_by_a_success
            a_longer_shared_cooldown_counts
            a_late_success_does_not_clear_a_newer_strike
            failures_at_once_are_one_strike
            a_shared_quarantine_outlasts_later_verdicts
            a_shared_endpoint_that_was_enabled_is_judged_anew
            a_shared_endpoint_obeys_orders_at_once
            a_shared_endpoint_is_shunned_for_a_site
            a_shared_release_needs_a_grant
            a_shared_cancel_bars_the_token
            an_empty_shared_pool_is_an_answer
            the_earliest_is_first_in_first_out
            the_earliest_counts_from_the_end_of_a_cooldown
            the_least_assigned_goes_round_by_id
            ties_go_by_id
            every_assignment_counts
            weights_are_kept_within_one_assignment
            shared_weights_are_kept_within_one_assignment
            a_new_weight_counts_at_once
            equal_shares_tie_far_from_zero
            random_grants_reach_all_alike
            policies_outlast_orders
            a_disabled_endpoint_waits_for_enable
            a_cooling_endpoint_is_disabled_at_once
            an_order_can_be_taken_back_while_leased
            a_drained_endpoint_finishes_its_lease
            an_administrator_quarantines_and_enables
            the_end_of_a_quarantine_undoes_no_order
            an_order_and_a_quarantine_stand_side_by_side
            orders_on_a_leased_endpoint_stand_side_by_side
            evidence_is_kept_under_an_order
            a_paused_pool_grants_nothing
            an_order_counts_what_it_changed
            a_new_member_is_ready
            adding_again_changes_only_what_is_named
            an_idle_member_goes_at_once
            a_leased_member_goes_when_its_lease_ends
            a_removal_is_undone_by_adding_and_nothing_else
            a_returning_member_keeps_its_count
            a_newcomer_starts_at_the_lowest_count
            a_heavy_newcomer_starts_at_the_lowest_share
            a_named_count_holds
            a_removed_lease_does_not_return
            a_status_has_the_configuration
            a_status_counts_each_place
            a_status_tells_recorded_from_valid
            a_list_comes_in_pages_by_id
            looking_changes_nothing
            an_unknown_pool_is_not_an_empty_one
            a_pool_is_set_up_once
            a_pool_needs_limits_that_fit
            a_ttl_has_limits
            an_acquire_has_one_to_sixteen_tokens
            a_release_has_one_to_sixteen_leases
            a_bad_member_keeps_out_the_whole_order
            an_unknown_endpoint_keeps_back_the_whole_order
            a_refusal_does_not_repeat_a_token
            a_loading_pool_grants_nothing
            an_opened_pool_grants_what_was_loaded
            a_load_can_be_run_again
            an_open_pool_is_not_loaded
            orders_hold_while_a_pool_is_loaded
            a_bad_member_keeps_out_the_whole_load
            a_pool_after_a_loss_waits_for_the_leases_of_before
            a_lost_pool_is_loaded_while_it_holds
            an_administrator_ends_a_hold_after_a_loss
            fences_after_a_loss_are_above_those_of_before
            strikes_are_counted_after_a_loss
            a_grant_of_before_a_loss_harms_nobody
            a_shared_pool_after_a_loss_grants_at_once
            a_destroyed_pool_is_gone
            a_pool_in_use_is_not_destroyed
            every_order_is_recorded
            an_order_may_be_nobodys
            an_order_that_changes_nothing_is_recorded
            a_refused_order_is_not_recorded
            work_is_not_recorded
            a_trail_comes_in_pages_newest_first
            a_long_order_names_some_of_its_endpoints
            a_trail_outlasts_its_pool
            a_status_has_the_last_config_version
        }
    };
}
