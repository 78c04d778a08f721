//! Times as text: UTC with milliseconds, as in JSON.

use std::time::{Duration, SystemTime};

pub(crate) use attache_host::timestamp as format;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The current time.
pub(crate) fn now() -> String {
    format(SystemTime::now())
}

/// Parses such a time, a time with an offset, or a time or date without a zone, which is UTC. Times
/// before 1970 are refused.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    let time = text.parse::<Timestamp>().ok().or_else(|| {
        let local = text.parse::<DateTime>().ok()?;
        local.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })?;
    (time >= Timestamp::UNIX_EPOCH).then(|| SystemTime::from(time))
}

/// Returns how long ago a time was, in a few letters: `3 min ago`. A text that is not a time stays
/// as it is.
pub(crate) fn ago(text: &str, now: SystemTime) -> String {
    let Some(then) = parse(text) else { return text.to_owned() };
    // The date alone is enough for what is old.
    since(then, now).unwrap_or_else(|| text.get(..10).unwrap_or(text).to_owned())
}

/// Returns how long ago a time of the last thirty days was.
pub(crate) fn since(then: SystemTime, now: SystemTime) -> Option<String> {
    let seconds = now.duration_since(then).unwrap_or_default().as_secs();
    Some(match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..172_800 => "yesterday".to_owned(),
        172_800..2_592_000 => format!("{} days ago", seconds / 86_400),
        _ => return None,
    })
}

/// `01:02:03`
pub(crate) fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ages_are_short() {
        let now = parse("2026-11-15T10:00:00Z").unwrap();
        for (then, text) in [
            ("2026-11-15T09:59:30Z", "just now"),
            ("2026-11-15T09:15:00Z", "45 min ago"),
            ("2026-11-15T01:00:00Z", "9 h ago"),
            ("2026-11-14T09:00:00Z", "yesterday"),
            ("2026-11-02T10:00:00Z", "13 days ago"),
            ("2025-01-31T10:00:00Z", "2025-01-31"),
            ("2026-12-15T10:00:00Z", "just now"),
            ("soon", "soon"),
        ] {
            assert_eq!(ago(then, now), text);
        }
    }

    #[test]
    fn texts_and_back() {
        for text in ["2026-11-15T10:05:59.538Z", "2000-02-29T00:00:00.000Z"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(
            format(SystemTime::UNIX_EPOCH + Duration::from_nanos(1_999_999)),
            "1970-01-01T00:00:00.001Z"
        );
        let utc = parse("2026-11-15T10:00:00Z").unwrap();
        assert_eq!(parse("2026-11-15T12:00:00+02:00"), Some(utc));
        assert_eq!(parse(" 2026-11-15 10:00 "), Some(utc));
        assert_eq!(format(parse("2026-11-15").unwrap()), "2026-11-15T00:00:00.000Z");
        for wrong in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-02-30",
            "2026-11-15T25:00",
            "9223372036854775807-01-01",
            "2026-11-15T10:00+nan",
            "2026-11-15T10:00-1e308",
            "1969-12-31",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
