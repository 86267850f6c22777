//! What is logged tells no address and no password.

use std::io;
use std::sync::{Arc, Mutex};

use super::proxy::{Fault as Broken, Proxy};
use super::server::Server;
use super::*;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn changes_of_the_connection_are_logged_without_secrets() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    // While there is one subscriber alone, an event that another test's thread comes to first is
    // taken to interest nobody, by that thread's own subscriber; with two all are asked.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let server = Server::start(&[]);
    let _: () = server.ask("ACL SETUSER canary on >canary ~* +@all");
    let proxy = Proxy::start(server.port()).await;
    let address = proxy.url().replace("redis://", "");
    let connection = connect(&format!("redis://canary:canary@{address}")).await;
    count(&connection).await.unwrap();
    proxy.set(Broken::Refuse);
    server.wait_for("the holder knows", |_| !connection.holder().is_open()).await;
    fails_in_time(&connection).await;
    proxy.set(Broken::Pass);
    until_it_counts(&connection, Duration::from_secs(3)).await;
    let _: i64 = server.ask("ACL DELUSER canary");
    server.wait_for("the holder knows", |_| !connection.holder().is_open()).await;
    fails_in_time(&connection).await;
    let told = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for event in [
        "connected to the store",
        "the store does not know the script",
        "connection is replaced",
        "no connection to the store",
        "the store refused the credentials",
    ] {
        assert!(told.contains(event), "{event}:\n{told}");
    }
    assert!(!told.contains("canary") && !told.contains(&address), "{told}");
    assert!(!told.contains(&server.port().to_string()), "{told}");
}
