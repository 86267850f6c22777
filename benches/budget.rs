//! An uncontended turn through a site's budget, beside governor's own checks.
//!
//! `cargo bench --bench budget --features test-util`; on Linux it first tells how much memory a
//! site takes.

// What cannot be set up cannot be measured.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::FutureExt;
use governor::{Quota, RateLimiter};
use reqwest_lease::{Budget, Budgets};
use url::Url;

/// Fast enough that no check is ever refused.
const ENDLESS: Budget = Budget::per_second(1_000_000).burst(u32::MAX);

fn admit(budgets: &Budgets, url: &Url) {
    let admitted = budgets.admit(black_box(url), Duration::ZERO).now_or_never();
    assert!(matches!(admitted, Some(Ok(()))));
}

fn sites(count: usize) -> Vec<Url> {
    (0..count).map(|nth| format!("https://www.host-{nth:08}.test/").parse().unwrap()).collect()
}

fn ours(c: &mut Criterion) {
    let mut group = c.benchmark_group("turn");
    let ruled = Budgets::builder().site("example.com", ENDLESS).build().unwrap();
    let url = "https://example.com/".parse().unwrap();
    let unlimited = Budgets::unlimited();
    group.bench_function("unlimited", |b| b.iter(|| admit(&unlimited, &url)));
    group.bench_function("site rule", |b| b.iter(|| admit(&ruled, &url)));
    for count in [1, 1_000] {
        let budgets = Budgets::builder().default(ENDLESS).build().unwrap();
        let sites = sites(count);
        let mut next = sites.iter().cycle();
        group.bench_function(format!("default rule, {count} sites"), |b| {
            b.iter(|| admit(&budgets, next.next().unwrap()));
        });
    }
}

fn governors(c: &mut Criterion) {
    let mut group = c.benchmark_group("governor");
    let quota = Quota::per_second(NonZeroU32::new(1_000_000).unwrap()).allow_burst(NonZeroU32::MAX);
    let direct = RateLimiter::direct(quota);
    group.bench_function("direct", |b| b.iter(|| direct.check().unwrap()));
    for count in [1, 1_000] {
        let hosts: Vec<String> =
            sites(count).iter().map(|url| url.host_str().unwrap().into()).collect();
        let mut next = hosts.iter().cycle();
        let keyed = RateLimiter::hashmap(quota);
        group.bench_function(format!("keyed, {count} sites"), |b| {
            b.iter(|| keyed.check_key(black_box(next.next().unwrap())).unwrap());
        });
        let map: Mutex<HashMap<&str, Arc<()>>> =
            Mutex::new(hosts.iter().map(|host| (host.as_str(), Arc::default())).collect());
        let mut next = hosts.iter().cycle();
        group.bench_function(format!("map lookup alone, {count} sites"), |b| {
            b.iter(|| map.lock().unwrap().get(next.next().unwrap().as_str()).cloned().unwrap());
        });
    }
}

fn memory(_: &mut Criterion) {
    const COUNT: usize = 1_000_000;
    let Some(before) = resident_bytes() else { return };
    let slow = Budget::per_day(1);
    let budgets = Budgets::builder().default(slow).max_sites(COUNT).build().unwrap();
    for nth in 0..COUNT {
        admit(&budgets, &format!("https://host-{nth:08}.test/").parse().unwrap());
    }
    let after = resident_bytes().unwrap_or(before);
    println!("memory: {} bytes a site, {COUNT} sites", (after - before) / COUNT);
}

fn resident_bytes() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}

criterion_group!(benches, memory, ours, governors);
criterion_main!(benches);
