//! The command line program, run as people run it.

mod arguments;
#[cfg(feature = "watch")]
mod changes;
mod doctor;
mod ends;
mod handbook;
mod import;
mod interrupts;
mod leases;
mod orders;
mod probe;
mod roles;
mod secrets;
mod terminals;
mod transcripts;
mod words;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use reqwest_lease::{RedisRole, RedisStore};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::support::redis::{Redis, Server};

/// The program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_reqwest-lease");

/// What no output may have: part of each password.
const CANARY: &str = "c4n4ry";

/// A server of the test's own, with a pool's administrator who calls the program.
struct Rig {
    redis: Redis,
    directory: TempDir,
    user: String,
}

/// How a call of the program ended.
#[derive(Debug)]
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Rig {
    /// A server that keeps what it is told, so that a doctor finds nothing.
    async fn new() -> Self {
        Self::on(Server::start(&["--appendonly", "yes"])).await
    }

    async fn on(server: Server) -> Self {
        let redis = Redis::on(Arc::new(server)).await;
        let rig = Self { redis, directory: tempfile::tempdir().unwrap(), user: "kim".to_owned() };
        rig.login(RedisRole::Administrator, "kim").await
    }

    /// The same as another user of the server.
    async fn login(self, role: RedisRole, user: &str) -> Self {
        self.redis.send::<()>(&role.set_user(user, &self.redis.namespace)).await;
        self.redis.send::<()>(&format!("ACL SETUSER {user} >{CANARY}-{user}")).await;
        Self { user: user.to_owned(), ..self }
    }

    fn url(&self) -> String {
        let login = format!("redis://{0}:{CANARY}-{0}@", self.user);
        self.redis.server.url().replace("redis://", &login)
    }

    /// The program, ready to be started with the rig's settings.
    fn program(&self) -> Command {
        let mut program = Command::new(PROGRAM);
        program
            .env_clear()
            .env("LEASE_REDIS_URL", self.url())
            .env("LEASE_POOL", "conformance")
            .env("LEASE_NAMESPACE", &self.redis.namespace)
            .env("LEASE_TIMEOUT", "30s")
            .env("LEASE_BY", "kim@example.net")
            .env("TZ", "UTC")
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        program
    }

    async fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ended {
        Self::end(self.program().args(arguments)).await
    }

    /// Runs a line of words.
    async fn words(&self, line: &str) -> Ended {
        self.run(&line.split_whitespace().collect::<Vec<_>>()).await
    }

    /// Runs a line of words that ends well.
    async fn good(&self, line: &str) -> Ended {
        let ended = self.words(line).await;
        assert_eq!(ended.code, 0, "{line}: {ended:?}");
        ended
    }

    /// What a command says in JSON.
    async fn json(&self, line: &str) -> Value {
        let ended = self.words(&format!("{line} --output json")).await;
        serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{line}: {ended:?}"))
    }

    /// Runs another program.
    async fn run_other(&self, program: &str, arguments: &[&str]) {
        let status = Command::new(program).args(arguments).status().await.unwrap();
        assert!(status.success(), "{program}");
    }

    /// Feeds standard input.
    async fn fed(program: &mut Command, input: &str) -> Ended {
        let mut child = program.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = tokio::time::timeout(RUNS_WITHIN, child.wait_with_output()).await;
        Ended::of(output.expect("an end in time").unwrap())
    }

    async fn end(program: &mut Command) -> Ended {
        let output = tokio::time::timeout(RUNS_WITHIN, program.output()).await;
        Ended::of(output.expect("an end in time").unwrap())
    }

    /// Writes a file of the working directory.
    fn file(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Sets the pool up with `e0` and so on.
    async fn set_up(&self, number: usize) {
        self.file("proxies.toml", inventory(number));
        self.good("init --inventory proxies.toml").await;
    }

    /// The pool's store as workers see it, past the program.
    fn store(&self) -> &RedisStore {
        &self.redis.store
    }

    /// Sends the server a command with `{name}` for the pool's keys.
    async fn plant(&self, command: &str) {
        let (before, after) = command.split_once('{').unwrap();
        let (name, after) = after.split_once('}').unwrap();
        let command = format!("{before}{}{after}", self.redis.key(name));
        self.redis.send::<redis::Value>(&command).await;
    }
}

impl Ended {
    /// Nothing that is said has a secret, however it ended.
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        let ended = Self { code, out: text(output.stdout), err: text(output.stderr) };
        assert!(!ended.out.contains(CANARY) && !ended.err.contains(CANARY), "{ended:?}");
        ended
    }
}

/// An inventory of this many endpoints, with passwords that are in no place.
fn inventory(number: usize) -> String {
    let entry = |nth: usize| {
        format!(
            "[[endpoint]]\nid = \"e{nth}\"\nurl = \"http://gw{nth}.example.net:8080\"\n\
             username = \"worker\"\npassword = {{ env = \"NOT_SET_{nth}\" }}\n"
        )
    };
    format!("version = 1\n{}", (0..number).map(entry).collect::<String>())
}

/// On a machine that does other things too.
const RUNS_WITHIN: Duration = Duration::from_secs(120);
