//! Debian's dante, a SOCKS server with rules.

use super::program::Program;

/// A dante that forbids one address.
pub(crate) struct Dante {
    program: Program,
}

impl Dante {
    /// Starts one that anybody may use, or one that wants a user of the system's.
    pub(crate) fn start(login: bool, denied: &str) -> Self {
        let method = if login { "username" } else { "none" };
        let program = Program::start("danted", "dante-server", |port, directory| {
            let file = directory.join("danted.conf");
            let configuration = format!(
                "logoutput: {directory}/log\n\
                 internal: 127.0.0.1 port = {port}\n\
                 external: 127.0.0.1\n\
                 clientmethod: none\n\
                 socksmethod: {method}\n\
                 user.privileged: root\n\
                 user.unprivileged: nobody\n\
                 client pass {{ from: 127.0.0.0/8 to: 0.0.0.0/0 }}\n\
                 socks block {{ from: 0.0.0.0/0 to: {denied}/32 }}\n\
                 socks pass {{ from: 127.0.0.0/8 to: 0.0.0.0/0 }}\n",
                directory = directory.display()
            );
            std::fs::write(&file, configuration).unwrap();
            let pid = directory.join("pid");
            ["-f", &file.display().to_string(), "-p", &pid.display().to_string()]
                .map(str::to_owned)
                .to_vec()
        });
        Self { program }
    }

    /// Its URL in this scheme, without credentials.
    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.program.address())
    }

    /// Its processes.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

impl Drop for Dante {
    fn drop(&mut self) {
        // Then it ends its children, and sees them gone, before it ends itself.
        self.program.signal("CONT");
        self.program.end("TERM");
    }
}
