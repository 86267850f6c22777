//! What the program does for each of the server's users.

use reqwest_lease::RedisRole;

use super::Rig;

/// All that changes a pool, or tries to.
const ORDERS: [&str; 16] = [
    "init --inventory proxies.toml --pool another",
    "sync --inventory next.toml --yes",
    "add e9",
    "remove e0 --yes",
    "disable e0",
    "enable e0",
    "quarantine e0",
    "drain e0",
    "pause",
    "resume",
    "resume --now --yes",
    "reap",
    "doctor --repair",
    "bench --for 1s --endpoints 10",
    "fetch --inventory plain.toml http://127.0.0.1:9/ --max-wait 2s",
    "probe --all --inventory plain.toml --url http://127.0.0.1:9/",
];

#[tokio::test]
async fn an_observer_looks_on_and_changes_nothing() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    rig.file("next.toml", super::inventory(2));
    rig.file("plain.toml", "[[endpoint]]\nid = 'e0'\nurl = 'http://127.0.0.1:9'\n");
    // Something for the repair to want.
    rig.plant("HSET {orders} e1 disable").await;
    let rig = rig.login(RedisRole::Observer, "lee").await;
    let before = everything(&rig).await;
    for look in ["list", "status", "audit"] {
        rig.good(look).await;
        rig.good(&format!("{look} --output json")).await;
    }
    let doctor = rig.words("doctor --role observer").await;
    assert_eq!(doctor.code, 6, "{doctor:?}");
    assert!(doctor.out.contains("orders") || doctor.out.contains("Disable"), "{doctor:?}");
    assert!(doctor.out.contains("unknown: whether leases and tokens agree"), "{doctor:?}");
    for order in ORDERS {
        let ended = rig.words(order).await;
        assert_eq!(ended.code, 4, "{order}: {ended:?}");
        assert!(ended.err.contains("may not do this"), "{order}: {ended:?}");
    }
    assert_eq!(rig.words("destroy --yes").await.code, 4);
    assert_eq!(everything(&rig).await, before);
}

#[tokio::test]
async fn an_observer_finds_what_is_of_no_member() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    rig.plant("HSET {orders} stranger disable").await;
    rig.plant("HSET {weights} stranger 2").await;
    let rig = rig.login(RedisRole::Observer, "lee").await;
    let doctor = rig.words("doctor --inventory proxies.toml").await;
    assert_eq!(doctor.code, 6, "{doctor:?}");
    for told in ["orders are for endpoints that are no members: stranger", "weights are kept of"] {
        assert!(doctor.out.contains(told), "{told}: {doctor:?}");
    }
}

#[tokio::test]
async fn the_doctor_of_an_observer_finds_nothing_on_a_sound_pool() {
    let rig = Rig::new().await;
    rig.set_up(3).await;
    let rig = rig.login(RedisRole::Observer, "lee").await;
    let doctor = rig.good("doctor --role observer --inventory proxies.toml").await;
    assert!(doctor.out.ends_with("nothing is wrong\n"), "{doctor:?}");
}

#[tokio::test]
async fn the_printed_rules_make_users_of_their_roles() {
    let rig = Rig::new().await;
    rig.set_up(2).await;
    let printed = rig.json("acl").await;
    let roles = printed.as_array().unwrap();
    assert_eq!(roles.len(), 3);
    for role in roles {
        rig.redis.send::<()>(role["command"].as_str().unwrap()).await;
        let (user, role) = (role["user"].as_str().unwrap(), role["role"].as_str().unwrap());
        rig.redis.send::<()>(&format!("ACL SETUSER {user} >{}-{user}", super::CANARY)).await;
        let url = rig.redis.server.url();
        let url = url.replace("redis://", &format!("redis://{user}:{}-{user}@", super::CANARY));
        let mut program = rig.program();
        program.env("LEASE_REDIS_URL", url).args(["doctor", "--role", role]);
        let ended = Rig::end(&mut program).await;
        assert_eq!(ended.code, 0, "{role}: {ended:?}");
    }
}

/// All keys of the server, with what they hold.
pub(super) async fn everything(rig: &Rig) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for key in rig.redis.send::<Vec<String>>("KEYS *").await {
        let held = rig.redis.send::<Vec<u8>>(&format!("DUMP {key}")).await;
        all.push((key, held));
    }
    all.sort();
    all
}
