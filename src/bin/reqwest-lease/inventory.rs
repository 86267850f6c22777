//! `inventory check`.

use std::collections::BTreeMap;

use clap::Args;
use reqwest_lease::{Inventory, Kind};
use serde_json::json;

use super::context::{Context, read_labels};
use super::exit::Code;
use super::failure::Failure;
use super::output::{Report, count};

/// Check an inventory and the passwords that it refers to
///
/// Checks the inventory, with the passwords that it refers to.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Look no password up
    #[arg(long)]
    without_passwords: bool,
    /// Count warnings as findings
    #[arg(long)]
    strict: bool,
}

impl Check {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let path = context.needed_inventory("inventory check")?;
        if self.without_passwords {
            let snapshot = read_labels(path).await;
            return match snapshot {
                Ok(snapshot) => self.tell(context, &snapshot),
                Err(failure) => refused(context, failure.message()),
            };
        }
        match Inventory::from_file(path).await {
            Ok(inventory) => self.tell(context, &inventory.snapshot()),
            Err(error) if error.kind() == Kind::Inventory => refused(context, &error.to_string()),
            Err(error) => Err(error.into()),
        }
    }

    fn tell(&self, context: &Context, snapshot: &reqwest_lease::Snapshot) -> Result<Code, Failure> {
        let mut schemes = BTreeMap::new();
        for endpoint in snapshot.iter() {
            *schemes.entry(endpoint.scheme().as_str()).or_insert(0_usize) += 1;
        }
        let warnings: Vec<String> = snapshot.warnings().iter().map(ToString::to_string).collect();
        let by_scheme =
            schemes.iter().map(|(scheme, number)| format!("{number} {scheme}")).collect::<Vec<_>>();
        let json = json!({
            "valid": true, "version": snapshot.version(), "endpoints": snapshot.len(),
            "schemes": schemes, "warnings": warnings,
        });
        let mut report = Report::new(json).line(format!(
            "valid: {} ({})",
            count(snapshot.len(), "endpoint"),
            by_scheme.join(", ")
        ));
        if let Some(version) = snapshot.version() {
            report = report.line(format!("version {version}"));
        }
        for warning in &warnings {
            report = report.line(format!("warning: {warning}"));
        }
        context.print(&report)?;
        Ok(if self.strict && !warnings.is_empty() { Code::FINDINGS } else { Code::DONE })
    }
}

fn refused(context: &Context, why: &str) -> Result<Code, Failure> {
    let json = json!({"valid": false, "error": why});
    context.print(&Report::new(json).line(format!("not valid: {why}")))?;
    Ok(Code::FINDINGS)
}
