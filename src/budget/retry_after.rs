//! How long a site wants to be left alone.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// What `Retry-After` says (RFC 9110 section 10.2.3): seconds, or a date in one of three forms.
///
/// `None` where it is missing, zero, past, negative, malformed or there twice. A date is counted
/// from the answer's own `Date`, so that the two clocks need not agree.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let mut values = headers.get_all(RETRY_AFTER).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let text = value.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More than fits is a very long time.
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds)).filter(|span| !span.is_zero());
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let now = date(headers).unwrap_or_else(SystemTime::now);
    until.duration_since(now).ok().filter(|span| !span.is_zero())
}

/// The answer's own clock.
fn date(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(values: &[&'static str], date: Option<&'static str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(RETRY_AFTER, value.parse().unwrap());
        }
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        retry_after(&headers).map(|span| span.as_secs())
    }

    #[test]
    fn seconds_and_the_three_forms_of_a_date_are_read() {
        assert_eq!(says(&["120"], None), Some(120));
        assert_eq!(says(&[" 7 "], None), Some(7));
        assert_eq!(says(&["9999999999"], None), Some(9_999_999_999));
        assert_eq!(says(&["99999999999999999999999"], None), Some(u64::MAX));
        // The answer's clock is years behind ours.
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for form in [
            "Sun, 06 Nov 1994 08:50:37 GMT",
            "Sunday, 06-Nov-94 08:50:37 GMT",
            "Sun Nov  6 08:50:37 1994",
        ] {
            assert_eq!(says(&[form], date), Some(60), "{form}");
            assert_eq!(says(&[form], None), None, "{form} is past without the answer's date");
        }
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, soon.parse().unwrap());
        let said = retry_after(&headers).unwrap().as_secs();
        assert!((97..=100).contains(&said), "{said}");
        headers.insert(DATE, "rubbish".parse().unwrap());
        assert_eq!(retry_after(&headers).unwrap().as_secs().abs_diff(said), 0);
    }

    #[test]
    fn what_is_no_time_to_come_says_nothing() {
        for bad in ["", "0", "00", "-1", "+5", "1.5", "1e3", "soon", "2, 3", "2;3", "\u{b2}"] {
            assert_eq!(says(&[bad], None), None, "{bad}");
        }
        assert_eq!(says(&["2", "3"], None), None);
        assert_eq!(says(&[], None), None);
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(says(&["Sun, 06 Nov 1994 08:49:37 GMT"], date), None);
        assert_eq!(says(&["Sun, 06 Nov 1994 07:49:37 GMT"], date), None);
        assert_eq!(says(&["Sun, 99 Nov 1994 07:49:37 GMT"], date), None);
    }
}
