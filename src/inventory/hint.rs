//! Lines of proxy lists in other forms, to be told how to write them here.

use crate::endpoint::Scheme;

/// How to write what other tools write on one line.
pub(super) const HINT: &str = "this looks like a line of a proxy list; write it as [[endpoint]] \
     with `id`, `url` (\"http://host:port\"), `username` and `password`, each on its own line";

/// Whether the line has one of the forms of proxy lists: `host:port:user:password`,
/// `user:password@host:port`, or a bare URL.
pub(super) fn is_proxy_line(line: &str) -> bool {
    let Some(word) = line.split_whitespace().next() else {
        return false;
    };
    let rest = match word.split_once("://") {
        Some((scheme, _)) if Scheme::parse(&scheme.to_ascii_lowercase()).is_some() => return true,
        Some((scheme, rest)) if is_name(scheme) => rest,
        _ => word,
    };
    match rest.rsplit_once('@') {
        Some((login, address)) => is_login(login) && is_address(address),
        None => is_colon_list(rest),
    }
}

/// `host:port:user:password` or `user:password:host:port`.
fn is_colon_list(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [host, port, _, ..] if is_name(host) && is_port(port) => true,
        [user, _, host, port] => is_name(user) && is_name(host) && is_port(port),
        _ => false,
    }
}

fn is_login(text: &str) -> bool {
    text.split_once(':').is_some_and(|(user, _)| is_name(user))
}

fn is_address(text: &str) -> bool {
    text.trim_end_matches('/').rsplit_once(':').is_some_and(|(_, port)| is_port(port))
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

/// A host or a user name, and not the begin of `key="value"`.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['=', '"', '\'', '[', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proxy_lists_are_known() {
        for line in [
            "gw1.example.net:8080:user:pass",
            "10.0.0.1:8080:user:pa:ss  # note",
            "user:pass:gw1.example.net:8080",
            "user:p@ss@gw1.example.net:8080",
            "  http://user:pass@gw1.example.net:8080",
            "socks5://gw1.example.net:1080",
            "proxy://user:pass@gw1.example.net:8080",
        ] {
            assert!(is_proxy_line(line), "{line}");
        }
    }

    #[test]
    fn lines_of_an_inventory_are_not() {
        for line in [
            "",
            "# gw1.example.net:8080:user:pass",
            "[[endpoint]]",
            "url=\"http://user:pass@h:1\"",
            "url = \"http://user:pass@h:1",
            "a=\"h:1:u:p\"",
            "tags = [\"a:1:b\"]",
            "gw1.example.net",
        ] {
            assert!(!is_proxy_line(line), "{line}");
        }
    }
}
