//! The checker finds what is planted.

use super::*;

#[tokio::test]
async fn planted_faults_are_found() {
    for (fault, finding) in [
        ("ZADD ready 1 {leased}", "{leased} not in one place"),
        ("ZREM ready e1", "e1 not in one place"),
        ("ZREM uses e1", "e1 without count"),
        ("HDEL requests @{leased}", "{leased} lease without owner"),
        ("HDEL requests {token}", "{leased} lease without request"),
        ("HSET requests {token} 1:2:3:e1", "{leased} lease without request"),
        ("ZADD leases 4000000000000000 {leased}", "{leased} deadline too far"),
        ("HSET orders e1 disable", "e1 order ignored"),
        ("HDEL orders e2", "e2 disabled by nobody"),
        ("HSET parked e2 quarantined:probe", ""),
        ("HSET meta loading 1", "{leased} leased while loading"),
        ("ZADD ready 1 stranger", "members miscounted"),
        ("HSET requests @stranger 1", "leases miscounted"),
        ("HSET meta due 4000000000000000", "due too late"),
        ("HSET requests 1 1:2:3:stranger", "leases miscounted"),
    ] {
        let redis = pool(3).await;
        let held = grant(&redis).await;
        order(&redis, Order::Disable(vec![id("e2")])).await.unwrap();
        in_order(&redis).await;
        let fill = |text: &str| {
            text.replace("{leased}", held.endpoint.as_str()).replace("{token}", &hex(token(&held)))
        };
        let (command, rest) = fault.split_once(' ').unwrap();
        let (name, rest) = rest.split_once(' ').unwrap();
        redis.send::<()>(&format!("{command} {} {}", redis.key(name), fill(rest))).await;
        let found = redis.store.check(&redis.pool()).await.unwrap();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        match finding {
            "" => assert_eq!(found, [""; 0], "{fault}"),
            finding => assert!(found.contains(&fill(finding)), "{fault}: {found:?}"),
        }
    }
}
