//! Keeping, giving back and giving up.

use std::time::Duration;

use super::{Known, RedisStore, large_ttl};
use crate::error::Error;
use crate::id::PoolName;
use crate::redis::commands::{CANCEL, JUDGE, REAP, RELEASE, RENEW};
use crate::redis::words::head;
use crate::redis::{Arguments, Reply, reply::senseless};
use crate::site::Site;
use crate::store::{
    CancelReply, CancelRequest, Claim, ReapReply, Release, ReleaseReply, ReleaseRequest,
    RenewReply, RenewRequest, check,
};
use crate::verdict::Strike;

impl RedisStore {
    pub(super) async fn extend(&self, request: &RenewRequest) -> Result<RenewReply, Error> {
        check::some_ttl(request.ttl)?;
        let pool = self.pool(&request.pool);
        let arguments =
            Arguments::of(&RENEW).token("token", &request.token).micros("ttl_us", request.ttl);
        let (word, mut reply) = self.call(&pool, &pool.keys_of(&RENEW), arguments).await?;
        match word.as_str() {
            head::RENEWED => Ok(RenewReply::Renewed(reply.time()?)),
            head::NOT_OWNER => Ok(RenewReply::NotOwner),
            head::TTL_TOO_LARGE => Err(large_ttl(request.ttl, &mut reply)),
            _ => Err(senseless()),
        }
    }

    /// Ends leases by one script and grants of a shared pool by another; one pool has one kind.
    pub(super) async fn end(&self, request: &ReleaseRequest) -> Result<Vec<ReleaseReply>, Error> {
        check::release(request)?;
        let pool = self.pool(&request.pool);
        let is_lease = |release: &&Release| matches!(release.claim, Claim::Lease(_));
        let (leases, assignments): (Vec<_>, Vec<_>) = request.releases.iter().partition(is_lease);
        let mut of_leases = self.end_all(&pool, &leases, request.hint).await?;
        let mut of_assignments = self.end_all(&pool, &assignments, false).await?;
        let next = |release: &Release| match release.claim {
            Claim::Lease(_) => released(&mut of_leases),
            Claim::Assignment { .. } => released(&mut of_assignments),
        };
        request.releases.iter().map(next).collect()
    }

    async fn end_all(
        &self,
        pool: &Known,
        releases: &[&Release],
        hint: bool,
    ) -> Result<Reply, Error> {
        let Some(first) = releases.first() else { return Ok(Reply::empty()) };
        let mut keys = pool.keys.state().to_vec();
        let mut arguments = match first.claim {
            Claim::Lease(_) => Arguments::of(&RELEASE),
            Claim::Assignment { .. } => Arguments::of(&JUDGE),
        };
        for release in releases {
            arguments = verdict(arguments, release);
            if let Some((site, _)) = shun(release) {
                keys.push(pool.keys.shun(site));
            }
        }
        // In a shared pool nobody waits for another's release.
        if let Claim::Lease(_) = first.claim {
            let channel = if hint { pool.keys.hints() } else { String::new() };
            arguments = arguments.text("hint", &channel);
        }
        self.expect(pool, &keys, arguments, head::ENDED).await
    }

    pub(super) async fn give_up(&self, request: &CancelRequest) -> Result<CancelReply, Error> {
        let pool = self.pool(&request.pool);
        let arguments = Arguments::of(&CANCEL)
            .token("token", &request.token)
            .micros("tombstone_us", request.tombstone);
        match self.call(&pool, pool.keys.state(), arguments).await?.0.as_str() {
            head::RELEASED => Ok(CancelReply::Released),
            head::TOMBSTONED => Ok(CancelReply::Tombstoned),
            _ => Err(senseless()),
        }
    }

    pub(super) async fn sweep(&self, pool: &PoolName) -> Result<ReapReply, Error> {
        let pool = self.pool(pool);
        let reaped = self.expect(&pool, pool.keys.state(), Arguments::of(&REAP), head::REAPED);
        let mut reply = reaped.await?;
        Ok(ReapReply { reclaimed: reply.parse()?, promoted: reply.parse()?, more: reply.flag()? })
    }
}

fn verdict(arguments: Arguments, release: &Release) -> Arguments {
    let arguments = match &release.claim {
        Claim::Lease(token) => arguments.token("token", token),
        Claim::Assignment { endpoint, fence } => {
            arguments.text("id", endpoint.as_str()).number("fence", fence.0.min(LARGEST_FENCE))
        }
    };
    let strike = match release.verdict.strike {
        Strike::Keep => "keep",
        Strike::Add => "add",
        Strike::Reset => "reset",
    };
    arguments
        .micros("cooldown_us", release.verdict.cooldown)
        .text("strike", strike)
        .text("quarantine", release.verdict.quarantine.map_or("", |code| code.as_str()))
        .micros("shun_us", shun(release).map(|(_, rest)| rest).unwrap_or_default())
}

/// The pair's rest, when there are both a site and a rest.
fn shun(release: &Release) -> Option<(&Site, Duration)> {
    let rest = release.verdict.shun.filter(|rest| !rest.is_zero())?;
    Some((release.site.as_ref()?, rest))
}

fn released(replies: &mut Reply) -> Result<ReleaseReply, Error> {
    match replies.text()?.as_str() {
        head::RELEASED => Ok(ReleaseReply::Released),
        head::NOT_OWNER => Ok(ReleaseReply::NotOwner),
        _ => Err(senseless()),
    }
}

/// Whole numbers are exact up to here in a script.
const LARGEST_FENCE: u64 = 1 << 53;
