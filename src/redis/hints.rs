//! Listening for hints, on a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use redis::{PushInfo, PushKind};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::Connection;
use super::fault::{Failure, Fault};
use super::link::Link;
use super::pace::pause;

/// Hints that are published on a channel.
///
/// The connection is made anew when it is lost, when the slot moves, and when another server has
/// become the primary; Sentinel and cluster are asked through the store's own connection. Each new
/// connection gives a hint, for what was published meanwhile is not known.
pub(crate) fn listen(connection: Connection, channel: String) -> BoxStream<'static, ()> {
    let listener = Listener { connection, channel, failures: 0, ear: None };
    let next = |mut listener: Listener| async move {
        listener.hint().await;
        Some(((), listener))
    };
    stream::unfold(listener, next).boxed()
}

struct Listener {
    connection: Connection,
    channel: String,
    failures: u32,
    ear: Option<Ear>,
}

/// A connection that is subscribed.
struct Ear {
    link: Link,
    heard: Arc<Heard>,
}

/// What the server has sent by itself; hints that come together are one.
#[derive(Default)]
struct Heard {
    news: Notify,
    hint: AtomicBool,
    over: AtomicBool,
}

impl Heard {
    fn take(&self, push: &PushInfo) {
        match push.kind {
            PushKind::SMessage => self.hint.store(true, Ordering::Release),
            // The slot has moved.
            PushKind::SUnsubscribe | PushKind::Disconnection => {
                self.over.store(true, Ordering::Release);
            }
            _ => return,
        }
        self.news.notify_one();
    }
}

impl Listener {
    async fn hint(&mut self) {
        loop {
            let Some(ear) = &self.ear else {
                if self.subscribe().await {
                    return;
                }
                continue;
            };
            if ear.heard.hint.swap(false, Ordering::AcqRel) {
                return;
            }
            let silent = timeout(LOOK_EVERY, ear.heard.news.notified()).await.is_err();
            if ear.heard.over.load(Ordering::Acquire) || silent && !self.stands(ear).await {
                self.ear = None;
            }
        }
    }

    /// Subscribes, or waits before the next attempt.
    async fn subscribe(&mut self) -> bool {
        match self.try_to_subscribe().await {
            Ok(ear) => {
                tracing::debug!(attempts = self.failures + 1, "listening for hints");
                (self.ear, self.failures) = (Some(ear), 0);
                true
            }
            Err(fault) => {
                self.failures += 1;
                if self.failures == 1 {
                    tracing::warn!(reason = %fault, "no hints from the store");
                }
                sleep(pause(FIRST_REST, LONGEST_REST, self.failures)).await;
                false
            }
        }
    }

    async fn try_to_subscribe(&self) -> Result<Ear, Fault> {
        let address = self.connection.address_of(&self.channel).await?;
        let heard = Arc::new(Heard::default());
        let hears = heard.clone();
        let push = move |push: PushInfo| {
            hears.take(&push);
            Ok::<(), std::convert::Infallible>(())
        };
        let opened = async {
            let link = Link::open_to_listen(self.connection.opener(), &address, push).await?;
            link.ask(redis::cmd("SSUBSCRIBE").arg(&self.channel)).await?;
            Ok::<_, Failure>(link)
        };
        let late = Fault::unavailable("the store did not answer in time");
        let opened = timeout(CONNECT_WITHIN, opened).await.map_err(|_| late)?;
        Ok(Ear { link: opened.map_err(|failure| failure.fault)?, heard })
    }

    /// Whether the connection answers, and leads to the server that it should lead to.
    async fn stands(&self, ear: &Ear) -> bool {
        let ping = redis::cmd("PING");
        let answered = timeout(self.connection.call_timeout(), ear.link.ask(&ping)).await;
        let answers = matches!(answered, Ok(Ok(_)));
        match self.connection.address_of(&self.channel).await {
            Ok(address) => answers && address.place == *ear.link.place(),
            Err(_) => answers,
        }
    }
}

/// How long a silent connection is trusted.
const LOOK_EVERY: Duration = Duration::from_secs(2);

const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Between attempts to subscribe. Meanwhile those who wait ask now and then.
const FIRST_REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(10);
