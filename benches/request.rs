//! Client CPU time for a request through a forward proxy: a bare reqwest client beside this
//! middleware with the memory store and one budget rule. The proxy is another process, so only
//! the client's work counts.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark fails by panicking")]

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cpu_time::ProcessTime;
use criterion::{BatchSize, BenchmarkId, Criterion};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use reqwest_lease::{
    Budget, Budgets, Endpoint, EndpointId, Inventory, LeaseMiddleware, Pool, PoolName,
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::runtime::{Builder, Runtime};

const SERVE: &str = "REQUEST_BENCH_SERVES";
const ENDPOINTS: usize = 64;
const TARGET: &str = "http://site.test/page";

fn main() {
    if env::var_os(SERVE).is_some() {
        return serve();
    }
    let server = Server::start();
    let mut criterion = Criterion::default()
        .sample_size(20)
        .measurement_time(Duration::from_secs(6))
        .configure_from_args();
    requests(&mut criterion, server.address);
    clients(&mut criterion);
    criterion.final_summary();
}

fn requests(criterion: &mut Criterion, proxy: SocketAddr) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_pool, leased) = runtime.block_on(leased(proxy));
    // As many clients as there are endpoints, in turn, tell what the spreading alone costs.
    let spread = (0..ENDPOINTS).map(|_| bare(proxy)).collect();
    let variants = [("bare", vec![bare(proxy)]), ("spread", spread), ("leased", vec![leased])];
    let mut group = criterion.benchmark_group("client CPU a request");
    for at_once in [1, 64] {
        for (name, clients) in &variants {
            group.bench_function(BenchmarkId::new(*name, at_once), |bencher| {
                bencher.iter_custom(|count| cpu(&runtime, clients, count, at_once));
            });
        }
    }
    group.finish();
}

/// CPU time of this process for so many requests.
fn cpu(
    runtime: &Runtime,
    clients: &[ClientWithMiddleware],
    count: u64,
    at_once: usize,
) -> Duration {
    let next = Arc::new(AtomicUsize::new(0));
    runtime.block_on(async {
        let started = ProcessTime::now();
        let mut tasks = FuturesUnordered::new();
        for nth in 0..at_once as u64 {
            let (clients, next) = (clients.to_vec(), next.clone());
            let share = count / at_once as u64 + u64::from(nth < count % at_once as u64);
            tasks.push(tokio::spawn(async move {
                for _ in 0..share {
                    let client = &clients[next.fetch_add(1, Ordering::Relaxed) % clients.len()];
                    let response = client.get(TARGET).send().await.unwrap();
                    assert_eq!(response.bytes().await.unwrap().len(), BODY.len());
                }
            }));
        }
        while let Some(done) = tasks.next().await {
            done.unwrap();
        }
        started.elapsed()
    })
}

/// The same chain, with nothing in it but a reqwest client with one proxy.
fn bare(proxy: SocketAddr) -> ClientWithMiddleware {
    let client = reqwest::Client::builder()
        .no_proxy()
        .proxy(reqwest::Proxy::all(format!("http://user:password@{proxy}")).unwrap())
        .tls_backend_preconfigured(tls())
        .build()
        .unwrap();
    reqwest_middleware::ClientBuilder::new(client).build()
}

fn tls() -> rustls::ClientConfig {
    let provider = rustls::crypto::aws_lc_rs::default_provider().into();
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

async fn leased(proxy: SocketAddr) -> (Pool, ClientWithMiddleware) {
    let inventory = inventory(ENDPOINTS, &format!("http://{proxy}"));
    let pool = Pool::builder(PoolName::new("bench").unwrap(), inventory).build().await.unwrap();
    let rule = Budget::per_second(500_000).burst(64);
    let budgets = Budgets::builder().default(rule).build().unwrap();
    let middleware =
        LeaseMiddleware::builder(pool.clone()).budgets(budgets).tls(tls()).build().unwrap();
    (pool, middleware.into_client())
}

fn inventory(endpoints: usize, url: &str) -> Inventory {
    Inventory::from_endpoints((0..endpoints).map(|nth| {
        let id = EndpointId::new(format!("e{nth}")).unwrap();
        Endpoint::new(id, url, Some(("user", "password"))).unwrap()
    }))
    .unwrap()
}

/// Building the clients of 10,000 endpoints, and the memory that they take.
fn clients(criterion: &mut Criterion) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let many = inventory(10_000, "http://127.0.0.1:1");
    let pool = Pool::builder(PoolName::new("many").unwrap(), many);
    let pool = runtime.block_on(pool.build()).unwrap();
    let middleware = || LeaseMiddleware::builder(pool.clone()).tls(tls()).build().unwrap();
    let warm_up = |middleware: LeaseMiddleware| {
        middleware.warm_up().unwrap();
        middleware
    };
    let before = resident_kilobytes();
    let kept = warm_up(middleware());
    println!("10,000 endpoints' clients: {} kB resident", resident_kilobytes() - before);
    drop(kept);
    let mut group = criterion.benchmark_group("clients");
    group.sample_size(10);
    group.bench_function("10,000 endpoints", |bencher| {
        bencher.iter_batched(middleware, warm_up, BatchSize::PerIteration);
    });
    group.finish();
}

fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

const BODY: &[u8] = b"a page of sixty-four bytes, which is as small as pages come ....";

/// A forward proxy that knows the answer to everything.
fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    std::io::stdout().flush().unwrap();
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || answer(stream));
    }
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut reply =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BODY.len()).into_bytes();
    reply.extend_from_slice(BODY);
    while let Some(line) = lines.next().transpose()? {
        if line.is_empty() {
            stream.write_all(&reply)?;
        }
    }
    Ok(())
}

/// The proxy's process, ended with this one's benchmark.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .env(SERVE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { address: line.trim().parse().unwrap(), child }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
