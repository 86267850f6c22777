//! The orders that a pool was given.

use std::collections::VecDeque;

use crate::store::{AuditEntry, AuditId, MAX_TRAIL};

/// The last orders, oldest first.
#[derive(Debug, Default)]
pub(super) struct Trail {
    entries: VecDeque<AuditEntry>,
    last: u64,
}

impl Trail {
    /// The place of the next entry.
    pub(super) fn next(&self) -> AuditId {
        AuditId(self.last + 1, 0)
    }

    /// Keeps an entry that has the next place.
    pub(super) fn record(&mut self, entry: AuditEntry) {
        self.last = entry.id.0;
        self.entries.push_back(entry);
        if self.entries.len() > MAX_TRAIL {
            self.entries.pop_front();
        }
    }

    /// The newest entries, or those before one.
    pub(super) fn page(&self, before: Option<AuditId>, limit: usize) -> Vec<AuditEntry> {
        let older = |entry: &AuditEntry| before.is_none_or(|before| entry.id < before);
        let end = self.entries.partition_point(older);
        self.entries.range(..end).rev().take(limit).cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Order;

    #[test]
    fn the_last_ten_thousand_are_kept() {
        let mut trail = Trail::default();
        for _ in 0..MAX_TRAIL + 5 {
            trail.record(AuditEntry::new(trail.next(), &Order::Pause));
        }
        let all = trail.page(None, usize::MAX);
        assert_eq!((all.len(), all[0].id.0), (MAX_TRAIL, MAX_TRAIL as u64 + 5));
        assert_eq!(all.last().unwrap().id.0, 6);
        assert_eq!(trail.page(Some(AuditId(9, 0)), 2), all[MAX_TRAIL - 3..MAX_TRAIL - 1]);
    }
}
