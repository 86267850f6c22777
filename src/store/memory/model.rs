//! The state machine once more, as plainly as it can be said: lists that are searched from end
//! to end. The store must agree with it after any sequence of calls.

use std::cmp::Ordering;
use std::time::Duration;

use crate::id::EndpointId;
use crate::secret::Token;
use crate::store::{
    AcquireRequest, CancelReply, Claim, Grant, Member, MemberState, Mode, Order, Policy,
    PoolConfig, ReapReply, Release, ReleaseReply, RenewReply, StandingOrder, State,
};
use crate::verdict::{QuarantineCode, Strike};

#[derive(Debug)]
pub(super) struct Model {
    pub(super) config: PoolConfig,
    pub(super) now: Duration,
    members: Vec<Known>,
    former: Vec<(EndpointId, u64)>,
    tombstones: Vec<(Token, Duration)>,
    shuns: Vec<(EndpointId, String, Duration)>,
    paused: bool,
    fence: u64,
    moves: u64,
}

#[derive(Debug, Clone)]
struct Known {
    said: MemberState,
    place: Place,
    struck_at: u64,
    late: Option<QuarantineCode>,
    enabled_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Ready { since: Duration, nth: u64 },
    Cooling { until: Duration, nth: u64 },
    Leased { token: Token, fence: u64, granted: Duration, deadline: Duration, cooldown: Duration },
    Parked,
}

/// What the model makes of an acquire for one token.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Cancelled,
    Has(EndpointId, u64),
    /// Any of these may be granted.
    OneOf(Vec<EndpointId>),
    Paused,
    Empty,
}

impl Model {
    pub(super) fn new(config: PoolConfig) -> Self {
        Self {
            config,
            now: Duration::ZERO,
            members: Vec::new(),
            former: Vec::new(),
            tombstones: Vec::new(),
            shuns: Vec::new(),
            paused: false,
            fence: 0,
            moves: 0,
        }
    }

    /// What the list must say.
    pub(super) fn list(&self) -> Vec<MemberState> {
        let mut list: Vec<_> = self.members.iter().map(|known| self.said(known)).collect();
        list.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
        list
    }

    pub(super) fn reap(&mut self) -> ReapReply {
        let mut reply = ReapReply::default();
        let mut expired = Vec::new();
        for known in &self.members {
            if let Place::Leased { deadline, cooldown, fence, .. } = known.place
                && deadline <= self.now
            {
                expired.push((deadline, fence, cooldown, known.said.endpoint.clone()));
            }
        }
        expired.sort();
        for (deadline, _, cooldown, endpoint) in expired {
            reply.reclaimed += 1;
            self.end(self.find(&endpoint), None, deadline + cooldown);
        }
        for known in &mut self.members {
            if let Place::Cooling { until, nth } = known.place
                && until <= self.now
            {
                reply.promoted += 1;
                known.place = Place::Ready { since: until, nth };
                known.said.state = State::Ready;
            }
        }
        reply
    }

    pub(super) fn acquire(&self, token: Token, request: &AcquireRequest) -> Answer {
        if self.tombstones.iter().any(|(dead, until)| *dead == token && *until > self.now) {
            return Answer::Cancelled;
        }
        for known in &self.members {
            if let Place::Leased { token: holder, fence, .. } = known.place
                && holder == token
            {
                return Answer::Has(known.said.endpoint.clone(), fence);
            }
        }
        if self.paused {
            return Answer::Paused;
        }
        let mut free: Vec<_> =
            self.members.iter().filter(|known| self.admits(known, request)).collect();
        if let Some(preferred) =
            free.iter().find(|known| Some(&known.said.endpoint) == request.prefer.as_ref())
        {
            return Answer::OneOf(vec![preferred.said.endpoint.clone()]);
        }
        if self.policy() != Policy::Random {
            free.sort_by(|a, b| self.compare(a, b));
            free.truncate(1);
        }
        match free.is_empty() {
            true => Answer::Empty,
            false => Answer::OneOf(free.iter().map(|known| known.said.endpoint.clone()).collect()),
        }
    }

    /// Takes a new grant of the store over.
    pub(super) fn granted(&mut self, grant: &Grant, token: Token, request: &AcquireRequest) {
        self.fence += 1;
        assert_eq!(grant.fence.0, self.fence);
        let (now, fence) = (self.now, self.fence);
        let at = self.find(&grant.endpoint);
        let known = &mut self.members[at];
        assert_eq!(grant.strikes, known.said.strikes);
        known.said.assignments += 1;
        if self.config.mode == Mode::Exclusive {
            known.place = Place::Leased {
                token,
                fence,
                granted: now,
                deadline: now + request.ttl,
                cooldown: request.expiry_cooldown,
            };
        }
    }

    pub(super) fn renew(&mut self, token: Token, ttl: Duration) -> RenewReply {
        let (now, largest) = (self.now, self.config.largest_lifetime);
        let Some(at) = self.held(token) else { return RenewReply::NotOwner };
        let Place::Leased { granted, deadline, .. } = &mut self.members[at].place else {
            return RenewReply::NotOwner;
        };
        *deadline = (now + ttl).min(*granted + largest).max(*deadline);
        RenewReply::Renewed(*deadline - now)
    }

    pub(super) fn release(&mut self, release: &Release) -> ReleaseReply {
        let verdict = &release.verdict;
        let (at, fence) = match &release.claim {
            Claim::Lease(token) => match self.held(*token) {
                Some(at) => (at, self.members[at].fence()),
                None => return ReleaseReply::NotOwner,
            },
            Claim::Assignment { endpoint, fence } => {
                let at = self.members.iter().position(|known| known.said.endpoint == *endpoint);
                match at.filter(|_| self.config.mode == Mode::Shared) {
                    Some(at) => (at, fence.0),
                    None => return ReleaseReply::NotOwner,
                }
            }
        };
        self.strike(at, verdict.strike, fence);
        if let (Some(rest), Some(site)) = (verdict.shun, &release.site) {
            let endpoint = self.members[at].said.endpoint.clone();
            self.shuns.push((endpoint, site.to_string(), self.now + rest));
        }
        let until = self.now + verdict.cooldown;
        match self.config.mode {
            Mode::Exclusive => self.end(at, verdict.quarantine, until),
            Mode::Shared => {
                let news = fence > self.members[at].enabled_at;
                self.end_shared(at, verdict.quarantine.filter(|_| news), until);
            }
        }
        ReleaseReply::Released
    }

    pub(super) fn cancel(&mut self, token: Token, tombstone: Duration) -> CancelReply {
        self.tombstones.push((token, self.now + tombstone));
        match self.held(token) {
            Some(at) => {
                self.end(at, None, self.now);
                CancelReply::Released
            }
            None => CancelReply::Tombstoned,
        }
    }

    /// Carries out an order on members that are all there; says how many it changed.
    pub(super) fn carry_out(&mut self, order: &Order) -> usize {
        let count = |changed: Vec<bool>| changed.into_iter().filter(|changed| *changed).count();
        match order {
            Order::Add(members) => count(members.iter().map(|member| self.add(member)).collect()),
            Order::Pause => usize::from(!std::mem::replace(&mut self.paused, true)),
            Order::Resume => usize::from(std::mem::replace(&mut self.paused, false)),
            Order::Remove(ids)
            | Order::Disable(ids)
            | Order::Drain(ids)
            | Order::Enable(ids)
            | Order::Quarantine(ids, _)
            | Order::EndQuarantine(ids, _) => {
                count(ids.iter().map(|id| self.order(self.find(id), order)).collect())
            }
            _ => 0,
        }
    }

    pub(super) fn has(&self, id: &EndpointId) -> bool {
        self.members.iter().any(|known| known.said.endpoint == *id)
    }

    fn order(&mut self, at: usize, order: &Order) -> bool {
        let before = self.members[at].said.clone();
        let leased = matches!(self.members[at].place, Place::Leased { .. });
        let late = self.members[at].late;
        if before.order == Some(StandingOrder::Remove) {
            return false;
        }
        match order {
            Order::Remove(_) if leased => {
                self.stand(at, Some(StandingOrder::Remove));
                self.members[at].late = None;
            }
            Order::Remove(_) => {
                self.drop(at);
                return true;
            }
            Order::Disable(_) | Order::Drain(_) => {
                let drain = matches!(order, Order::Drain(_));
                let order = if drain { StandingOrder::Drain } else { StandingOrder::Disable };
                if let Some(StandingOrder::Quarantine(code)) = before.order {
                    self.members[at].late = Some(code);
                }
                self.stand(at, Some(order));
                if matches!(before.state, State::Ready | State::Cooling(_)) && !leased {
                    self.park(at, State::Disabled);
                }
            }
            Order::Quarantine(_, code)
                if leased
                    && matches!(
                        before.order,
                        Some(StandingOrder::Disable | StandingOrder::Drain)
                    ) =>
            {
                self.members[at].late = Some(*code);
            }
            Order::Quarantine(_, code) if leased => {
                self.stand(at, Some(StandingOrder::Quarantine(*code)));
            }
            Order::Quarantine(_, code) => self.park(at, State::Quarantined(*code)),
            Order::EndQuarantine(_, code)
                if before.state != State::Quarantined(*code) || leased => {}
            Order::EndQuarantine(..) if before.order.is_some() => self.park(at, State::Disabled),
            Order::EndQuarantine(..) => self.free(at, self.now),
            _ => {
                self.stand(at, None);
                self.members[at].late = None;
                self.members[at].enabled_at = self.fence;
                if self.members[at].place == Place::Parked {
                    self.free(at, self.now);
                }
            }
        }
        before != self.members[at].said || late != self.members[at].late
    }

    fn add(&mut self, member: &Member) -> bool {
        let lowest = self.members.iter().min_by(|a, b| by_share(a, b)).map_or(0, |known| {
            known.said.assignments * u64::from(member.weight) / u64::from(known.said.weight)
        });
        if self.has(&member.endpoint) {
            let at = self.find(&member.endpoint);
            let said = &mut self.members[at].said;
            let before = said.clone();
            said.weight = member.weight;
            said.order = said.order.filter(|order| *order != StandingOrder::Remove);
            said.assignments = member.assignments.unwrap_or(said.assignments);
            return before != *said;
        }
        let own = self.former.iter().rev().find(|(id, _)| *id == member.endpoint);
        let own = own.map_or(0, |(_, count)| *count);
        let mut said = MemberState::new(member.endpoint.clone(), member.weight);
        said.assignments = member.assignments.unwrap_or(own.max(lowest));
        self.shuns.retain(|(endpoint, ..)| *endpoint != member.endpoint);
        self.members.push(Known {
            said,
            place: Place::Parked,
            struck_at: 0,
            late: None,
            enabled_at: 0,
        });
        self.free(self.members.len() - 1, self.now);
        true
    }

    fn end(&mut self, at: usize, quarantine: Option<QuarantineCode>, ready_at: Duration) {
        let late = self.members[at].late.take();
        match (self.members[at].said.order, late.or(quarantine)) {
            (Some(StandingOrder::Remove), _) => self.drop(at),
            (Some(StandingOrder::Quarantine(code)), _) => {
                self.stand(at, None);
                self.park(at, State::Quarantined(code));
            }
            (_, Some(code)) => self.park(at, State::Quarantined(code)),
            (Some(_), None) => self.park(at, State::Disabled),
            (None, None) => self.free(at, ready_at),
        }
    }

    fn end_shared(&mut self, at: usize, quarantine: Option<QuarantineCode>, until: Duration) {
        let state = self.members[at].said.state;
        match (self.members[at].place, quarantine) {
            (Place::Parked, Some(code)) if state == State::Disabled => {
                self.park(at, State::Quarantined(code));
            }
            (Place::Parked, _) => {}
            (_, Some(code)) => self.park(at, State::Quarantined(code)),
            (Place::Cooling { until: before, .. }, None) if before >= until => {}
            (_, None) if until > self.now => self.free(at, until),
            _ => {}
        }
    }

    fn free(&mut self, at: usize, from: Duration) {
        self.moves += 1;
        let nth = self.moves;
        let ready = from <= self.now;
        self.members[at].said.state = State::Ready;
        self.members[at].place = match ready {
            true => Place::Ready { since: from, nth },
            false => Place::Cooling { until: from, nth },
        };
    }

    fn park(&mut self, at: usize, state: State) {
        self.members[at].place = Place::Parked;
        self.members[at].said.state = state;
    }

    fn stand(&mut self, at: usize, order: Option<StandingOrder>) {
        self.members[at].said.order = order;
    }

    fn drop(&mut self, at: usize) {
        let said = self.members.remove(at).said;
        self.former.push((said.endpoint, said.assignments));
    }

    fn strike(&mut self, at: usize, strike: Strike, fence: u64) {
        let known = &mut self.members[at];
        match strike {
            Strike::Add if known.struck_at < fence => {
                known.said.strikes += 1;
                known.struck_at = self.fence;
            }
            Strike::Reset if known.struck_at < fence => known.said.strikes = 0,
            _ => {}
        }
    }

    fn admits(&self, known: &Known, request: &AcquireRequest) -> bool {
        let id = &known.said.endpoint;
        let shunned = |(endpoint, site, until): &(EndpointId, String, Duration)| {
            endpoint == id
                && Some(site.as_str()) == request.site.as_ref().map(|site| site.as_str())
                && *until > self.now
        };
        matches!(known.place, Place::Ready { .. })
            && !request.exclude.contains(id)
            && !self.shuns.iter().any(shunned)
    }

    fn policy(&self) -> Policy {
        match self.config.mode {
            Mode::Shared => Policy::LeastAssigned,
            Mode::Exclusive => self.config.policy,
        }
    }

    fn compare(&self, a: &Known, b: &Known) -> Ordering {
        match (self.policy(), a.place, b.place) {
            (Policy::Earliest, Place::Ready { since, nth }, Place::Ready { since: s, nth: n }) => {
                (since, nth).cmp(&(s, n))
            }
            _ => by_share(a, b),
        }
    }

    fn held(&self, token: Token) -> Option<usize> {
        self.members.iter().position(|known| {
            matches!(known.place, Place::Leased { token: holder, deadline, .. }
                if holder == token && deadline > self.now)
        })
    }

    fn find(&self, id: &EndpointId) -> usize {
        self.members.iter().position(|known| known.said.endpoint == *id).unwrap()
    }

    fn said(&self, known: &Known) -> MemberState {
        let mut said = known.said.clone();
        said.state = match known.place {
            Place::Ready { .. } => State::Ready,
            Place::Cooling { until, .. } => State::Cooling(until.saturating_sub(self.now)),
            Place::Leased { deadline, .. } if deadline > self.now => {
                State::Leased(deadline - self.now)
            }
            Place::Leased { .. } => State::Expired,
            Place::Parked => said.state,
        };
        said
    }
}

impl Known {
    fn fence(&self) -> u64 {
        match self.place {
            Place::Leased { fence, .. } => fence,
            _ => 0,
        }
    }
}

/// By (2 * assignments + 1) / weight in whole numbers, then by id.
fn by_share(a: &Known, b: &Known) -> Ordering {
    let cross =
        |a: &Known, b: &Known| (2 * u128::from(a.said.assignments) + 1) * u128::from(b.said.weight);
    cross(a, b).cmp(&cross(b, a)).then_with(|| a.said.endpoint.cmp(&b.said.endpoint))
}
