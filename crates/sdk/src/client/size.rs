//! Size limits of messages by their kind.
//!
//! The frame limit leaves room for files and images. Other messages are small, and large ones are
//! refused before they are decoded, because a typed value can take many times the memory of its
//! text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use attache_wire::AnyStr;

/// Updates up to this size are accepted whatever their kind.
const SMALL_UPDATE: usize = 1 << 20;
/// A permission request with its tool call.
pub(super) const PERMISSION: usize = 6 << 20;
/// A form, or the address of a page.
pub(super) const ELICITATION: usize = 256 << 10;
/// A command line with its variables.
pub(super) const COMMAND: usize = 1 << 20;
/// A request that only holds names.
pub(super) const NAMES: usize = 64 << 10;
/// A response.
const ANSWER: usize = 4 << 20;
/// The id of an elicitation, which is remembered.
pub(super) const ELICITATION_ID: usize = 1 << 10;

/// Updates that carry contents.
const CONTENTS: &[&str] = &[
    "agent_message_chunk",
    "agent_thought_chunk",
    "user_message_chunk",
    "tool_call",
    "tool_call_update",
    "compaction_summary_chunk",
    "session_message",
    "session_message_chunk",
    "agent_message",
    "agent_thought",
    "user_message",
    "tool_call_content_chunk",
    "terminal_update",
    "terminal_output_chunk",
];

/// Refuses an update that is too large for its kind.
pub(super) fn check_update(params: &str) -> Result<(), String> {
    if params.len() <= SMALL_UPDATE {
        return Ok(());
    }
    match update_kind(params) {
        Ok(kind) if CONTENTS.contains(&&*kind) => Ok(()),
        Ok(kind) => {
            let kind: String = kind.chars().take(40).collect();
            Err(format!("an update `{kind}` of {} bytes is too large", params.len()))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Refuses a response that is too large.
pub(super) fn check_answer(result: &str) -> Result<(), String> {
    check(result.len(), ANSWER)
}

pub(super) fn check(bytes: usize, limit: usize) -> Result<(), String> {
    match bytes <= limit {
        true => Ok(()),
        false => Err(format!("{bytes} bytes are more than {limit}")),
    }
}

/// Returns `update.sessionUpdate`. Reads no further than that member, which usually comes first.
fn update_kind(params: &str) -> serde_json::Result<Cow<'_, str>> {
    let mut kind = None;
    let mut json = serde_json::Deserializer::from_str(params);
    let read = Member("update", Member("sessionUpdate", Keep(&mut kind))).deserialize(&mut json);
    match (kind, read) {
        // Stopping early is an error of the parser.
        (Some(kind), _) => Ok(kind),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Err(serde::de::Error::missing_field("sessionUpdate")),
    }
}

/// Keeps a string.
struct Keep<'k, 'de>(&'k mut Option<Cow<'de, str>>);

impl<'de> DeserializeSeed<'de> for Keep<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        *self.0 = Some(AnyStr.deserialize(deserializer)?);
        Ok(())
    }
}

/// Reads one member of an object by a seed and stops there.
struct Member<S>(&'static str, S);

impl<'de, S: DeserializeSeed<'de, Value = ()>> DeserializeSeed<'de> for Member<S> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S: DeserializeSeed<'de, Value = ()>> Visitor<'de> for Member<S> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.0)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(AnyStr)? {
            if key == self.0 {
                return map.next_value_seed(self.1);
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(kind: &str, bytes: usize) -> String {
        let text = "x".repeat(bytes);
        format!(r#"{{"sessionId":"s","update":{{"a":["{text}"],"sessionUpdate":"{kind}"}}}}"#)
    }

    #[test]
    fn only_contents_may_be_large() {
        for kind in ["agent_message_chunk", "tool_call", "tool_call_update"] {
            assert_eq!(check_update(&update(kind, 2 << 20)), Ok(()), "{kind}");
        }
        for kind in ["available_commands_update", "config_option_update", "plan", "no_such_update"] {
            assert_eq!(check_update(&update(kind, 1000)), Ok(()), "{kind}");
            let refused = check_update(&update(kind, 2 << 20));
            assert!(refused.is_err_and(|why| why.contains(kind) && why.contains("is too large")), "{kind}");
        }
        assert!(check_update(&format!("[{}]", "1,".repeat(1 << 20))).is_err());
    }
}
