//! Granting.

use std::cell::Cell;
use std::time::Duration;

use super::moment::Moment;
use super::pool::{Lease, Pool};
use super::slot::{Place, Rank};
use crate::error::Error;
use crate::id::Fence;
use crate::random;
use crate::secret::Token;
use crate::site::Site;
use crate::store::{AcquireReply, AcquireRequest, Grant, Mode, Term, check};

impl Pool {
    /// Grants up to one endpoint a token.
    pub(super) fn acquire(&mut self, request: &AcquireRequest) -> Result<AcquireReply, Error> {
        check::acquire(request, &self.config)?;
        if self.loading {
            return Ok(AcquireReply::Loading);
        }
        let now = self.now();
        self.sweep(now);
        let wish = self.wish(request);
        let mut grants = Vec::with_capacity(request.tokens.len());
        let (mut cancelled, mut dry) = (0, self.paused || self.hold_until > now);
        for token in &request.tokens {
            if self.tombstones.bars(token, now) {
                cancelled += 1;
            } else if let Some(grant) = self.repeated(token, now) {
                grants.push(grant);
            } else if !dry {
                match self.pick(&wish, now) {
                    Some(index) => grants.push(self.grant(index, *token, request, now)),
                    None => dry = true,
                }
            }
        }
        Ok(match grants.is_empty() {
            false => AcquireReply::Granted(grants),
            true if cancelled == request.tokens.len() => AcquireReply::Cancelled,
            true if self.paused => AcquireReply::Paused,
            true if self.hold_until > now => AcquireReply::Hold(self.hold_until.from(now)),
            true => self.empty(&wish, now),
        })
    }

    /// Time to the next deadline or end of a cooldown, zero when it has come.
    pub(super) fn next(&self, now: Moment) -> Option<Duration> {
        let due = [self.deadlines.first(), self.cooling.first()];
        due.into_iter().flatten().map(|(due, _)| Moment(due.0).from(now)).min()
    }

    fn wish(&self, request: &AcquireRequest) -> Wish {
        let find = |id| self.members.find(id);
        Wish {
            exclude: request.exclude.iter().filter_map(find).collect(),
            prefer: request.prefer.as_ref().and_then(find),
            site: request.site.clone().filter(|_| !self.shuns.is_empty()),
            random: Cell::new(request.random),
        }
    }

    /// The lease that this token has already; one that has run out is taken back.
    fn repeated(&mut self, token: &Token, now: Moment) -> Option<Grant> {
        let lease = *self.leases.get(token)?;
        if lease.deadline > now {
            return Some(self.granted(&lease, *token, now));
        }
        self.leases.remove(token);
        self.reclaim(lease, now);
        None
    }

    fn pick(&self, wish: &Wish, now: Moment) -> Option<u32> {
        let admits = |index| {
            !wish.exclude.contains(&index) && self.shunned_until(index, wish, now).is_none()
        };
        let ready = |index: &u32| matches!(self.members[*index].place, Place::Ready(_));
        wish.prefer
            .filter(|index| ready(index) && admits(*index))
            .or_else(|| self.ready.first(wish.next_random(), admits))
    }

    fn shunned_until(&self, index: u32, wish: &Wish, now: Moment) -> Option<Moment> {
        let site = wish.site.as_ref()?;
        self.shuns.until(&(self.members[index].serial, site.clone()), now)
    }

    fn grant(&mut self, index: u32, token: Token, request: &AcquireRequest, now: Moment) -> Grant {
        self.fence += 1;
        let slot = &mut self.members[index];
        slot.assignments = slot.assignments.saturating_add(1);
        if self.config.mode == Mode::Shared {
            self.make_ready(index, now);
            let slot = &self.members[index];
            return Grant::new(slot.id.clone(), Fence(self.fence), slot.strikes, None);
        }
        let lease = Lease {
            index,
            fence: self.fence,
            granted_at: now,
            deadline: now.after(request.ttl),
            cooldown: request.expiry_cooldown,
        };
        self.place(index, Place::Leased(token));
        self.deadlines.insert(lease.due());
        self.leases.insert(token, lease);
        self.granted(&lease, token, now)
    }

    fn granted(&self, lease: &Lease, token: Token, now: Moment) -> Grant {
        let slot = &self.members[lease.index];
        let term = Term { token, remaining: lease.deadline.from(now) };
        Grant::new(slot.id.clone(), Fence(lease.fence), slot.strikes, Some(term))
    }

    fn empty(&self, wish: &Wish, now: Moment) -> AcquireReply {
        let rested = |index| match wish.exclude.contains(&index) {
            true => None,
            false => self.shunned_until(index, wish, now).map(|until| until.from(now)),
        };
        let rested = self.ready.iter().filter_map(rested).min();
        let comes = |(_, index): &&(Rank, u32)| !wish.exclude.contains(index);
        let due = [self.deadlines.iter().find(comes), self.cooling.iter().find(comes)];
        let due = due.into_iter().flatten().map(|(due, _)| Moment(due.0).from(now));
        AcquireReply::Empty {
            next: rested.into_iter().chain(due).min(),
            restricted: self.ready.len() > 0,
        }
    }
}

/// What a request wants, in terms of the pool.
struct Wish {
    exclude: Vec<u32>,
    prefer: Option<u32>,
    /// Only when anything is shunned at all.
    site: Option<Site>,
    random: Cell<u64>,
}

impl Wish {
    /// The request's number first, then one for each further grant (a step of splitmix64).
    fn next_random(&self) -> u64 {
        let random = self.random.get();
        self.random.set(random::mix(random));
        random
    }
}
