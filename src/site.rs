//! The key that budgets and shuns go by.

use std::fmt;

use compact_str::CompactString;
use url::{Host, Url};

/// A site: the host of a URL in lower case and IDNA form, without a trailing dot.
///
/// Scheme and port are not part of it; an IP address is a site of its own.
///
/// ```
/// use reqwest_lease::Site;
///
/// let url = "https://Example.COM.:8443/a".parse().unwrap();
/// assert_eq!(Site::of(&url).unwrap().as_str(), "example.com");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(CompactString);

impl Site {
    /// The site of an http or https URL; `None` for other schemes and for hosts with empty labels.
    pub fn of(url: &Url) -> Option<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        match url.host()? {
            Host::Domain(name) => Self::domain(name),
            Host::Ipv4(_) | Host::Ipv6(_) => url.host_str().map(|host| Self(host.into())),
        }
    }

    /// The site of a host name or IP address as written in a rule (`example.com`, `[::1]`).
    pub fn parse(host: &str) -> Option<Self> {
        match Host::parse(host).ok()? {
            Host::Domain(name) => Self::domain(&name),
            Host::Ipv4(address) => Some(Self(CompactString::from(address.to_string()))),
            Host::Ipv6(address) => Some(Self(CompactString::from(format!("[{address}]")))),
        }
    }

    fn domain(name: &str) -> Option<Self> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let whole = !name.is_empty() && name.split('.').all(|label| !label.is_empty());
        whole.then(|| Self(name.into()))
    }

    /// The site as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(url: &str) -> Option<String> {
        Site::of(&url.parse().unwrap()).map(|site| site.to_string())
    }

    #[test]
    fn one_host_is_one_site_however_it_is_written() {
        for url in ["http://example.com", "https://EXAMPLE.com:444/x", "http://ex%61mple.com./"] {
            assert_eq!(site(url).as_deref(), Some("example.com"), "{url}");
        }
        for url in ["http://127.0.0.1", "http://127.1", "http://0x7f.0.0.1", "http://2130706433"] {
            assert_eq!(site(url).as_deref(), Some("127.0.0.1"), "{url}");
        }
        assert_eq!(site("http://[::1]:80/").as_deref(), Some("[::1]"));
        assert_eq!(site("http://bücher.example/").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(Site::parse("[::0:1]"), Site::of(&"http://[::1]".parse().unwrap()));
    }

    #[test]
    fn a_host_with_empty_labels_is_no_site() {
        assert_eq!(site("http://example.com../"), None);
        assert_eq!(site("http://a..b.com/"), None);
        assert_eq!(site("ftp://example.com/"), None);
        assert_eq!(Site::parse(""), None);
    }
}
