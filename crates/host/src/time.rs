//! Times as text.

use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};

/// Formats a time as RFC 3339 in UTC with milliseconds: `2026-11-15T10:05:59.538Z`.
pub fn timestamp(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or_default();
    // Rounded down, as a clock shows it.
    let millis = SignedDuration::from_millis(time.as_millisecond());
    format!("{:.3}", Timestamp::from_duration(millis).unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_rounded_down_to_milliseconds() {
        let at = |nanos| timestamp(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
        assert_eq!(at(1_999_999), "1970-01-01T00:00:00.001Z");
        assert_eq!(at(951_782_400_000_000_000), "2000-02-29T00:00:00.000Z");
    }
}
