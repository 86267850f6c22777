//! Debian's squid.

use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;

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
        Self::with_rule(None, None)
    }

    /// Starts one that anybody may use, or only with this user and password, and that forbids
    /// one address.
    pub(crate) fn with_rule(credentials: Option<(&str, &str)>, denied: Option<&str>) -> Self {
        let outgoing = outgoing_address();
        let program = Program::start("squid", "squid", |port, directory| {
            let file = directory.join("squid.conf");
            let mut rules = String::new();
            if let Some(denied) = denied {
                rules += &format!("acl denied dst {denied}/32\nhttp_access deny denied\n");
            }
            if let Some((user, password)) = credentials {
                let helper = directory.join("helper");
                let script = format!(
                    "#!/bin/sh\nwhile read -r user password; do\n\
                     [ \"$user $password\" = '{user} {password}' ] && echo OK || echo ERR\ndone\n"
                );
                std::fs::write(&helper, script).unwrap();
                std::fs::set_permissions(&helper, Permissions::from_mode(0o755)).unwrap();
                rules += &format!(
                    "auth_param basic program {}\nauth_param basic children 1\n\
                     acl users proxy_auth REQUIRED\nhttp_access deny !users\n",
                    helper.display()
                );
            }
            let configuration = format!(
                "http_port 127.0.0.1:{port}\n\
                 tcp_outgoing_address {outgoing}\n\
                 {rules}http_access allow all\n\
                 dns_timeout 1 second\n\
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

    /// Its processes.
    pub(crate) fn program(&self) -> &Program {
        &self.program
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
