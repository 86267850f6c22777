//! What each role can do, and what it cannot.

use super::server::{Server, words};
use super::*;
use crate::redis::acl::Role;

async fn login(server: &Server, role: Role) -> Connection {
    let line = role.set_user("someone", "lease");
    let _: () = server.ask(&line);
    let _: () = server.ask("ACL SETUSER someone >word");
    connect(&format!("redis://someone:word@127.0.0.1:{}", server.port())).await
}

async fn is_denied(connection: &Connection, command: &str) {
    let error = connection.command(words(command)).await.unwrap_err();
    assert_eq!(error.to_string(), "the store's user may not do this", "{command}");
}

/// Writes as a lease does.
pub(super) static LEASE: Script =
    Script::new("lease", "#!lua\nreturn redis.call('HINCRBY', KEYS[1], 'fence', 1)\n");

const MAINTENANCE: [&str; 7] = [
    "FLUSHALL",
    "FLUSHDB",
    "KEYS *",
    "CONFIG GET save",
    "SCRIPT LOAD return(1)",
    "ACL LIST",
    "GET elsewhere",
];

#[tokio::test]
async fn a_worker_leases_and_reads_orders_but_writes_none() {
    let server = Server::start(&[]);
    let _: () = server.ask("HSET lease:{t}:orders * pause");
    let worker = login(&server, Role::Worker).await;
    assert_eq!(run(&worker, &LEASE).await, Ok(redis::Value::Int(1)));
    let reads = Script::new(
        "reads",
        "#!lua\nredis.call('TIME')\nredis.call('INFO', 'replication')\n\
         return redis.call('HGET', 'lease:{t}:orders', '*')\n",
    );
    let order = run(&worker, &reads).await.unwrap();
    assert_eq!(order, redis::Value::BulkString(b"pause".to_vec()));
    for source in [
        "#!lua\nreturn redis.call('HDEL', 'lease:{t}:orders', '*')\n",
        "#!lua\nreturn redis.call('XADD', 'lease:{t}:audit', '*', 'a', 'b')\n",
        "#!lua\nreturn redis.call('SET', 'elsewhere', '1')\n",
        "#!lua\nreturn redis.call('FLUSHALL')\n",
    ] {
        let fault = run(&worker, &Script::new("writes", source)).await.unwrap_err();
        assert!(fault.to_string().ends_with("may not do this"), "{source} {fault:?}");
    }
    for command in MAINTENANCE.iter().chain(&[
        "HSET lease:{t}:orders a disable",
        "DEL lease:{t}:orders",
        "HSET lease:{t}:audit a b",
        "HGETALL lease:{t}:audit",
    ]) {
        is_denied(&worker, command).await;
    }
    for command in [
        "ZADD lease:{t}:shun:a.test 1 a",
        "SET lease:budget:{a.test} 1 PX 1000",
        "SPUBLISH lease:{t}:free 1",
    ] {
        worker.command(words(command)).await.unwrap();
    }
}

#[tokio::test]
async fn an_administrator_has_the_namespace_and_nothing_else() {
    let server = Server::start(&[]);
    let administrator = login(&server, Role::Administrator).await;
    assert_eq!(run(&administrator, &LEASE).await, Ok(redis::Value::Int(1)));
    for command in [
        "HSET lease:{t}:orders a disable",
        "XADD lease:{t}:audit MAXLEN ~ 10000 * who me",
        "XRANGE lease:{t}:audit - +",
        "DEL lease:budget:{a.test}",
    ] {
        administrator.command(words(command)).await.unwrap();
    }
    for command in MAINTENANCE {
        is_denied(&administrator, command).await;
    }
}

#[tokio::test]
async fn an_observer_runs_what_writes_nothing_and_sees_no_tokens() {
    let server = Server::start(&[]);
    let _: () = server.ask("SET lease:{t}:meta 7");
    let observer = login(&server, Role::Observer).await;
    let status =
        Script::new("status", "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])\n");
    let meta = run(&observer, &status).await.unwrap();
    assert_eq!(meta, redis::Value::BulkString(b"7".to_vec()));
    let fault = run(&observer, &LEASE).await.unwrap_err();
    assert!(fault.to_string().ends_with("may not do this"), "{fault:?}");
    for command in ["XRANGE lease:{t}:audit - +", "HGETALL lease:{t}:orders", "INFO"] {
        observer.command(words(command)).await.unwrap();
    }
    for command in MAINTENANCE.iter().chain(&[
        "HSET lease:{t}:meta a b",
        "HGETALL lease:{t}:requests",
        "ZRANGE lease:{t}:cancelled 0 -1",
    ]) {
        is_denied(&observer, command).await;
    }
}

#[test]
fn a_users_name_is_one_word() {
    let line = Role::Worker.set_user("a +@all", "lease");
    assert!(line.starts_with(r#"ACL SETUSER "a +@all" on "#), "{line}");
}

#[tokio::test]
async fn an_odd_namespace_is_no_pattern() {
    let server = Server::start(&[]);
    let odd = r#"a*b[c\d?e"f'g"#;
    let line = Role::Administrator.set_user("someone", odd);
    let fed = std::process::Command::new("redis-cli")
        .args(["-p", &server.port().to_string()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut fed.stdin.as_ref().unwrap(), line.as_bytes()).unwrap();
    let told = fed.wait_with_output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&told).trim(), "OK", "{line}");
    let _: () = server.ask("ACL SETUSER someone >word");
    let user = connect(&format!("redis://someone:word@127.0.0.1:{}", server.port())).await;
    user.command(words(&format!("GET {odd}:budget:x"))).await.unwrap();
    for other in [r#"axb[c\d?e"f'g"#, r#"a*b[c\dxe"f'g"#, "lease"] {
        is_denied(&user, &format!("GET {other}:budget:x")).await;
    }
}
