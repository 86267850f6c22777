//! The pool's members: what contradicts itself, and who is in quarantine.

use reqwest_lease::{Error, PoolName, RedisStore, Rights, State, Status, Violation, violations};

use crate::context::{Context, members};
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::output::{count, some};
use crate::shell::quoted;

use super::pool::TYPES;

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
    let sees_tokens = rights.is_some_and(|rights| rights.tokens);
    let found = match sees_tokens {
        true => store.check(&pool).await,
        false => that_stay(store, &pool).await,
    };
    match found {
        Ok(found) => tell(found.iter().map(ToString::to_string), context, diagnosis),
        // Keys of another type have been told of.
        Err(_) if diagnosis.has(TYPES) => {}
        Err(error) => unchecked(&error, context, diagnosis),
    }
    if !sees_tokens {
        diagnosis.unknown(
            "whether leases and tokens agree, which this user may not see; an administrator may",
        );
    }
    if status.quarantined > 0 {
        quarantined(store, context, diagnosis).await?;
    }
    Ok(())
}

/// A state that could not be looked at is not one without faults.
fn unchecked(error: &Error, context: &Context, diagnosis: &mut Diagnosis) {
    let mend = match error.is_transient() {
        true => context.command("doctor"),
        false => format!(
            "run the command of `reqwest-lease acl administrator --namespace {}` for this user",
            quoted(context.namespace())
        ),
    };
    diagnosis.warning("check", format!("the pool's state cannot be checked: {error}"), mend);
}

/// What contradicts itself in the list: time goes on between its readings, so only what stays.
async fn that_stay(store: &RedisStore, pool: &PoolName) -> Result<Vec<Violation>, Error> {
    let mut found = violations(store, pool).await?;
    if !found.is_empty() {
        let again = violations(store, pool).await?;
        found.retain(|found| again.contains(found));
    }
    found.extend(store.strays(pool).await?);
    Ok(found)
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
const KINDS: [(&str, &str); 25] = [
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
    ("time senseless", "endpoints have times or ranks that are none"),
    ("count senseless", "endpoints have counts of assignments that are none"),
    ("weight senseless", "endpoints have weights that are none, and count as 1"),
    ("reason senseless", "endpoints are kept out for reasons that are none"),
    ("order senseless", "standing orders cannot be read"),
    ("members out of order", "the list of members is not in order, so that some may not be listed"),
    ("weights miscounted", "the number of weights is not as noted, so that some may not count"),
    ("orders of nobody", "standing orders are for endpoints that are no members"),
    ("weights of nobody", "weights are kept of endpoints that are no members"),
    ("strikes of nobody", "failures in a row are kept of endpoints that are no members"),
    ("former of nobody", "counts kept of former members are of members, or no counts"),
];

async fn quarantined(
    store: &RedisStore,
    context: &Context,
    diagnosis: &mut Diagnosis,
) -> Result<(), Failure> {
    // What is wrong with the list has been told.
    let all = members(store, &context.pool()?).await.unwrap_or_default();
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
