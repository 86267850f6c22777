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
        ("HDEL orders .", "orders lost"),
        ("HSET parked e2 quarantined:probe", ""),
        ("HSET meta loading 1", "{leased} leased while loading"),
        ("ZADD ready 1 stranger", "members miscounted"),
        ("HSET requests @stranger 1", "leases miscounted"),
        ("HSET meta due 4000000000000000", "due too late"),
        ("HSET requests 1 1:2:3:stranger", "leases miscounted"),
        ("HDEL meta note", "note missing"),
        ("HDEL requests note", "note missing"),
        ("HSET requests note short", "note missing"),
        ("HSET strikes e1 many", "e1 strikes malformed"),
        ("HSET strikes e1 2:", "e1 strikes malformed"),
        ("ZADD ready inf e1", "e1 time senseless"),
        ("ZADD cooling -inf e1", "e1 time senseless"),
        ("ZADD cooling 1.5 e1", "e1 time senseless"),
        ("ZADD leases inf {leased}", "{leased} time senseless"),
        ("ZADD uses inf e1", "e1 count senseless"),
        ("ZADD uses -1 e1", "e1 count senseless"),
        ("HSET weights e1 0", "e1 weight senseless"),
        ("HSET weights e1 2", "weights miscounted"),
        ("HSET meta weighted 2", "weights miscounted"),
        ("HSET parked e2 other", "e2 reason senseless"),
        ("HSET parked e2 quarantined:other", "e2 reason senseless"),
        ("HSET parked e2 quarantined:credentials", ""),
        ("HSET parked e2 quarantined:administrator", ""),
        ("HSET orders e2 disable:quarantine:probe", ""),
        ("HSET orders {leased} remove", ""),
        ("HSET orders {leased} quarantine:credentials", ""),
        ("HSET orders {leased} drain:quarantine:administrator", ""),
        ("HSET orders {leased} other", "{leased} order senseless"),
        ("ZADD members 1 e1", "members out of order"),
        ("HSET orders stranger disable", "stranger orders of nobody"),
        ("HSET orders stranger remove", ""),
        ("HSET weights stranger 3", "stranger weights of nobody"),
        ("HSET strikes @stranger 3", "stranger strikes of nobody"),
        ("HSET former e1 3", "e1 former of nobody"),
        ("HSET former stranger 3", ""),
        ("HSET former stranger inf", "stranger former of nobody"),
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

#[tokio::test]
async fn what_is_found_is_mended_and_what_is_sound_stays() {
    for fault in [
        "ZADD ready 1 {leased}",
        "ZADD cooling 1 {leased}",
        "ZREM ready e1",
        "ZADD cooling 1 e1",
        "ZREM uses e1",
        "HDEL requests @{leased}",
        "HSET requests @{leased} 1",
        "HSET requests 1 1:2:3:{leased}",
        "HDEL requests {token}",
        "HSET requests {token} 1:2:3:e1",
        "HSET meta due 4000000000000000",
        "HDEL meta note",
        "HDEL requests note",
        "HSET requests note short",
        "HSET strikes e1 many",
        "HSET strikes {leased} 2:",
        "ZADD leases 4000000000000000 {leased}",
        "ZREM leases {leased}",
        "HSET orders e1 disable",
        "HSET orders e1 remove",
        "HDEL orders e2",
        "HSET orders e2 remove",
        "HSET parked {leased} disabled",
        "ZADD ready 1 stranger",
        "ZADD ready 1 not:a:name",
        "ZADD cooling 1 stranger",
        "ZADD leases 1 stranger",
        "HSET parked stranger disabled",
        "HSET parked stranger quarantined:probe",
        "ZREM members e1",
        "ZREM members {leased}",
        "ZADD uses 1 stranger",
        "HSET requests @stranger 1",
        "HSET requests 1 1:2:3:stranger",
        "HSET requests 1 cancelled:12",
        "ZADD cancelled 1 1",
        "ZADD ready inf e1",
        "ZADD ready -inf e1",
        "ZADD cooling -inf e1",
        "ZADD leases inf {leased}",
        "ZADD uses inf e1",
        "ZADD uses -1 e1",
        "HSET weights e1 0",
        "HSET weights e1 2",
        "HSET meta weighted 2",
        "HSET parked e2 other",
        "HSET orders e2 other",
        "HSET orders {leased} other",
        "ZADD members 1 e1",
        "HSET orders stranger disable",
        "HSET weights stranger 3",
        "HSET strikes stranger 1:3",
        "HSET strikes @stranger 3",
        "HSET former e1 3",
        "HSET former stranger inf",
    ] {
        let redis = pool(3).await;
        let held = grant(&redis).await;
        order(&redis, Order::Disable(vec![id("e2")])).await.unwrap();
        let fault = fault
            .replace("{leased}", held.endpoint.as_str())
            .replace("{token}", &hex(token(&held)));
        let (command, rest) = fault.split_once(' ').unwrap();
        let (name, rest) = rest.split_once(' ').unwrap();
        redis.send::<()>(&format!("{command} {} {rest}", redis.key(name))).await;
        assert_ne!(redis.store.check(&redis.pool()).await.unwrap(), [], "{fault}");

        let by = crate::id::AdminName::new("kim").unwrap();
        let mended = redis.store.repair(&redis.pool(), Some(by.clone())).await.unwrap();
        assert!(mended > 0, "{fault}");
        let found = redis.store.check(&redis.pool()).await.unwrap();
        assert_eq!(found, [], "{fault}");
        let trail = crate::store::AuditRequest::new(redis.pool(), None, 1);
        let entry = redis.store.audit(trail).await.unwrap().remove(0);
        assert_eq!((entry.order.as_str(), entry.by), ("repair", Some(by)), "{fault}");
        assert_eq!(redis.store.repair(&redis.pool(), None).await.unwrap(), 0, "{fault}");
        // Whoever holds a lease that was in order still does.
        let harmed = fault.contains(&hex(token(&held))) || fault.starts_with("ZREM leases");
        let renewed = renew(&redis, &held).await.unwrap();
        assert_eq!(matches!(renewed, RenewReply::Renewed(_)), !harmed, "{fault}");
    }
}

#[tokio::test]
async fn one_that_somebody_could_be_using_rests_before_it_is_granted() {
    let redis = pool(1).await;
    let held = grant(&redis).await;
    redis.send::<()>(&format!("DEL {}", redis.key("requests"))).await;
    redis.store.repair(&redis.pool(), None).await.unwrap();
    assert!(matches!(acquire(&redis, Token::random()).await, Ok(AcquireReply::Empty { .. })));
    redis.advance(TTL).await;
    assert_eq!(grant(&redis).await.endpoint, held.endpoint);

    redis.send::<()>(&format!("DEL {}", redis.key("leases"))).await;
    redis.store.repair(&redis.pool(), None).await.unwrap();
    redis.advance(PoolConfig::default().largest_ttl / 2).await;
    assert!(matches!(acquire(&redis, Token::random()).await, Ok(AcquireReply::Empty { .. })));
    redis.advance(PoolConfig::default().largest_ttl / 2).await;
    grant(&redis).await;
    in_order(&redis).await;
}

#[tokio::test]
async fn a_large_pool_in_order_is_left_as_it_is() {
    let redis = pool(0).await;
    let members = (0..1500).map(|nth| Member::new(id(&format!("m{nth}")))).collect();
    order(&redis, Order::Add(members)).await.unwrap();
    for _ in 0..300 {
        grant(&redis).await;
        cancel(&redis, Token::random()).await.unwrap();
    }
    in_order(&redis).await;
    assert_eq!(redis.store.repair(&redis.pool(), None).await.unwrap(), 0);
}
