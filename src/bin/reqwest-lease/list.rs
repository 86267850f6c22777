//! `list`: a pool's members.

use std::collections::HashSet;
use std::time::Duration;

use clap::{Args, ValueEnum};
use reqwest_lease::{MemberState, Snapshot, StandingOrder, State};
use serde_json::{Value, json};

use super::context::{Context, members};
use super::exit::Code;
use super::failure::Failure;
use super::output::{Report, count, note};
use super::selection::{Labels, parse};
use super::time;

/// Show a pool's members
///
/// Shows a pool's members in order of their ids, all or some.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only these endpoints
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Only members in this state; repeated, in any of them
    #[arg(long, value_enum, value_name = "STATE")]
    state: Vec<States>,
    /// Most members to show
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    // Last: what comes after its labels would stand under their heading.
    #[command(flatten)]
    labels: Labels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum States {
    /// Can be granted now
    Ready,
    /// Can be granted later
    Cooling,
    /// Has a valid lease
    Leased,
    /// Has a lease that has run out and that nobody has taken back
    Expired,
    /// Kept out by an order
    Disabled,
    /// Kept out for evidence
    Quarantined,
    /// In no place, which only damage leaves: `doctor --repair` mends it
    Lost,
}

impl List {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let pool = context.pool()?;
        let snapshot = match self.labels.are_given() {
            true => Some(context.labels("a list by labels").await?),
            false => context.labels_if_any().await,
        };
        let ids = parse(&self.ids)?;
        let store = context.store().await?;
        let mut shown = members(&store, &pool).await?;
        let all = shown.len();
        if !ids.is_empty() {
            let there: HashSet<_> = shown.iter().map(|member| &member.endpoint).collect();
            if let Some(missing) = ids.iter().find(|id| !there.contains(id)) {
                let what = format!("pool {pool} has no endpoint {missing}");
                return Err(Failure::new(Code::REFUSED, what));
            }
            let wanted: HashSet<_> = ids.iter().collect();
            shown.retain(|member| wanted.contains(&member.endpoint));
        }
        shown.retain(|member| self.fits(member, snapshot.as_ref()));
        shown.truncate(self.limit.unwrap_or(usize::MAX));
        let json = shown.iter().map(|member| as_json(member, snapshot.as_ref())).collect();
        let mut columns =
            vec!["endpoint", "state", ">for", "why", ">weight", ">assignments", ">strikes"];
        if snapshot.is_some() {
            columns.extend(["provider", "group"]);
        }
        let rows = shown.iter().map(|member| row(member, snapshot.as_ref())).collect();
        context.print(&Report::new(Value::Array(json)).table(&columns, rows))?;
        if shown.len() < all {
            note(&format!("{} of {}", shown.len(), count(all, "endpoint")));
        }
        Ok(Code::DONE)
    }

    fn fits(&self, member: &MemberState, snapshot: Option<&Snapshot>) -> bool {
        let state = self.state.is_empty() || self.state.contains(&state(&member.state));
        let labels = !self.labels.are_given()
            || snapshot
                .and_then(|snapshot| snapshot.get(&member.endpoint))
                .is_some_and(|endpoint| self.labels.fit(endpoint));
        state && labels
    }
}

pub(crate) fn state(state: &State) -> States {
    match state {
        // One whose time has come can be granted, as the status counts it.
        State::Cooling(left) if !left.is_zero() => States::Cooling,
        State::Leased(_) => States::Leased,
        State::Expired => States::Expired,
        State::Disabled => States::Disabled,
        State::Quarantined(_) => States::Quarantined,
        State::Lost => States::Lost,
        _ => States::Ready,
    }
}

/// The state in a word.
pub(crate) fn word(of: &State) -> &'static str {
    match state(of) {
        States::Ready => "ready",
        States::Cooling => "cooling",
        States::Leased => "leased",
        States::Expired => "expired",
        States::Disabled => "disabled",
        States::Quarantined => "quarantined",
        States::Lost => "lost",
    }
}

/// What a quarantine was for.
pub(crate) fn reason(member: &MemberState) -> Option<&'static str> {
    match member.state {
        State::Quarantined(code) => Some(code.as_str()),
        _ => None,
    }
}

/// Where it is, in a few words.
pub(crate) fn place(member: &MemberState) -> String {
    let (word, left) = (word(&member.state), left(member).map(time::short));
    match reason(member).map(str::to_owned).or(left) {
        Some(more) => format!("{word} {more}"),
        None => word.to_owned(),
    }
}

fn order(order: &StandingOrder) -> String {
    match order {
        StandingOrder::Disable => "disable".to_owned(),
        StandingOrder::Drain => "drain".to_owned(),
        StandingOrder::Remove => "remove".to_owned(),
        StandingOrder::Quarantine(code) => format!("quarantine:{}", code.as_str()),
        _ => "another".to_owned(),
    }
}

/// What keeps it out, or will.
fn why(member: &MemberState) -> String {
    let reason = reason(member).map(str::to_owned);
    reason.or_else(|| member.order.as_ref().map(order)).unwrap_or_default()
}

fn left(member: &MemberState) -> Option<Duration> {
    match member.state {
        State::Cooling(left) | State::Leased(left) if !left.is_zero() => Some(left),
        _ => None,
    }
}

fn row(member: &MemberState, snapshot: Option<&Snapshot>) -> Vec<String> {
    let mut cells = vec![
        member.endpoint.to_string(),
        word(&member.state).to_owned(),
        left(member).map(time::short).unwrap_or_default(),
        why(member),
        member.weight.to_string(),
        member.assignments.to_string(),
        member.strikes.to_string(),
    ];
    if let Some(snapshot) = snapshot {
        let labels = snapshot.get(&member.endpoint).map(|endpoint| endpoint.labels());
        cells.push(labels.and_then(|labels| labels.provider.clone()).unwrap_or_default());
        cells.push(labels.and_then(|labels| labels.group.clone()).unwrap_or_default());
    }
    cells
}

fn as_json(member: &MemberState, snapshot: Option<&Snapshot>) -> Value {
    let mut json = json!({
        "id": member.endpoint.as_str(), "state": word(&member.state), "reason": reason(member),
        "left_seconds": left(member).map(|left| left.as_secs_f64()),
        "order": member.order.as_ref().map(order), "weight": member.weight,
        "assignments": member.assignments, "strikes": member.strikes,
    });
    if let Some(snapshot) = snapshot {
        let labels = snapshot.get(&member.endpoint).map(|endpoint| endpoint.labels());
        json["provider"] = json!(labels.and_then(|labels| labels.provider.clone()));
        json["group"] = json!(labels.and_then(|labels| labels.group.clone()));
        json["tags"] = json!(labels.map(|labels| labels.tags.clone()));
    }
    json
}
