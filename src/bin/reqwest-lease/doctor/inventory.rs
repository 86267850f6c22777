//! The inventory beside the pool.

use reqwest_lease::{EndpointId, Member, RedisStore, Status};

use crate::context::{Context, members, read_labels};
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::output::{count, some};
use crate::shell::quoted;
use crate::sync::Difference;

pub(super) async fn examine(
    store: &RedisStore,
    status: &Status,
    context: &Context,
    diagnosis: &mut Diagnosis,
) -> Result<(), Failure> {
    let Some(path) = context.inventory_path() else {
        diagnosis.unknown("whether the pool is as the inventory: none was named (--inventory)");
        return Ok(());
    };
    let snapshot = match read_labels(path).await {
        Ok(snapshot) => snapshot,
        Err(failure) => {
            diagnosis.error(
                "inventory",
                format!("the inventory cannot be read: {}", failure.message()),
                format!(
                    "reqwest-lease inventory check --inventory {}",
                    quoted(&path.to_string_lossy())
                ),
            );
            return Ok(());
        }
    };
    let members = match members(store, &context.pool()?).await {
        Ok(members) => members,
        Err(failure) => {
            let why = failure.message();
            diagnosis.unknown(format!("whether the pool is as the inventory: {why}"));
            return Ok(());
        }
    };
    let difference = Difference::between(&snapshot, &members);
    for what in told(&difference) {
        diagnosis.warning("inventory", what, context.command_with_inventory("sync"));
    }
    if difference.is_empty()
        && let (Some(here), Some(there)) = (snapshot.version(), status.config_version)
        && here != there
    {
        diagnosis.warning(
            "inventory",
            format!("the inventory has version {here}, the pool {there}"),
            context.command_with_inventory("sync"),
        );
    }
    if !snapshot.warnings().is_empty() {
        let number = count(snapshot.warnings().len(), "warning");
        diagnosis.note("inventory", format!("`inventory check` has {number} about the inventory"));
    }
    Ok(())
}

/// A sentence for each kind of difference that there is.
fn told(difference: &Difference) -> Vec<String> {
    let add: Vec<&EndpointId> = difference.add.iter().map(|member| &member.endpoint).collect();
    let remove: Vec<&EndpointId> = difference.remove.iter().collect();
    let reweigh: Vec<&EndpointId> =
        difference.reweigh.iter().map(|(Member { endpoint, .. }, _)| endpoint).collect();
    [
        (add, "of the inventory not in the pool"),
        (remove, "of the pool not in the inventory, so that workers cannot use them"),
        (reweigh, "with another weight than in the inventory"),
    ]
    .into_iter()
    .filter(|(ids, _)| !ids.is_empty())
    .map(|(ids, what)| format!("{} {what}: {}", count(ids.len(), "endpoint"), some(&ids)))
    .collect()
}
