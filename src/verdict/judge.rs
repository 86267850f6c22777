//! From evidence to verdicts.

use std::sync::Arc;
use std::time::Duration;

use super::{Evidence, Others, QuarantineCode, Steps, Strike, Verdict};
use crate::outcome::Outcome;

/// Turns what was seen into what is done.
///
/// A judge of your own sees all that the default one goes by, and decides itself what it makes of
/// [brake and floor](crate::Guard). Most leave to [`DefaultJudge`] what they have no opinion on:
///
/// ```
/// use std::time::Duration;
/// use reqwest_lease::{DefaultJudge, Evidence, Judge, Others, Outcome, Verdict};
///
/// /// Has no patience with an endpoint that stalls where others do not.
/// #[derive(Default)]
/// struct Strict(DefaultJudge);
///
/// impl Judge for Strict {
///     fn judge(&self, evidence: Evidence<'_>) -> Verdict {
///         match (evidence.outcome, evidence.others) {
///             (Outcome::Stalled, Others::Reach) if evidence.may_rest => {
///                 Verdict::cooldown(Duration::from_secs(300))
///             }
///             _ => self.0.judge(evidence),
///         }
///     }
/// }
///
/// let judge = Strict::default();
/// let mut evidence = Evidence::new(Outcome::Stalled, 0);
/// assert!(judge.judge(evidence).cooldown < Duration::from_secs(2));
/// evidence.others = Others::Reach;
/// assert_eq!(judge.judge(evidence).cooldown, Duration::from_secs(300));
/// evidence.may_rest = false;
/// assert_eq!(judge.judge(evidence).cooldown, Duration::ZERO);
/// ```
pub trait Judge: Send + Sync + 'static {
    /// The verdict on one lease. It is called where the lease is dropped, so it must not block. When
    /// it panics, the default verdict holds instead, and the panic is counted
    /// ([`Counts::panics`](crate::Counts::panics)).
    fn judge(&self, evidence: Evidence<'_>) -> Verdict;
}

impl<J: Judge + ?Sized> Judge for Arc<J> {
    fn judge(&self, evidence: Evidence<'_>) -> Verdict {
        (**self).judge(evidence)
    }
}

impl<J: Judge + ?Sized> Judge for Box<J> {
    fn judge(&self, evidence: Evidence<'_>) -> Verdict {
        (**self).judge(evidence)
    }
}

/// The verdicts that hold unless you say otherwise.
///
/// | outcome | verdict |
/// |---|---|
/// | success | cooldown after use, strikes reset |
/// | proxy unreachable, credentials doubted | cooldown by the steps of [`unreachable`](Self::unreachable), one strike |
/// | credentials refused | quarantine |
/// | proxy denied, tunnel refused | shun of the pair; if others reach the site also a [`mild`](Self::mild) step, and a strike at repetition |
/// | tunnel cut, body cut, stalled | shun of the pair and a [`mild`](Self::mild) step; a strike at repetition |
/// | unknown | a [`mild`](Self::mild) step once there was weak evidence at another site |
/// | banned | shun of the pair for [`ban`](Self::ban) |
/// | target unreachable, target TLS | the shun of [`target`](Self::target), if there is one |
/// | cancelled | cooldown after use; strikes reset if the endpoint [served](Evidence::served) what was given up |
/// | unused | nothing |
/// | all others | cooldown after use |
///
/// What is weak costs nothing while others fail at the site too ([`Others::Fail`]): then it is the
/// site. Repetition means a failure before this one, at this site or another, without a success in
/// between. While the pool's brake is on, only doubted credentials cost a strike.
#[derive(Debug, Clone)]
pub struct DefaultJudge {
    after_use: Duration,
    unreachable: Steps,
    mild: Steps,
    shun: Duration,
    ban: Duration,
    target: Option<Duration>,
}

impl DefaultJudge {
    /// With this cooldown after use. Default zero: a clean release is ready at once.
    pub const fn new(after_use: Duration) -> Self {
        Self {
            after_use,
            unreachable: Steps::long(),
            mild: Steps::mild(),
            shun: Duration::from_secs(60),
            ban: Duration::from_secs(600),
            target: None,
        }
    }

    /// Rests of an endpoint that cannot be reached, each up to a quarter longer at random.
    /// Default: doubling with strikes from 1 s to 10 min, for what is dead mostly stays so.
    pub fn unreachable(mut self, steps: Steps) -> Self {
        self.unreachable = steps;
        self
    }

    /// Rests after weak evidence, each up to a quarter longer at random. Default: doubling with
    /// strikes from 1 s to 30 s, for it may be wrong.
    pub fn mild(mut self, steps: Steps) -> Self {
        self.mild = steps;
        self
    }

    /// Time for which weak evidence keeps an endpoint from the site. Default 1 min; zero is none.
    pub const fn shun(mut self, rest: Duration) -> Self {
        self.shun = rest;
        self
    }

    /// Time for which a ban keeps an endpoint from the site. Default 10 min; zero is none.
    pub const fn ban(mut self, rest: Duration) -> Self {
        self.ban = rest;
        self
    }

    /// Time for which an endpoint that told of an unreachable target, or failed at its TLS, is kept
    /// from the site. Default none: it is the site's trouble, and will be anybody's.
    pub const fn target(mut self, rest: Option<Duration>) -> Self {
        self.target = rest;
        self
    }

    fn used(&self) -> Verdict {
        Verdict::cooldown(self.after_use)
    }

    fn shunned(&self, rest: Option<Duration>) -> Verdict {
        Verdict { shun: rest.filter(|rest| !rest.is_zero()), ..self.used() }
    }

    fn rested(&self, verdict: Verdict, strikes: u32) -> Verdict {
        Verdict { cooldown: self.mild.jittered(strikes).max(self.after_use), ..verdict }
    }

    /// Evidence that may be the site's own; `against` says whether it speaks against the endpoint
    /// and not only against the pair.
    fn weak(&self, evidence: Evidence<'_>, against: bool) -> Verdict {
        if evidence.others == Others::Fail {
            return self.used();
        }
        let mut verdict = self.shunned(evidence.may_shun.then_some(self.shun));
        if against && evidence.may_rest {
            verdict = self.rested(verdict, evidence.strikes);
        }
        if against && evidence.weak > 0 && !evidence.braked {
            verdict.strike = Strike::Add;
        }
        verdict
    }

    /// Evidence of the endpoint itself.
    fn strong(&self, evidence: Evidence<'_>, strike: bool) -> Verdict {
        let rest = self.unreachable.jittered(evidence.strikes).max(self.after_use);
        Verdict::cooldown(rest).with_strike(if strike { Strike::Add } else { Strike::Keep })
    }
}

impl Default for DefaultJudge {
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

impl Judge for DefaultJudge {
    fn judge(&self, evidence: Evidence<'_>) -> Verdict {
        let others = evidence.others;
        match evidence.outcome {
            Outcome::Success => self.used().with_strike(Strike::Reset),
            Outcome::Cancelled if evidence.served => self.used().with_strike(Strike::Reset),
            Outcome::ProxyUnreachable => self.strong(evidence, !evidence.braked),
            // Too many wrong logins may close an account.
            Outcome::CredentialsDoubted => self.strong(evidence, true),
            Outcome::CredentialsRefused => Verdict::quarantine(QuarantineCode::Credentials),
            // Most often the target's trouble, untold.
            Outcome::ProxyDenied | Outcome::TunnelRefused => {
                self.weak(evidence, others == Others::Reach)
            }
            Outcome::TunnelCut | Outcome::BodyCut | Outcome::Stalled => self.weak(evidence, true),
            Outcome::Unknown
                if evidence.elsewhere && evidence.may_rest && others != Others::Fail =>
            {
                self.rested(self.used(), 0)
            }
            Outcome::Banned => self.shunned(Some(self.ban)),
            Outcome::TargetUnreachable | Outcome::TargetTls => self.shunned(self.target),
            Outcome::Unused => Verdict::default(),
            _ => self.used(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);

    fn judged(evidence: Evidence<'_>) -> Verdict {
        // Jitter is another test's.
        let verdict = DefaultJudge::default().judge(evidence);
        Verdict { cooldown: Duration::from_secs(verdict.cooldown.as_secs()), ..verdict }
    }

    fn evidence(outcome: Outcome, others: Others, weak: u32) -> Evidence<'static> {
        Evidence { others, weak, elsewhere: weak > 0, ..Evidence::new(outcome, 0) }
    }

    #[test]
    fn every_outcome_has_its_verdict() {
        let rests = Verdict::cooldown(SECOND);
        let shunned = Verdict::default().with_shun(MINUTE);
        for outcome in Outcome::ALL.iter().copied() {
            let expected = match outcome {
                Outcome::Success => Verdict::default().with_strike(Strike::Reset),
                Outcome::ProxyUnreachable | Outcome::CredentialsDoubted => {
                    rests.clone().with_strike(Strike::Add)
                }
                Outcome::CredentialsRefused => Verdict::quarantine(QuarantineCode::Credentials),
                Outcome::ProxyDenied | Outcome::TunnelRefused => shunned.clone(),
                Outcome::TunnelCut | Outcome::BodyCut | Outcome::Stalled => {
                    rests.clone().with_shun(MINUTE)
                }
                Outcome::Banned => Verdict::default().with_shun(10 * MINUTE),
                Outcome::TargetUnreachable
                | Outcome::TargetTls
                | Outcome::Throttled
                | Outcome::LocalFault
                | Outcome::Cancelled
                | Outcome::Unused
                | Outcome::Expired
                | Outcome::Unknown => Verdict::default(),
            };
            assert_eq!(judged(Evidence::new(outcome, 0)), expected, "{outcome}");
        }
    }

    #[test]
    fn a_cooldown_after_use_is_the_least_of_all_but_an_unused_one() {
        let judge = DefaultJudge::new(2 * SECOND);
        for outcome in Outcome::ALL.iter().copied() {
            let verdict = judge.judge(Evidence::new(outcome, 0));
            let parked = verdict.quarantine.is_some() || outcome == Outcome::Unused;
            assert_eq!(verdict.cooldown == 2 * SECOND, !parked, "{outcome}");
        }
    }

    #[test]
    fn weak_evidence_costs_a_strike_only_when_repeated_and_never_where_others_fail() {
        for outcome in Outcome::ALL.iter().copied().filter(|outcome| outcome.is_weak()) {
            let strike = |others, weak| judged(evidence(outcome, others, weak)).strike;
            for others in [Others::Unknown, Others::Reach, Others::Fail] {
                assert_eq!(strike(others, 0), Strike::Keep, "{outcome}");
            }
            let told = matches!(outcome, Outcome::TunnelCut | Outcome::BodyCut | Outcome::Stalled);
            let costs = |costs| if costs { Strike::Add } else { Strike::Keep };
            assert_eq!(strike(Others::Unknown, 1), costs(told), "{outcome}");
            assert_eq!(strike(Others::Reach, 1), costs(outcome != Outcome::Unknown), "{outcome}");
            assert_eq!(strike(Others::Fail, 9), Strike::Keep, "{outcome}");
            assert_eq!(judged(evidence(outcome, Others::Fail, 9)), Verdict::default(), "{outcome}");
        }
    }

    #[test]
    fn a_refused_tunnel_rests_the_endpoint_only_where_others_get_through() {
        for outcome in [Outcome::TunnelRefused, Outcome::ProxyDenied] {
            let shunned = Verdict::default().with_shun(MINUTE);
            assert_eq!(judged(evidence(outcome, Others::Unknown, 1)), shunned);
            let rests = Verdict { cooldown: SECOND, ..shunned };
            assert_eq!(judged(evidence(outcome, Others::Reach, 0)), rests);
        }
    }

    #[test]
    fn what_is_unknown_costs_no_more_than_a_mild_step_and_only_at_a_second_site() {
        let unknown = |elsewhere, strikes| {
            judged(Evidence { elsewhere, weak: 3, ..Evidence::new(Outcome::Unknown, strikes) })
        };
        assert_eq!(unknown(false, 5), Verdict::default());
        assert_eq!(unknown(true, 5), Verdict::cooldown(SECOND));
    }

    #[test]
    fn brake_and_floor_spare_endpoints_what_is_weak() {
        for outcome in Outcome::ALL.iter().copied() {
            let plain = evidence(outcome, Others::Reach, 5);
            let braked =
                judged(Evidence { braked: true, may_rest: false, may_shun: false, ..plain });
            let spared = outcome.is_weak() || outcome == Outcome::ProxyUnreachable;
            assert_eq!(braked.strike, if spared { Strike::Keep } else { judged(plain).strike });
            if outcome.is_weak() {
                assert_eq!(braked, Verdict::default(), "{outcome}");
            } else {
                let strike = braked.strike;
                assert_eq!(braked, judged(plain).with_strike(strike), "{outcome}");
            }
        }
    }

    #[test]
    fn every_rest_can_be_chosen() {
        let day = 1440 * MINUTE;
        let judge = DefaultJudge::default()
            .unreachable(Steps::new([day]))
            .mild(Steps::new([2 * day]))
            .shun(3 * day)
            .ban(4 * day)
            .target(Some(5 * day));
        let of = |outcome| judge.judge(Evidence::new(outcome, 3));
        assert!(of(Outcome::ProxyUnreachable).cooldown >= day);
        assert!(of(Outcome::Stalled).cooldown >= 2 * day);
        assert_eq!(of(Outcome::Stalled).shun, Some(3 * day));
        assert_eq!(of(Outcome::Banned).shun, Some(4 * day));
        assert_eq!(of(Outcome::TargetTls).shun, Some(5 * day));
        assert_eq!(
            DefaultJudge::default()
                .shun(Duration::ZERO)
                .judge(Evidence::new(Outcome::Stalled, 0))
                .shun,
            None
        );
    }
}
