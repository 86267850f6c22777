//! Answers, scripts and states that are lost.

use super::faults::{Rig, fresh, granted, hasty, patient, vn};
use super::*;
use crate::redis::tests::proxy::{Fault, Proxy};

#[tokio::test]
async fn a_lost_answer_is_one_lease_and_the_same_one_again() {
    for lost in [Fault::LoseAndClose, Fault::LoseAndStall] {
        let rig = Rig::start(&[]).await;
        let proxy = Proxy::start(rig.server.port()).await;
        let store = hasty(&proxy.url()).await;
        store.status(&vn()).await.unwrap();
        let request = fresh();
        for _ in 0..3 {
            proxy.set(lost);
            let error = store.acquire(request.clone()).await.unwrap_err();
            assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}");
            // One that met the connection's end before it was sent says so.
            assert!(error.is_transient());
        }
        proxy.set(Fault::Pass);
        let grant = loop {
            match store.acquire(request.clone()).await {
                Err(error) => assert_eq!(error.kind(), Kind::StoreUnavailable),
                reply => break granted(reply),
            }
        };
        let status = rig.store.status(&vn()).await.unwrap();
        assert_eq!((status.leased, status.fence), (2, grant.fence), "{lost:?}");
        assert_eq!(grant.fence.0, rig.held.fence.0 + 1);
        assert!(rig.store.check(&vn()).await.unwrap().is_empty());
    }
}

#[cfg(feature = "redis-cluster")]
#[tokio::test]
async fn three_lost_answers_in_a_cluster_are_three_runs_and_one_lease() {
    use crate::redis::tests::server::{Server, free_port};
    let bus = free_port().to_string();
    let server = Server::start(&["--cluster-enabled", "yes", "--cluster-port", &bus]);
    let _: () = server.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    let stands = |server: &Server| {
        server.try_ask::<String>("CLUSTER INFO").is_ok_and(|told| told.contains("state:ok"))
    };
    server.wait_for("the cluster stands", stands).await;
    let proxy = Proxy::start(server.port()).await;
    let builder = RedisStore::cluster([proxy.url()]).connect_timeout(Duration::from_secs(5));
    let store = builder.call_timeout(Duration::from_millis(300)).build().await.unwrap();
    let members = (0..3).map(|nth| Member::new(id(&format!("e{nth}")))).collect();
    for order in [Order::Init(PoolConfig::default().into()), Order::Add(members)] {
        store.administer(AdminRequest::new(vn(), order)).await.unwrap();
    }
    let warm = granted(store.acquire(fresh()).await);
    let calls = || -> u64 {
        let stats: String = server.ask("INFO commandstats");
        let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap();
        line.split("calls=").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
    };
    let (before, request) = (calls(), fresh());
    for nth in 1..=3 {
        proxy.set(Fault::LoseAndClose);
        // A call on the socket that was just closed never arrives.
        while calls() - before < nth {
            let error = store.acquire(request.clone()).await.unwrap_err();
            assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}");
        }
        // The client library's own cluster client runs a script again at each loss.
        assert_eq!(calls() - before, nth);
    }
    let grant = loop {
        match store.acquire(request.clone()).await {
            Err(error) => assert_eq!(error.kind(), Kind::StoreUnavailable, "{error}"),
            reply => break granted(reply),
        }
    };
    assert_eq!((calls() - before, grant.fence.0), (4, warm.fence.0 + 1));
    assert_eq!(store.status(&vn()).await.unwrap().leased, 2);
}

#[tokio::test]
async fn scripts_are_forgotten_under_load_and_nobody_notices() {
    let rig = Rig::start(&[]).await;
    let work = async |worker: usize| {
        let store = patient(&rig.server.url()).await;
        for turn in 0..60 {
            let AcquireReply::Granted(grants) = store.acquire(fresh()).await.unwrap() else {
                continue;
            };
            let release = Release::new(grants[0].claim(), Verdict::default(), None);
            let ended = store.release(ReleaseRequest::new(vn(), vec![release])).await.unwrap();
            assert_eq!(ended, [ReleaseReply::Released], "{worker} {turn}");
        }
    };
    let workers = futures_util::future::join_all((0..6).map(work));
    let mut flushes = 0;
    let flush = async {
        loop {
            let _: () = rig.server.ask("SCRIPT FLUSH");
            flushes += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = workers => {}
        () = flush => {}
    }
    assert!(flushes > 20, "{flushes}");
    assert_eq!(rig.store.status(&vn()).await.unwrap().leased, 1);
    assert!(rig.store.check(&vn()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_flushed_server_grants_nothing_and_tells_that_the_state_is_lost() {
    let rig = Rig::start(&[]).await;
    let store = &rig.store;
    let work = async |_| {
        let mut granted = 0;
        loop {
            match store.acquire(fresh()).await {
                Ok(AcquireReply::Granted(grants)) => {
                    granted += 1;
                    let release = Release::new(grants[0].claim(), Verdict::default(), None);
                    let _ = store.release(ReleaseRequest::new(vn(), vec![release])).await;
                }
                Ok(_) => {}
                Err(error) => break (granted, error),
            }
        }
    };
    let workers = futures_util::future::join_all((0..4).map(work));
    let flush = async {
        while store.status(&vn()).await.unwrap().fence.0 < 50 {}
        rig.server.ask::<()>("FLUSHALL");
    };
    let (all, ()) = tokio::join!(workers, flush);
    for (granted, error) in all {
        assert!(granted > 0);
        assert_eq!((error.kind(), error.is_transient()), (Kind::PoolUninitialised, false));
        assert!(error.to_string().contains("its state was lost"), "{error}");
    }
    let release = Release::new(rig.held.claim(), Verdict::default(), None);
    let late = store.release(ReleaseRequest::new(vn(), vec![release])).await;
    assert_eq!(kind(late), Some(Kind::PoolUninitialised));
    assert!(rig.everything().is_empty(), "a worker wrote into a pool that is not there");
}
