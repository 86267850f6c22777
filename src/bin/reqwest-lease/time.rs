//! Times as people read and write them.

use std::time::{Duration, SystemTime};

use jiff::fmt::friendly::{Designator, FractionalUnit, Spacing, SpanPrinter};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, SignedDurationRound, Timestamp, Unit};

/// Reads `90`, `90s`, `1m 30s` or `500ms`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let time = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let time: SignedDuration = text
                .parse()
                .map_err(|_| "a time is written like 90s, 1m30s or 500ms".to_owned())?;
            Duration::try_from(time).map_err(|_| "a time is not below zero".to_owned())?
        }
    };
    if time > LONGEST { Err("a time is at most 365 days".to_owned()) } else { Ok(time) }
}

/// The same above zero.
pub(crate) fn parse_some(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("a time of zero is none".to_owned()),
        time => Ok(time),
    }
}

/// Moments that far away can still be told.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// `8m 20s`; `1.5s` where tenths matter.
pub(crate) fn short(duration: Duration) -> String {
    let Ok(exact) = SignedDuration::try_from(duration) else { return "ages".to_owned() };
    let (unit, step) = match duration.as_millis() {
        0..100 => (Unit::Microsecond, 100),
        100..10_000 => (Unit::Millisecond, 100),
        _ => (Unit::Second, 1),
    };
    let round = SignedDurationRound::new().smallest(unit).increment(step);
    let rounded = exact.round(round).unwrap_or(exact);
    if duration < Duration::from_millis(100) && !duration.is_zero() {
        return format!("{:.1}ms", rounded.as_secs_f64() * 1000.0);
    }
    SpanPrinter::new()
        .designator(Designator::Compact)
        .spacing(Spacing::BetweenUnits)
        .fractional((unit != Unit::Second).then_some(FractionalUnit::Second))
        .duration_to_string(&rounded)
}

/// A moment by the clock on the wall here.
pub(crate) fn local(time: SystemTime) -> String {
    match Timestamp::try_from(time) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        Err(_) => "unknown".to_owned(),
    }
}

/// The same for programs.
pub(crate) fn stamp(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| "unknown".to_owned(), |time| time.to_string())
}

/// How long ago a moment was.
pub(crate) fn ago(time: SystemTime) -> String {
    match SystemTime::now().duration_since(time) {
        Ok(past) if past >= Duration::from_secs(1) => {
            format!("{} ago", short(Duration::from_secs(past.as_secs())))
        }
        _ => "now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let ms = Duration::from_millis;
        for (text, time) in [
            ("90", ms(90_000)),
            ("1m30s", ms(90_000)),
            ("1h 2m", ms(3_720_000)),
            ("500ms", ms(500)),
        ] {
            assert_eq!(parse(text), Ok(time), "{text}");
        }
        for text in ["", "-1s", "soon", "1.5.2", "18446744073709551615", "99999999h", "8761h"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("8760h").is_ok() && parse("0").is_ok());
        assert!(parse_some("0s").is_err() && parse_some("1ms").is_ok());
    }

    #[test]
    fn times_are_told_with_what_matters() {
        let ms = Duration::from_millis;
        for (time, text) in [
            (ms(0), "0s"),
            (Duration::from_micros(1250), "1.3ms"),
            (ms(1520), "1.5s"),
            (ms(500_400), "8m 20s"),
            (ms(7_260_000), "2h 1m"),
        ] {
            assert_eq!(short(time), text, "{time:?}");
        }
    }
}
