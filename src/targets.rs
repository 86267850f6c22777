//! Which addresses a redirect may lead to.

use std::net::IpAddr;
use std::sync::LazyLock;

use ipnet::IpNet;
use url::{Host, Url};

/// Which targets may be fetched.
///
/// It looks at the URL alone: a name is resolved by the proxy, so a public name that points to
/// a private address is not seen here.
///
/// ```
/// use reqwest_lease::Targets;
///
/// let open = "https://example.com/".parse().unwrap();
/// let metadata = "http://169.254.169.254/latest/".parse().unwrap();
/// assert!(!Targets::default().allows_redirect(&open, &metadata));
/// assert!(Targets::any().allows_redirect(&open, &metadata));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Targets(Allowed);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Allowed {
    #[default]
    NoWayIn,
    Public,
    Any,
}

impl Targets {
    /// Any first URL; no redirect from a public host to a special address (RFC 6890: loopback,
    /// private, link-local, cloud metadata) or to `localhost`. The default, for a page on the
    /// open web must not send a crawler into the network it runs in.
    pub const fn no_way_in() -> Self {
        Self(Allowed::NoWayIn)
    }

    /// Public hosts only, for the first URL too.
    pub const fn public() -> Self {
        Self(Allowed::Public)
    }

    /// No restriction.
    pub const fn any() -> Self {
        Self(Allowed::Any)
    }

    /// Whether a request may start at this URL.
    pub fn allows(self, url: &Url) -> bool {
        self.0 != Allowed::Public || !is_special(url)
    }

    /// Whether a redirect may lead from one URL to the other.
    pub fn allows_redirect(self, from: &Url, to: &Url) -> bool {
        match self.0 {
            Allowed::Any => true,
            Allowed::NoWayIn => is_special(from) || !is_special(to),
            Allowed::Public => !is_special(to),
        }
    }
}

fn is_special(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            // RFC 6761 section 6.3: localhost and names under it are loopback.
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => is_special_address(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => {
            let embedded = address.to_ipv4_mapped().or_else(|| embedded_v4(address));
            is_special_address(IpAddr::V6(address))
                || embedded.is_some_and(|address| is_special_address(IpAddr::V4(address)))
        }
        None => true,
    }
}

/// The IPv4 address behind a NAT64 (RFC 6052) or 6to4 (RFC 3056) one.
fn embedded_v4(address: std::net::Ipv6Addr) -> Option<std::net::Ipv4Addr> {
    let octets = address.octets();
    let at = match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => 12,
        [0x2002, ..] => 2,
        _ => return None,
    };
    Some(std::net::Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]))
}

fn is_special_address(address: IpAddr) -> bool {
    SPECIAL.iter().any(|net| net.contains(&address))
}

/// RFC 6890's registries: what is not globally reachable, multicast besides.
static SPECIAL: LazyLock<Vec<IpNet>> = LazyLock::new(|| {
    [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/127",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    ]
    .iter()
    .filter_map(|net| net.parse().ok())
    .collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn special_addresses_are_told_however_they_are_written() {
        for special in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://10.1.2.3/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.100.100.200/",
            "http://192.168.0.1:8080/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[64:ff9b::a00:1]/",
            "http://[2002:a00:1::]/",
            "http://[fd00:ec2::254]/",
            "http://[fe80::1]/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
        ] {
            assert!(is_special(&url(special)), "{special}");
        }
        for public in [
            "http://example.com/",
            "http://93.184.216.34/",
            "http://[2606:4700::1]/",
            "http://10.example/",
        ] {
            assert!(!is_special(&url(public)), "{public}");
        }
    }

    #[test]
    fn the_table_parses_whole() {
        assert_eq!(SPECIAL.len(), 24);
    }

    #[test]
    fn only_the_way_in_from_outside_is_barred_by_default() {
        let (inside, outside) = (url("http://127.0.0.1/"), url("http://example.com/"));
        let targets = Targets::default();
        assert!(targets.allows(&inside) && targets.allows(&outside));
        assert!(targets.allows_redirect(&inside, &inside));
        assert!(targets.allows_redirect(&inside, &outside));
        assert!(!targets.allows_redirect(&outside, &inside));
        assert!(!Targets::public().allows(&inside));
        assert!(Targets::any().allows_redirect(&outside, &inside));
    }
}
