//! What holds of a pool at any moment.

use std::fmt;

use crate::error::Error;
use crate::id::PoolName;
use crate::store::{LeaseStore, ListRequest, MemberState, Mode, StandingOrder, State, Status};

/// A contradiction in what a pool says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(String);

impl Violation {
    #[cfg(feature = "redis")]
    pub(crate) fn new(what: String) -> Self {
        Self(what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Finds contradictions between a pool's list and its status. It is meant for a pool that
/// nobody else is using; time may go on.
///
/// # Errors
/// As [`LeaseStore::list`] and [`LeaseStore::status`].
pub async fn violations(store: &dyn LeaseStore, pool: &PoolName) -> Result<Vec<Violation>, Error> {
    let members = all(store, pool).await?;
    let status = store.status(pool).await?;
    let mut found: Vec<_> =
        members.iter().filter_map(|member| contradiction(member, &status)).collect();
    found.extend(out_of_order(&members));
    found.extend(miscounted(&members, &status));
    Ok(found)
}

async fn all(store: &dyn LeaseStore, pool: &PoolName) -> Result<Vec<MemberState>, Error> {
    let mut members: Vec<MemberState> = Vec::new();
    loop {
        let after = members.last().map(|member| member.endpoint.clone());
        let request = ListRequest { pool: pool.clone(), after, limit: PAGE };
        let page = store.list(request).await?;
        let last = page.len() < PAGE;
        members.extend(page);
        if last {
            return Ok(members);
        }
    }
}

fn contradiction(member: &MemberState, status: &Status) -> Option<Violation> {
    let MemberState { endpoint, state, order, .. } = member;
    let largest = status.config.largest_ttl;
    let broken = match (state, order) {
        (State::Ready | State::Cooling(_), Some(order)) => {
            format!("can be granted under {order:?}")
        }
        (State::Leased(left), _) if *left > largest => format!("is leased for {left:?}"),
        (State::Leased(_) | State::Expired, _) if status.config.mode == Mode::Shared => {
            "is leased in a shared pool".to_owned()
        }
        (State::Leased(_) | State::Expired, _) if status.loading => {
            "is leased while the pool is being loaded".to_owned()
        }
        (State::Lost, _) => "is in no place".to_owned(),
        (State::Disabled, None) => "is disabled by nobody".to_owned(),
        (
            State::Disabled | State::Quarantined(_),
            Some(StandingOrder::Remove | StandingOrder::Quarantine(_)),
        ) => "waits for the end of a lease that it has not".to_owned(),
        _ => return None,
    };
    Some(Violation(format!("{endpoint} {broken}")))
}

fn out_of_order(members: &[MemberState]) -> Option<Violation> {
    let pair = members.windows(2).find(|pair| pair[0].endpoint >= pair[1].endpoint)?;
    Some(Violation(format!("{} is listed before {}", pair[0].endpoint, pair[1].endpoint)))
}

/// Ready and cooling are counted as one, and so are leased and expired: time may have gone on
/// between list and status.
fn miscounted(members: &[MemberState], status: &Status) -> Option<Violation> {
    let count = |is: fn(&State) -> bool| members.iter().filter(|member| is(&member.state)).count();
    let listed = [
        count(|state| matches!(state, State::Ready | State::Cooling(_))),
        count(|state| matches!(state, State::Leased(_) | State::Expired)),
        count(|state| matches!(state, State::Disabled)),
        count(|state| matches!(state, State::Quarantined(_))),
    ];
    let counted = [
        status.ready + status.cooling,
        status.leased + status.expired,
        status.disabled,
        status.quarantined,
    ];
    (listed != counted).then(|| Violation(format!("listed {listed:?}, counted {counted:?}")))
}

const PAGE: usize = 100;
