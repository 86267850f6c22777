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
            let mut arguments = vec!["-i".to_owned(), "127.0.0.1".to_owned()];
            arguments.extend(["-p".to_owned(), port.to_string()]);
            arguments.extend(["-b".to_owned(), outgoing.to_string()]);
            if let Some((user, password)) = credentials {
                let login = ["-u", user, "-P", password];
                arguments.extend(login.map(str::to_owned));
            }
            arguments
        });
        Self { program, outgoing }
    }

    /// Its processes.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.program.address()
    }

    /// Its URL in this scheme, without credentials.
    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.program.address())
    }
}

impl Outgoing for Microsocks {
    fn owns(&self, peer: SocketAddr) -> bool {
        peer.ip() == self.outgoing
    }
}
