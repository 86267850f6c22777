//! Registrable domains: what an organisation holds, by the public suffix list.

use std::net::Ipv4Addr;

/// The registrable domain of a host in lower case and IDNA form: `example.co.uk` of
/// `www.example.co.uk`.
///
/// Only suffixes of registries count (the list's ICANN section): `a.github.io` and `b.github.io`
/// are both `github.io`, for they are one service. `None` for a public suffix itself, a single
/// label (`localhost`) and an IP address.
pub(super) fn registrable(host: &str) -> Option<&str> {
    if host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok() {
        return None;
    }
    let mut name = host;
    let suffix = loop {
        let suffix = psl::suffix(name.as_bytes())?;
        let text = name.get(name.len() - suffix.as_bytes().len()..)?;
        if suffix.typ() != Some(psl::Type::Private) {
            break text;
        }
        // A suffix that somebody holds below another one.
        name = text.split_once('.')?.1;
    };
    let rest = host.strip_suffix(suffix)?.strip_suffix('.')?;
    let label = rest.rsplit('.').next().filter(|label| !label.is_empty())?;
    Some(&host[rest.len() - label.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_holder_have_one_domain() {
        for (host, domain) in [
            ("example.com", "example.com"),
            ("a.b.example.com", "example.com"),
            ("www.example.co.uk", "example.co.uk"),
            ("user.github.io", "github.io"),
            ("github.io", "github.io"),
            ("x.compute-1.amazonaws.com", "amazonaws.com"),
            ("a.example.test", "example.test"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ] {
            assert_eq!(registrable(host), Some(domain), "{host}");
        }
    }

    #[test]
    fn what_nobody_registered_has_none() {
        for host in
            ["com", "co.uk", "localhost", "127.0.0.1", "1.2.3.4", "[::1]", "[2001:db8::1]", "test"]
        {
            assert_eq!(registrable(host), None, "{host}");
        }
    }
}
