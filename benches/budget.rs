//! An uncontended check of a site's budget, beside governor's own checks.
//!
//! The fair peer of a default rule is governor's keyed limiter with a `String` key and the same
//! clock: both find a bucket by the host's name and take a cell of it. A site rule is looked up
//! too. governor's direct limiter is told besides, to show what the look-up costs.
//!
//! `cargo bench --bench budget --features test-util`; on Linux it first tells how much memory a
//! site takes, and fails if it is more than 400 bytes.

// What cannot be set up cannot be measured.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::num::NonZeroU32;

use criterion::{Criterion, criterion_group, criterion_main};
use governor::{Quota, RateLimiter};
use reqwest_lease::{Budget, Budgets, Site};

/// Fast enough that no check is ever refused.
const ENDLESS: Budget = Budget::per_second(1_000_000).burst(u32::MAX);

fn check(budgets: &Budgets, site: &Site) {
    assert!(budgets.pass(black_box(site), Some(443)));
}

fn sites(count: usize) -> Vec<Site> {
    (0..count).map(|nth| Site::parse(&format!("www.host-{nth:08}.test")).unwrap()).collect()
}

fn ours(c: &mut Criterion) {
    let mut group = c.benchmark_group("budgets");
    let example = Site::parse("example.com").unwrap();
    let unlimited = Budgets::unlimited();
    group.bench_function("unlimited", |b| b.iter(|| check(&unlimited, &example)));
    let ruled = Budgets::builder().site("example.com", ENDLESS).build().unwrap();
    group.bench_function("site rule", |b| b.iter(|| check(&ruled, &example)));
    let placed = Budgets::builder().site("example.com", ENDLESS.in_flight(9)).build().unwrap();
    group.bench_function("site rule with places", |b| b.iter(|| check(&placed, &example)));
    for count in [1, 1_000] {
        let budgets = Budgets::builder().default(ENDLESS).build().unwrap();
        let sites = sites(count);
        let mut next = sites.iter().cycle();
        group.bench_function(format!("default rule, {count} sites"), |b| {
            b.iter(|| check(&budgets, next.next().unwrap()));
        });
    }
}

fn governors(c: &mut Criterion) {
    let mut group = c.benchmark_group("governor");
    let quota = Quota::per_second(NonZeroU32::new(1_000_000).unwrap()).allow_burst(NonZeroU32::MAX);
    let direct = RateLimiter::direct(quota);
    group.bench_function("direct", |b| b.iter(|| direct.check().unwrap()));
    for count in [1, 1_000] {
        let hosts: Vec<String> = sites(count).iter().map(|site| site.as_str().into()).collect();
        let mut next = hosts.iter().cycle();
        let keyed = RateLimiter::hashmap(quota);
        group.bench_function(format!("keyed, {count} sites"), |b| {
            b.iter(|| keyed.check_key(black_box(next.next().unwrap())).unwrap());
        });
    }
}

fn memory(_: &mut Criterion) {
    const COUNT: usize = 1_000_000;
    let Some(before) = resident_bytes() else { return };
    let slow = Budget::per_day(1);
    // Some parts of the map get a little more than their share.
    let budgets = Budgets::builder().default(slow).max_sites(COUNT + COUNT / 50).build().unwrap();
    for nth in 0..COUNT {
        check(&budgets, &Site::parse(&format!("host-{nth:08}.test")).unwrap());
    }
    assert_eq!(budgets.counts().remembered, COUNT);
    let each = (resident_bytes().unwrap_or(before) - before) / COUNT;
    println!("memory: {each} bytes a site, {COUNT} sites");
    assert!(each <= 400);
}

fn resident_bytes() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}

criterion_group!(benches, memory, ours, governors);
criterion_main!(benches);
