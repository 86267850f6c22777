//! What becomes of a dead worker's endpoints.

use std::time::{Duration, Instant};

use reqwest_lease::{BoxError, EndpointId, LeaseStore, Pool, ReapRequest, RedisStore, State};
use tokio::time::sleep;

/// Prints each change of the endpoints' states until all are ready again.
pub(crate) async fn watch(
    pool: &Pool,
    store: &RedisStore,
    held: &[EndpointId],
    since: Instant,
    ttl: Duration,
    cooldown: Duration,
) -> Result<(), BoxError> {
    println!(
        "a dead worker's endpoints come back after deadline ({ttl:?}) and cooldown ({cooldown:?}):"
    );
    let longest = (ttl + cooldown) * 3;
    let mut last = Vec::new();
    loop {
        // As each lease that anybody takes does; without either the reaper does it by and by.
        store.reap(ReapRequest::new(pool.name().clone())).await?;
        let members = pool.list().await?;
        let states: Vec<_> = members
            .iter()
            .filter(|member| held.contains(&member.endpoint))
            .map(|member| (member.endpoint.to_string(), word(member.state)))
            .collect();
        if states != last {
            let words: Vec<_> = states.iter().map(|(id, word)| format!("{id} {word}")).collect();
            println!("  after {:4.1?}: {}", since.elapsed(), words.join(", "));
            last.clone_from(&states);
        }
        if states.iter().all(|(_, word)| *word == "ready") {
            return Ok(());
        }
        if since.elapsed() > longest {
            return Err(format!("they have not come back within {longest:?}").into());
        }
        sleep(Duration::from_millis(50)).await;
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Ready => "ready",
        State::Cooling(_) => "cooling",
        State::Leased(_) => "leased",
        State::Expired => "expired",
        State::Disabled => "disabled",
        State::Quarantined(_) => "quarantined",
        _ => "unknown",
    }
}
