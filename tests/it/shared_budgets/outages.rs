//! Redis dies in the middle of the work, and comes back with nothing.

use std::net::TcpListener;
use std::time::Duration;

use http::StatusCode;

use super::*;
use crate::support::origin::text;

/// A server on a port that it comes back to.
struct Mortal {
    child: Child,
    port: u16,
}

impl Mortal {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { child: Self::launch(port), port }
    }

    fn launch(port: u16) -> Child {
        Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is missing: apt-get install -y redis-server")
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    async fn answers(&self) {
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "redis-server did not start");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until a site has been asked so often.
async fn asked(web: &Web, site: &str, least: usize) {
    let begun = Instant::now();
    while times(web, site).len() < least {
        assert!(begun.elapsed() < Duration::from_secs(40), "{site} was not asked");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_dead_redis_lets_nothing_pass_or_a_bounded_share_and_comes_back_without_a_burst() {
    let mut redis = Mortal::start();
    redis.answers().await;
    let web = Web::start(|_| text(StatusCode::OK, "hello")).await;
    let start = |mode: &str, site: &str| -> Vec<_> {
        let settings = format!("{mode} 40 20 10 10000 25000 {site}");
        (0..2).map(|_| Worker::start(&web, &redis.url(), &settings)).collect()
    };
    let (closed, open) = (start("shared", "closed.test"), start("0.25", "open.test"));
    asked(&web, "closed.test", 60).await;
    asked(&web, "open.test", 60).await;

    redis.kill();
    let died = Instant::now();
    // What was on its way arrives, and calls under way end.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let known = Instant::now();
    tokio::time::sleep(Duration::from_secs(4)).await;
    redis.child = Mortal::launch(redis.port);
    let back = Instant::now();
    let while_away = |site: &str| -> Vec<_> {
        times(&web, site).into_iter().filter(|at| (known..back).contains(at)).collect()
    };
    let (none, share) = (while_away("closed.test"), while_away("open.test"));
    assert!(none.is_empty(), "{} went out", none.len());
    // Two processes at a quarter of forty a second for four seconds, and one late each.
    assert!((10..=82).contains(&share.len()), "{} went out in {:?}", share.len(), back - died);

    let before = (times(&web, "closed.test").len(), times(&web, "open.test").len());
    asked(&web, "closed.test", before.0 + 40).await;
    asked(&web, "open.test", before.1 + 40).await;
    let told = tokio::task::spawn_blocking(|| {
        let all = closed.into_iter().chain(open);
        all.map(Worker::told).collect::<Vec<_>>()
    });
    let (told, late) = timed(told).await;
    let told = told.unwrap();
    let late = late + latest(&told.concat());
    for site in ["closed.test", "open.test"] {
        let after: Vec<_> = times(&web, site).into_iter().filter(|at| *at > back).collect();
        let excess = excess(&after, Duration::from_millis(25));
        // One late of each process and one of each fallback, and what the machine holds up.
        let most = 1.0 + 4.0 + late.as_secs_f64() / 0.025;
        assert!(excess <= most, "{site}: {excess} of {most} in one window, the burst is 20");
    }
    let kinds = |told: &[Vec<String>]| -> std::collections::BTreeSet<String> {
        let all = told.iter().flatten().filter(|line| !line.contains(' '));
        all.cloned().collect()
    };
    assert_eq!(Vec::from_iter(kinds(&told[..2])), ["200", "store_unavailable"]);
    assert_eq!(Vec::from_iter(kinds(&told[2..])), ["200"]);
}
