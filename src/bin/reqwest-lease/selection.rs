//! Which endpoints a command is about.

use std::collections::HashSet;

use clap::Args;
use reqwest_lease::{Endpoint, EndpointId, RedisStore, Snapshot};

use super::context::{Context, members};
use super::exit::Code;
use super::failure::Failure;
use super::output::{note, some};

/// Endpoints by their ids, or by their labels in the inventory.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Ids of endpoints
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    labels: Labels,
}

/// Labels of the inventory; all that are given must fit.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection by the inventory")]
pub(crate) struct Labels {
    /// Endpoints of this provider
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Endpoints of this group
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Endpoints with this tag; repeated, with each of them
    #[arg(long, value_name = "NAME")]
    tag: Vec<String>,
}

impl Labels {
    pub(crate) fn are_given(&self) -> bool {
        self.provider.is_some() || self.group.is_some() || !self.tag.is_empty()
    }

    pub(crate) fn fit(&self, endpoint: &Endpoint) -> bool {
        let labels = endpoint.labels();
        let is = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
        is(&self.provider, &labels.provider)
            && is(&self.group, &labels.group)
            && self.tag.iter().all(|tag| labels.tags.contains(tag))
    }

    fn select(&self, snapshot: &Snapshot) -> Vec<EndpointId> {
        let fitting = snapshot.iter().filter(|endpoint| self.fit(endpoint));
        fitting.map(|endpoint| endpoint.id().clone()).collect()
    }
}

impl Selection {
    /// The store, and the ids, at least one and each once.
    ///
    /// The store takes a large order in calls of some hundred endpoints, of which the last one may
    /// be refused when the others have been carried out. So what the pool has not is told before.
    pub(crate) async fn resolve(
        &self,
        context: &Context,
    ) -> Result<(RedisStore, Vec<EndpointId>), Failure> {
        let labels = self.labels.are_given();
        let mut ids = self.named(context).await?;
        let (pool, store) = (context.pool()?, context.store().await?);
        if !labels && ids.len() <= AT_ONCE {
            return Ok((store, ids));
        }
        let members = members(&store, &pool).await?;
        let members: HashSet<_> = members.into_iter().map(|member| member.endpoint).collect();
        let (there, missing): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| members.contains(id));
        ids = there;
        let what = format!("pool {pool} has no endpoint {}", some(&missing));
        match missing.is_empty() {
            true => {}
            // They are in the inventory, and `sync` will add them.
            false if labels && !ids.is_empty() => note(&format!("warning: {what}")),
            false => return Err(Failure::new(Code::REFUSED, what)),
        }
        Ok((store, ids))
    }

    async fn named(&self, context: &Context) -> Result<Vec<EndpointId>, Failure> {
        match (self.ids.is_empty(), self.labels.are_given()) {
            (false, false) => parse(&self.ids),
            (true, true) => {
                let snapshot = context.labels("a selection by labels").await?;
                match self.labels.select(&snapshot) {
                    ids if ids.is_empty() => {
                        Err(Failure::usage("no endpoint of the inventory has these labels"))
                    }
                    ids => Ok(ids),
                }
            }
            (false, true) => Err(Failure::usage("name endpoints by ids or by labels, not by both")),
            (true, false) => {
                Err(Failure::usage("which endpoints? name ids, --provider, --group or --tag"))
            }
        }
    }
}

/// Endpoints in an order that the store carries out at once.
const AT_ONCE: usize = 500;

/// Checks ids, and leaves out what is named again; one that is none is not told, for it may be a line
/// of a proxy list.
pub(crate) fn parse(ids: &[String]) -> Result<Vec<EndpointId>, Failure> {
    let check = |(nth, id): (usize, &String)| {
        EndpointId::new(id)
            .map_err(|why| Failure::usage(format!("id {} is not valid: {why}", nth + 1)))
    };
    let mut ids: Vec<_> = ids.iter().enumerate().map(check).collect::<Result<_, _>>()?;
    let mut seen = HashSet::with_capacity(ids.len());
    ids.retain(|id| seen.insert(id.clone()));
    Ok(ids)
}
