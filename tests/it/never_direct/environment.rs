//! Proxy variables of the environment change nothing.

use std::process::Stdio;

use tokio::process::Command;

use super::Scene;
use crate::local::proxy::{ForwardProxy, Manners};
use crate::support::SOON;

/// What a client without guards makes of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plain {
    Direct,
    Elsewhere,
    Fails,
}

/// The test below runs this one in child processes, each with an environment of its own.
#[tokio::test]
async fn in_the_environment_of_this_process() {
    let scene = Scene::start().await;
    let client = scene.client(|builder| builder).await;
    scene.gets_through(&client).await;

    let plain = scene.bare().build().unwrap();
    let arrived = plain.get(scene.plain.url("/twin")).send().await.is_ok_and(|r| r.status() == 200);
    println!("a plain client arrived: {arrived}");
}

#[tokio::test]
async fn no_variable_leads_past_the_endpoint() {
    let nowhere = "http://127.0.0.1:1";
    let everywhere = "*,127.0.0.1,localhost,0.0.0.0/0";
    let cases: &[(&[(&str, &str)], Plain)] = &[
        (&[], Plain::Direct),
        (&[("HTTP_PROXY", "{other}")], Plain::Elsewhere),
        (&[("http_proxy", "{other}"), ("https_proxy", "{other}")], Plain::Elsewhere),
        (&[("HTTPS_PROXY", "{other}")], Plain::Direct),
        (&[("ALL_PROXY", "{other}")], Plain::Elsewhere),
        (&[("all_proxy", "{other}")], Plain::Elsewhere),
        (&[("ALL_PROXY", nowhere), ("HTTPS_PROXY", nowhere)], Plain::Fails),
        (&[("HTTP_PROXY", "::nonsense::"), ("HTTPS_PROXY", "\\")], Plain::Direct),
        (&[("ALL_PROXY", "socks9://127.0.0.1:1")], Plain::Direct),
        (&[("ALL_PROXY", "{other}"), ("NO_PROXY", everywhere)], Plain::Direct),
        (&[("HTTP_PROXY", "{other}"), ("no_proxy", "127.0.0.1")], Plain::Direct),
        (&[("NO_PROXY", everywhere)], Plain::Direct),
        (&[("HTTP_PROXY", "{other}"), ("REQUEST_METHOD", "GET")], Plain::Direct),
    ];
    for (variables, expected) in cases {
        let other = ForwardProxy::start(Manners::default()).await.unwrap();
        let arrived = child(variables, &other.url()).await;
        let carried = other.carried();
        assert!(carried.iter().all(|one| one.target.ends_with("/twin")), "{variables:?}");
        let plain = match (arrived, carried.is_empty()) {
            (true, true) => Plain::Direct,
            (true, false) => Plain::Elsewhere,
            (false, _) => Plain::Fails,
        };
        assert_eq!(plain, *expected, "a plain client under {variables:?}");
    }
}

/// Runs the first test under these variables, and tells whether its plain client arrived.
async fn child(variables: &[(&str, &str)], other: &str) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        child.env_remove(name).env_remove(name.to_lowercase());
    }
    child.env_remove("REQUEST_METHOD");
    child.envs(variables.iter().map(|(name, value)| (name, value.replace("{other}", other))));
    let test = "never_direct::environment::in_the_environment_of_this_process";
    let output = child.args(["--exact", test, "--nocapture"]).stdin(Stdio::null()).output();
    let output = tokio::time::timeout(SOON * 3, output).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "under {variables:?}: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said.contains("a plain client arrived: true")
}
