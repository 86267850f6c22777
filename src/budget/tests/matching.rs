use tokio::time::Instant;

use super::*;
use crate::error::Kind;

fn ruled() -> Budgets {
    Budgets::builder()
        .suffix("*.example.org", Budget::per_second(3))
        .default(Budget::per_second(1))
        .suffix("deep.example.org", Budget::per_second(4))
        .site("Example.COM", Budget::per_second(2))
        .site("example.com:8443", Budget::per_second(5))
        .site("bücher.example.", Budget::per_second(6))
        .site("127.1", Budget::per_second(7))
        .site("[::0:1]", Budget::per_second(8))
        .site("[::1]:81", Budget::per_second(9))
        .site("www.example.org", Budget::per_second(10))
        .unlimited("intranet.test")
        .unlimited("*.intranet.test")
        .build()
        .unwrap()
}

#[test]
fn the_most_specific_rule_wins() {
    let budgets = ruled();
    for (text, rate) in [
        ("http://example.com/", 2),
        ("https://EXAMPLE.com.:444/", 2),
        ("https://example.com:8443/", 5),
        ("https://www.example.com/", 1),
        ("http://xn--bcher-kva.example/", 6),
        ("http://BÜCHER.example/", 6),
        ("http://127.0.0.1:99/", 7),
        ("http://0x7f.0.0.1/", 7),
        ("http://127.0.0.2/", 1),
        ("http://[::1]/", 8),
        ("http://[0:0::1]:81/", 9),
        ("http://a.example.org/", 3),
        ("http://a.b.example.org/", 3),
        ("http://a.deep.example.org/", 4),
        ("http://deep.example.org/", 3),
        ("http://www.example.org/", 10),
        ("http://a.www.example.org/", 3),
        ("http://example.org/", 1),
        ("http://badexample.org/", 1),
        ("http://intranet.test.example/", 1),
    ] {
        let budget = budgets.explain(&url(text)).budget();
        assert_eq!(budget, Some(Budget::per_second(rate)), "{text}");
    }
    assert_eq!(budgets.explain(&url("https://intranet.test/")).budget(), None);
    assert_eq!(budgets.explain(&url("https://a.intranet.test/")).budget(), None);
}

#[test]
fn a_port_without_a_rule_for_its_host_falls_to_the_wider_rules() {
    let budgets = Budgets::builder()
        .site("a.example.org:443", Budget::per_second(1))
        .suffix("example.org", Budget::per_second(2))
        .build()
        .unwrap();
    let of = |text| budgets.explain(&url(text)).budget();
    assert_eq!(of("https://a.example.org"), Some(Budget::per_second(1)));
    assert_eq!(of("http://a.example.org"), Some(Budget::per_second(2)));
    assert_eq!(of("http://example.org"), None);
}

#[test]
fn an_explanation_is_one_line() {
    let budgets = ruled();
    for (text, why) in [
        ("http://example.com", "example.com: 2/s, burst 1, by the rule for this host"),
        (
            "http://example.com:8443",
            "example.com: 5/s, burst 1, by the rule for port 8443 of this host",
        ),
        ("http://b.example.org", "b.example.org: 3/s, burst 1, shared by all of *.example.org"),
        ("http://x.test", "x.test: 1/s, burst 1, by the default, in a bucket of its own"),
        ("http://intranet.test", "intranet.test: unlimited, by the rule for this host"),
        ("ftp://x.test", "not a site that can be asked"),
    ] {
        assert_eq!(budgets.explain(&url(text)).to_string(), why);
    }
    let why = Budgets::unlimited().explain(&example());
    assert_eq!(why.to_string(), "example.com: unlimited, as no rule is for it");
    assert_eq!(why.site(), Site::parse("example.com").as_ref());
}

#[test]
fn bad_configurations_are_refused() {
    let build = Budgets::builder;
    let one = Budget::per_second(1);
    for (builder, message) in [
        (build().default(Budget::per_second(0)), "the budget for other sites has a rate of zero"),
        (build().site("a.test", one.burst(0)), "the budget for a.test has a burst of zero"),
        (
            build().site("a.test:1", Budget::per_second(1_000_001)),
            "the budget for a.test:1 has an interval below 1 µs",
        ),
        (
            build().suffix("a.test", Budget::per_day(1).burst(20_000)),
            "the budget for *.a.test has a burst that takes more than 35 years to come back",
        ),
        (
            build().default(one.max_wait(Duration::ZERO)),
            "the budget for other sites has a longest wait of zero",
        ),
        (build().site("a.test", one).site("A.test.", one), "there are two budgets for a.test"),
        (build().site("a.test", one).unlimited("a.test"), "there are two budgets for a.test"),
        (build().site("[::1]:1", one).site("[0::1]:1", one), "there are two budgets for [::1]:1"),
        (
            build().suffix("a.test", one).suffix("*.A.test", one),
            "there are two budgets for *.a.test",
        ),
        (build().max_sites(0), "room for at least one site is needed"),
        (build().most_waiting(0), "room for at least one waiting request is needed"),
        (build().default(one).default(one), "there are two budgets for other sites"),
        (build().key("k", one).key("k", one), "there are two budgets for key k"),
        (build().default_key(one).default_key(one), "there are two budgets for other keys"),
        (build().key("", one), "the key of a budget is empty"),
        (build().key("k", Budget::per_day(0)), "the budget for key k has a rate of zero"),
        (build().default(one.in_flight(0)), "the budget for other sites has no place in flight"),
        (
            build().default(Budget::unpaced()),
            "the budget for other sites has no rate, so it takes a most in flight alone",
        ),
        (
            build().default(Budget::unpaced().in_flight(1).burst(2)),
            "the budget for other sites has no rate, so it takes a most in flight alone",
        ),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Config, message));
    }
}

#[test]
fn a_jitter_is_a_fraction() {
    for good in [0.0, 0.25, 1.0] {
        assert!(Budgets::builder().default(Budget::per_hour(1).jitter(good)).build().is_ok());
    }
    for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY, f64::MAX, f64::NEG_INFINITY] {
        let error = Budgets::builder().default(Budget::per_hour(1).jitter(bad)).build();
        let message = "the budget for other sites has a jitter that is not between 0 and 1";
        assert_eq!(error.unwrap_err().to_string(), message, "{bad}");
    }
}

#[test]
fn a_budget_tells_all_of_itself() {
    let all = Budget::per_minute(30).burst(2).in_flight(4).jitter(0.25).max_wait(ms(1_500));
    assert_eq!(
        all.to_string(),
        "30/min, burst 2, at most 4 in flight, jitter up to 25 %, longest wait 1.5s"
    );
    assert_eq!(Budget::unpaced().in_flight(1).to_string(), "no rate, at most 1 in flight");
}

#[cfg(feature = "psl")]
#[test]
fn a_registrable_domain_is_one_rule_and_as_a_default_one_bucket_each() {
    let budgets = Budgets::builder()
        .default_by_domain(Budget::per_second(1))
        .domain("Example.co.uk.", Budget::per_second(2))
        .suffix("deep.example.co.uk", Budget::per_second(3))
        .suffix("co.uk", Budget::per_second(4))
        .site("www.example.co.uk", Budget::per_second(5))
        .domain("github.io", Budget::per_second(6))
        .build()
        .unwrap();
    for (text, rate) in [
        ("http://example.co.uk/", 2),
        ("http://a.b.example.co.uk/", 2),
        ("http://deep.example.co.uk/", 2),
        ("http://a.deep.example.co.uk/", 3),
        ("http://www.example.co.uk/", 5),
        ("http://other.co.uk/", 4),
        ("http://badexample.co.uk/", 4),
        ("http://user.github.io/", 6),
        ("http://co.uk/", 1),
    ] {
        assert_eq!(budgets.explain(&url(text)).budget(), Some(Budget::per_second(rate)), "{text}");
    }
    for (one, other, shared) in [
        ("http://a.example.com", "http://b.example.com:81", true),
        ("http://example.com", "http://c.d.example.com", true),
        ("http://a.blogspot.com", "http://b.blogspot.com", true),
        ("http://1.2.0.1", "http://127.0.0.1", false),
        ("http://[::1]", "http://[::2]", false),
        ("http://localhost", "http://a.localhost", false),
        ("http://com", "http://org", false),
    ] {
        assert_eq!(Arc::ptr_eq(&budgets.queue(&url(one)), &budgets.queue(&url(other))), shared);
    }
    for (text, why) in [
        (
            "http://a.x.com",
            "a.x.com: 1/s, burst 1, by the default, shared by x.com and all below it",
        ),
        ("http://10.0.0.1", "10.0.0.1: 1/s, burst 1, by the default, in a bucket of its own"),
        (
            "http://a.example.co.uk",
            "a.example.co.uk: 2/s, burst 1, shared by example.co.uk and all below it",
        ),
    ] {
        assert_eq!(budgets.explain(&url(text)).to_string(), why);
    }
}

#[cfg(feature = "psl")]
#[test]
fn what_nobody_can_register_is_no_domain_rule() {
    let one = Budget::per_second(1);
    for bad in ["co.uk", "com", "www.example.com", "127.0.0.1", "[::1]", "localhost", "", "*.a.com"]
    {
        let error = Budgets::builder().domain(bad, one).build().expect_err(bad);
        let message = "site rule 1 of the budgets is no registrable domain";
        assert_eq!(error.to_string(), message, "{bad}");
    }
    let twice = Budgets::builder().domain("a.com", one).domain("A.com.", one).build();
    let message = "there are two budgets for a.com and all below it";
    assert_eq!(twice.unwrap_err().to_string(), message);
    let twice = Budgets::builder().default(one).default_by_domain(one).build();
    assert_eq!(twice.unwrap_err().to_string(), "there are two budgets for other sites");
}

#[test]
fn what_is_no_host_is_refused_without_being_shown() {
    let one = Budget::per_second(1);
    for bad in [
        "",
        ".",
        "a..b",
        "http://user:secret@a.test/",
        "a.test/x",
        "::1",
        "a.test:",
        "a.test:x",
        "a.test:99999",
        "*.a.test",
        "user@a.test",
        "[::1",
        "256.1.1.1",
    ] {
        let error = Budgets::builder().site(bad, one).build().expect_err(bad);
        let message = "site rule 1 of the budgets is no host, host:port or IP address";
        assert_eq!(error.to_string(), message, "{bad}");
    }
    for bad in ["", "*", "*.", ".a.test", "127.0.0.1", "[::1]", "a.test:80", "*.*.a.test"] {
        let error = Budgets::builder().suffix(bad, one).build().expect_err(bad);
        assert_eq!(error.to_string(), "site rule 1 of the budgets is no domain", "{bad}");
    }
}

#[tokio::test(start_paused = true)]
async fn sites_without_a_limit_never_wait() {
    for budgets in [Budgets::unlimited(), ruled()] {
        let held = turn_with_slot(&budgets, &url("http://intranet.test")).await;
        assert!(held.grace().is_none());
        let began = Instant::now();
        for _ in 0..1_000 {
            drop(turn_with_slot(&budgets, &url("http://intranet.test")).await);
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
