//! Times as text: UTC, with milliseconds, as JSON has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Now.
pub(crate) fn now() -> String {
    format(SystemTime::now())
}

/// `2026-11-15T10:05:59.538Z`
pub(crate) fn format(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, rest) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days as i64);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// Reads such a time, or a date alone. Other zones are understood, fractions too.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    let (day, clock) = match text.split_once(['T', 't', ' ']) {
        Some((day, clock)) => (day, Some(clock)),
        None => (text, None),
    };
    let mut parts = day.splitn(3, '-');
    let year: i64 = parts.next()?.parse().ok()?;
    let month: i64 = parts.next()?.parse().ok()?;
    let day: i64 = parts.next()?.parse().ok()?;
    if !(0..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || date(days(year, month, day)) != (year, month, day)
    {
        return None;
    }
    let seconds = clock.map_or(Some(0.0), clock_seconds)?;
    let since = days(year, month, day) as f64 * 86_400.0 + seconds;
    UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(since).ok()?)
}

/// `10:05:59.5+02:00` as seconds of the day in UTC.
fn clock_seconds(clock: &str) -> Option<f64> {
    let (clock, offset) = match clock.find(['Z', 'z', '+', '-']) {
        Some(at) => (clock.get(..at)?, clock.get(at..)?),
        None => (clock, "Z"),
    };
    let mut parts = clock.splitn(3, ':');
    let hour: f64 = parts.next()?.parse::<u8>().ok().filter(|hour| *hour < 24)?.into();
    let minute: f64 = parts.next()?.parse::<u8>().ok().filter(|minute| *minute < 60)?.into();
    let second: f64 = parts.next().map_or(Some(0.0), |second| second.parse().ok())?;
    let shift = match offset.get(..1)? {
        "+" | "-" => {
            let (hours, minutes) = offset.get(1..)?.split_once(':').unwrap_or((offset.get(1..)?, "0"));
            let shift = hours.parse::<f64>().ok()? * 3600.0 + minutes.parse::<f64>().ok()? * 60.0;
            if offset.starts_with('+') { shift } else { -shift }
        }
        _ => 0.0,
    };
    (0.0..61.0).contains(&second).then_some(hour * 3600.0 + minute * 60.0 + second - shift)
}

/// Days since 1970 as year, month, day of the Gregorian calendar. Years begin in March here, so that the leap day is the last of
/// its year, and 400 years are 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The way back.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
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
    fn every_day_of_four_centuries_and_back() {
        for day in 0..146_097 {
            let (y, m, d) = date(day);
            assert_eq!(days(y, m, d), day);
        }
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(20_772), (2026, 11, 15));
    }

    #[test]
    fn texts_and_back() {
        for text in ["2026-11-15T10:05:59.538Z", "2000-02-29T00:00:00.000Z"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        let utc = parse("2026-11-15T10:00:00Z").unwrap();
        assert_eq!(parse("2026-11-15T12:00:00+02:00"), Some(utc));
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
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
