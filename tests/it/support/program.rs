//! Server programs of the system, each in a directory of its own and ended when dropped.

use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::net::TcpSocket;

/// A running server program.
pub(crate) struct Program {
    child: Child,
    port: Port,
    directory: TempDir,
}

impl Program {
    /// Starts `name` on a free port of loopback and waits until it accepts connections.
    ///
    /// `arguments` gets the port and a directory to write in. One that does not start on its port
    /// is a reason to try the next one.
    pub(crate) fn start(
        name: &str,
        package: &str,
        arguments: impl Fn(u16, &Path) -> Vec<String>,
    ) -> Self {
        let path = find(name, package);
        for _ in 0..ATTEMPTS {
            let directory = tempfile::tempdir().unwrap();
            // A server that gives up root still has to write its log.
            std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
            let port = Port::keep();
            let output = std::fs::File::create(directory.path().join("output")).unwrap();
            let child = Command::new(&path)
                .args(arguments(port.address.port(), directory.path()))
                .stdin(Stdio::null())
                .stdout(output.try_clone().unwrap())
                .stderr(output)
                .spawn()
                .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
            let mut program = Self { child, port, directory };
            if program.answers() {
                return program;
            }
            eprintln!("{name} did not start:\n{}", program.file("output"));
        }
        panic!("{name} did not start in {ATTEMPTS} attempts");
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.port.address
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to it and to its children.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.unwrap_or_default();
        let all = children.split_whitespace().map(str::to_owned).chain([id.to_string()]);
        // A child may end in between.
        let _ = Command::new("kill").arg(format!("-{name}")).args(all).output().unwrap();
    }

    /// Kills it with its children, and waits until its port is closed.
    pub(crate) fn kill(&self) {
        self.signal("KILL");
        let deadline = Instant::now() + START_WITHIN;
        while TcpStream::connect(self.port.address).is_ok() {
            assert!(Instant::now() < deadline, "it was killed and listens still");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal that ends it, and waits for the end.
    pub(crate) fn end(&mut self, name: &str) {
        let id = self.id().to_string();
        let _ = Command::new("kill").args([format!("-{name}"), id]).output().unwrap();
        let deadline = Instant::now() + START_WITHIN;
        while self.child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Where it writes.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The text of a file in its directory; empty while there is none.
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
    }

    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + START_WITHIN;
        while Instant::now() < deadline {
            let reached = TcpStream::connect(self.port.address).is_ok();
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if reached {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ATTEMPTS: usize = 5;
const START_WITHIN: Duration = Duration::from_secs(20);

/// The path of a program, also of one that only root has in its search path.
fn find(name: &str, package: &str) -> PathBuf {
    if name.contains('/') {
        return PathBuf::from(name);
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&search)
        .chain(more)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{name} is missing: apt-get install -y {package}"))
}

/// A port that is given to nobody who asks for any, as long as this is there.
///
/// A server that names it may listen on it: the socket does not, and lets others use its address.
struct Port {
    address: SocketAddr,
    _socket: TcpSocket,
}

impl Port {
    fn keep() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        Self { address: socket.local_addr().unwrap(), _socket: socket }
    }
}

pub(crate) fn free_port() -> u16 {
    Port::keep().address.port()
}

/// An address of loopback that no other program here sends from.
///
/// What an origin sees come from there came through the program that was given it.
pub(crate) fn outgoing_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(2);
    let host = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!((2..255).contains(&host), "out of addresses");
    Ipv4Addr::new(127, 0, 53, host)
}
