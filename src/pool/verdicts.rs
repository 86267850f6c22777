//! From what a lease saw to a verdict, by what this process knows.

use tokio::time::Instant;

use super::Pool;
use super::ledger::Weighed;
use crate::outcome::Outcome;
use crate::site::Site;
use crate::store::Grant;
use crate::verdict::{DefaultJudge, Evidence, Judge as _, Verdict};

impl Pool {
    /// Whether so many endpoints have failed lately, as this process sees it, that verdicts are
    /// braked: the trouble is hardly theirs. See [`Guard`](crate::Guard).
    pub fn is_braked(&self) -> bool {
        self.0.ledger.is_braked(self.members())
    }

    /// The verdict on a lease that was asked for then and has seen this.
    pub(super) fn judge(
        &self,
        (grant, since): (&Grant, Instant),
        (outcome, served): (Outcome, bool),
        site: Option<&Site>,
    ) -> Verdict {
        let shared = &self.0;
        let evidence = Evidence { served, ..Evidence::new(outcome, grant.strikes).at(site) };
        let Weighed { evidence, news } =
            shared.ledger.weigh(&grant.endpoint, since, evidence, self.members());
        if let Some(braked) = news {
            self.tell_brake(braked);
        }
        // This may run while a panic unwinds, and a second one would end the process.
        let verdict = shared.core.run("the judge", || shared.judge.judge(evidence));
        let mut verdict = verdict.unwrap_or_else(|| DefaultJudge::default().judge(evidence));
        // What rests for no site does not rest.
        verdict.shun = verdict.shun.filter(|rest| site.is_some() && !rest.is_zero());
        shared.ledger.settle(&grant.endpoint, evidence, &verdict);
        verdict
    }

    fn tell_brake(&self, braked: bool) {
        let pool = &self.0.core.name;
        if braked {
            self.0.core.counters.brakes.add_one();
            tracing::warn!(%pool, "many endpoints fail at once; verdicts are braked");
        } else {
            tracing::info!(%pool, "endpoints serve again; verdicts are no longer braked");
        }
    }

    fn members(&self) -> usize {
        self.0.inventory.snapshot().len()
    }
}
