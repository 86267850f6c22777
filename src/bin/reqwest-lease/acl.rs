//! `acl`: rules for the server's users.

use clap::{Args, ValueEnum};
use reqwest_lease::RedisRole;
use serde_json::{Value, json};

use super::context::Context;
use super::exit::Code;
use super::failure::Failure;
use super::output::{Report, note};

/// Print the rules of the server's users for workers, administrators and observers
///
/// Prints the commands that make users of the three roles, as redis-cli takes them. They set no
/// password: without one a new user cannot log in.
#[derive(Debug, Args)]
pub(crate) struct Acl {
    /// Only this role
    #[arg(value_enum)]
    role: Option<Role>,
    /// The user's name; default: lease- and the role
    #[arg(long, requires = "role", value_name = "NAME")]
    user: Option<String>,
}

/// Whom a user is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Takes and gives back leases
    Worker,
    /// Gives orders
    Administrator,
    /// Looks on
    Observer,
}

impl Role {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Administrator => "administrator",
            Self::Observer => "observer",
        }
    }

    const fn of_store(self) -> RedisRole {
        match self {
            Self::Worker => RedisRole::Worker,
            Self::Administrator => RedisRole::Administrator,
            Self::Observer => RedisRole::Observer,
        }
    }
}

/// Whether it can be a user's name, and is one word of a command wherever that is put.
fn is_name(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !c.is_control();
    !text.is_empty() && text.chars().all(plain) && !text.contains(['"', '\'', '\\'])
}

impl Acl {
    pub(crate) fn run(self, context: &Context) -> Result<Code, Failure> {
        let roles = match self.role {
            Some(role) => vec![role],
            None => vec![Role::Worker, Role::Administrator, Role::Observer],
        };
        if self.user.as_ref().is_some_and(|user| !is_name(user)) {
            return Err(Failure::usage("--user is not valid: printable characters without blanks"));
        }
        let plain = |c: char| c.is_ascii_graphic() && !matches!(c, ':' | '{' | '}');
        if !(1..=64).contains(&context.namespace().len()) || !context.namespace().chars().all(plain)
        {
            return Err(Failure::usage("--namespace is none that a store takes"));
        }
        let user =
            |role: Role| self.user.clone().unwrap_or_else(|| format!("lease-{}", role.word()));
        let command = |role: Role| role.of_store().set_user(&user(role), context.namespace());
        let json = roles.iter().map(|role| {
            json!({
                "role": role.word(), "user": user(*role), "command": command(*role),
                "rules": role.of_store().rules(context.namespace()),
            })
        });
        let mut report = Report::new(Value::Array(json.collect()));
        for role in &roles {
            report = report.line(command(*role));
        }
        context.print(&report)?;
        note("give each a password of its own: ACL SETUSER <name> ><password>");
        Ok(Code::DONE)
    }
}
