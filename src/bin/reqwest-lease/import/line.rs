//! A line of a list of proxies.

use percent_encoding::percent_decode_str;
use reqwest_lease::Scheme;

use crate::failure::Failure;

/// A proxy as a line names it. Not `Debug`: it has a password.
pub(super) struct Proxy {
    scheme: Scheme,
    /// Host and port.
    address: String,
    /// User and password.
    pub(super) login: Option<(String, String)>,
}

impl Proxy {
    /// Its URL, without the login.
    pub(super) fn url(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.address)
    }
}

/// All proxies of a list with the numbers of their lines. Empty lines and those that begin with `#`
/// are left out.
pub(super) fn parse_all(text: &str, scheme: Scheme) -> Result<Vec<(usize, Proxy)>, Failure> {
    let mut proxies = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let refuse = |why| Failure::usage(format!("line {number} of the list: {why}"));
        proxies.push((number, parse(line, scheme).map_err(refuse)?));
    }
    if proxies.is_empty() {
        return Err(Failure::usage("the list has no proxies"));
    }
    Ok(proxies)
}

/// Reads one of the forms. What is wrong is told without any of the line.
fn parse(line: &str, scheme: Scheme) -> Result<Proxy, &'static str> {
    if let Some((name, rest)) = line.split_once("://") {
        let scheme = Scheme::parse(&name.to_ascii_lowercase()).ok_or("the scheme is not known")?;
        let rest = rest.trim_end_matches('/');
        return match rest.rsplit_once('@') {
            None => Ok(Proxy { scheme, address: rest.to_owned(), login: None }),
            Some((login, address)) => {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                let login = Some((decoded(user)?, decoded(password)?));
                Ok(Proxy { scheme, address: address.to_owned(), login })
            }
        };
    }
    if let Some((login, address)) = line.rsplit_once('@')
        && is_address(address)
    {
        let (user, password) = login.split_once(':').ok_or("a user has no password")?;
        let login = Some((user.to_owned(), password.to_owned()));
        return Ok(Proxy { scheme, address: address.to_owned(), login });
    }
    in_colons(line, scheme).ok_or(
        "it is none of host:port, host:port:user:password, user:password:host:port, \
         user:password@host:port and a URL",
    )
}

fn in_colons(line: &str, scheme: Scheme) -> Option<Proxy> {
    if is_address(line) {
        return Some(Proxy { scheme, address: line.to_owned(), login: None });
    }
    // An IPv6 address has colons of its own.
    let host_end = if line.starts_with('[') { line.find(']')? + 1 } else { line.find(':')? };
    let (host, rest) = line.split_at(host_end);
    let mut words = rest.strip_prefix(':')?.splitn(3, ':');
    if let (Some(port), Some(user), Some(password)) = (words.next(), words.next(), words.next())
        && port.parse::<u16>().is_ok()
    {
        let login = Some((user.to_owned(), password.to_owned()));
        return Some(Proxy { scheme, address: format!("{host}:{port}"), login });
    }
    let mut words = line.rsplitn(3, ':');
    let (port, host, login) = (words.next()?, words.next()?, words.next()?);
    let address = format!("{host}:{port}");
    let (user, password) = login.split_once(':')?;
    let login = Some((user.to_owned(), password.to_owned()));
    is_address(&address).then_some(Proxy { scheme, address, login })
}

/// Whether it is a host and a port.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let bracketed = host.starts_with('[') && host.ends_with(']');
    port.parse::<u16>().is_ok() && !host.is_empty() && (bracketed || host.chars().all(plain))
}

/// What stands in a URL.
fn decoded(text: &str) -> Result<String, &'static str> {
    let text = percent_decode_str(text).decode_utf8();
    Ok(text.map_err(|_| "the login is not UTF-8")?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, Option<(String, String)>)> {
        let proxy = parse(line, Scheme::Http).ok()?;
        Some((proxy.url(), proxy.login))
    }

    #[test]
    fn all_forms_of_lists_are_read() {
        let login = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        for (line, url, login) in [
            ("gw.test:8080", "http://gw.test:8080", None),
            ("gw.test:8080:u:p", "http://gw.test:8080", login("u", "p")),
            ("gw.test:8080:u:p:q@#", "http://gw.test:8080", login("u", "p:q@#")),
            ("[::1]:8080:u:p", "http://[::1]:8080", login("u", "p")),
            ("u:p:gw.test:8080", "http://gw.test:8080", login("u", "p")),
            ("u:p@q@gw.test:8080", "http://gw.test:8080", login("u", "p@q")),
            ("socks5h://gw.test:1080", "socks5h://gw.test:1080", None),
            ("HTTP://u:p%23@gw.test:8080/", "http://gw.test:8080", login("u", "p#")),
        ] {
            assert_eq!(read(line), Some((url.to_owned(), login)), "{line}");
        }
        for line in ["gw.test", "ftp://gw.test:21", "a b", "gw.test:port", "u@gw.test:1", ":::"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
