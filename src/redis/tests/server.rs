//! Servers of our own, each in a directory of its own and ended when dropped.

use std::error::Error as _;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{FromRedisValue, RedisError, RedisResult};
use tempfile::TempDir;
use tokio::net::TcpSocket;

/// A running redis-server.
pub(crate) struct Server {
    child: Child,
    port: Port,
    directory: TempDir,
    arguments: Vec<String>,
}

impl Server {
    /// Starts one with these options beside its port and directory.
    pub(crate) fn start(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..5 {
            let port = Port::keep();
            let path = directory.path().display().to_string();
            let number = port.number.to_string();
            let fixed = ["--port", &number, "--bind", "127.0.0.1", "--dir", &path, "--save", ""];
            let arguments: Vec<_> = fixed.iter().chain(options).map(ToString::to_string).collect();
            let child = spawn(&arguments);
            let mut server =
                Self { child, port, directory: tempfile::tempdir().unwrap(), arguments };
            if server.answers() {
                server.directory = directory;
                return server;
            }
        }
        panic!("redis-server did not start");
    }

    /// Starts a Sentinel over `primary`, which it calls `pool`.
    #[cfg(feature = "redis-sentinel")]
    pub(crate) fn sentinel(primary: &Self) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = Port::keep();
        let file = directory.path().join("sentinel.conf");
        let text = format!(
            "port {}\nbind 127.0.0.1\ndir {}\n\
             sentinel monitor pool 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds pool 500\n\
             sentinel failover-timeout pool 3000\n",
            port.number,
            directory.path().display(),
            primary.port(),
        );
        std::fs::write(&file, text).unwrap();
        let arguments = vec![file.display().to_string(), "--sentinel".to_owned()];
        let child = spawn(&arguments);
        let mut server = Self { child, port, directory, arguments };
        assert!(server.answers(), "redis-server --sentinel did not start");
        server
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Asks the server itself, past all that is tested.
    pub(crate) fn try_ask<T: FromRedisValue>(&self, command: &str) -> RedisResult<T> {
        loop {
            match self.ask_once(command) {
                // A child's end cuts reads short that have a time limit.
                Err(error) if is_interrupted(&error) => {}
                answer => return answer,
            }
        }
    }

    fn ask_once<T: FromRedisValue>(&self, command: &str) -> RedisResult<T> {
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(1))?;
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        words(command).query(&mut connection)
    }

    pub(crate) fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        self.try_ask(command).unwrap()
    }

    /// What INFO tells in a section; nothing while the server does not.
    pub(crate) fn info(&self, section: &str) -> String {
        self.try_ask(&format!("INFO {section}")).unwrap_or_default()
    }

    /// How often the counting script ran.
    pub(crate) fn runs(&self) -> i64 {
        self.ask::<Option<i64>>("GET lease:{t}:meta").unwrap_or_default()
    }

    /// Connections that clients hold, without the one that asks.
    pub(crate) fn clients(&self) -> Vec<String> {
        let list: String = self.ask("CLIENT LIST TYPE normal");
        let id = |line: &str| line.split(' ').next().unwrap().to_owned();
        list.lines().filter(|line| !line.contains("cmd=client")).map(id).collect()
    }

    /// Runs a script that writes keys.
    pub(crate) fn fill(&self, script: &str) {
        let mut connection = redis::Client::open(self.url()).unwrap().get_connection().unwrap();
        redis::cmd("EVAL").arg(script).arg(0).exec(&mut connection).unwrap();
    }

    /// Runs a script that never ends by itself.
    pub(crate) fn spawn_endless_script(&self) -> std::thread::JoinHandle<()> {
        let client = redis::Client::open(self.url()).unwrap();
        std::thread::spawn(move || {
            let mut connection = client.get_connection().unwrap();
            let mut endless = redis::cmd("EVAL");
            endless.arg("#!lua flags=no-writes\nwhile true do end").arg(0);
            let _ = endless.exec(&mut connection);
        })
    }

    /// Waits until `true`, at most for ten seconds.
    pub(crate) async fn wait_for(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < Duration::from_secs(10), "never: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends the process a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Ends the process without a word.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, on the same port and in the same directory.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.arguments);
        assert!(self.answers(), "redis-server did not start again");
    }

    fn answers(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            match self.try_ask::<String>("PING") {
                Ok(_) => return true,
                // A server that asks for a password, or loads, is up.
                Err(error) if error.code().is_some() => return true,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_interrupted(error: &RedisError) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|error| error.kind() == io::ErrorKind::Interrupted)
        || error.to_string().contains("Interrupted system call")
}

/// A command from a line of words.
pub(crate) fn words(line: &str) -> redis::Cmd {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command
}

/// The program of `REDIS_SERVER`, else of the search path.
fn spawn(arguments: &[String]) -> Child {
    let program = std::env::var_os("REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is missing: apt-get install -y redis-server")
}

/// A port that is given to nobody who asks for any, as long as this is there.
///
/// A server that names it may listen on it: the socket does not, and lets others use its address.
struct Port {
    number: u16,
    _socket: TcpSocket,
}

impl Port {
    fn keep() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        Self { number: socket.local_addr().unwrap().port(), _socket: socket }
    }
}

pub(crate) fn free_port() -> u16 {
    Port::keep().number
}
