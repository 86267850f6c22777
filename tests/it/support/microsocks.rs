//! Debian's microsocks.

use std::net::{Ipv4Addr, SocketAddr};

use super::Outgoing;
use super::program::{Program, outgoing_address};

/// A microsocks that sends from an address of its own.
pub(crate) struct Microsocks {
    program: Program,
    outgoing: Ipv4Addr,
}

impl Microsocks {
    /// Starts one that anybody may use, or only with this user and password.
    pub(crate) fn start(credentials: Option<(&str, &str)>) -> Self {
        let outgoing = outgoing_address();
        let program = Program::start("microsocks", "microsocks", |port, _| {
            let (port, outgoing) = (port.to_string(), outgoing.to_string());
            let mut arguments = vec!["-i", "127.0.0.1", "-p", &port, "-b", &outgoing];
            if let Some((user, password)) = credentials {
                arguments.extend(["-u", user, "-P", password]);
            }
            arguments.into_iter().map(str::to_owned).collect()
        });
        Self { program, outgoing }
    }

    /// Its URL with this scheme (`socks5`, `socks5h`), without credentials.
    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.program.address())
    }
}

impl Outgoing for Microsocks {
    fn owns(&self, peer: SocketAddr) -> bool {
        peer.ip() == self.outgoing
    }
}
