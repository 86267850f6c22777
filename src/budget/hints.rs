//! What a site says of the rate that is left: the draft's `RateLimit` and `RateLimit-Policy`.

use std::time::Duration;

use http::HeaderMap;
use sfv::{Item, List, ListEntry, Parser};

/// The least time between starts that does not use up what is left, and for how long; `None`
/// where the site says nothing of it that can be relied on.
///
/// Of several limits the strictest counts.
pub(super) fn hint(headers: &HeaderMap) -> Option<(Duration, Duration)> {
    let limits = list(headers, "ratelimit")?;
    let policies = list(headers, "ratelimit-policy").unwrap_or_default();
    limits.iter().filter_map(|limit| spread(item(limit)?, &policies)).max()
}

/// A field's members over all its lines, which are one list (RFC 9651 section 4.2).
fn list(headers: &HeaderMap, name: &str) -> Option<List> {
    let lines: Vec<_> = headers.get_all(name).iter().map(|line| line.as_bytes()).collect();
    if lines.is_empty() { None } else { Parser::new(&lines.join(&b","[..])).parse().ok() }
}

fn item(entry: &ListEntry) -> Option<&Item> {
    match entry {
        ListEntry::Item(item) => Some(item),
        ListEntry::InnerList(_) => None,
    }
}

fn spread(limit: &Item, policies: &List) -> Option<(Duration, Duration)> {
    let name = limit.bare_item.as_string()?;
    let named = |policy: &&Item| policy.bare_item.as_string() == Some(name);
    let policy = policies.iter().filter_map(item).find(named);
    let unit = policy.and_then(|policy| policy.params.get("qu"));
    if unit.is_some_and(|unit| unit.as_string().is_none_or(|unit| unit.as_str() != "requests")) {
        return None;
    }
    let left = number(limit, "r")?;
    let window = number(limit, "t").or_else(|| number(policy?, "w"))?;
    let window = Duration::from_secs(window);
    let delay = window / u32::try_from(left.max(1)).unwrap_or(u32::MAX);
    (!delay.is_zero()).then_some((delay, window))
}

fn number(item: &Item, name: &str) -> Option<u64> {
    let number = item.params.get(name)?.as_integer()?;
    i64::from(number).try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(limit: &'static str, policy: &'static str) -> Option<(u128, u64)> {
        let mut headers = HeaderMap::new();
        headers.append("RateLimit", limit.parse().unwrap());
        if !policy.is_empty() {
            headers.append("RateLimit-Policy", policy.parse().unwrap());
        }
        hint(&headers).map(|(delay, window)| (delay.as_millis(), window.as_secs()))
    }

    #[test]
    fn what_is_left_is_spread_over_its_time() {
        assert_eq!(says(r#""default";r=50;t=100"#, ""), Some((2_000, 100)));
        assert_eq!(says(r#""default";r=0;t=30"#, ""), Some((30_000, 30)));
        assert_eq!(says(r#""a";r=9;t=9, "b";r=1;t=60"#, ""), Some((60_000, 60)));
        assert_eq!(says(r#""a";r=6"#, r#""b";q=1;w=1, "a";q=100;w=60"#), Some((10_000, 60)));
        assert_eq!(says(r#""a";r=6;t=6"#, r#""a";q=10;w=60;qu="requests""#), Some((1_000, 6)));
    }

    #[test]
    fn what_cannot_be_relied_on_is_ignored() {
        for (limit, policy) in [
            ("", ""),
            ("limit=10, remaining=5, reset=3", ""),
            (r#""a";r=5"#, ""),
            (r#""a";t=5"#, ""),
            (r#""a";r=-1;t=5"#, ""),
            (r#""a";r=1.5;t=5"#, ""),
            (r#""a";r="1";t=5"#, ""),
            (r#"a;r=1;t=5"#, ""),
            (r#"("a");r=1;t=5"#, ""),
            (r#""a";r=1;t=5"#, r#""a";q=100;w=9;qu="content-bytes""#),
            (r#""a";r=1;t=5"#, r#""a";q=100;w=9;qu=requests"#),
            (r#""a;r=1;t=5"#, ""),
            (r#""a";r=1;t=0"#, ""),
            (r#""a";r=99999999999999999999;t=1"#, ""),
        ] {
            assert_eq!(says(limit, policy), None, "{limit} {policy}");
        }
        assert_eq!(hint(&HeaderMap::new()), None);
    }
}
