//! Pairs of endpoint and site that rest.

use super::Fixture;
use super::scene::*;
use crate::secret::Token;
use crate::site::Site;
use crate::store::{AcquireReply, AcquireRequest};
use crate::verdict::Verdict;

/// A shunned pair rests; the endpoint serves other sites.
pub async fn a_shunned_endpoint_serves_other_sites(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    shun(&scene, "a.example", 3).await;
    let reply = scene.ask(request_for(&scene, "a.example")).await;
    assert!(matches!(reply, AcquireReply::Empty { restricted: true, .. }), "{reply:?}");
    let other = granted(scene.ask(request_for(&scene, "b.example")).await);
    scene.return_clean(&other).await;
    let none = scene.grant().await;
    scene.return_clean(&none).await;
    scene.check().await;
}

/// A shun ends by itself, and the reply names the moment.
pub async fn a_shun_ends_when_it_said(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    shun(&scene, "a.example", 3).await;
    let reply = scene.ask(request_for(&scene, "a.example")).await;
    let AcquireReply::Empty { next: Some(next), restricted: true } = reply else {
        panic!("a time to ask again is expected, not {reply:?}");
    };
    assert_about(next, MINUTE * 3);
    scene.pass(MINUTE * 3).await;
    granted(scene.ask(request_for(&scene, "a.example")).await);
}

/// A shorter shun does not cut a longer one.
pub async fn a_shorter_shun_does_not_cut_a_longer_one(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    shun(&scene, "a.example", 3).await;
    shun(&scene, "a.example", 1).await;
    scene.pass(MINUTE * 2).await;
    let reply = scene.ask(request_for(&scene, "a.example")).await;
    assert!(matches!(reply, AcquireReply::Empty { restricted: true, .. }), "{reply:?}");
}

/// A preferred endpoint is not granted for a site that shuns it.
pub async fn a_shun_outdoes_a_preference(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 2).await;
    shun(&scene, "a.example", 3).await;
    let mut request = request_for(&scene, "a.example");
    request.prefer = Some(id("e0"));
    assert_eq!(granted(scene.ask(request).await).endpoint, id("e1"));
}

/// A shun without a site, and a verdict for a site without a shun, shun nothing.
pub async fn a_shun_without_a_site_shuns_nothing(fixture: &dyn Fixture) {
    let scene = Scene::new(fixture, 1).await;
    let grant = scene.grant().await;
    scene.release(&grant, Verdict::default().with_shun(MINUTE)).await;
    let grant = granted(scene.ask(request_for(&scene, "a.example")).await);
    scene.release_for(&grant, Verdict::default(), Some(&site("a.example"))).await;
    granted(scene.ask(request_for(&scene, "a.example")).await);
}

/// Takes the one endpoint that is up for another site, and shuns it for this one.
async fn shun(scene: &Scene<'_>, host: &str, minutes: u32) {
    let site: Site = site(host);
    let grant = scene.grant().await;
    let verdict = Verdict::default().with_shun(MINUTE * minutes);
    scene.release_for(&grant, verdict, Some(&site)).await;
}

fn request_for(scene: &Scene<'_>, host: &str) -> AcquireRequest {
    let mut request = scene.request(Token::random());
    request.site = Some(site(host));
    request
}
