//! Refused credentials: the endpoint's, a site's own, and those that a reload has replaced.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use http::StatusCode;
use reqwest_lease::{
    AdminName, Error, InventorySource, Kind, LeaseMiddleware, ProbeOptions, QuarantineCode,
    Snapshot, State,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::*;
use crate::local::Listening;
use crate::support::client::pool_of;
use crate::support::origin::text;
use crate::support::web::{Asked, Web};

fn is_bad(asked: &Asked) -> bool {
    asked.url.starts_with("http://bad.test/")
}

/// A web with one site that refuses every second request, and one that refuses all.
async fn picky(all: bool) -> Web {
    let turn = Mutex::new(0);
    Web::start(move |asked| {
        let odd = || {
            let mut turn = turn.lock().unwrap();
            *turn += 1;
            *turn % 2 == 1
        };
        match is_bad(asked) && (all || odd()) {
            true => text(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "mine"),
            false => text(StatusCode::OK, "hello"),
        }
    })
    .await
}

#[tokio::test]
async fn what_has_worked_stays_known_when_its_client_is_dropped() {
    for most_clients in [16, 1] {
        let web = picky(false).await;
        let pool = pool_of(&vec![web.url(); 3]).await;
        let builder = LeaseMiddleware::builder(pool.clone()).most_clients(most_clients);
        let client = builder.build().unwrap().into_client();
        for _ in 0..3 {
            served(&client, "http://good.test/").await.unwrap();
        }
        assert_eq!(served(&client, "http://bad.test/").await.unwrap().1, 200);
        assert_eq!(pool.status().await.unwrap().quarantined, 0, "{most_clients}");
    }
}

#[tokio::test]
async fn one_sites_refusals_cost_nothing_where_no_other_endpoint_can_be_asked() {
    let web = picky(true).await;
    for (endpoints, attempts) in [(1, 3), (3, 1)] {
        let pool = pool_of(&vec![web.url(); endpoints]).await;
        let builder = LeaseMiddleware::builder(pool.clone()).attempts(attempts);
        let client = builder.build().unwrap().into_client();
        let round = async |host: &str, status| {
            for _ in 0..endpoints {
                let url = format!("http://{host}.test/");
                assert_eq!(served(&client, &url).await.unwrap().1, status);
            }
            let status = pool.status().await.unwrap();
            (status.ready, pool.list().await.unwrap().iter().map(|one| one.strikes).sum::<u32>())
        };
        for _ in 0..4 {
            assert_eq!(round("good", 200).await, (endpoints, 0));
            assert_eq!(round("bad", 407).await, (endpoints, 0));
            assert_eq!(round("bad", 407).await, (endpoints, 0));
        }
        // Again and again, though, it may as well be a password that holds no more.
        assert_eq!(round("bad", 407).await, (0, endpoints as u32));
    }
}

/// An inventory whose one password changes.
#[derive(Clone)]
struct Changing(Arc<Mutex<(String, &'static str)>>);

#[async_trait]
impl InventorySource for Changing {
    async fn load(&self) -> Result<Snapshot, Error> {
        let (url, password) = self.0.lock().unwrap().clone();
        let id = EndpointId::new("a").unwrap();
        Snapshot::new([Endpoint::new(id, &url, Some(("worker", password))).unwrap()], None)
    }
}

/// A proxy that holds on to requests with the old password until it is told to refuse them.
#[derive(Clone, Default)]
struct Rotated {
    asked: Arc<Notify>,
    refuse: Arc<Notify>,
}

impl Rotated {
    async fn start() -> (Self, Listening) {
        let rotated = Self::default();
        let server = rotated.clone();
        let proxy = Listening::start(move |stream, _, _| {
            let server = server.clone();
            async move {
                // A client hangs up when it likes.
                let _ = server.serve(stream).await;
            }
        });
        (rotated, proxy.await.unwrap())
    }

    async fn serve(self, mut stream: TcpStream) -> std::io::Result<()> {
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            let new = "d29ya2VyOm5ldw=="; // worker:new
            if String::from_utf8_lossy(&head).contains(new) {
                stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n").await?;
                continue;
            }
            self.asked.notify_one();
            self.refuse.notified().await;
            stream.write_all(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n").await?;
        }
    }
}

#[tokio::test]
async fn an_endpoint_is_not_blamed_for_a_password_that_a_reload_has_replaced() {
    for (page, reloads) in
        ["http://a.test/", "https://a.test/"].into_iter().flat_map(|it| [(it, true), (it, false)])
    {
        let (rotated, proxy) = Rotated::start().await;
        let url = format!("http://{}", proxy.address());
        let source = Changing(Arc::new(Mutex::new((url, "old"))));
        let inventory = Inventory::open(source.clone()).await.unwrap();
        let pool = Pool::builder(PoolName::new("test").unwrap(), inventory).build().await.unwrap();
        let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
        let asking = tokio::spawn(async move { client.get(page).send().await });
        rotated.asked.notified().await;
        if reloads {
            source.0.lock().unwrap().1 = "new";
            pool.reload().await.unwrap();
        }
        rotated.refuse.notify_one();
        let answer = asking.await.unwrap();
        let member = pool.list().await.unwrap().remove(0);
        if reloads {
            assert_eq!((member.state, member.strikes), (State::Ready, 0), "{page}");
            // It was asked again with the new one, which this proxy opens no tunnel for.
            let refused = answer.as_ref().err().and_then(Error::find_in).map(Error::kind);
            assert_ne!(refused, Some(Kind::CredentialsRefused), "{page}");
        } else {
            assert_ne!(member.state, State::Ready, "the twin");
            let quarantined = member.state == State::Quarantined(QuarantineCode::Credentials);
            assert_eq!(quarantined, page.starts_with("https"));
        }
    }
}

/// Endpoints `a` and `b` behind one proxy, of which `a` has a password that changes.
#[derive(Clone)]
struct Two(Arc<Mutex<(String, &'static str)>>);

#[async_trait]
impl InventorySource for Two {
    async fn load(&self) -> Result<Snapshot, Error> {
        let (url, password) = self.0.lock().unwrap().clone();
        let endpoint = |id: &str, password| {
            Endpoint::new(EndpointId::new(id).unwrap(), &url, Some((id, password))).unwrap()
        };
        Snapshot::new([endpoint("a", password), endpoint("b", "fine")], None)
    }
}

/// A proxy that refuses `a` at once, and answers `b` with this when it is told to.
async fn second(b: &'static str) -> (Listening, Rotated) {
    let told = Rotated::default();
    let server = told.clone();
    let proxy = Listening::start(move |mut stream, _, _| {
        let server = server.clone();
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { return };
                head.push(byte);
            }
            let mut status = "407 No";
            // b:fine
            if String::from_utf8_lossy(&head).contains("YjpmaW5l") {
                server.asked.notify_one();
                server.refuse.notified().await;
                status = b;
            }
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (proxy.await.unwrap(), told)
}

#[tokio::test]
async fn nor_for_one_that_a_reload_replaces_while_another_endpoint_is_asked() {
    let both = |status| [(status, true), (status, false)];
    for (status, reloads) in ["200 OK", "407 No"].into_iter().flat_map(both) {
        let (proxy, told) = second(status).await;
        let source = Two(Arc::new(Mutex::new((format!("http://{}", proxy.address()), "old"))));
        let inventory = Inventory::open(source.clone()).await.unwrap();
        let pool = Pool::builder(PoolName::new("test").unwrap(), inventory).build().await.unwrap();
        let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
        let asking = tokio::spawn(async move { client.get("http://a.test/").send().await });
        told.asked.notified().await;
        if reloads {
            source.0.lock().unwrap().1 = "new";
            pool.reload().await.unwrap();
        }
        told.refuse.notify_one();
        drop(asking.await.unwrap());
        let member = pool.list().await.unwrap().remove(0);
        let spared = (member.state, member.strikes) == (State::Ready, 0);
        assert_eq!(spared, reloads, "{status}: {member:?}");
    }
}

#[tokio::test]
async fn nor_by_a_probe() {
    for page in ["http://a.test/", "https://a.test/"] {
        let (rotated, proxy) = Rotated::start().await;
        let source = Changing(Arc::new(Mutex::new((format!("http://{}", proxy.address()), "old"))));
        let inventory = Inventory::open(source.clone()).await.unwrap();
        let kim = AdminName::new("kim").unwrap();
        let builder = Pool::builder(PoolName::new("test").unwrap(), inventory).administrator(kim);
        let pool = builder.build().await.unwrap();
        let middleware = LeaseMiddleware::builder(pool.clone()).build().unwrap();
        let probing = tokio::spawn(async move {
            let options = ProbeOptions::new().quarantine(true);
            let id = EndpointId::new("a").unwrap();
            middleware.probe(&id, page.parse().unwrap(), &options).await
        });
        rotated.asked.notified().await;
        source.0.lock().unwrap().1 = "new";
        pool.reload().await.unwrap();
        rotated.refuse.notify_one();
        let report = probing.await.unwrap().unwrap();
        assert!(!report.failed() && report.change.is_none(), "{page}: {report:?}");
        let member = pool.list().await.unwrap().remove(0);
        assert_eq!((member.state, member.strikes), (State::Ready, 0), "{page}");
    }
}

#[tokio::test]
async fn one_whose_password_changes_all_the_time_is_not_tried_for_ever() {
    for page in ["http://a.test/", "https://a.test/"] {
        let (rotated, proxy) = Rotated::start().await;
        let source = Changing(Arc::new(Mutex::new((format!("http://{}", proxy.address()), "0"))));
        let inventory = Inventory::open(source.clone()).await.unwrap();
        let pool = Pool::builder(PoolName::new("test").unwrap(), inventory).build().await.unwrap();
        let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
        let mut asking = tokio::spawn(async move { client.get(page).send().await });
        let mut tries = 0;
        for password in ["1", "2", "3", "4", "5"] {
            tokio::select! {
                () = rotated.asked.notified() => tries += 1,
                _ = &mut asking => break,
            }
            source.0.lock().unwrap().1 = password;
            pool.reload().await.unwrap();
            rotated.refuse.notify_one();
        }
        assert_eq!(tries, 2, "{page}");
        let member = pool.list().await.unwrap().remove(0);
        assert_eq!((member.state, member.strikes), (State::Ready, 0), "{page}");
    }
}
