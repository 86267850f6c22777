//! Debian's tinyproxy.

use std::net::{Ipv4Addr, SocketAddr};

use super::Outgoing;
use super::program::{Program, outgoing_address};

/// A tinyproxy that sends from an address of its own.
pub(crate) struct Tinyproxy {
    program: Program,
    outgoing: Ipv4Addr,
}

impl Tinyproxy {
    /// Starts one that anybody may use, or only with this user and password.
    pub(crate) fn start(credentials: Option<(&str, &str)>) -> Self {
        Self::with_rule(credentials, None)
    }

    /// The same, which forbids one host.
    pub(crate) fn with_rule(credentials: Option<(&str, &str)>, denied: Option<&str>) -> Self {
        let outgoing = outgoing_address();
        let password = credentials
            .map(|(user, password)| format!("BasicAuth {user} {password}\n"))
            .unwrap_or_default();
        let program = Program::start("tinyproxy", "tinyproxy", |port, directory| {
            let file = directory.join("tinyproxy.conf");
            let log = directory.join("log");
            let rule = denied.map(|host| {
                let filter = directory.join("filter");
                std::fs::write(&filter, format!("^{}$\n", host.replace('.', "\\."))).unwrap();
                format!("Filter \"{}\"\n", filter.display())
            });
            let rule = rule.unwrap_or_default();
            let configuration = format!(
                "Port {port}\nListen 127.0.0.1\nBind {outgoing}\nAllow 127.0.0.1\n\
                 LogFile \"{}\"\nLogLevel Connect\nMaxClients 100\nTimeout 60\n{password}{rule}",
                log.display()
            );
            std::fs::write(&file, configuration).unwrap();
            vec!["-d".to_owned(), "-c".to_owned(), file.display().to_string()]
        });
        Self { program, outgoing }
    }

    /// Its processes.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Its URL, without credentials.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.program.address())
    }

    /// The requests in its log, as method and target.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        let log = self.program.file("log");
        let lines = log.lines().filter_map(|line| line.split_once("): ").map(|(_, said)| said));
        lines.filter_map(request_line).collect()
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.program.id()
    }
}

/// Takes `GET http://host/path HTTP/1.1` apart.
fn request_line(text: &str) -> Option<(String, String)> {
    let mut words = text.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    version.starts_with("HTTP/1.").then(|| (method.to_owned(), target.to_owned()))
}

impl Outgoing for Tinyproxy {
    fn owns(&self, peer: SocketAddr) -> bool {
        peer.ip() == self.outgoing
    }
}
