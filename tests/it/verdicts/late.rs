//! Bodies that end badly after the response has been handed out.

use std::sync::{Arc, Mutex};

use reqwest::Response;
use reqwest_lease::{Error, Kind, LeaseMiddleware, State};

use super::*;
use crate::support::fault::{Fault, FaultProxy};

/// Remembers what it was asked about, and judges as usual.
#[derive(Clone, Default)]
struct Spy(Arc<Mutex<Vec<Outcome>>>);

impl Judge for Spy {
    fn judge(&self, evidence: Evidence<'_>) -> Verdict {
        self.0.lock().unwrap().push(evidence.outcome);
        DefaultJudge::default().judge(evidence)
    }
}

/// Reads a body of this fault's, and tells its error, its outcome and the endpoint's state.
async fn read(
    at: (Kept, Mode),
    fault: Fault,
    choose: impl FnOnce(PoolBuilder) -> PoolBuilder,
) -> (reqwest::Error, Outcome, State) {
    let (spy, proxy) = (Spy::default(), FaultProxy::start(fault).await);
    let builder = |builder: PoolBuilder| choose(builder).judge(spy.clone());
    // The floor leaves one of two.
    let kit = Kit::new(at, &[proxy.url(), proxy.url()], builder).await;
    let client = LeaseMiddleware::builder(kit.pool.clone())
        .timeout(Duration::from_millis(700))
        .build()
        .unwrap()
        .into_client();
    let response: Response = client.get("http://a.test/").send().await.unwrap();
    let info = response.extensions().get::<LeaseInfo>().unwrap().clone();
    assert_eq!(info.outcome(), Outcome::Success, "as far as the head tells");
    assert!(spy.0.lock().unwrap().is_empty());
    let error = response.bytes().await.unwrap_err();
    kit.quiet().await;
    let list = kit.pool.list().await.unwrap();
    let member = list.into_iter().find(|member| member.endpoint == *info.endpoint()).unwrap();
    assert_eq!(member.strikes, 0);
    let seen = spy.0.lock().unwrap().clone();
    assert_eq!(seen.len(), 1, "{seen:?}");
    (error, seen[0], member.state)
}

#[tokio::test]
async fn a_body_that_is_cut_rests_its_endpoint() {
    for at in EVERYWHERE {
        let (_, outcome, state) = read(at, Fault::DiesAfter(100), |builder| builder).await;
        assert_eq!(outcome, Outcome::BodyCut, "{at:?}");
        assert!(matches!(state, State::Cooling(_)), "{at:?} {state:?}");
    }
}

#[tokio::test]
async fn a_body_that_stalls_rests_its_endpoint() {
    for at in EVERYWHERE {
        let (error, outcome, state) = read(at, Fault::StallsAfter(100), |builder| builder).await;
        assert!(error.is_timeout(), "{error:?}");
        assert_eq!(outcome, Outcome::Stalled, "{at:?}");
        assert!(matches!(state, State::Cooling(_)), "{at:?} {state:?}");
    }
}

#[tokio::test]
async fn a_body_that_outlives_its_lease_costs_nothing_but_is_told() {
    for at in [EVERYWHERE[0], EVERYWHERE[2]] {
        let short = |builder: PoolBuilder| builder.ttl(Duration::from_millis(600));
        let (error, outcome, state) = read(at, Fault::StallsAfter(100), short).await;
        assert_eq!(Error::find(&error).map(Error::kind), Some(Kind::LeaseExpired));
        assert_eq!((outcome, state), (Outcome::Expired, State::Ready), "{at:?}");
    }
}
