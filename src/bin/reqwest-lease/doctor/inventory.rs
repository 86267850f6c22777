//! The inventory beside the pool.

use reqwest_lease::{EndpointId, Member, RedisStore, Status};

use crate::context::{Context, members, read_labels};
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::output::{count, some};
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
                format!("reqwest-lease inventory check --inventory {}", path.display()),
            );
            return Ok(());
        }
    };
    let difference = Difference::between(&snapshot, &members(store, &context.pool()?).await?);
    let mut tell = |what: String| {
        diagnosis.warning("inventory", what, context.command_with_inventory("sync"));
    };
    if !difference.add.is_empty() {
        let ids: Vec<&EndpointId> = difference.add.iter().map(|member| &member.endpoint).collect();
        tell(format!(
            "{} of the inventory not in the pool: {}",
            count(ids.len(), "endpoint"),
            some(&ids)
        ));
    }
    if !difference.remove.is_empty() {
        let ids = &difference.remove;
        tell(format!(
            "{} of the pool not in the inventory, so that workers cannot use them: {}",
            count(ids.len(), "endpoint"),
            some(ids)
        ));
    }
    if !difference.reweigh.is_empty() {
        let ids: Vec<&EndpointId> =
            difference.reweigh.iter().map(|(Member { endpoint, .. }, _)| endpoint).collect();
        tell(format!(
            "{} with another weight than in the inventory: {}",
            count(ids.len(), "endpoint"),
            some(&ids)
        ));
    }
    if difference.is_empty()
        && let (Some(here), Some(there)) = (snapshot.version(), status.config_version)
        && here != there
    {
        tell(format!("the inventory has version {here}, the pool {there}"));
    }
    if !snapshot.warnings().is_empty() {
        let number = count(snapshot.warnings().len(), "warning");
        diagnosis.note("inventory", format!("`inventory check` has {number} about the inventory"));
    }
    Ok(())
}
