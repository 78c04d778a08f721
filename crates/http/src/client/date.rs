//! Dates in headers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Days before each month of a common year.
const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// Returns the seconds since 1970 of a date in a `retry-after`, `date` or `set-cookie` header.
///
/// The algorithm is that of RFC 6265 §5.1.1 for cookies, which reads the three forms of RFC 9110
/// §5.6.7 too.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != ':') {
        if time.is_none() && token.contains(':') {
            time = Some(time_of_day(token)?);
        } else if day.is_none() && matches!(digits(token), 1 | 2) {
            day = Some(leading_number(token)?);
        } else if month.is_none() && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() && matches!(digits(token), 2..=4) {
            year = Some(leading_number(token)?);
        }
    }
    let (time, day, month) = (time?, day?, month?);
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    if year < 1601 || !(1..=31).contains(&day) {
        return None;
    }
    let leap_days = |year: i64| year / 4 - year / 100 + year / 400;
    let is_leap = leap_days(year) > leap_days(year - 1);
    let days = 365 * (year - 1970) + leap_days(year - 1) - leap_days(1969)
        + DAYS_BEFORE.get(month)?
        + i64::from(is_leap && month > 1)
        + day
        - 1;
    Some(days * 86_400 + time)
}

/// Returns the pause that a `retry-after` header asks for: seconds, or a date by the clock of the
/// server.
pub(super) fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let value = header("retry-after")?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let seconds = parse(value)? - header("date").and_then(parse).unwrap_or_else(now);
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Returns the seconds since 1970 by our own clock.
pub(super) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// Returns the number of digits that a token begins with.
fn digits(token: &str) -> usize {
    token.bytes().take_while(u8::is_ascii_digit).count()
}

fn leading_number(token: &str) -> Option<i64> {
    token.get(..digits(token))?.parse().ok()
}

fn month_of(token: &str) -> Option<usize> {
    let name = token.get(..3)?;
    MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))
}

/// Returns the seconds since midnight.
fn time_of_day(token: &str) -> Option<i64> {
    let mut parts = token.split(':');
    let mut next = |max: i64| leading_number(parts.next()?).filter(|number| *number <= max);
    let (hours, minutes, seconds) = (next(23)?, next(59)?, next(60)?);
    Some(hours * 3600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_date_is_read() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06-nov-1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse("Thu, 29 Feb 2024 23:59:50 GMT"), Some(1_709_251_190));
        assert_eq!(parse("Fri, 01 Mar 2024 00:00:05 GMT"), Some(1_709_251_205));
        for text in ["", "soon", "32 Nov 1994 08:49:37", "06 Nov 1994 24:00:00", "06 Nov 1500 08:49:37", "::"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_server_says_when_to_try_again() {
        let pause = |headers: &[(&str, &'static str)]| {
            let headers = headers.to_vec();
            retry_after(move |name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
        };
        assert_eq!(pause(&[]), None);
        assert_eq!(pause(&[("retry-after", "soon")]), None);
        assert_eq!(pause(&[("retry-after", " 7 ")]), Some(Duration::from_secs(7)));
        let date = ("retry-after", "Fri, 01 Mar 2024 00:00:05 GMT");
        assert_eq!(pause(&[date, ("date", "Thu, 29 Feb 2024 23:59:50 GMT")]), Some(Duration::from_secs(15)));
        // Without the clock of the server ours counts; this date has passed.
        assert_eq!(pause(&[date]), Some(Duration::ZERO));
    }
}
