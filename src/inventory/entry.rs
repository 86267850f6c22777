//! One `[[endpoint]]` of an inventory, which stands for one endpoint or for many sessions.

use crate::endpoint::{Endpoint, InvalidEndpoint, Labels, MAX_WEIGHT};
use crate::id::EndpointId;

use super::fault::Fault;
use super::hint;
use super::password::{Lookup, Password};
use super::table::{Found, Table};

/// A checked entry, before its sessions are counted out.
pub(super) struct Entry<'a> {
    pub(super) id: Found<EndpointId>,
    pub(super) url: Found<&'a str>,
    username: Option<Found<&'a str>>,
    pub(super) password: Option<Found<Password>>,
    sessions: Option<Found<u64>>,
    labels: Labels,
}

impl<'a> Entry<'a> {
    pub(super) fn read(nth: usize, table: Table<'a>, lookup: &Lookup) -> Result<Self, Fault> {
        let id = read_id(table).map_err(|fault| fault.in_endpoint(nth, None))?;
        let name = id.value.clone();
        Self::read_rest(id, table, lookup).map_err(|fault| fault.in_endpoint(nth, Some(&name)))
    }

    fn read_rest(id: Found<EndpointId>, table: Table<'a>, lookup: &Lookup) -> Result<Self, Fault> {
        table.allow_only(&KEYS)?;
        let url = table.text("url")?.ok_or_else(|| Fault::new(table.at, "`url` is missing"))?;
        let entry = Self {
            id,
            url,
            username: table.text("username")?,
            sessions: table.integer("sessions", 1..=MAX_SESSIONS)?,
            labels: read_labels(table)?,
            password: read_password(table, lookup)?,
        };
        entry.check_template()?;
        Ok(entry)
    }

    fn check_template(&self) -> Result<(), Fault> {
        let template = self.username.filter(|username| username.value.contains(SESSION));
        match (template, self.sessions) {
            (Some(username), None) => Err(Fault::new(
                username.at,
                "`{session}` in `username` needs `sessions`, the number of them",
            )),
            (None, Some(sessions)) => Err(Fault::new(
                sessions.at,
                "`sessions` needs `{session}` in `username`, where the number goes",
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn has_username(&self) -> bool {
        self.username.is_some()
    }

    /// How many endpoints this entry makes.
    pub(super) fn count(&self) -> usize {
        self.sessions.map_or(1, |sessions| sessions.value as usize)
    }

    /// The endpoint, or one for each session.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = Result<Endpoint, Fault>> {
        (1..=self.count()).map(|session| {
            let username = self.username.map(|username| username.value);
            if self.sessions.is_none() {
                return self.endpoint(self.id.value.clone(), username);
            }
            let id = EndpointId::new(format!("{}_s{session}", self.id.value)).map_err(|why| {
                Fault::new(
                    self.id.at,
                    format!("`id` is not valid with a session's number behind it: {why}"),
                )
            })?;
            let username = username.map(|name| name.replace(SESSION, &session.to_string()));
            self.endpoint(id, username.as_deref())
        })
    }

    fn endpoint(&self, id: EndpointId, username: Option<&str>) -> Result<Endpoint, Fault> {
        let password = self.password.as_ref().map_or("", |found| found.value.secret.expose());
        let login = username.map(|username| (username, password));
        Endpoint::new(id, self.url.value, login)
            .map(|endpoint| endpoint.with_labels(self.labels.clone()))
            .map_err(|why| self.refuse(why, username))
    }

    fn refuse(&self, why: InvalidEndpoint, username: Option<&str>) -> Fault {
        use InvalidEndpoint::*;
        let user_at = self.username.map_or(self.url.at, |username| username.at);
        let password_at = self.password.as_ref().map_or(user_at, |password| password.at);
        let at = match why {
            ColonInUsername => user_at,
            SocksCredentialsTooLong if username.is_some_and(|name| name.len() > 255) => user_at,
            ControlCharacter if username.is_some_and(|name| name.contains(char::is_control)) => {
                user_at
            }
            SocksCredentialsTooLong | ControlCharacter => password_at,
            _ => self.url.at,
        };
        let is_line = matches!(why, NotAUrl | UnknownScheme) && hint::is_proxy_line(self.url.value);
        Fault::new(at, if is_line { format!("{why}; {}", hint::HINT) } else { why.to_string() })
    }
}

/// The place in a user name where the number of the session goes.
const SESSION: &str = "{session}";

/// More sessions on one gateway than any provider tells apart.
const MAX_SESSIONS: u64 = 10_000;

const KEYS: [&str; 9] =
    ["id", "url", "username", "password", "provider", "group", "tags", "weight", "sessions"];

fn read_id(table: Table<'_>) -> Result<Found<EndpointId>, Fault> {
    let Some(id) = table.text("id")? else {
        // A misspelt `id` is told as such.
        table.allow_only(&KEYS)?;
        return Err(Fault::new(table.at, "`id` is missing"));
    };
    match EndpointId::new(id.value) {
        Ok(value) => Ok(Found { at: id.at, value }),
        Err(why) => Err(Fault::new(id.at, format!("`id` is not valid: {why}"))),
    }
}

fn read_labels(table: Table<'_>) -> Result<Labels, Fault> {
    Ok(Labels {
        provider: table.label("provider")?,
        group: table.label("group")?,
        tags: table.labels("tags")?,
        weight: table
            .integer("weight", 1..=u64::from(MAX_WEIGHT))?
            .map_or(1, |weight| weight.value as u32),
    })
}

fn read_password(table: Table<'_>, lookup: &Lookup) -> Result<Option<Found<Password>>, Fault> {
    let Some(found) = table.value("password") else {
        return Ok(None);
    };
    if table.value("username").is_none() {
        let message = "`password` needs `username` beside it; an empty one is written as \"\"";
        return Err(Fault::new(found.at, message));
    }
    let value = lookup.password(found)?;
    Ok(Some(Found { at: found.at, value }))
}
