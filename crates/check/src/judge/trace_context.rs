//! Names in `_meta` that belong to W3C trace context.

// EXT-10

use std::collections::BTreeSet;

use serde_json::Value;

use super::{EventLog, Findings, Kind, Message, Watcher};
use crate::Role;

/// Looks at what stands under the reserved names, at the root of `_meta`.
#[derive(Default)]
pub(super) struct TraceContext {
    /// Values by sender, agent first: a peer that repeats a value of the other is not its author.
    said: [BTreeSet<String>; 2],
}

const NAMES: [&str; 3] = ["traceparent", "tracestate", "baggage"];

impl Watcher for TraceContext {
    fn rules(&self) -> &'static [&'static str] {
        &["EXT-10"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        let who = usize::from(message.from == Role::Client);
        for meta in places(log, message) {
            for name in NAMES {
                let value = &meta[name];
                let words = format!("{name}={value}");
                if value.is_null() || self.said[1 - who].contains(&words) {
                    continue;
                }
                out.check("EXT-10", message, fits(name, value), || {
                    format!("`{name}` of `_meta` is {value}, which is nothing of W3C trace context")
                });
                self.said[who].insert(words);
            }
        }
    }
}

/// The `_meta` of a message of the protocol. What extensions send is their own affair.
fn places<'a>(log: &'a EventLog, message: &'a Message) -> Vec<&'a Value> {
    match &message.kind {
        Kind::Request { method, params, .. } | Kind::Notification { method, params }
            if !method.starts_with('_') =>
        {
            vec![&params["_meta"], &params["update"]["_meta"]]
        }
        _ => match log.response(message) {
            Some((asked, Ok(result))) if !asked.method.starts_with('_') => vec![&result["_meta"]],
            _ => Vec::new(),
        },
    }
}

/// The form only: whether such a trace exists is for others to know.
fn fits(name: &str, value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    if name != "traceparent" {
        // Both are lists of `key=value`, in which blanks between commas are allowed.
        return text.split(',').all(|member| member.trim().is_empty() || member.contains('='));
    }
    // A later version may have more behind the four fields.
    let mut fields = text.split('-');
    let hex = |field: &str, digits: usize| {
        field.len() == digits && field.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    [2, 32, 16, 2].into_iter().all(|digits| fields.next().is_some_and(|field| hex(field, digits)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fits;

    #[test]
    fn trace_context_is_recognised() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(fits("traceparent", &json!(parent)));
        assert!(fits("traceparent", &json!(format!("cc-{}-more", &parent[3..]))));
        assert!(fits("tracestate", &json!("rojo=00f067aa0ba902b7, ,congo=t61rcWkgMzE")));
        assert!(fits("tracestate", &json!("")));
        assert!(fits("baggage", &json!("userId=alice;p=1,region = eu")));
        for odd in [json!("00-1-2-01"), json!(parent[1..]), json!("my parent"), json!(1), json!({})] {
            assert!(!fits("traceparent", &odd), "{odd}");
        }
        assert!(!fits("tracestate", &json!("running")));
        assert!(!fits("baggage", &json!(["a=b"])));
    }
}
