//! Random sequences of calls, with the store beside the model.

use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::store::Policy;
use crate::store::memory::random::{Step, agree, config, step};

/// `REQWEST_LEASE_LONG=1` runs many more.
#[tokio::test]
async fn the_store_agrees_with_the_model() {
    let long = std::env::var_os("REQWEST_LEASE_LONG").is_some();
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    for nth in 0..if long { 2_000 } else { 60 } {
        let sequence = (config(), vec(step(), 1..100)).new_tree(&mut runner).unwrap();
        let (mut config, mut steps) = sequence.current();
        // Whole seconds make ties of what is microseconds apart here.
        if config.policy == Policy::Earliest {
            config.policy = Policy::Random;
        }
        // A shun outlasts the removal of its endpoint here: each is tried without the other.
        match nth % 2 {
            0 => steps.retain(|step| !step.removes()),
            _ => steps = steps.into_iter().map(|step| step.without_site()).collect(),
        }
        // A cancel takes back a lease of its token that has run out; the model leaves it to a reap.
        let steps = steps.into_iter().flat_map(|step| match step {
            Step::Cancel { .. } => vec![Step::Reap, step],
            step => vec![step],
        });
        let steps: Vec<_> = steps.collect();
        println!("{config:?} {steps:?}");
        let redis = Redis::new().await;
        agree(&redis, config, steps).await;
        in_order(&redis).await;
    }
}
