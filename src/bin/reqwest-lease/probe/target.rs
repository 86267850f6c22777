//! Which endpoints are probed.

use std::collections::HashMap;

use clap::Args;
use reqwest_lease::{EndpointId, MemberState, PoolName, Snapshot, State};

use crate::exit::Code;
use crate::failure::Failure;
use crate::list::{self, States};
use crate::output::some;
use crate::selection::{Labels, parse};

/// Endpoints by their ids, or those of the pool that fit.
#[derive(Debug, Args)]
pub(super) struct Targets {
    /// Ids of endpoints
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All members of the pool
    #[arg(long)]
    all: bool,
    /// Members in this state; repeated, in any of them
    #[arg(long, value_enum, value_name = "STATE")]
    state: Vec<States>,
    #[command(flatten)]
    labels: Labels,
}

/// An endpoint, as the pool knew it at the beginning.
pub(super) struct Target {
    pub(super) id: EndpointId,
    pub(super) state: State,
    /// Whether the inventory here has it.
    pub(super) known: bool,
}

impl Target {
    /// Whether it is one that is leased for its probe.
    pub(super) fn needs_lease(&self) -> bool {
        self.known && !matches!(self.state, State::Disabled | State::Quarantined(_))
    }
}

impl Targets {
    /// The ids that are named, none when others are meant.
    pub(super) fn wanted(&self) -> Result<Vec<EndpointId>, Failure> {
        let by_what = self.labels.are_given() || !self.state.is_empty();
        match (self.ids.is_empty(), self.all, by_what) {
            (true, true, false) | (true, false, true) => Ok(Vec::new()),
            (false, false, false) => parse(&self.ids),
            (true, false, false) => Err(Failure::usage(
                "which endpoints? name ids, --provider, --group, --tag, --state or --all",
            )),
            (true, true, true) => Err(Failure::usage("--all is for all, without labels or states")),
            (false, ..) => {
                Err(Failure::usage("name endpoints by ids or by what they are, not by both"))
            }
        }
    }

    /// The endpoints in order of their ids, at least one.
    pub(super) fn resolve(
        &self,
        wanted: Vec<EndpointId>,
        pool: &PoolName,
        members: &[MemberState],
        inventory: &Snapshot,
    ) -> Result<Vec<Target>, Failure> {
        let target = |member: &MemberState| Target {
            id: member.endpoint.clone(),
            state: member.state,
            known: inventory.get(&member.endpoint).is_some(),
        };
        if wanted.is_empty() {
            let fitting = members.iter().filter(|member| self.fits(member, inventory));
            return match fitting.map(target).collect::<Vec<_>>() {
                none if none.is_empty() => {
                    let what = format!("pool {pool} has no such endpoint");
                    Err(Failure::new(Code::REFUSED, what))
                }
                targets => Ok(targets),
            };
        }
        let members: HashMap<_, _> = members.iter().map(|it| (&it.endpoint, it)).collect();
        let (found, strange): (Vec<_>, Vec<_>) =
            wanted.iter().partition(|id| members.contains_key(id));
        if !strange.is_empty() {
            let what = format!("pool {pool} has no endpoint {}", some(&strange));
            return Err(Failure::new(Code::REFUSED, what));
        }
        let mut targets: Vec<_> = found.iter().map(|id| target(members[id])).collect();
        targets.sort_by(|a, b| a.id.cmp(&b.id));
        targets.dedup_by(|a, b| a.id == b.id);
        let unknown: Vec<_> = targets.iter().filter(|it| !it.known).map(|it| &it.id).collect();
        match unknown.is_empty() {
            true => Ok(targets),
            false => {
                let what = format!("the inventory has no endpoint {}", some(&unknown));
                Err(Failure::usage(what))
            }
        }
    }

    fn fits(&self, member: &MemberState, inventory: &Snapshot) -> bool {
        let state = self.state.is_empty() || self.state.contains(&list::state(&member.state));
        let endpoint = inventory.get(&member.endpoint);
        let labels =
            !self.labels.are_given() || endpoint.is_some_and(|endpoint| self.labels.fit(endpoint));
        state && labels
    }
}
