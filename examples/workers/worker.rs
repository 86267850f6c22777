//! A worker: pages come in by standard input, what became of them goes out by standard output.

use std::sync::Arc;
use std::time::Duration;

use reqwest_lease::{
    BoxError, Endpoint, EndpointId, Inventory, LeaseInfo, LeaseMiddleware, Pool, PoolName,
    RedisStore,
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long a lease is held: short, so that the example is.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// How long an endpoint rests whose holder died: it may still be on the wire.
pub(crate) const EXPIRY_COOLDOWN: Duration = Duration::from_secs(1);

/// Pages that a worker has in its hands at the same time.
pub(crate) const AT_ONCE: usize = 2;

/// Reads `endpoint ID URL` and `page URL` until the end, and answers each page with
/// `leased ENDPOINT URL` and then `done STATUS URL` or `failed URL`.
pub(crate) async fn run(redis: &str, name: PoolName) -> Result<(), BoxError> {
    let mut lines = standard_input();
    let (mut endpoints, mut client, mut pool) = (Vec::new(), None, None);
    let (places, mut pages) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    while let Some(line) = lines.recv().await {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["endpoint", id, url] => {
                endpoints.push(Endpoint::new(EndpointId::new(id)?, url, None)?);
            }
            ["start"] => {
                let inventory = Inventory::from_endpoints(std::mem::take(&mut endpoints))?;
                let joined = join(redis, name.clone(), inventory).await?;
                client = Some(LeaseMiddleware::builder(joined.clone()).build()?.into_client());
                pool = Some(joined);
            }
            ["page", url] => {
                let client = client.clone().ok_or("a page before the start")?;
                let (url, place) = (String::from(url), places.clone().acquire_owned().await?);
                pages.spawn(async move {
                    if visit(&client, &url).await.is_err() {
                        println!("failed {url}");
                    }
                    drop(place);
                });
            }
            _ => return Err(format!("not understood: {line}").into()),
        }
    }
    pages.join_all().await;
    if let Some(pool) = pool {
        pool.shutdown().await;
    }
    Ok(())
}

/// The lines of standard input; the end of it ends the channel.
fn standard_input() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

async fn join(redis: &str, name: PoolName, inventory: Inventory) -> Result<Pool, BoxError> {
    let store = RedisStore::connect(redis).await?;
    let builder = Pool::builder(name, inventory).store(store);
    Ok(builder.ttl(TTL).expiry_cooldown(EXPIRY_COOLDOWN).build().await?)
}

async fn visit(client: &ClientWithMiddleware, url: &str) -> Result<(), BoxError> {
    let response = client.get(url).send().await?;
    let (status, info) = (response.status(), response.extensions().get::<LeaseInfo>());
    println!("leased {} {url}", info.ok_or("no lease")?.endpoint());
    // A slow reader: the lease lasts until the body has been read.
    sleep(Duration::from_millis(100)).await;
    response.bytes().await?;
    println!("done {} {url}", status.as_u16());
    Ok(())
}
