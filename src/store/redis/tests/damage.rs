//! State that is not as it should be.

use super::scenes::{self, Scene, busy};
use super::*;
use crate::redis::commands;
use crate::redis::keys::STATE;
use crate::store::Mode;

#[tokio::test]
async fn the_calls_of_these_tests_run_every_script() {
    let server = std::sync::Arc::new(Server::start(&[]));
    for config in [PoolConfig::default(), PoolConfig { mode: Mode::Shared, ..Default::default() }] {
        let redis = Redis::on(server.clone()).await;
        set_up(&redis, config, 8).await;
        let scene = Scene { held: grant(&redis).await, redis };
        let mut nth = 0;
        while scene.call(nth).await.is_some() {
            nth += 1;
        }
    }
    let redis = Redis::on(server).await;
    // Those of budgets are no pool's.
    for command in commands::ALL.iter().filter(|it| !it.script.name.starts_with("budget/")) {
        let known: Vec<u8> = redis.send(&format!("SCRIPT EXISTS {}", command.script.sha1())).await;
        assert_eq!(known, [1], "scenes.rs has no call for {}", command.script.name);
    }
}

#[tokio::test]
async fn a_key_of_another_type_leaves_all_as_it_was() {
    for (name, scene) in scenes::all().await {
        leaves_all_as_it_was(name, scene).await;
    }
}

async fn leaves_all_as_it_was(scene_name: &str, scene: Scene) {
    let (good, good_content) = (scene.everything().await, scene.content().await);
    let mut refusals = 0;
    for name in STATE.iter().copied().chain(["orders", "audit", "shun:a.example"]) {
        scene.redis.send::<()>(&format!("SET {} other", scene.redis.key(name))).await;
        let (damaged, damaged_content) = (scene.everything().await, scene.content().await);
        for nth in 0.. {
            let Some(reply) = scene.call(nth).await else { break };
            let after = scene.content().await;
            if let Err(error) = reply {
                let expected = [Kind::StoreRefused, Kind::InvalidCall];
                let told = format!("{scene_name}: {name}, call {nth}: {error}");
                assert!(expected.contains(&error.kind()), "{told}");
                assert!(after == damaged_content, "{told}");
                refusals += 1;
            }
            // What was allowed did not need the key; put all back for the next.
            if after != damaged_content {
                scene.restore(&damaged).await;
            }
        }
        scene.restore(&good).await;
    }
    assert!(refusals > 100, "{scene_name}: {refusals}");
    assert!(scene.content().await == good_content);
}

#[tokio::test]
async fn a_pool_that_lost_its_meta_is_not_set_up() {
    let scene = busy(PoolConfig::default()).await;
    scene.redis.send::<()>(&format!("DEL {}", scene.redis.key("meta"))).await;
    let before = scene.content().await;
    let others = |nth: &usize| *nth != scenes::INIT && !scenes::OUTLAST.contains(nth);
    for nth in (0..).filter(others) {
        let Some(reply) = scene.call(nth).await else { break };
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), Kind::PoolUninitialised, "call {nth}");
        assert!(!error.is_transient() && !error.may_have_run());
    }
    let refusal = scene.call(scenes::INIT).await.unwrap().unwrap_err();
    assert_eq!(refusal.kind(), Kind::InvalidCall);
    assert!(refusal.to_string().contains("DestroyPool"), "{refusal}");
    assert!(scene.content().await == before);
}

#[tokio::test]
async fn a_newer_layout_is_left_alone() {
    let scene = busy(PoolConfig::default()).await;
    scene.redis.send::<()>(&format!("HSET {} schema 2", scene.redis.key("meta"))).await;
    let before = scene.content().await;
    let others = |nth: &usize| *nth != scenes::INIT && !scenes::ASIDE.contains(nth);
    for nth in (0..).filter(others) {
        let Some(reply) = scene.call(nth).await else { break };
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), Kind::PoolTooNew, "call {nth}");
        assert!(!error.is_transient() && !error.may_have_run());
    }
    let again = scene.call(scenes::INIT).await.unwrap();
    assert_eq!(kind(again), Some(Kind::InvalidCall));
    assert!(scene.content().await == before);
}

#[tokio::test]
async fn scripts_may_be_forgotten_at_any_time() {
    let redis = Redis::on(std::sync::Arc::new(Server::start(&[]))).await;
    set_up(&redis, PoolConfig::default(), 3).await;
    for _ in 0..3 {
        redis.send::<()>("SCRIPT FLUSH").await;
        let held = grant(&redis).await;
        redis.send::<()>("SCRIPT FLUSH").await;
        assert!(matches!(renew(&redis, &held).await, Ok(RenewReply::Renewed(_))));
        redis.send::<()>("SCRIPT FLUSH").await;
        assert_eq!(
            release(&redis, &held, Verdict::default()).await.unwrap(),
            ReleaseReply::Released
        );
        redis.send::<()>("SCRIPT FLUSH").await;
        assert_eq!(redis.store.status(&redis.pool()).await.unwrap().ready, 3);
    }
}
