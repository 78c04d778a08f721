//! Why a model did not answer: one table for the errors of all providers, and when to retry.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;

/// Why a model did not answer. The message contains no key: provider texts are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The pause that the provider asks for.
    pub retry_after: Option<Duration>,
    /// Whether another attempt may succeed.
    pub is_retryable: bool,
    /// The provider's text.
    pub message: String,
}

/// Kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The key is missing, wrong or not allowed to use the model.
    Auth,
    /// Too many requests or tokens.
    RateLimited,
    /// The provider is overloaded.
    Overloaded,
    /// The provider refused the content of the request.
    Refused,
    /// The conversation does not fit the model's window.
    TooLong,
    /// The provider cannot be reached, timed out, or closed the connection.
    Network,
    /// The provider's response is malformed.
    Protocol,
    /// Any other error of the provider.
    Other,
}

impl ErrorKind {
    /// All kinds with their names in scripts.
    pub(super) const NAMES: [(&str, ErrorKind); 8] = [
        ("auth", ErrorKind::Auth),
        ("rate_limited", ErrorKind::RateLimited),
        ("overloaded", ErrorKind::Overloaded),
        ("refused", ErrorKind::Refused),
        ("too_long", ErrorKind::TooLong),
        ("network", ErrorKind::Network),
        ("protocol", ErrorKind::Protocol),
        ("other", ErrorKind::Other),
    ];
}

impl ModelError {
    /// An error that another attempt cannot fix.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ModelError { kind, status: None, retry_after: None, is_retryable: false, message: message.into() }
    }

    pub(crate) fn network(message: impl Into<String>) -> Self {
        ModelError { is_retryable: true, ..ModelError::new(ErrorKind::Network, message) }
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        ModelError::new(ErrorKind::Protocol, message)
    }

    /// The error of an HTTP response. `header` looks up headers of the response.
    pub(super) fn from_response<'a>(
        status: u16,
        body: &str,
        header: impl Fn(&str) -> Option<&'a str>,
    ) -> Self {
        let details = Details::read(&serde_json::from_str(body).unwrap_or_default());
        let message = match &details.message {
            Some(message) => tidy(message),
            None if body.trim_start().starts_with('<') => "a web page instead of a response".to_owned(),
            None if body.trim().is_empty() => "no details".to_owned(),
            None => tidy(body),
        };
        let retry_after = retry_after(&header).or(details.retry_after);
        classify(Some(status), &details.kind, message, retry_after)
    }

    /// The error in a message of a stream.
    pub(super) fn from_stream(value: &Value) -> Self {
        let details = Details::read(value);
        let message = details.message.unwrap_or_else(|| "the provider stopped without a reason".to_owned());
        classify(details.status, &details.kind, tidy(&message), details.retry_after)
    }

    /// The pause before the next attempt; `None` if there should be none. `random` is between 0 and
    /// 1 and keeps clients that failed together from retrying together.
    pub(super) fn pause(&self, attempt: u32, base: Duration, random: f64) -> Option<Duration> {
        if !self.is_retryable {
            return None;
        }
        let doubled = base.saturating_mul(1 << attempt.min(16)).min(LONGEST_PAUSE);
        let jittered = doubled.mul_f64(0.75 + random.clamp(0.0, 1.0) * 0.5);
        match self.retry_after {
            Some(after) if after > LONGEST_PAUSE => None,
            Some(after) => Some(after.max(jittered.min(Duration::from_secs(1)))),
            None => Some(jittered),
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (problem, advice) = match (self.kind, self.status, self.retry_after) {
            (ErrorKind::Auth, ..) => ("the provider does not accept the key: ", "set a valid key"),
            (ErrorKind::RateLimited, _, Some(after)) => {
                let seconds = after.as_secs().max(1);
                return write!(f, "too many requests: {}; try again in {seconds} s", self.message);
            }
            (ErrorKind::RateLimited, ..) => {
                ("too many requests: ", "try again later or choose another model")
            }
            // Providers say little more than that.
            (ErrorKind::Overloaded, ..) if self.message.to_ascii_lowercase().contains("overloaded") => {
                return f.write_str("the provider is overloaded; try again later or choose another model");
            }
            (ErrorKind::Overloaded, ..) => {
                ("the provider is overloaded: ", "try again later or choose another model")
            }
            (ErrorKind::Refused, ..) => ("the provider refused: ", "rephrase the prompt"),
            (ErrorKind::TooLong, ..) => {
                ("the conversation does not fit the model: ", "compact it or start a new session")
            }
            (ErrorKind::Network, ..) => ("", "check the connection and try again"),
            (ErrorKind::Protocol, ..) => {
                ("the provider's response is malformed: ", "check its base URL and the model")
            }
            (ErrorKind::Other, Some(status), _) => {
                let advice = "check the model's name and the settings";
                return write!(f, "the provider responded with status {status}: {}; {advice}", self.message);
            }
            (ErrorKind::Other, ..) => ("the provider failed: ", "try again"),
        };
        write!(f, "{problem}{}; {advice}", self.message)
    }
}

impl std::error::Error for ModelError {}

/// A line of the error table: the statuses or words that it matches, the kind, and whether a retry
/// may succeed.
type Rule = (&'static [RangeInclusive<u16>], &'static [&'static str], ErrorKind, bool);

/// The first rule that matches the status or a word of the error decides.
const RULES: &[Rule] = &[
    // Some report an empty account with 429, which waiting does not change.
    (&[], &["insufficient_quota", "billing", "credit balance"], ErrorKind::Other, false),
    (&[401..=401, 403..=403], &[], ErrorKind::Auth, false),
    (&[429..=429], &[], ErrorKind::RateLimited, true),
    (&[503..=503, 529..=529], &[], ErrorKind::Overloaded, true),
    (&[408..=409, 500..=599], &[], ErrorKind::Other, true),
    (&[413..=413], TOO_LONG, ErrorKind::TooLong, false),
    (&[], &["overloaded", "unavailable"], ErrorKind::Overloaded, true),
    (
        &[],
        &["rate_limit", "rate limit", "resource_exhausted", "too many requests"],
        ErrorKind::RateLimited,
        true,
    ),
    (
        &[],
        &["authentication_error", "permission_error", "invalid_api_key", "api key not valid"],
        ErrorKind::Auth,
        false,
    ),
    (&[], &["content_policy", "content_filter", "safety"], ErrorKind::Refused, false),
];

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

/// Words of an error without a status that a retry may fix.
const TEMPORARY: &[&str] = &["api_error", "server_error", "internal"];

fn classify(status: Option<u16>, kind: &str, message: String, retry_after: Option<Duration>) -> ModelError {
    let words = format!("{kind} {message}").to_lowercase();
    let has = |list: &[&str]| list.iter().any(|word| words.contains(word));
    let matches = |(statuses, list, ..): &&Rule| {
        status.is_some_and(|status| statuses.iter().any(|range| range.contains(&status))) || has(list)
    };
    let (kind, is_retryable) = match RULES.iter().find(matches) {
        Some((.., kind, is_retryable)) => (*kind, *is_retryable),
        None => (ErrorKind::Other, status.is_none() && has(TEMPORARY)),
    };
    ModelError { kind, status, retry_after, is_retryable, message }
}

/// Details of an error body, in any provider's form.
#[derive(Default)]
struct Details {
    kind: String,
    message: Option<String>,
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl Details {
    fn read(value: &Value) -> Self {
        // Gemini wraps errors in a list; FastAPI names them `detail`; some have no wrapper.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").or_else(|| value.get("detail")).unwrap_or(value);
        if let Some(text) = error.as_str() {
            return Details { message: Some(text.to_owned()), ..Details::default() };
        }
        let text = |key: &str| error.get(key).and_then(Value::as_str);
        let words: Vec<&str> = ["type", "code", "status"].into_iter().filter_map(text).collect();
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        // OpenRouter passes on the provider's own message here.
        let raw = error.pointer("/metadata/raw").and_then(Value::as_str);
        let message = text("message").map(|message| match raw {
            Some(raw) => format!("{message}: {raw}"),
            None => message.to_owned(),
        });
        // Gemini: `{"@type": "…RetryInfo", "retryDelay": "17s"}` among the details.
        let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
        let delay = { details }.find_map(|detail| detail.get("retryDelay")?.as_str());
        Details {
            kind: words.join(" "),
            message,
            status: code.filter(|code| (400..600).contains(code)),
            retry_after: delay.and_then(|delay| seconds(delay.strip_suffix('s')?)),
        }
    }
}

/// `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    if let Some(millis) = header("retry-after-ms").and_then(|value| value.trim().parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let value = header("retry-after")?.trim();
    seconds(value).or_else(|| {
        // A date is relative to the server's clock, not ours.
        let (until, now) = (http_date(value)?, http_date(header("date")?)?);
        Some(Duration::from_secs(u64::try_from(until.saturating_sub(now)).unwrap_or(0)))
    })
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` in seconds since 1970.
fn http_date(text: &str) -> Option<i64> {
    Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_second())
}

/// The text on one line of reasonable length.
pub(super) fn tidy(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    let line = words.join(" ");
    let line = line.trim_end_matches('.');
    match line.char_indices().nth(500) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The longest pause before a retry.
const LONGEST_PAUSE: Duration = Duration::from_secs(90);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(status: u16, body: &str) -> ModelError {
        ModelError::from_response(status, body, |_| None)
    }

    #[test]
    fn errors_of_all_providers_are_understood() {
        use ErrorKind::{Auth, Other, Overloaded, RateLimited, TooLong};
        let anthropic =
            |kind: &str| format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"m"}}}}"#);
        let stream = |body: &str| ModelError::from_stream(&serde_json::from_str(body).unwrap());
        for (error, kind, message, is_retryable) in [
            (read(401, &anthropic("authentication_error")), Auth, "m", false),
            (read(529, &anthropic("overloaded_error")), Overloaded, "m", true),
            (read(429, "{}"), RateLimited, "{}", true),
            (
                read(
                    400,
                    r#"{"error":{"message":"Prompt is too long: 3 > 2","type":"invalid_request_error"}}"#,
                ),
                TooLong,
                "Prompt is too long: 3 > 2",
                false,
            ),
            (
                read(429, r#"{"error":{"message":"no money","code":"insufficient_quota"}}"#),
                Other,
                "no money",
                false,
            ),
            (
                read(
                    400,
                    r#"[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]"#,
                ),
                Auth,
                "API key not valid",
                false,
            ),
            (read(404, r#"{"error":"model 'x' not found"}"#), Other, "model 'x' not found", false),
            (read(422, r#"{"detail":"no such field"}"#), Other, "no such field", false),
            (read(400, r#"{"object":"error","message":"bad","code":40303}"#), Other, "bad", false),
            (read(502, "<html>"), Other, "a web page instead of a response", true),
            (read(500, ""), Other, "no details", true),
            (
                stream(r#"{"type":"error","error":{"type":"overloaded_error","message":"busy."}}"#),
                Overloaded,
                "busy",
                true,
            ),
            (stream(r#"{"error":{"code":429,"message":"slow"}}"#), RateLimited, "slow", true),
        ] {
            assert_eq!(
                (error.kind, error.message.as_str(), error.is_retryable),
                (kind, message, is_retryable)
            );
        }
        let busy = read(529, r#"{"error":{"message":"The model is overloaded, try again later"}}"#);
        assert_eq!(busy.to_string(), "the provider is overloaded; try again later or choose another model");
        assert_eq!((read(404, "").status, read(400, "safety").kind), (Some(404), ErrorKind::Refused));
    }

    #[test]
    fn the_provider_says_when_to_retry() {
        let headers = |pairs: &'static [(&str, &str)]| {
            let lookup =
                move |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            retry_after(lookup)
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
        assert_eq!(read(429, body).retry_after, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn pauses_grow_scatter_and_end() {
        let base = Duration::from_secs(1);
        let error = |retry_after| ModelError { retry_after, ..ModelError::network("") };
        assert_eq!(error(None).pause(0, base, 0.5), Some(base));
        assert_eq!(error(None).pause(3, base, 0.0), Some(Duration::from_secs(6)));
        assert_eq!(error(None).pause(3, base, 1.0), Some(Duration::from_secs(10)));
        assert!(error(None).pause(60, base, 1.0).unwrap() <= LONGEST_PAUSE * 2);
        let five = Duration::from_secs(5);
        assert_eq!(error(Some(five)).pause(0, base, 0.5), Some(five));
        assert_eq!(error(Some(Duration::from_secs(3600))).pause(0, base, 0.5), None);
        assert_eq!(ModelError::new(ErrorKind::Overloaded, "").pause(0, base, 0.5), None);
    }
}
