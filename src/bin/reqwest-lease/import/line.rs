//! A line of a list of proxies.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

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

/// All proxies of a list with the numbers of their lines. Empty lines are left out, and comments:
/// `#` at the beginning of a line or after a blank.
pub(super) fn parse_all(text: &str, scheme: Scheme) -> Result<Vec<(usize, Proxy)>, Failure> {
    let mut proxies = Vec::new();
    // Some editors begin a file with the mark of a byte order.
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = [" #", "\t#"].iter().fold(line, |line, mark| match line.split_once(mark) {
            Some((before, _)) => before,
            None => line,
        });
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

/// Leaves out proxies that the list has before: a second id of one identity would be a second lease
/// on it. Tells the numbers of their lines.
pub(super) fn once(proxies: Vec<(usize, Proxy)>) -> (Vec<(usize, Proxy)>, Vec<usize>) {
    let mut seen = HashSet::with_capacity(proxies.len());
    let (once, again): (Vec<_>, Vec<_>) = proxies
        .into_iter()
        .partition(|(_, proxy)| seen.insert((proxy.url().to_lowercase(), proxy.login.clone())));
    (once, again.into_iter().map(|(number, _)| number).collect())
}

/// Reads one of the forms. What is wrong is told without any of the line.
fn parse(line: &str, scheme: Scheme) -> Result<Proxy, &'static str> {
    let Some((name, rest)) = line.split_once("://") else {
        return plain(line, scheme)?.ok_or(FORMS);
    };
    let scheme = Scheme::parse(&name.to_ascii_lowercase()).ok_or("the scheme is not known")?;
    let rest = rest.trim_end_matches('/');
    if let Some((login, address)) = rest.rsplit_once('@') {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let login = Some((decoded(user)?, decoded(password)?));
        return Ok(Proxy { scheme, address: address.to_owned(), login });
    }
    let address = || Proxy { scheme, address: rest.to_owned(), login: None };
    Ok(plain(rest, scheme)?.unwrap_or_else(address))
}

const FORMS: &str = "it is none of host:port, host:port:user:password, user:password:host:port, \
                     user:password@host:port, host:port@user:password and a URL";

/// Reads a line without a scheme, if it has one of the forms. Where it has several, one of them
/// must have the only host that is plainly one: a guess would send the login to somebody else.
fn plain(line: &str, scheme: Scheme) -> Result<Option<Proxy>, &'static str> {
    if is_address(line) {
        return Ok(Some(Proxy { scheme, address: line.to_owned(), login: None }));
    }
    let mut parts = line.match_indices(':').map(|(at, _)| &line[..at]).chain([line]);
    if parts.any(|part| part.parse::<Ipv6Addr>().is_ok()) {
        return Err("an IPv6 address stands in brackets, like [::1]:8080");
    }
    let all = readings(line);
    let plainly: Vec<_> =
        all.iter().filter(|(address, ..)| is_plainly_a_host(address)).copied().collect();
    let (address, user, password) = match (&all[..], &plainly[..]) {
        ([], _) => return Ok(None),
        ([only], _) | (_, [only]) => *only,
        _ => return Err("it can be read in more than one way; write it as a URL"),
    };
    let login = Some((user.to_owned(), password.to_owned()));
    Ok(Some(Proxy { scheme, address: address.to_owned(), login }))
}

/// All that a line can mean: address, user and password.
fn readings(line: &str) -> Vec<(&str, &str, &str)> {
    let swapped = |(login, address)| (address, login);
    let all = [
        line.rsplit_once('@').map(swapped),
        line.split_once('@'),
        address_first(line),
        address_last(line),
    ];
    let read = all.into_iter().flatten().filter(|(address, _)| is_address(address));
    read.filter_map(|(address, login)| {
        let (user, password) = login.split_once(':')?;
        Some((address, user, password))
    })
    .collect()
}

/// Takes `host:port:` off the beginning.
fn address_first(line: &str) -> Option<(&str, &str)> {
    // An IPv6 address has colons of its own.
    let host_end = if line.starts_with('[') { line.find(']')? + 1 } else { line.find(':')? };
    let port = line.get(host_end + 1..)?.find(':')?;
    let (address, login) = line.split_at(host_end + 1 + port);
    Some((address, &login[1..]))
}

/// Takes `:host:port` off the end.
fn address_last(line: &str) -> Option<(&str, &str)> {
    let (before, _) = line.rsplit_once(':')?;
    let start = if before.ends_with(']') { before.rfind('[')? } else { before.rfind(':')? + 1 };
    let (login, address) = line.split_at(start);
    Some((address, login.strip_suffix(':')?))
}

/// Whether it is a host and a port.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| port.parse::<u16>().is_ok() && is_host(host))
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        return inner.strip_suffix(']').is_some_and(|host| host.parse::<Ipv6Addr>().is_ok());
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let last = host.rsplit('.').next().unwrap_or(host);
    // What ends in a number is read as an IPv4 address, `1` as 0.0.0.1.
    let is_number = last.chars().all(|c| c.is_ascii_digit());
    host.chars().all(plain) && (!is_number || host.parse::<Ipv4Addr>().is_ok())
}

/// Whether it is nothing but a host, which a user or password might be too.
fn is_plainly_a_host(address: &str) -> bool {
    address.starts_with('[') || address.contains('.') || address.starts_with("localhost:")
}

/// What stands in a URL.
fn decoded(text: &str) -> Result<String, &'static str> {
    let text = percent_decode_str(text).decode_utf8();
    Ok(text.map_err(|_| "the login is not UTF-8")?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = (String, Option<(String, String)>);

    fn read(line: &str) -> Result<Read, &'static str> {
        parse(line, Scheme::Http).map(|proxy| (proxy.url(), proxy.login))
    }

    #[test]
    fn all_forms_of_lists_are_read() {
        let login = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        for (line, url, login) in [
            ("gw.test:8080", "http://gw.test:8080", None),
            ("gw:8080", "http://gw:8080", None),
            ("gw.test:8080:u:p", "http://gw.test:8080", login("u", "p")),
            ("gw:8080:u:p", "http://gw:8080", login("u", "p")),
            ("gw.test:8080:u:p:q@#", "http://gw.test:8080", login("u", "p:q@#")),
            ("gw.test:8080:u:\"p'ä", "http://gw.test:8080", login("u", "\"p'ä")),
            ("[::1]:8080:u:p", "http://[::1]:8080", login("u", "p")),
            ("u:p:[::1]:8080", "http://[::1]:8080", login("u", "p")),
            ("u:p@[::1]:8080", "http://[::1]:8080", login("u", "p")),
            ("u:p:gw.test:8080", "http://gw.test:8080", login("u", "p")),
            ("u:p@q@gw.test:8080", "http://gw.test:8080", login("u", "p@q")),
            ("gw.test:8080@u:p", "http://gw.test:8080", login("u", "p")),
            ("socks5h://gw.test:1080", "socks5h://gw.test:1080", None),
            ("socks5h://gw.test:1080:u:p", "socks5h://gw.test:1080", login("u", "p")),
            ("HTTP://u:p%23@gw.test:8080/", "http://gw.test:8080", login("u", "p#")),
        ] {
            assert_eq!(read(line), Ok((url.to_owned(), login)), "{line}");
        }
        for line in ["gw.test", "ftp://gw.test:21", "a b", "gw.test:port", "u@gw.test:1", ":::"] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_login_that_could_be_an_address_is_not_taken_for_one() {
        let read_as = |line: &str| read(line).unwrap();
        for (line, user, password) in [
            ("gw.test:8080:u:1234", "u", "1234"),
            ("u:1234:gw.test:8080", "u", "1234"),
            ("u:1234@gw.test:8080", "u", "1234"),
            ("gw.test:8080@u:1234", "u", "1234"),
        ] {
            let login = Some((user.to_owned(), password.to_owned()));
            assert_eq!(read_as(line), ("http://gw.test:8080".to_owned(), login), "{line}");
        }
        for line in ["gw:8080:u:1234", "gw:8080@u:1234", "a.b:1:c.d:2"] {
            assert!(read(line).is_err_and(|why| why.contains("more than one way")), "{line}");
        }
    }

    #[test]
    fn an_ipv6_address_without_brackets_is_not_taken_apart() {
        for line in [
            "::1:8080",
            "2001:db8::1:8080",
            "2001:470:1f0b:1::2:8080",
            "fe80:1:2:3::4:80",
            "2001:db8:1:2:3:4:5:6:8080:u:p",
        ] {
            assert!(read(line).is_err_and(|why| why.contains("brackets")), "{line}");
        }
        assert!(read("2001:8080:u:p").is_err(), "a number is no host");
    }

    #[test]
    fn marks_blanks_and_comments_are_no_part_of_a_proxy() {
        let text = "\u{feff}# head\r\n\r\n  gw.test:1:u:p\t# first\r\ngw.test:2 # second\r\n";
        let proxies = parse_all(text, Scheme::Http).ok().unwrap();
        let read: Vec<_> =
            proxies.into_iter().map(|(number, proxy)| (number, proxy.url(), proxy.login)).collect();
        let login = Some(("u".to_owned(), "p".to_owned()));
        assert_eq!(
            read,
            [(3, "http://gw.test:1".to_owned(), login), (4, "http://gw.test:2".to_owned(), None)]
        );
    }

    #[test]
    fn one_identity_is_taken_once() {
        let text = "gw.test:1:u:p\nu:p@GW.test:1\ngw.test:1:u:q\ngw.test:1\nsocks5://gw.test:1\n\
                    http://gw.test:1\n";
        let (once, again) = once(parse_all(text, Scheme::Http).ok().unwrap());
        let lines: Vec<_> = once.iter().map(|(number, _)| *number).collect();
        assert_eq!((lines, again), (vec![1, 3, 4, 5], vec![2, 6]));
    }
}
