//! The pool's members: what contradicts itself, and who is in quarantine.

use reqwest_lease::{RedisStore, Rights, State, Status, violations};

use crate::context::{Context, members};
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::output::{count, some};

/// Contradictions in the pool's state.
pub(super) const STATE: &str = "state";

pub(super) async fn examine(
    store: &RedisStore,
    status: &Status,
    rights: Option<&Rights>,
    context: &Context,
    diagnosis: &mut Diagnosis,
) -> Result<(), Failure> {
    let pool = context.pool()?;
    if rights.is_some_and(|rights| rights.tokens) {
        match store.check(&pool).await {
            Ok(found) => tell(found.iter().map(ToString::to_string), context, diagnosis),
            Err(error) => diagnosis.unknown(format!("contradictions in the pool's state: {error}")),
        }
    } else {
        // Time goes on between its readings, so only what stays counts.
        let first = violations(store, &pool).await?;
        let second = if first.is_empty() { Vec::new() } else { violations(store, &pool).await? };
        let stay = first.iter().filter(|found| second.contains(found));
        tell(stay.map(ToString::to_string), context, diagnosis);
        diagnosis.unknown(
            "whether leases and tokens agree, which this user may not see; an administrator may",
        );
    }
    if status.quarantined > 0 {
        quarantined(store, context, diagnosis).await?;
    }
    Ok(())
}

/// One finding for each kind of contradiction, with some of the endpoints.
fn tell(found: impl Iterator<Item = String>, context: &Context, diagnosis: &mut Diagnosis) {
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    for text in found {
        let known = KINDS.iter().find(|(name, _)| text.ends_with(name));
        let id = known.and_then(|(name, _)| text.strip_suffix(name)).unwrap_or_default();
        let what = known.map_or_else(|| text.clone(), |(_, what)| (*what).to_owned());
        match kinds.iter_mut().find(|(kind, _)| *kind == what) {
            Some((_, ids)) => ids.push(id.trim().to_owned()),
            None => kinds.push((what, vec![id.trim().to_owned()])),
        }
    }
    for (what, ids) in kinds {
        let named = ids.iter().any(|id| !id.is_empty());
        let which = if named { format!(": {}", some(&ids)) } else { String::new() };
        diagnosis.error(STATE, format!("{what}{which}"), context.command("doctor --repair"));
    }
}

/// The store's words for contradictions, and what they mean.
const KINDS: [(&str, &str); 14] = [
    ("not in one place", "endpoints are in no place of the pool, or in two"),
    ("without count", "endpoints have no count of assignments"),
    ("lease without owner", "leases have no owner, so that nobody can give them back"),
    ("lease without request", "leases have no token, so that nobody can give them back"),
    ("deadline too far", "leases end later than the largest ttl allows"),
    ("leased while loading", "endpoints are leased while the pool is being loaded"),
    ("order ignored", "orders to keep endpoints out are not followed"),
    ("disabled by nobody", "endpoints are disabled without an order"),
    ("members miscounted", "the pool's places have more or less in them than it has members"),
    ("leases miscounted", "the pool has tokens without leases, or leases without tokens"),
    ("orders lost", "the standing orders are lost, so that nothing is granted"),
    ("due too late", "calls look for what has ended later than something ends"),
    ("note missing", "the long texts that keep calls quick are missing"),
    ("strikes malformed", "failures in a row are not numbers, and count as none"),
];

async fn quarantined(
    store: &RedisStore,
    context: &Context,
    diagnosis: &mut Diagnosis,
) -> Result<(), Failure> {
    let all = members(store, &context.pool()?).await?;
    let out: Vec<String> = all
        .iter()
        .filter_map(|member| match member.state {
            State::Quarantined(code) => Some(format!("{} ({})", member.endpoint, code.as_str())),
            _ => None,
        })
        .collect();
    if out.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = out.iter().filter_map(|text| text.split(' ').next()).collect();
    let shown = ids.iter().take(5).copied().collect::<Vec<_>>().join(" ");
    diagnosis.warning(
        "quarantine",
        format!("{} in quarantine: {}", count(out.len(), "endpoint"), some(&out)),
        format!("when they work again: {}", context.command(&format!("enable {shown}"))),
    );
    Ok(())
}
