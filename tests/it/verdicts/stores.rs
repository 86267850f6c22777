//! The same verdicts wherever the pool is kept, and in either mode.

use http::StatusCode;
use reqwest_lease::{
    DefaultClassifier, LeaseMiddleware, LeaseOptions, QuarantineCode, Site, State,
};

use super::*;
use crate::attempts::Dead;
use crate::support::fault::{Fault, FaultProxy};
use crate::support::origin::text;
use crate::support::web::Web;

/// Where an endpoint is after its failure, its strikes, and whether it is kept from the site.
type After = (fn(State) -> bool, u32, bool);

fn ready(state: State) -> bool {
    state == State::Ready
}

fn cooling(state: State) -> bool {
    matches!(state, State::Cooling(_))
}

fn quarantined(state: State) -> bool {
    state == State::Quarantined(QuarantineCode::Credentials)
}

async fn check(at: (Kept, Mode), what: &str, url: &str, page: &str, after: After) {
    let web = Web::start(|_| text(StatusCode::OK, "hello")).await;
    let urls = [url.to_owned(), web.url(), web.url()];
    let kit = Kit::new(at, &urls, |builder| builder).await;
    let client = LeaseMiddleware::builder(kit.pool.clone())
        .tls(web.authority().client_config())
        .classifier(
            DefaultClassifier::new()
                .ban_mark_of(Site::parse("a.test").unwrap(), StatusCode::FORBIDDEN),
        )
        .build()
        .unwrap()
        .into_client();
    let first = client.get(page).with_extension(LeaseOptions::new().attempts(1)).send().await;
    if let Ok(response) = first {
        let _ = response.bytes().await;
    }
    kit.quiet().await;
    let member = kit.pool.list().await.unwrap().remove(0);
    let (place, strikes, shunned) = after;
    assert!(place(member.state), "{what} {at:?}: {member:?}");
    assert_eq!((member.strikes, member.assignments), (strikes, 1), "{what} {at:?}");
    if place(State::Ready) {
        // By turns or by counts, it would be met again.
        let mut met = false;
        for _ in 0..6 {
            met |= served(&client, page).await.is_none_or(|(by, _)| by == name(0));
            kit.quiet().await;
        }
        assert_eq!(met, !shunned, "{what} {at:?}");
    }
}

#[tokio::test]
async fn verdicts_are_the_same_everywhere() {
    let dead = Dead::new();
    let refusing = FaultProxy::start(Fault::RefusesCredentials).await;
    let cutting = FaultProxy::start(Fault::DiesAfter(100)).await;
    let blocking = FaultProxy::start(Fault::BadGateway).await;
    let banned = Fault::Says("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
    let banned = FaultProxy::start(banned).await;
    let fine =
        FaultProxy::start(Fault::Says("HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno")).await;
    let (http, https) = ("http://a.test/", "https://a.test/");
    for at in EVERYWHERE {
        check(at, "dead", &dead.url(), http, (cooling, 1, false)).await;
        check(at, "refused", &refusing.url(), https, (quarantined, 0, false)).await;
        check(at, "cut", &cutting.url(), http, (cooling, 0, true)).await;
        check(at, "tunnel", &blocking.url(), https, (ready, 0, true)).await;
        check(at, "gateway", &blocking.url(), http, (ready, 0, false)).await;
        check(at, "banned", &banned.url(), http, (ready, 0, true)).await;
        check(at, "fine", &fine.url(), http, (ready, 0, false)).await;
    }
}
