//! What becomes of outcomes: by what this process has seen of other endpoints and sites.

use super::*;
use crate::guard::Guard;
use crate::outcome::Outcome;
use crate::site::Site;
use crate::store::{MemberState, Mode, State};
use crate::verdict::Others;

fn site(host: &str) -> Option<Site> {
    Site::parse(host)
}

/// Names of so many endpoints, in order.
fn names(number: usize) -> Vec<String> {
    (0..number).map(|nth| format!("e{nth:02}")).collect()
}

async fn pool(number: usize, choose: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Pool {
    let inventory = Inventory::from_endpoints(names(number).iter().map(|name| endpoint(name)));
    choose(Pool::builder(name(), inventory.unwrap())).build().await.unwrap()
}

/// A lease on this endpoint, which must be ready, for a site.
async fn on(pool: &Pool, nth: usize, host: &str) -> Lease {
    let prefer = Some(id(&names(nth + 1)[nth]));
    let wants = Wants { prefer: prefer.clone(), site: site(host), ..wants() };
    let (lease, _) = pool.lease(wants, seconds(0)).await.unwrap();
    assert_eq!(Some(lease.endpoint().id()), prefer.as_ref());
    lease
}

async fn sees(pool: &Pool, nth: usize, host: &str, outcome: Outcome) {
    on(pool, nth, host).await.finish(outcome);
}

async fn member(pool: &Pool, nth: usize) -> MemberState {
    pool.list().await.unwrap().swap_remove(nth)
}

async fn cooling(pool: &Pool) -> usize {
    pool.status().await.unwrap().cooling
}

/// How many endpoints can be had for a site.
async fn usable(pool: &Pool, host: &str) -> usize {
    let mut held = Vec::new();
    let wants = || Wants { site: site(host), ..wants() };
    while let Ok((lease, _)) = pool.lease(wants(), seconds(0)).await {
        held.push(lease);
    }
    let number = held.len();
    held.into_iter().for_each(|lease| lease.finish(Outcome::Unused));
    number
}

/// Others' word, weak failures before, whether one was elsewhere, and whether it may rest.
type Told = (Others, u32, bool, bool);

#[derive(Clone, Default)]
struct Spy(Arc<Mutex<Vec<Told>>>);

impl Judge for Spy {
    fn judge(&self, evidence: Evidence<'_>) -> Verdict {
        let Evidence { others, weak, elsewhere, may_rest, .. } = evidence;
        assert!(evidence.site.is_some());
        self.0.lock().unwrap().push((others, weak, elsewhere, may_rest));
        Verdict::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_judge_is_told_what_others_saw_and_what_came_before() {
    let spy = Spy::default();
    let pool = pool(8, |builder| builder.judge(spy.clone())).await;
    let told = async |nth, host, outcome| {
        sleep(millis(1)).await;
        sees(&pool, nth, host, outcome).await;
        spy.0.lock().unwrap().pop().unwrap()
    };
    use Others::{Fail, Reach, Unknown};
    let stalled = Outcome::Stalled;
    assert_eq!(told(0, "a.test", stalled).await, (Unknown, 0, false, true));
    assert_eq!(told(0, "a.test", stalled).await, (Unknown, 1, false, true), "no other one");
    assert_eq!(told(0, "b.test", stalled).await, (Unknown, 2, true, true));
    assert_eq!(told(1, "a.test", stalled).await, (Fail, 0, false, true));
    assert_eq!(told(1, "a.test", stalled).await, (Fail, 0, false, true), "it was the site");
    assert_eq!(told(2, "a.test", Outcome::Success).await, (Fail, 0, false, true));
    assert_eq!(told(3, "a.test", stalled).await, (Reach, 0, false, true));
    assert_eq!(told(0, "a.test", Outcome::TargetTls).await, (Fail, 0, false, true));
    assert_eq!(told(2, "c.test", stalled).await, (Unknown, 0, false, true));
    assert_eq!(told(2, "c.test", Outcome::Success).await, (Unknown, 0, false, true));
    assert_eq!(told(2, "c.test", stalled).await, (Unknown, 0, false, true), "a success clears");
    sleep(Guard::new().within).await;
    assert_eq!(told(3, "a.test", stalled).await, (Unknown, 1, false, true), "long ago");
}

#[tokio::test(start_paused = true)]
async fn a_late_success_never_clears_a_newer_verdict() {
    let pool = pool(1, |builder| builder.mode(Mode::Shared)).await;
    let early = on(&pool, 0, "a.test").await;
    sees(&pool, 0, "a.test", Outcome::ProxyUnreachable).await;
    early.finish(Outcome::Success);
    let one = member(&pool, 0).await;
    assert_eq!(one.strikes, 1);
    assert!(matches!(one.state, State::Cooling(_)), "{one:?}");
    sleep(seconds(2)).await;
    sees(&pool, 0, "a.test", Outcome::Success).await;
    assert_eq!(member(&pool, 0).await.strikes, 0, "one that began later does");
}

#[tokio::test(start_paused = true)]
async fn a_lone_failure_costs_a_pair_and_a_moment_and_the_second_a_strike() {
    let pool = pool(4, |builder| builder).await;
    sees(&pool, 0, "a.test", Outcome::BodyCut).await;
    let one = member(&pool, 0).await;
    assert!(matches!(one.state, State::Cooling(_)) && one.strikes == 0, "{one:?}");
    sleep(seconds(2)).await;
    assert_eq!((usable(&pool, "a.test").await, usable(&pool, "b.test").await), (3, 4));
    sees(&pool, 0, "b.test", Outcome::Stalled).await;
    assert_eq!(member(&pool, 0).await.strikes, 1);
    sleep(seconds(60)).await;
    sees(&pool, 0, "a.test", Outcome::Success).await;
    assert_eq!(member(&pool, 0).await.strikes, 0);
    sees(&pool, 0, "a.test", Outcome::Stalled).await;
    assert_eq!(member(&pool, 0).await.strikes, 0, "it is the first again");
}

#[tokio::test(start_paused = true)]
async fn a_refused_tunnel_is_held_against_an_endpoint_only_where_others_get_through() {
    let pool = pool(4, |builder| builder).await;
    for host in ["a.test", "b.test"] {
        sees(&pool, 0, host, Outcome::TunnelRefused).await;
        sees(&pool, 1, host, Outcome::TunnelRefused).await;
    }
    assert_eq!(cooling(&pool).await, 0);
    sleep(millis(1)).await;
    sees(&pool, 1, "c.test", Outcome::Success).await;
    sees(&pool, 0, "c.test", Outcome::TunnelRefused).await;
    let one = member(&pool, 0).await;
    assert!(matches!(one.state, State::Cooling(_)) && one.strikes == 1, "{one:?}");
}

#[tokio::test(start_paused = true)]
async fn weak_evidence_never_lets_more_rest_than_the_floor_leaves() {
    for (guard, resting) in [(Guard::new().brake_above(1.0), 5), (Guard::off(), 10)] {
        let pool = pool(10, |builder| builder.guard(guard)).await;
        for nth in 0..10 {
            // Each at a site of its own, where nobody else fails.
            sees(&pool, nth, &format!("{nth}.test"), Outcome::Stalled).await;
        }
        assert_eq!(cooling(&pool).await, resting);
        sleep(seconds(2)).await;
        assert_eq!(cooling(&pool).await, 0);
        sees(&pool, 9, "z.test", Outcome::Stalled).await;
        assert_eq!(cooling(&pool).await, 1, "there is room again");
    }
}

#[tokio::test(start_paused = true)]
async fn weak_evidence_never_keeps_more_from_a_site_than_the_floor_leaves() {
    for (guard, left) in [(Guard::new().brake_above(1.0), 5), (Guard::off(), 1)] {
        let pool = pool(10, |builder| builder.guard(guard)).await;
        for nth in 0..9 {
            // One reaches it all the time, so that the site is not to blame.
            sees(&pool, 9, "a.test", Outcome::Success).await;
            sleep(seconds(2)).await;
            sees(&pool, nth, "a.test", Outcome::TunnelRefused).await;
            sleep(seconds(2)).await;
        }
        assert_eq!((usable(&pool, "a.test").await, usable(&pool, "b.test").await), (left, 10));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lone_endpoint_is_never_taken_out_by_weak_evidence() {
    let pool = pool(1, |builder| builder).await;
    for outcome in Outcome::ALL.iter().copied().filter(|outcome| outcome.is_weak()) {
        for host in ["a.test", "a.test", "b.test"] {
            sees(&pool, 0, host, outcome).await;
        }
    }
    assert_eq!((cooling(&pool).await, usable(&pool, "a.test").await), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn when_most_fail_at_once_strikes_stop_until_it_is_better() {
    let pool = pool(10, |builder| builder).await;
    for nth in 0..5 {
        sees(&pool, nth, "a.test", Outcome::ProxyUnreachable).await;
    }
    assert!(!pool.is_braked());
    for nth in 5..10 {
        sees(&pool, nth, "a.test", Outcome::ProxyUnreachable).await;
        assert!(pool.is_braked());
    }
    let strikes = async || -> Vec<u32> {
        pool.list().await.unwrap().into_iter().map(|member| member.strikes).collect()
    };
    assert_eq!(strikes().await, [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!((cooling(&pool).await, pool.counts().brakes), (10, 1), "what is dead rests");
    sleep(seconds(3)).await;
    for round in 0..20 {
        for nth in 0..10 {
            sees(&pool, nth, "a.test", Outcome::ProxyUnreachable).await;
        }
        sleep(seconds(3)).await;
        assert_eq!(cooling(&pool).await, 0, "round {round}: rests grow no longer");
    }
    for nth in 0..7 {
        assert!(pool.is_braked(), "{nth}");
        sees(&pool, nth, "a.test", Outcome::Success).await;
    }
    sees(&pool, 7, "a.test", Outcome::Success).await;
    assert!(!pool.is_braked());
    sees(&pool, 9, "a.test", Outcome::ProxyUnreachable).await;
    assert_eq!(strikes().await[9], 1);
}

/// The twin: without a brake an hour of trouble is paid for with ten minutes more.
#[tokio::test(start_paused = true)]
async fn without_a_brake_trouble_of_ours_outlasts_itself() {
    let pool = pool(10, |builder| builder.guard(Guard::off())).await;
    for _ in 0..12 {
        for nth in 0..10 {
            sees(&pool, nth, "a.test", Outcome::ProxyUnreachable).await;
        }
        sleep(seconds(751)).await;
    }
    for nth in 0..10 {
        sees(&pool, nth, "a.test", Outcome::ProxyUnreachable).await;
    }
    sleep(seconds(599)).await;
    assert_eq!((cooling(&pool).await, pool.counts().brakes), (10, 0));
}

#[tokio::test(start_paused = true)]
async fn the_brake_goes_off_by_itself_when_failures_are_old() {
    let pool = pool(4, |builder| builder).await;
    for nth in 0..4 {
        sees(&pool, nth, "a.test", Outcome::Stalled).await;
    }
    assert!(pool.is_braked());
    sleep(Guard::new().within).await;
    assert!(!pool.is_braked());
}

#[tokio::test(start_paused = true)]
async fn doubted_credentials_are_not_tried_faster_under_the_brake() {
    let pool = pool(4, |builder| builder).await;
    for round in 1..4 {
        for nth in 0..4 {
            sees(&pool, nth, "a.test", Outcome::CredentialsDoubted).await;
            assert_eq!(member(&pool, nth).await.strikes, round);
        }
        assert!(pool.is_braked());
        sleep(seconds(2_u64.pow(round - 1)) * 5 / 4).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_makes_no_sense_is_refused() {
    let builder = Pool::builder(name(), inventory(&["a"])).guard(Guard::new().floor(1.5));
    let error = builder.build().await.unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert_eq!(error.to_string(), "pool vn: the guard's floor is no share");
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_has_its_worst_held_against_the_site_where_it_was() {
    let pool = pool(3, |builder| builder).await;
    let held = pool.hold().await.unwrap();
    held.note(Outcome::Banned, site("a.test"));
    held.note(Outcome::Success, site("b.test"));
    drop(held);
    settle().await;
    assert_eq!((usable(&pool, "a.test").await, usable(&pool, "b.test").await), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn holders_at_once_that_fail_at_once_are_one_failure() {
    let pool = pool(3, |builder| builder.mode(Mode::Shared)).await;
    let held = [on(&pool, 0, "a.test").await, on(&pool, 0, "b.test").await];
    sleep(millis(1)).await;
    held.into_iter().for_each(|lease| lease.finish(Outcome::BodyCut));
    assert_eq!(member(&pool, 0).await.strikes, 0);
    sleep(seconds(2)).await;
    sees(&pool, 0, "c.test", Outcome::BodyCut).await;
    assert_eq!(member(&pool, 0).await.strikes, 1, "one that began later is another");
}

#[tokio::test(start_paused = true)]
async fn a_success_that_began_before_a_failure_does_not_make_up_for_it() {
    let pool = pool(4, |builder| builder.mode(Mode::Shared)).await;
    let early = [on(&pool, 0, "a.test").await, on(&pool, 1, "a.test").await];
    sleep(millis(1)).await;
    for nth in 0..4 {
        sees(&pool, nth, "b.test", Outcome::ProxyUnreachable).await;
    }
    assert!(pool.is_braked());
    early.into_iter().for_each(|lease| lease.finish(Outcome::Success));
    assert_eq!(pool.0.ledger.failing(), 4);
    sleep(seconds(2)).await;
    sees(&pool, 0, "a.test", Outcome::Success).await;
    assert_eq!(pool.0.ledger.failing(), 3, "one that began later does");
}

/// What is dead or in quarantine cannot be among those that the floor leaves.
#[tokio::test(start_paused = true)]
async fn weak_evidence_spares_the_last_that_is_not_dead_or_parked() {
    for outcome in [Outcome::ProxyUnreachable, Outcome::CredentialsRefused] {
        let pool = pool(2, |builder| builder).await;
        sees(&pool, 0, "a.test", outcome).await;
        sees(&pool, 1, "b.test", Outcome::Stalled).await;
        assert_eq!((usable(&pool, "a.test").await, usable(&pool, "b.test").await), (1, 1));
        pool.administer(Order::Enable(vec![id("e00")])).await.unwrap();
        sleep(seconds(2)).await;
        sees(&pool, 0, "a.test", Outcome::Success).await;
        sees(&pool, 1, "c.test", Outcome::Stalled).await;
        assert_eq!(cooling(&pool).await, 1, "the other is back: {outcome}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_weak_failures_is_bounded() {
    let pool = pool(2, |builder| builder).await;
    let now = Instant::now();
    for nth in 0..1000 {
        let evidence = Evidence::new(Outcome::Unknown, 0);
        pool.0.ledger.weigh(&id(&format!("gone{nth}")), now, evidence, 2);
        sleep(seconds(60)).await;
    }
    assert!(pool.0.ledger.weak() <= 2 * 60 + 1, "{}", pool.0.ledger.weak());
}

/// Who looks at heads alone never reads a body to its end.
#[tokio::test(start_paused = true)]
async fn what_was_served_and_then_given_up_clears_what_a_success_does() {
    let pool = pool(3, |builder| builder).await;
    for nth in 0..3 {
        sees(&pool, nth, "a.test", Outcome::ProxyUnreachable).await;
    }
    let after = async |serves: bool| {
        for nth in 0..3 {
            let lease = on(&pool, nth, "a.test").await;
            if serves { lease.leave() } else { lease.finish(Outcome::Cancelled) }
        }
        let list = pool.list().await.unwrap();
        (pool.is_braked(), list.iter().map(|member| member.strikes).sum::<u32>())
    };
    sleep(seconds(2)).await;
    assert_eq!(after(false).await, (true, 2), "the twin");
    assert_eq!(after(true).await, (false, 0));
}
