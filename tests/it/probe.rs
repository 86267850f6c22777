//! One request through one endpoint, on an administrator's word.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use http::StatusCode;
use reqwest_lease::{
    AdminName, DefaultJudge, EndpointId, Error, Evidence, Judge, Kind, LeaseMiddleware, Mode,
    Order, Outcome, ProbeChange, ProbeOptions, QuarantineCode, State, Steps, Verdict,
};
use tokio::time::Duration;
use url::Url;

use crate::attempts::Dead;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::origin::text;
use crate::support::web::{Web, moved};
use crate::verdicts::{Kept, Kit};

const ADDRESS: &str = "203.0.113.7";

struct Scene {
    kit: Kit,
    middleware: LeaseMiddleware,
    web: Web,
}

impl Scene {
    /// A good endpoint, and others.
    async fn new(at: (Kept, Mode), others: &[String]) -> Self {
        let web = Web::start(|_| text(StatusCode::OK, format!("{{\"ip\": \"{ADDRESS}\"}}"))).await;
        let urls = [&[web.url()], others].concat();
        let kim = AdminName::new("kim").unwrap();
        let kit = Kit::new(at, &urls, |builder| builder.administrator(kim)).await;
        let middleware = LeaseMiddleware::builder(kit.pool.clone())
            .tls(web.authority().client_config())
            .build()
            .unwrap();
        Self { kit, middleware, web }
    }

    async fn probe(&self, nth: usize, options: ProbeOptions) -> reqwest_lease::ProbeReport {
        self.try_probe(nth, options).await.unwrap()
    }

    async fn try_probe(
        &self,
        nth: usize,
        options: ProbeOptions,
    ) -> Result<reqwest_lease::ProbeReport, Error> {
        let url: Url = "https://a.test/ip".parse().unwrap();
        let report = self.middleware.probe(&id(nth), url, &options).await;
        self.kit.quiet().await;
        report
    }

    async fn order(&self, order: Order) {
        self.kit.pool.administer(order).await.unwrap();
    }

    async fn state(&self, nth: usize) -> State {
        self.kit.pool.list().await.unwrap()[nth].state
    }
}

fn id(nth: usize) -> EndpointId {
    EndpointId::new(format!("e{nth:02}")).unwrap()
}

const EVERYWHERE: [(Kept, Mode); 4] = [
    (Kept::Memory, Mode::Exclusive),
    (Kept::Memory, Mode::Shared),
    (Kept::Redis, Mode::Exclusive),
    (Kept::Redis, Mode::Shared),
];

const ACTING: ProbeOptions = ProbeOptions::new().end_quarantine(true).quarantine(true);

#[tokio::test]
async fn a_ready_endpoint_is_leased_and_told_of() {
    for at in EVERYWHERE {
        let scene = Scene::new(at, &[]).await;
        let report = scene.probe(0, ProbeOptions::new()).await;
        assert!(report.passed() && !report.failed(), "{report:?}");
        assert_eq!((&report.endpoint, report.state), (&id(0), State::Ready));
        assert_eq!((report.outcome, report.status), (Outcome::Success, Some(StatusCode::OK)));
        assert_eq!(report.exit_address, Some(ADDRESS.parse().unwrap()));
        assert_eq!((report.tls, report.change), (Some(true), None));
        assert!(report.latency > Duration::ZERO && report.latency < Duration::from_secs(10));
        assert_eq!(scene.kit.pool.counts().grants, 1);
        assert_eq!(scene.web.urls(), ["https://a.test:443/ip"]);
        assert_eq!(scene.state(0).await, State::Ready);
    }
}

#[tokio::test]
async fn a_passed_probe_ends_a_quarantine_when_asked_to_and_no_order() {
    for at in EVERYWHERE {
        let scene = Scene::new(at, &[]).await;
        let (probe, word) = (QuarantineCode::Probe, QuarantineCode::Administrator);
        scene.order(Order::Quarantine(vec![id(0)], probe)).await;
        let report = scene.probe(0, ProbeOptions::new()).await;
        assert!(report.passed() && report.change.is_none(), "{report:?}");
        assert_eq!(scene.state(0).await, State::Quarantined(probe), "{at:?}: it only looked");
        assert_eq!(scene.kit.pool.counts().grants, 0, "a parked one is not leased");

        let report = scene.probe(0, ACTING).await;
        assert_eq!(report.change, Some(ProbeChange::QuarantineEnded));
        assert_eq!(scene.state(0).await, State::Ready, "{at:?}");
        let trail = scene.kit.pool.audit(None, 1).await.unwrap();
        assert_eq!((&*trail[0].order, trail[0].number), ("end_quarantine:probe", 1));
        assert_eq!(trail[0].by.as_ref().unwrap().as_str(), "kim");

        scene.order(Order::Quarantine(vec![id(0)], probe)).await;
        scene.order(Order::Disable(vec![id(0)])).await;
        scene.probe(0, ACTING).await;
        assert_eq!(scene.state(0).await, State::Disabled, "{at:?}");
        assert_eq!(scene.probe(0, ACTING).await.change, None);
        assert_eq!(scene.state(0).await, State::Disabled);

        scene.order(Order::Enable(vec![id(0)])).await;
        scene.order(Order::Quarantine(vec![id(0)], word)).await;
        assert_eq!(scene.probe(0, ACTING).await.change, None);
        assert_eq!(scene.state(0).await, State::Quarantined(word), "{at:?}");
    }
}

#[tokio::test]
async fn a_failed_probe_starts_a_quarantine_when_asked_to() {
    let (dead, blocking) = (Dead::new(), FaultProxy::start(Fault::BadGateway).await);
    let refusing = FaultProxy::start(Fault::RefusesCredentials).await;
    for at in EVERYWHERE {
        let others = [dead.url(), blocking.url(), refusing.url()];
        let scene = Scene::new(at, &others).await;
        scene.order(Order::Disable(vec![id(1)])).await;
        let report = scene.probe(1, ProbeOptions::new()).await;
        assert_eq!((report.outcome, report.status), (Outcome::ProxyUnreachable, None));
        assert!(report.failed() && report.change.is_none() && report.tls.is_none());
        assert_eq!(scene.state(1).await, State::Disabled, "{at:?}");
        scene.order(Order::Enable(vec![id(1)])).await;
        let report = scene.probe(1, ACTING).await;
        assert_eq!(report.change, Some(ProbeChange::Quarantined), "{at:?} {report:?}");
        assert_eq!(scene.state(1).await, State::Quarantined(QuarantineCode::Probe));

        // What may be the target's doing is no reason.
        let report = scene.probe(2, ACTING).await;
        assert_eq!((report.outcome, report.change), (Outcome::TunnelRefused, None));
        assert!(!report.passed() && !report.failed());
        assert_eq!(scene.state(2).await, State::Ready, "{at:?}");

        let report = scene.probe(3, ProbeOptions::new()).await;
        assert_eq!(report.outcome, Outcome::CredentialsRefused, "{at:?}");
        let refused = State::Quarantined(QuarantineCode::Credentials);
        assert_eq!(scene.state(3).await, refused, "a lease ends with its verdict");
    }
}

#[tokio::test]
async fn one_in_use_or_at_rest_is_left_alone() {
    for at in [EVERYWHERE[0], EVERYWHERE[2]] {
        let dead = Dead::new();
        let scene = Scene::new(at, &[dead.url()]).await;
        let held = scene.kit.pool.hold().await.unwrap();
        let url: Url = "https://a.test/".parse().unwrap();
        let error = scene.middleware.probe(held.endpoint(), url, &ACTING).await.unwrap_err();
        assert_eq!(error.kind(), Kind::PoolExhausted);
        assert!(error.retry_after().is_some_and(|after| after > Duration::from_secs(30)));
        drop(held);
        scene.kit.quiet().await;
        assert!(scene.probe(1, ProbeOptions::new()).await.failed());
        let error = scene.try_probe(1, ACTING).await.unwrap_err();
        assert_eq!(error.kind(), Kind::PoolExhausted);
        assert!(error.retry_after().is_some_and(|after| after < Duration::from_secs(2)));
        assert!(scene.web.urls().is_empty());
    }
}

#[tokio::test]
async fn an_untrusted_target_and_a_silent_endpoint_are_told_apart() {
    let silent = FaultProxy::start(Fault::Stalls).await;
    let scene = Scene::new(EVERYWHERE[0], &[silent.url()]).await;
    let url: Url = "https://stranger.test/".parse().unwrap();
    let report = scene.middleware.probe(&id(0), url, &ACTING).await.unwrap();
    assert_eq!(
        (report.outcome, report.tls, report.change),
        (Outcome::TargetTls, Some(false), None)
    );
    let brief = ACTING.timeout(Duration::from_millis(300));
    let report = scene.probe(1, brief).await;
    assert_eq!((report.outcome, report.change), (Outcome::Stalled, None));
    assert!(report.latency >= Duration::from_millis(200), "{:?}", report.latency);
}

#[tokio::test]
async fn a_probe_that_is_dropped_midway_is_cancelled_and_may_have_all_time() {
    let silent = FaultProxy::start(Fault::Stalls).await;
    let rests = |builder: reqwest_lease::PoolBuilder| {
        let builder = builder.administrator(AdminName::new("kim").unwrap());
        builder.judge(DefaultJudge::new(Duration::from_secs(60)))
    };
    let kit = Kit::new(EVERYWHERE[0], &[silent.url()], rests).await;
    let middleware = LeaseMiddleware::builder(kit.pool.clone()).build().unwrap();
    let (id, url) = (id(0), "http://a.test/".parse().unwrap());
    let long = ProbeOptions::new().timeout(Duration::MAX);
    let mut probe = Box::pin(middleware.probe(&id, url, &long));
    crate::support::eventually("the request", || {
        assert!((&mut probe).now_or_never().is_none());
        (silent.tries() == 1).then_some(())
    })
    .await;
    drop(probe);
    let state = kit.pool.list().await.unwrap()[0].state;
    assert!(matches!(state, State::Cooling(_)), "not as unused: {state:?}");
}

/// As workers' requests do, which know what others have seen of a site.
#[tokio::test]
async fn probes_of_a_dead_page_cost_one_endpoint_a_moment() {
    let gateway = FaultProxy::start(Fault::Drops).await;
    let judge = DefaultJudge::default().mild(Steps::new([Duration::from_secs(60)]));
    let builder = |builder: reqwest_lease::PoolBuilder| {
        builder.administrator(AdminName::new("kim").unwrap()).judge(judge)
    };
    let kit = Kit::new(EVERYWHERE[0], &vec![gateway.url(); 10], builder).await;
    let middleware = LeaseMiddleware::builder(kit.pool.clone()).build().unwrap();
    for nth in 0..10 {
        let url: Url = "https://dead.test/".parse().unwrap();
        let report = middleware.probe(&id(nth), url, &ProbeOptions::new()).await.unwrap();
        assert_eq!(report.outcome, Outcome::TunnelCut);
        kit.quiet().await;
    }
    assert_eq!(kit.pool.status().await.unwrap().cooling, 1);
}

/// What a judge was asked about: the outcome, whether it was served, and the site.
type Asked = (Outcome, bool, Option<String>);

/// Remembers what it was asked about, and judges as usual.
#[derive(Clone, Default)]
struct Spy(Arc<Mutex<Vec<Asked>>>);

impl Judge for Spy {
    fn judge(&self, evidence: Evidence<'_>) -> Verdict {
        let site = evidence.site.map(ToString::to_string);
        self.0.lock().unwrap().push((evidence.outcome, evidence.served, site));
        DefaultJudge::default().judge(evidence)
    }
}

#[tokio::test]
async fn a_page_that_is_too_long_to_be_read_was_served_all_the_same() {
    let web = Web::start(|asked| match asked.url.as_str() {
        "http://a.test/" => moved(302, b"http://b.test/"),
        _ => text(StatusCode::OK, "x".repeat(1 << 20)),
    })
    .await;
    let spy = Spy::default();
    let builder = |builder: reqwest_lease::PoolBuilder| {
        builder.administrator(AdminName::new("kim").unwrap()).judge(spy.clone())
    };
    let kit = Kit::new(EVERYWHERE[0], &[web.url()], builder).await;
    let middleware = LeaseMiddleware::builder(kit.pool.clone()).build().unwrap();
    let url: Url = "http://a.test/".parse().unwrap();
    let report = middleware.probe(&id(0), url, &ProbeOptions::new()).await.unwrap();
    assert!(report.passed(), "{report:?}");
    kit.quiet().await;
    let expected = (Outcome::Cancelled, true, Some("b.test".to_owned()));
    assert_eq!(*spy.0.lock().unwrap(), [expected], "of the site that it came from");
}

#[tokio::test]
async fn a_probe_is_an_administrators_and_of_a_member() {
    let web = Web::start(|_| text(StatusCode::OK, "")).await;
    let kit = Kit::new(EVERYWHERE[0], &[web.url()], |builder| builder).await;
    let middleware = LeaseMiddleware::builder(kit.pool.clone()).build().unwrap();
    let url: Url = "http://a.test/".parse().unwrap();
    let error = middleware.probe(&id(0), url.clone(), &ACTING).await.unwrap_err();
    assert_eq!(error.to_string(), "pool test has no administrator to probe for");
    let scene = Scene::new(EVERYWHERE[0], &[]).await;
    let error = scene.try_probe(7, ACTING).await.unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (Kind::Config, "pool test has no endpoint e07")
    );
    let special: Url = "ftp://a.test/".parse().unwrap();
    let error = scene.middleware.probe(&id(0), special, &ACTING).await.unwrap_err();
    assert_eq!(error.kind(), Kind::UnsupportedRequest);
    scene.kit.quiet().await;
    assert_eq!(scene.state(0).await, State::Ready, "the lease came back");
    assert!(web.urls().is_empty() && scene.web.urls().is_empty());
}
