//! The failure of a command: message, hints, and the exit code for scripts.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The kind of a failure, by which scripts distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// The command line or a file of settings is wrong.
    Usage,
    /// The agent, the protocol, the system.
    Runtime,
    /// A time limit ran out.
    Timeout,
    /// The session does not exist.
    NoSession,
    /// Everything that the agent asked for was denied.
    PermissionDenied,
    /// A user had to be asked, and there is no terminal.
    PromptUnavailable,
    /// SIGINT or SIGTERM.
    Interrupted,
}

impl Kind {
    /// The exit code of the program.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Kind::Runtime => 1,
            Kind::Usage => 2,
            Kind::Timeout => 3,
            Kind::NoSession => 4,
            Kind::PermissionDenied | Kind::PromptUnavailable => 5,
            Kind::Interrupted => 130,
        }
    }

    /// The name in JSON and in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Usage => "USAGE",
            Kind::Runtime => "RUNTIME",
            Kind::Timeout => "TIMEOUT",
            Kind::NoSession => "NO_SESSION",
            Kind::PermissionDenied => "PERMISSION_DENIED",
            Kind::PromptUnavailable => "PERMISSION_PROMPT_UNAVAILABLE",
            Kind::Interrupted => "INTERRUPTED",
        }
    }

    /// The code of the JSON-RPC error that `--format json` prints.
    pub(crate) fn json_code(self) -> i32 {
        match self {
            Kind::NoSession => -32002,
            Kind::Timeout => -32070,
            Kind::PermissionDenied => -32071,
            Kind::PromptUnavailable => -32072,
            Kind::Usage => -32602,
            Kind::Runtime => -32603,
            Kind::Interrupted => -32800,
        }
    }
}

/// The cause of a failure, finer than its kind. Scripts read the name, and commands act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum DetailCode {
    AgentDisconnected,
    AgentSilent,
    AgentSpawnEnoent,
    AgentSpawnFailed,
    AgentUnreachable,
    AuthFailed,
    AuthRequired,
    BudgetExceeded,
    Cancelled,
    ChecksumMismatch,
    ExecDisabled,
    ForkUnsupported,
    ModelUnsupported,
    /// Our own agent has no model.
    NoModel,
    OptionUnknown,
    OutputClosed,
    OwnerGone,
    QueueFull,
    ResumeUnsupported,
    SessionBusy,
    SessionInChat,
    /// The session's process has narrower limits than the command.
    SessionNeedsRestart,
    SessionResumeRequired,
    WatchCursorForeign,
    WatchCursorFuture,
    WatchCursorInvalid,
    WatchOutcomeUnknown,
}

impl DetailCode {
    /// The name in JSON and in messages.
    pub(crate) fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// A failure, as it is shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// The cause. Unknown if another version of this program reported it.
    #[serde(default, deserialize_with = "crate::lenient::lenient")]
    pub(crate) detail: Option<DetailCode>,
    pub(crate) message: String,
    /// The last lines that the agent printed on its stderr.
    pub(crate) stderr: Vec<String>,
    /// How to fix it, a line each.
    pub(crate) hints: Vec<String>,
    /// The error that the agent answered with, if it was one.
    pub(crate) answered: Option<attache::ErrorObject>,
    /// Whether the user has seen it already, as a message of the agent.
    #[serde(skip)]
    pub(crate) shown: bool,
}

impl Failure {
    /// Whether our own agent has no model.
    pub(crate) fn is_missing_model(&self) -> bool {
        self.detail == Some(DetailCode::NoModel)
    }

    /// Whether the peer answered with an error that may not come again: an internal error, or an
    /// HTTP status that says so. The protocol has no code for rate limits and overload. Most agents
    /// answer them with an internal error, and some put the status of their provider in the place
    /// of the code or into `data`.
    pub(crate) fn is_temporary(&self) -> bool {
        let Some(error) = &self.answered else { return false };
        let is_temporary = |status: i64| matches!(status, 408 | 429 | 500..=599);
        let data: Value =
            error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
        error.code == attache::code::INTERNAL_ERROR
            || is_temporary(error.code.into())
            || ["status", "statusCode"].iter().any(|key| data[key].as_i64().is_some_and(is_temporary))
    }

    pub(crate) fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Failure {
            kind,
            detail: None,
            message: message.to_string(),
            stderr: Vec::new(),
            hints: Vec::new(),
            answered: None,
            shown: false,
        }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Failure::new(Kind::Usage, message)
    }

    pub(crate) fn runtime(message: impl fmt::Display) -> Self {
        Failure::new(Kind::Runtime, message)
    }

    pub(crate) fn interrupted() -> Self {
        Failure::new(Kind::Interrupted, "interrupted")
    }

    /// The output cannot be written. A closed pipe is not reported.
    pub(crate) fn write_error(error: &std::io::Error) -> Self {
        let mut failure = Failure::runtime(format_args!("cannot write the output: {error}"))
            .detail(DetailCode::OutputClosed);
        failure.shown = error.kind() == std::io::ErrorKind::BrokenPipe;
        failure
    }

    /// Whether the output could not be written.
    pub(crate) fn is_write_error(&self) -> bool {
        self.detail == Some(DetailCode::OutputClosed)
    }

    #[must_use]
    pub(crate) fn detail(mut self, detail: DetailCode) -> Self {
        self.detail = Some(detail);
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the last lines of the agent's stderr that the message does not quote already.
    #[must_use]
    pub(crate) fn stderr<'a>(mut self, lines: impl DoubleEndedIterator<Item = &'a str>) -> Self {
        let lines = lines.rev().map(|line| bounded(line.trim_end(), STDERR_LINE));
        // A word alone may be in any message.
        let quoted = |line: &str| line.contains(' ') && self.message.contains(line);
        let new = lines.filter(|line| !line.trim().is_empty() && !quoted(line.trim()));
        self.stderr = new.take(STDERR_LINES).collect();
        self.stderr.reverse();
        self
    }

    /// All of it as one text, for the chat.
    pub(crate) fn text(&self) -> String {
        let mut text = self.message.clone();
        if !self.stderr.is_empty() {
            text.push_str("\nstderr:");
        }
        let stderr = self.stderr.iter().map(|line| format!("\n  {line}"));
        text.extend(stderr.chain(self.hints.iter().map(|hint| format!("\nhint: {hint}"))));
        text
    }

    /// Adds the context of a failure.
    #[must_use]
    pub(crate) fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<attache_registry::Error> for Failure {
    fn from(error: attache_registry::Error) -> Self {
        use attache_registry::ErrorKind;
        let mut failure = match error.kind() {
            ErrorKind::Settings => Failure::usage(&error),
            ErrorKind::ChecksumMismatch => Failure::runtime(&error).detail(DetailCode::ChecksumMismatch),
            _ => Failure::runtime(&error),
        };
        failure.hints.extend_from_slice(error.hints());
        failure
    }
}

impl From<attache::Error> for Failure {
    fn from(error: attache::Error) -> Self {
        match error {
            attache::Error::Refused(answer) => {
                let mut failure = Failure::runtime(reason(&answer));
                if answer.code == attache::code::AUTH_REQUIRED {
                    failure.detail = Some(DetailCode::AuthRequired);
                }
                failure.answered = Some(answer);
                failure
            }
            attache::Error::Closed(closed) => Failure::runtime(closed.cause())
                .detail(DetailCode::AgentDisconnected)
                .stderr(closed.stderr_tail.lines()),
            attache::Error::Cancelled => Failure::interrupted(),
            error => Failure::runtime(error),
        }
    }
}

/// How many lines of an agent's stderr are shown, and how much of each.
const STDERR_LINES: usize = 8;
const STDERR_LINE: usize = 400;
/// How much of the details of an error is shown.
const DETAILS: usize = 2000;
/// How deep details are looked for.
const DEPTH: usize = 4;

/// An error that a peer answered with: its message, and the cause in its `data`.
pub(crate) fn reason(error: &attache::ErrorObject) -> String {
    let message = bounded(error.message.trim(), DETAILS);
    let data = error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok());
    match data.as_ref().and_then(|data| details(data, DEPTH)).map(|details| bounded(&details, DETAILS)) {
        None => message,
        Some(details) if message.is_empty() || details.contains(&message) => details,
        Some(details) if message.contains(&details) => message,
        Some(details) => format!("{message}: {details}"),
    }
}

/// The words in the `data` of an error, wherever agents put them.
fn details(data: &Value, depth: usize) -> Option<String> {
    const KEYS: [&str; 8] =
        ["details", "detail", "message", "error", "reason", "cause", "description", "stderr"];
    match data {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Object(object) if depth > 0 => {
            let found = KEYS.iter().find_map(|key| details(object.get(*key)?, depth - 1));
            found.or_else(|| (!object.is_empty()).then(|| data.to_string()))
        }
        Value::Array(items) if depth > 0 => {
            let parts: Vec<String> =
                items.iter().take(8).filter_map(|item| details(item, depth - 1)).collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        }
        Value::Null | Value::Bool(_) => None,
        other => Some(other.to_string()),
    }
}

/// The beginning of a text, with an ellipsis for the rest.
fn bounded(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Adds the failed operation to an error.
pub(crate) trait Context<T> {
    fn context(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Failure::runtime(format_args!("{what}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn shown(data: Value) -> String {
        let error = json!({ "code": -32603, "message": "Internal error", "data": data });
        reason(&serde_json::from_value(error).unwrap())
    }

    #[test]
    fn temporary_errors_are_known_by_code_and_data() {
        let is_temporary = |error: Value| {
            let error: attache::ErrorObject = serde_json::from_value(error).unwrap();
            Failure::from(attache::Error::Refused(error)).is_temporary()
        };
        for error in [
            json!({"code": -32603, "message": "x"}),
            json!({"code": 429, "message": "x"}),
            json!({"code": 529, "message": "x", "data": null}),
            json!({"code": -32000, "message": "x", "data": {"status": 429}}),
            json!({"code": -32099, "message": "x", "data": {"status": "error", "statusCode": 503}}),
        ] {
            assert!(is_temporary(error.clone()), "{error}");
        }
        for error in [
            json!({"code": -32000, "message": "log in: rate limit, 429, overloaded"}),
            json!({"code": -32602, "message": "timeout", "data": {"status": 400}}),
            json!({"code": 404, "message": "x", "data": "503"}),
            json!({"code": -32000, "message": "x", "data": {"status": "429"}}),
        ] {
            assert!(!is_temporary(error.clone()), "{error}");
        }
        assert!(!Failure::runtime("429").is_temporary());
    }

    #[test]
    fn the_cause_of_an_error_is_shown_wherever_it_is() {
        for data in [
            json!("no key"),
            json!({ "details": "no key" }),
            json!({ "message": "no key", "code": 7 }),
            json!({ "error": { "message": "no key" } }),
            json!({ "error": { "error": { "details": "no key" } } }),
            json!([{ "message": "no key" }]),
            json!({ "details": "", "reason": "no key" }),
        ] {
            assert_eq!(shown(data.clone()), "Internal error: no key", "{data}");
        }
        assert_eq!(shown(json!({ "status": 500 })), "Internal error: {\"status\":500}");
        for data in [json!(null), json!({}), json!(""), json!([]), json!("Internal error")] {
            assert_eq!(shown(data), "Internal error");
        }
        let deep = (0..100).fold(json!("x"), |data, _| json!({ "error": data }));
        assert!(shown(deep).len() < 3000);
        assert!(shown(json!("x".repeat(1 << 20))).len() < 3000);
    }

    #[test]
    fn of_stderr_the_end_is_shown_and_nothing_twice() {
        let lines: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
        let failure = Failure::runtime("it ended: line 19").stderr(lines.iter().map(String::as_str));
        assert_eq!(failure.stderr.first().unwrap(), "line 11");
        assert_eq!(failure.stderr.last().unwrap(), "line 18");
        let failure = Failure::runtime("it ended").stderr("a\n\n  b\n".lines()).hint("try again");
        assert_eq!(failure.text(), "it ended\nstderr:\n  a\n    b\nhint: try again");
    }
}
