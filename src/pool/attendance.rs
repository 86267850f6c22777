//! Who puts the queue's questions, and whether it still does.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// An asker that has not looked for so long although it was called is taken to be on a runtime
/// that nobody drives. An error costs little: it only ends what it has begun.
pub(super) const SILENCE: Duration = Duration::from_millis(250);

/// Before one that ended in a panic is replaced.
const AFTER_A_PANIC: Duration = Duration::from_millis(100);

/// The post of the asker. There is one at a time, and each has a number.
#[derive(Default)]
pub(super) struct Attendance {
    asker: Option<Post>,
    posts: u64,
    not_before: Option<Instant>,
}

struct Post {
    number: u64,
    /// Its own: one that does not hear must not take another's calls.
    calls: Arc<Notify>,
    looked: Instant,
    /// Called at this moment, and not looked since.
    called: Option<Instant>,
}

impl Attendance {
    pub(super) fn is_vacant(&self) -> bool {
        self.asker.is_none()
    }

    /// Takes the post if it is vacant: its number, and what calls its holder.
    pub(super) fn take(&mut self, now: Instant) -> Option<(u64, Arc<Notify>)> {
        if self.asker.is_some() || self.not_before.is_some_and(|start| now < start) {
            return None;
        }
        self.posts += 1;
        let (number, calls) = (self.posts, Arc::new(Notify::new()));
        let post = Post { number, calls: calls.clone(), looked: now, called: None };
        (self.asker, self.not_before) = (Some(post), None);
        Some((number, calls))
    }

    /// The asker looks at the queue; `false` when it is that no longer.
    pub(super) fn looks(&mut self, number: u64, now: Instant) -> bool {
        let Some(post) = self.asker.as_mut().filter(|post| post.number == number) else {
            return false;
        };
        (post.looked, post.called) = (now, None);
        true
    }

    /// Has the asker look.
    pub(super) fn call(&self) {
        if let Some(post) = &self.asker {
            post.calls.notify_one();
        }
    }

    /// The same, to find out whether it does; says whether it was called, which is not needed when
    /// it has looked just now.
    pub(super) fn call_up(&mut self, now: Instant, needed: bool) -> bool {
        let post = self.asker.as_mut().filter(|post| needed || now >= post.looked + SILENCE);
        if let Some(post) = post {
            post.called.get_or_insert(now);
            post.calls.notify_one();
            return true;
        }
        false
    }

    /// Relieves an asker that has not looked for too long after it was called; gives its number.
    pub(super) fn relieve_silent(&mut self, now: Instant) -> Option<u64> {
        let silent = |post: &&Post| post.called.is_some_and(|since| now >= since + SILENCE);
        let number = self.asker.as_ref().filter(silent)?.number;
        self.asker = None;
        Some(number)
    }

    /// Relieves whoever holds the post; gives its number.
    pub(super) fn relieve(&mut self) -> Option<u64> {
        self.asker.take().map(|post| post.number)
    }

    /// An asker leaves the post, if it still has it.
    pub(super) fn leave(&mut self, number: u64, panicked: bool) {
        if self.asker.as_ref().is_some_and(|post| post.number == number) {
            self.asker = None;
            self.not_before = panicked.then(|| Instant::now() + AFTER_A_PANIC);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_that_is_called_and_does_not_look_is_relieved_and_not_sooner() {
        let (mut attendance, start) = (Attendance::default(), Instant::now());
        let (number, _) = attendance.take(start).unwrap();
        assert!(attendance.take(start).is_none(), "there is one at a time");
        assert_eq!(attendance.relieve_silent(start + SILENCE * 9), None, "nobody called it");
        attendance.call_up(start, true);
        assert_eq!(attendance.relieve_silent(start + SILENCE - Duration::from_millis(1)), None);
        assert!(attendance.looks(number, start));
        assert_eq!(attendance.relieve_silent(start + SILENCE * 9), None, "it has looked");
        attendance.call_up(start, true);
        assert_eq!(attendance.relieve_silent(start + SILENCE), Some(number));
        assert!(!attendance.looks(number, start));
        let (next, _) = attendance.take(start).unwrap();
        attendance.leave(number, false);
        assert!(attendance.looks(next, start), "the old one has no post to leave");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_panicked_is_replaced_after_a_rest() {
        let (mut attendance, start) = (Attendance::default(), Instant::now());
        let (number, _) = attendance.take(start).unwrap();
        attendance.leave(number, true);
        assert!(attendance.take(start).is_none());
        let (number, _) = attendance.take(start + AFTER_A_PANIC).unwrap();
        attendance.leave(number, false);
        assert!(attendance.take(start).is_some(), "the twin: after an orderly end at once");
    }
}
