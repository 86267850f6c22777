//! Reading the trail of orders.

use std::time::SystemTime;

use super::RedisStore;
use crate::error::Error;
use crate::redis::commands::AUDIT;
use crate::redis::words::head;
use crate::redis::{Arguments, Reply, reply::senseless};
use crate::store::{AuditEntry, AuditId, AuditRequest};

impl RedisStore {
    pub(super) async fn trail(&self, request: &AuditRequest) -> Result<Vec<AuditEntry>, Error> {
        let pool = self.pool(&request.pool);
        let (mut entries, mut before) = (Vec::new(), request.before);
        while entries.len() < request.limit {
            let limit = PAGE.min(request.limit - entries.len());
            let arguments = Arguments::of(&AUDIT)
                .text("before", &before.map_or_else(String::new, |id| id.to_string()))
                .number("limit", limit as u64);
            let keys = pool.keys_of(&AUDIT);
            let mut reply = self.expect(&pool, &keys, arguments, head::ENTRIES).await?;
            let known = entries.len();
            while !reply.is_empty() {
                entries.push(entry(&mut reply)?);
            }
            if entries.len() - known < limit {
                break;
            }
            before = entries.last().map(|entry: &AuditEntry| entry.id);
        }
        Ok(entries)
    }
}

fn entry(reply: &mut Reply) -> Result<AuditEntry, Error> {
    let id = reply.text()?;
    let (milliseconds, nth) = id.split_once('-').ok_or_else(senseless)?;
    let number = |text: &str| text.parse().map_err(|_| senseless());
    let id = AuditId(number(milliseconds)?, number(nth)?);
    let (by, order, config_version) = (reply.maybe()?, reply.text()?, reply.maybe()?);
    let time = SystemTime::UNIX_EPOCH + reply.time()?;
    let number = reply.parse()?;
    let endpoints = reply.text()?;
    let endpoints = endpoints.split_terminator(' ').map(|id| id.parse().map_err(|_| senseless()));
    let endpoints = endpoints.collect::<Result<_, _>>()?;
    Ok(AuditEntry { id, time, by, order, config_version, number, endpoints })
}

/// Entries read by one call.
const PAGE: usize = 200;
