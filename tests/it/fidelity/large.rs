//! Long bodies flow: nothing keeps more of them than a few buffers.

use std::process::Stdio;

use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use reqwest_lease::LeaseMiddleware;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::local::Listening;
use crate::support::SOON;
use crate::support::client::pool_of;

/// Set for the child, whose memory is measured: how much flows, in MiB.
const MEBIBYTES: &str = "REQWEST_LEASE_LARGE_MEBIBYTES";
/// What the child may take more at its peak than before.
const SLACK: u64 = 16 << 20;
const CHUNK: usize = 64 << 10;

/// A proxy that answers itself, with as many bytes as the path says, after as many as are sent.
async fn spring() -> Listening {
    async fn serve(mut stream: tokio::net::TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let path = head.split(' ').nth(1).unwrap().rsplit('/').next().unwrap().to_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let (mut sent, mut chunk) = (length.map_or(0, |it| it.parse().unwrap()), [0; CHUNK]);
        while sent > 0 {
            sent -= stream.read(&mut chunk).await?;
        }
        let mut left: usize = path.parse().unwrap();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n");
        stream.write_all(answer.as_bytes()).await?;
        while left > 0 {
            let next = left.min(CHUNK);
            stream.write_all(&chunk[..next]).await?;
            left -= next;
        }
        Ok(())
    }
    Listening::start(|stream, _, _| async move { serve(stream).await.unwrap() }).await.unwrap()
}

/// The most memory that this process has had so far.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

async fn flow(mebibytes: usize) {
    let (spring, bytes) = (spring().await, mebibytes << 20);
    let pool = pool_of(&[format!("http://{}", spring.address())]).await;
    let client = LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client();
    let mut response = client.get(format!("http://a.test/{bytes}")).send().await.unwrap();
    let mut seen = 0;
    while let Some(chunk) = response.chunk().await.unwrap() {
        seen += chunk.len();
    }
    assert_eq!(seen, bytes);
    let chunks =
        (0..bytes / CHUNK).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(&[0; CHUNK])));
    let sent = client
        .post("http://a.test/0")
        .header("content-length", bytes)
        .body(Body::wrap_stream(stream::iter(chunks)))
        .send();
    assert!(sent.await.unwrap().bytes().await.unwrap().is_empty());
    assert_eq!(pool.status().await.unwrap().leased, 0);
}

#[tokio::test]
async fn a_body_of_any_length_takes_constant_memory() {
    let long = std::env::var_os("REQWEST_LEASE_LONG").is_some();
    let grown = child("fidelity::large::bodies_flow", if long { 1024 } else { 128 }).await;
    assert!(grown < SLACK, "{grown} bytes more");
}

/// The twin: what is kept is seen.
#[tokio::test]
async fn a_body_that_is_kept_takes_as_much_as_it_is_long() {
    let grown = child("fidelity::large::a_body_is_kept", 64).await;
    assert!(grown > 64 << 20, "{grown} bytes more");
}

/// How much the peak grew in a process of its own.
async fn child(test: &str, mebibytes: usize) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).stdin(Stdio::null()).kill_on_drop(true);
    child.env(MEBIBYTES, mebibytes.to_string());
    let output = tokio::time::timeout(SOON * 60, child.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let grown = said.lines().find_map(|line| line.split_once("grown by "));
    grown.unwrap_or_else(|| panic!("{said}")).1.parse().unwrap()
}

/// In other runs than a child's it only goes through the motions.
fn mebibytes() -> usize {
    std::env::var(MEBIBYTES).map_or(1, |text| text.parse().unwrap())
}

#[tokio::test]
async fn bodies_flow() {
    flow(1).await;
    let before = peak();
    flow(mebibytes()).await;
    println!("\ngrown by {}", peak() - before);
}

#[tokio::test]
async fn a_body_is_kept() {
    flow(1).await;
    let before = peak();
    let spring = spring().await;
    let pool = pool_of(&[format!("http://{}", spring.address())]).await;
    let client = LeaseMiddleware::builder(pool).build().unwrap().into_client();
    let page = format!("http://a.test/{}", mebibytes() << 20);
    let kept = client.get(page).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(kept.len(), mebibytes() << 20);
    println!("\ngrown by {}", peak() - before);
}
