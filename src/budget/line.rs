//! Those who wait before one bucket, in the order of their tickets.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

/// Who is at the head, and who waits behind. Tickets are numbers that grow with each request of
/// the process, so whoever steps aside comes back to where it was.
#[derive(Default)]
pub(super) struct Line {
    head: Option<Head>,
    behind: BTreeMap<u64, Option<Waker>>,
}

struct Head {
    ticket: u64,
    /// Something has changed that it may wait for.
    signalled: bool,
    waker: Option<Waker>,
}

impl Line {
    /// Makes this one the head if there is none and nobody came before; tells whether it is.
    pub(super) fn try_lead(&mut self, ticket: u64) -> bool {
        if let Some(head) = &self.head {
            return head.ticket == ticket;
        }
        let first = self.behind.first_key_value().is_none_or(|(first, _)| *first >= ticket);
        if first {
            self.behind.remove(&ticket);
            self.head = Some(Head { ticket, signalled: false, waker: None });
        }
        first
    }

    /// Waits to be the head; also ready after [`wake_all`](Self::wake_all), with `false`.
    pub(super) fn poll_lead(&mut self, ticket: u64, cx: &mut Context<'_>) -> Poll<bool> {
        if self.try_lead(ticket) {
            return Poll::Ready(true);
        }
        match self.behind.insert(ticket, Some(cx.waker().clone())) {
            // Its waker was taken to tell it of something.
            Some(None) => Poll::Ready(false),
            Some(Some(_)) | None => Poll::Pending,
        }
    }

    /// The head waits for a signal.
    pub(super) fn poll_signal(&mut self, ticket: u64, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.head {
            Some(head) if head.ticket == ticket && !head.signalled => {
                head.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(head) => {
                head.signalled = false;
                Poll::Ready(())
            }
            None => Poll::Ready(()),
        }
    }

    /// Takes one out, and makes the next one the head if it was the head; whom to wake.
    pub(super) fn leave(&mut self, ticket: u64) -> Option<Waker> {
        self.behind.remove(&ticket);
        if self.head.as_ref().is_none_or(|head| head.ticket != ticket) {
            return None;
        }
        let (ticket, waker) = self.behind.pop_first().unzip();
        self.head = ticket.map(|ticket| Head { ticket, signalled: false, waker: None });
        waker.flatten()
    }

    /// Tells the head to look again; whom to wake.
    pub(super) fn signal(&mut self) -> Option<Waker> {
        let head = self.head.as_mut()?;
        head.signalled = true;
        head.waker.take()
    }

    /// Tells everybody to look again; whom to wake.
    pub(super) fn wake_all(&mut self) -> Vec<Waker> {
        let head = self.signal();
        head.into_iter().chain(self.behind.values_mut().filter_map(Option::take)).collect()
    }

    /// How many are before this one, the head among them.
    pub(super) fn ahead_of(&self, ticket: u64) -> usize {
        let head = self.head.as_ref().is_some_and(|head| head.ticket != ticket);
        usize::from(head) + self.behind.range(..ticket).count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_none() && self.behind.is_empty()
    }
}
