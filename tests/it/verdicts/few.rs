//! When next to nothing is free.

use http::StatusCode;
use reqwest_lease::{Error, Kind, LeaseMiddleware, LeaseOptions, Order, State};
use tokio::time::Instant;

use super::*;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::origin::text;
use crate::support::web::Web;

const REST: Duration = Duration::from_secs(60);

#[tokio::test]
async fn waits_are_bounded_and_nobody_logs_in_where_it_was_refused() {
    let web = Web::start(|_| text(StatusCode::OK, "hello")).await;
    let refusing = FaultProxy::start(Fault::RefusesCredentials).await;
    for at in [(Kept::Memory, reqwest_lease::Mode::Exclusive), EVERYWHERE[2]] {
        let tries = refusing.tries();
        let mut urls = vec![web.url(); 8];
        urls.extend([refusing.url(), refusing.url()]);
        let kit = Kit::new(at, &urls, |builder| builder.judge(DefaultJudge::new(REST))).await;
        let client = LeaseMiddleware::builder(kit.pool.clone())
            .tls(web.authority().client_config())
            .build()
            .unwrap()
            .into_client();
        // Everybody is used once; what is refused tries the next ones.
        let patient = |wait| {
            client.get("https://a.test/").with_extension(LeaseOptions::new().max_wait(wait)).send()
        };
        while patient(Duration::ZERO).await.is_ok() {
            kit.quiet().await;
        }
        kit.quiet().await;
        let status = kit.pool.status().await.unwrap();
        assert_eq!((status.ready, status.cooling, status.quarantined), (0, 8, 2), "{at:?}");
        assert_eq!(refusing.tries() - tries, 2);

        for wait in [0, 300].map(Duration::from_millis) {
            let began = Instant::now();
            let error = patient(wait).await.unwrap_err();
            let error = Error::find_in(&error).unwrap();
            assert_eq!(error.kind(), Kind::PoolExhausted);
            let after = error.retry_after().unwrap();
            assert!(after > REST / 2 && after <= REST, "{after:?}");
            assert!(began.elapsed() >= wait && began.elapsed() < wait + SOON / 5, "{at:?}");
        }

        let waiting = tokio::spawn(patient(SOON));
        let third = || vec![EndpointId::new(name(3)).unwrap()];
        kit.pool.administer(Order::Disable(third())).await.unwrap();
        kit.pool.administer(Order::Enable(third())).await.unwrap();
        let response = waiting.await.unwrap().unwrap();
        assert_eq!(response.extensions().get::<LeaseInfo>().unwrap().endpoint(), &third()[0]);
        drop(response);
        kit.quiet().await;
        assert_eq!(refusing.tries() - tries, 2);
        let rest = |member: &reqwest_lease::MemberState| matches!(member.state, State::Cooling(_));
        assert_eq!(kit.pool.list().await.unwrap().iter().filter(|one| rest(one)).count(), 8);
    }
}
