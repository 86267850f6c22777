//! Debian's squid.

use std::net::{Ipv4Addr, SocketAddr};

use super::Outgoing;
use super::program::{Program, outgoing_address};

/// A squid without a cache that sends from an address of its own.
pub(crate) struct Squid {
    program: Program,
    outgoing: Ipv4Addr,
}

impl Squid {
    /// Starts one that anybody may use.
    pub(crate) fn start() -> Self {
        let outgoing = outgoing_address();
        let program = Program::start("squid", "squid", |port, directory| {
            let file = directory.join("squid.conf");
            let configuration = format!(
                "http_port 127.0.0.1:{port}\n\
                 tcp_outgoing_address {outgoing}\n\
                 http_access allow all\n\
                 cache deny all\n\
                 access_log stdio:{directory}/access.log\n\
                 cache_log {directory}/cache.log\n\
                 cache_store_log none\n\
                 coredump_dir {directory}\n\
                 pid_filename none\n\
                 netdb_filename none\n\
                 pinger_enable off\n\
                 shutdown_lifetime 0 seconds\n\
                 visible_hostname squid.test\n",
                directory = directory.display()
            );
            std::fs::write(&file, configuration).unwrap();
            vec!["-N".to_owned(), "-f".to_owned(), file.display().to_string()]
        });
        Self { program, outgoing }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.program.address())
    }

    /// The requests in its log, as method and target.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        let log = self.program.file("access.log");
        let request = |line: &str| {
            let mut words = line.split_whitespace().skip(5);
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        };
        let asked = log.lines().filter_map(request);
        asked.filter(|(_, target)| !target.starts_with("error:")).collect()
    }
}

impl Outgoing for Squid {
    fn owns(&self, peer: SocketAddr) -> bool {
        peer.ip() == self.outgoing
    }
}
