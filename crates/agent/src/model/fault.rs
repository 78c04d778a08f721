//! What a provider means when it does not answer, and when to ask it again.

use std::time::Duration;

use serde_json::Value;

use super::ModelError;

/// A failure, and whether asking again may help.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) error: ModelError,
    pub(crate) again: bool,
    /// When the provider says to come back.
    pub(crate) after: Option<Duration>,
}

impl Fault {
    pub(crate) fn last(error: ModelError) -> Self {
        Fault { error, again: false, after: None }
    }

    pub(crate) fn again(error: ModelError) -> Self {
        Fault { error, again: true, after: None }
    }
}

/// Reads an answer that is none. `header` looks up headers of the answer.
pub(crate) fn of_answer<'a>(status: u16, body: &str, header: impl Fn(&str) -> Option<&'a str>) -> Fault {
    let value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let said = Said::of(&value);
    let message = match &said.message {
        Some(message) => tidy(message),
        None if body.trim_start().starts_with('<') => "a web page instead of an answer".to_owned(),
        None if body.trim().is_empty() => "nothing said about it".to_owned(),
        None => tidy(body),
    };
    let after = wait(&header).or(said.retry);
    let (error, again) = judge(Some(status), &said.kind, message, after);
    Fault { error, again, after }
}

/// Reads an error that came inside of a stream.
pub(crate) fn of_stream(value: &Value) -> Fault {
    let said = Said::of(value);
    let message = tidy(&said.message.unwrap_or_else(|| "the provider stopped without saying why".to_owned()));
    let (error, again) = judge(said.status, &said.kind, message, said.retry);
    Fault { error, again, after: said.retry }
}

fn judge(status: Option<u16>, kind: &str, message: String, after: Option<Duration>) -> (ModelError, bool) {
    let low = format!("{kind} {message}").to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| low.contains(word));
    // Some say with 429 that the account is empty. That does not change by waiting.
    if has(&["insufficient_quota", "billing", "credit balance"]) {
        return (ModelError::Other { status, message }, false);
    }
    match status {
        Some(401 | 403) => return (ModelError::Auth(message), false),
        Some(429) => return (ModelError::RateLimited { after, message }, true),
        Some(503 | 529) => return (ModelError::Overloaded(message), true),
        Some(408 | 409 | 500..=599) => return (ModelError::Other { status, message }, true),
        _ => {}
    }
    if status == Some(413) || has(TOO_LONG) {
        (ModelError::TooLong(message), false)
    } else if has(&["overloaded", "unavailable"]) {
        (ModelError::Overloaded(message), true)
    } else if has(&["rate_limit", "rate limit", "resource_exhausted", "too many requests"]) {
        (ModelError::RateLimited { after, message }, true)
    } else if has(&["authentication_error", "permission_error", "invalid_api_key", "api key not valid"]) {
        (ModelError::Auth(message), false)
    } else if has(&["content_policy", "content_filter", "safety"]) {
        (ModelError::Refused(message), false)
    } else {
        let again = has(&["api_error", "server_error", "internal"]) && status.is_none();
        (ModelError::Other { status, message }, again)
    }
}

/// How the providers say that a conversation does not fit.
const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "context_length_exceeded",
    "context length",
    "context window",
    "exceed_context_size",
    "exceeds the available context",
    "input token count",
    "too many tokens",
    "request_too_large",
];

/// What the body of an error says, whoever's it is.
#[derive(Default)]
struct Said {
    kind: String,
    message: Option<String>,
    status: Option<u16>,
    retry: Option<Duration>,
}

impl Said {
    fn of(value: &Value) -> Self {
        // Gemini wraps errors in a list; FastAPI calls them `detail`; some have no wrapping at all.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").or_else(|| value.get("detail")).unwrap_or(value);
        if let Some(text) = error.as_str() {
            return Said { message: Some(text.to_owned()), ..Said::default() };
        }
        let text = |key: &str| error.get(key).and_then(Value::as_str);
        let words: Vec<&str> = ["type", "code", "status"].into_iter().filter_map(text).collect();
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        Said {
            kind: words.join(" "),
            message: text("message").map(|message| reason(message, error)),
            status: code.filter(|code| (400..600).contains(code)),
            retry: retry_info(error),
        }
    }
}

/// OpenRouter says what the provider behind it said only in here.
fn reason(message: &str, error: &Value) -> String {
    match error.pointer("/metadata/raw").and_then(Value::as_str) {
        Some(raw) => format!("{message}: {raw}"),
        None => message.to_owned(),
    }
}

/// Gemini: `{"@type": "…RetryInfo", "retryDelay": "17s"}` among the details.
fn retry_info(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    seconds(delay.strip_suffix('s')?)
}

/// `retry-after-ms`, or `retry-after` in seconds or as a date.
fn wait<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    if let Some(millis) = header("retry-after-ms").and_then(|value| value.trim().parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let value = header("retry-after")?.trim();
    seconds(value).or_else(|| {
        // A date is compared with the server's own clock, which need not be ours.
        let until = http_date(value)?;
        let now = http_date(header("date")?)?;
        Some(Duration::from_secs(until.saturating_sub(now)))
    })
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` in seconds since 1970.
fn http_date(text: &str) -> Option<u64> {
    let rest = text.split_once(", ")?.1;
    let mut words = rest.split([' ', ':']);
    let day: u64 = words.next()?.parse().ok()?;
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let name = words.next()?;
    let month = months.iter().position(|month| *month == name)? as u64 + 1;
    let mut number = || words.next()?.parse::<u64>().ok();
    let (year, hour, minute, second) = (number()?, number()?, number()?, number()?);
    // The header is a stranger's: what a date cannot hold must not reach the arithmetic.
    if year > 9999 || day > 31 || hour > 24 || minute > 60 || second > 60 {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, with years that begin in March so that leap days come last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = (365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
        .checked_sub(719_469)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// One line of reasonable length.
pub(crate) fn tidy(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    let line = words.join(" ");
    let line = line.trim_end_matches('.');
    match line.char_indices().nth(500) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The longest wait that is done without asking.
const LONGEST: Duration = Duration::from_secs(90);

/// How long to wait before the next attempt; `None` if it is better to give up. `chance` is between 0 and 1: many
/// clients that were refused together shall not come back together.
pub(crate) fn pause(fault: &Fault, attempt: u32, base: Duration, chance: f64) -> Option<Duration> {
    if !fault.again {
        return None;
    }
    let doubled = base.saturating_mul(1 << attempt.min(16)).min(LONGEST);
    let jittered = doubled.mul_f64(0.75 + chance.clamp(0.0, 1.0) * 0.5);
    match fault.after {
        Some(after) if after > LONGEST => None,
        Some(after) => Some(after.max(jittered.min(Duration::from_secs(1)))),
        None => Some(jittered),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(status: u16, body: &str) -> Fault {
        of_answer(status, body, |_| None)
    }

    #[test]
    fn errors_of_all_providers_are_understood() {
        let anthropic =
            |kind: &str| format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"m"}}}}"#);
        let cases: Vec<(Fault, ModelError, bool)> = vec![
            (read(401, &anthropic("authentication_error")), ModelError::Auth("m".into()), false),
            (read(529, &anthropic("overloaded_error")), ModelError::Overloaded("m".into()), true),
            (read(429, "{}"), ModelError::RateLimited { after: None, message: "{}".into() }, true),
            (
                read(
                    400,
                    r#"{"error":{"message":"Prompt is too long: 3 > 2","type":"invalid_request_error"}}"#,
                ),
                ModelError::TooLong("Prompt is too long: 3 > 2".into()),
                false,
            ),
            (
                read(429, r#"{"error":{"message":"no money","code":"insufficient_quota"}}"#),
                ModelError::Other { status: Some(429), message: "no money".into() },
                false,
            ),
            (
                read(
                    400,
                    r#"[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]"#,
                ),
                ModelError::Auth("API key not valid".into()),
                false,
            ),
            (read(404, r#"{"error":"model 'x' not found"}"#), other(404, "model 'x' not found"), false),
            (read(422, r#"{"detail":"no such field"}"#), other(422, "no such field"), false),
            (read(400, r#"{"object":"error","message":"bad","code":40303}"#), other(400, "bad"), false),
            (read(502, "<html>"), other(502, "a web page instead of an answer"), true),
            (read(500, ""), other(500, "nothing said about it"), true),
            (
                of_stream(
                    &serde_json::json!({"type":"error","error":{"type":"overloaded_error","message":"busy."}}),
                ),
                ModelError::Overloaded("busy".into()),
                true,
            ),
            (
                of_stream(&serde_json::json!({"error":{"code":429,"message":"slow"}})),
                ModelError::RateLimited { after: None, message: "slow".into() },
                true,
            ),
        ];
        for (fault, error, again) in cases {
            assert_eq!((&fault.error, fault.again), (&error, again));
        }
    }

    fn other(status: u16, message: &str) -> ModelError {
        ModelError::Other { status: Some(status), message: message.into() }
    }

    #[test]
    fn the_provider_says_when_to_come_back() {
        let headers = |pairs: &'static [(&str, &str)]| {
            wait(move |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
        };
        assert_eq!(headers(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(
            headers(&[("retry-after-ms", "250"), ("retry-after", "7")]),
            Some(Duration::from_millis(250))
        );
        assert_eq!(headers(&[("retry-after", "soon")]), None);
        let dates = headers(&[
            ("retry-after", "Fri, 01 Mar 2024 00:00:05 GMT"),
            ("date", "Thu, 29 Feb 2024 23:59:50 GMT"),
        ]);
        assert_eq!(dates, Some(Duration::from_secs(15)));
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        let body =
            r#"{"error":{"code":429,"message":"m","details":[{"@type":"x.RetryInfo","retryDelay":"1.5s"}]}}"#;
        assert_eq!(read(429, body).after, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn waits_grow_scatter_and_end() {
        let base = Duration::from_secs(1);
        let fault = |after| Fault { error: ModelError::Overloaded(String::new()), again: true, after };
        assert_eq!(pause(&fault(None), 0, base, 0.5), Some(base));
        assert_eq!(pause(&fault(None), 3, base, 0.0), Some(Duration::from_secs(6)));
        assert_eq!(pause(&fault(None), 3, base, 1.0), Some(Duration::from_secs(10)));
        assert!(pause(&fault(None), 60, base, 1.0).unwrap() <= LONGEST * 2);
        let five = Duration::from_secs(5);
        assert_eq!(pause(&fault(Some(five)), 0, base, 0.5), Some(five));
        assert_eq!(pause(&fault(Some(Duration::from_secs(3600))), 0, base, 0.5), None);
        assert_eq!(pause(&Fault::last(ModelError::Overloaded(String::new())), 0, base, 0.5), None);
    }
}
