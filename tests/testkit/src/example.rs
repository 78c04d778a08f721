//! Example files: one JSON object per line, split at 0x0A only, because a text may hold U+2028.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// One line of an example file.
#[derive(Debug, Clone)]
pub struct Example {
    /// Its id, unique in its file.
    pub id: String,
    /// The protocol version it belongs to.
    pub version: u64,
    /// The source of the form: `stable`, `unstable`, `proxy`, or the name of an earlier draft.
    pub tier: String,
    /// The direction: `c2a`, `a2c`, `both`, `cond`.
    pub dir: String,
    /// `request`, `response`, `error`, `notification`, `envelope`, `raw`, `http`.
    pub kind: String,
    /// The method, also of a response.
    pub method: String,
    /// The type of params, result or error.
    pub ty: String,
    /// The rule that it breaks (invalid examples).
    pub rule: String,
    /// The class of an invalid line; `None` for a valid one.
    pub class: Option<String>,
    /// The expected behaviour (invalid examples).
    pub expect: Value,
    /// The reason why it is invalid.
    pub why: String,
    /// The value that another reader returns (class `lenient`).
    pub reads_as: Option<Value>,
    /// The message as JSON.
    pub message: Value,
    /// The line that goes over the wire.
    pub text: String,
}

/// Reads a whole file.
pub fn read(bytes: &[u8]) -> Result<Vec<Example>, String> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(place, line)| parse(line, place + 1))
        .collect()
}

fn parse(line: &[u8], place: usize) -> Result<Example, String> {
    let fail = |error: serde_json::Error| format!("line {place}: {error}");
    let entry: Map<String, Value> = serde_json::from_slice(line).map_err(fail)?;
    // The message is taken as text too: a number beyond 64 bits does not survive a `Value`.
    let raw: std::collections::HashMap<String, Box<RawValue>> = serde_json::from_slice(line).map_err(fail)?;
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let sent = match (entry.get("raw"), raw.get("message")) {
        (Some(Value::String(raw)), _) => raw.clone(),
        (_, Some(message)) => message.get().to_owned(),
        _ => String::new(),
    };
    Ok(Example {
        id: text("id"),
        version: entry.get("v").and_then(Value::as_u64).unwrap_or(1),
        tier: text("tier"),
        dir: text("dir"),
        kind: text("kind"),
        method: text("method"),
        ty: text("type"),
        rule: text("rule"),
        class: entry.get("cls").and_then(Value::as_str).map(str::to_owned),
        expect: entry.get("expect").cloned().unwrap_or_default(),
        why: text("why"),
        reads_as: entry.get("crate_reads_as").cloned(),
        message: entry.get("message").cloned().unwrap_or_default(),
        text: sent,
    })
}

impl Example {
    /// The params, result or error of the message, as text; `null` if there is none.
    pub fn payload(&self) -> String {
        let members: std::collections::HashMap<String, Box<RawValue>> =
            serde_json::from_str(&self.text).unwrap_or_default();
        let payload = ["params", "result", "error"].iter().find_map(|name| members.get(*name));
        payload.map_or_else(|| "null".to_owned(), |raw| raw.get().to_owned())
    }

    /// Whether the message is a request, also one whose id is the mistake.
    pub fn is_request(&self) -> bool {
        self.kind == "request"
            || (self.kind == "envelope"
                && ["id", "method"].iter().all(|name| self.message.get(*name).is_some()))
    }

    /// Whether the message is a response.
    pub fn is_answer(&self) -> bool {
        matches!(self.kind.as_str(), "response" | "error")
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn only_a_line_feed_ends_a_line() {
        let text =
            "{\"id\":\"a\",\"message\":{\"x\":\"\u{2028}\u{85}\"}}\n\n{\"id\":\"b\",\"raw\":\"oops\"}\n";
        let lines = read(text.as_bytes()).expect("two lines");
        assert_eq!(lines.len(), 2);
        assert!(lines[0].text.contains('\u{2028}'));
        assert_eq!(lines[1].text, "oops");
    }
}
