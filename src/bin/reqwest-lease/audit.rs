//! `audit`: the trail of orders.

use clap::Args;
use reqwest_lease::{AuditEntry, AuditRequest, EndpointId, LeaseStore as _};
use serde_json::{Value, json};

use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::output::Report;
use super::time;

/// Show the trail of orders, newest first
///
/// Shows who ordered what, newest first. The trail outlasts the pool.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Most entries to show
    #[arg(long, default_value_t = 20, value_name = "NUMBER")]
    limit: usize,
}

impl Audit {
    pub(crate) async fn run(self, context: &Context) -> Result<Code, Failure> {
        let pool = context.pool()?;
        let store = context.store().await?;
        let mut entries: Vec<AuditEntry> = Vec::new();
        while entries.len() < self.limit {
            let before = entries.last().map(|entry| entry.id);
            let limit = (self.limit - entries.len()).min(PAGE);
            let page = store.audit(AuditRequest::new(pool.clone(), before, limit)).await?;
            let last = page.len() < limit;
            entries.extend(page);
            if last {
                break;
            }
        }
        let json = entries.iter().map(as_json).collect();
        let columns = ["when", ">ago", "by", "order", ">inventory", ">endpoints", "which"];
        let rows = entries.iter().map(row).collect();
        context.print(&Report::new(Value::Array(json)).table(&columns, rows))?;
        Ok(Code::DONE)
    }
}

const PAGE: usize = 100;

fn row(entry: &AuditEntry) -> Vec<String> {
    let some = entry.endpoints.iter().take(4).map(EndpointId::as_str).collect::<Vec<_>>().join(" ");
    let more = if entry.number > 4 { " .." } else { "" };
    vec![
        time::local(entry.time),
        time::ago(entry.time),
        entry.by.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        entry.order.clone(),
        entry.config_version.map(|version| version.to_string()).unwrap_or_default(),
        entry.number.to_string(),
        format!("{some}{more}"),
    ]
}

fn as_json(entry: &AuditEntry) -> Value {
    json!({
        "id": entry.id.to_string(), "time": time::stamp(entry.time),
        "by": entry.by.as_ref().map(ToString::to_string), "order": entry.order,
        "version": entry.config_version, "number": entry.number,
        "endpoints": entry.endpoints.iter().map(EndpointId::as_str).collect::<Vec<_>>(),
    })
}
