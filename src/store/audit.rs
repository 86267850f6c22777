//! The trail of an administrator's orders.

use std::fmt;
use std::time::SystemTime;

use super::Order;
use crate::id::{AdminName, EndpointId, PoolName};

/// Most ids that an entry of the trail names; it has the number of all.
pub const MAX_AUDITED: usize = 32;

/// About how many orders a trail keeps: older ones go.
pub const MAX_TRAIL: usize = 10_000;

/// Asks for a page of a pool's trail of orders, newest first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditRequest {
    /// The pool.
    pub pool: PoolName,
    /// Only entries before this one.
    pub before: Option<AuditId>,
    /// Most entries in the reply.
    pub limit: usize,
}

impl AuditRequest {
    /// The newest entries, or those before one.
    pub const fn new(pool: PoolName, before: Option<AuditId>, limit: usize) -> Self {
        Self { pool, before, limit }
    }
}

/// The place of an entry in its trail: a later one is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuditId(pub u64, pub u64);

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// An order that was carried out, whether it changed anything or not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEntry {
    /// Its place.
    pub id: AuditId,
    /// When, by the store's clock.
    pub time: SystemTime,
    /// Who gave it, if they said so.
    pub by: Option<AdminName>,
    /// What it was: [`Order::word`].
    pub order: String,
    /// The version of the inventory that it came from, if there was one.
    pub config_version: Option<u64>,
    /// How many endpoints it named.
    pub number: usize,
    /// The first [`MAX_AUDITED`] of them.
    pub endpoints: Vec<EndpointId>,
}

impl AuditEntry {
    /// An order that was given now, by nobody in particular, for implementors of stores.
    pub fn new(id: AuditId, order: &Order) -> Self {
        let named = order.endpoints();
        Self {
            id,
            time: SystemTime::now(),
            by: None,
            order: order.word(),
            config_version: None,
            number: named.len(),
            endpoints: named.take(MAX_AUDITED).cloned().collect(),
        }
    }
}

impl Order {
    /// The order in a word for logs and the trail, with what it depends on behind a colon:
    /// `disable`, `init:loading:after_loss`, `quarantine:probe`.
    pub fn word(&self) -> String {
        match self {
            Self::Init(setup) => {
                let loading = if setup.loading { ":loading" } else { "" };
                let loss = if setup.after_loss { ":after_loss" } else { "" };
                return format!("init{loading}{loss}");
            }
            Self::Quarantine(_, code) => return format!("quarantine:{}", code.as_str()),
            Self::EndQuarantine(_, code) => return format!("end_quarantine:{}", code.as_str()),
            Self::Load(_) => "load",
            Self::Open => "open",
            Self::Add(_) => "add",
            Self::Remove(_) => "remove",
            Self::Disable(_) => "disable",
            Self::Drain(_) => "drain",
            Self::Enable(_) => "enable",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::EndHold => "end_hold",
            Self::DestroyPool => "destroy",
        }
        .to_owned()
    }

    /// The endpoints that it names.
    fn endpoints(&self) -> impl ExactSizeIterator<Item = &EndpointId> {
        let (members, ids): (&[_], &[_]) = match self {
            Self::Load(members) | Self::Add(members) => (members, &[]),
            Self::Remove(ids)
            | Self::Disable(ids)
            | Self::Drain(ids)
            | Self::Enable(ids)
            | Self::Quarantine(ids, _)
            | Self::EndQuarantine(ids, _) => (&[], ids),
            _ => (&[], &[]),
        };
        (0..members.len().max(ids.len())).map(move |nth| match members.get(nth) {
            Some(member) => &member.endpoint,
            None => &ids[nth],
        })
    }
}
