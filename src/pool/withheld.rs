//! Whether the store grants anything at all, told once when that changes.

use std::sync::atomic::{AtomicU8, Ordering};

use super::Core;
use crate::store::AcquireReply;

/// Why nothing was granted, as the store said last: a place among the reasons.
#[derive(Default)]
pub(super) struct Withheld(AtomicU8);

/// The words of the gauge; the first is for none.
const REASONS: [&str; 4] = ["", "loading", "paused", "hold"];

impl Core {
    /// Takes note of an answer.
    pub(super) fn heard(&self, reply: &AcquireReply) {
        let reason = match reply {
            AcquireReply::Granted(_) | AcquireReply::Empty { .. } => 0,
            AcquireReply::Loading => 1,
            AcquireReply::Paused => 2,
            AcquireReply::Hold(_) => 3,
            // It says nothing of the pool.
            AcquireReply::Cancelled => return,
        };
        let last = &self.withheld.0;
        // Read first, for this is asked often and changes hardly ever.
        if last.load(Ordering::Relaxed) == reason || last.swap(reason, Ordering::Relaxed) == reason
        {
            return;
        }
        match REASONS[usize::from(reason)] {
            "" => tracing::info!(pool = %self.name, "the pool grants again"),
            reason => tracing::warn!(pool = %self.name, reason, "the pool grants nothing"),
        }
    }
}
