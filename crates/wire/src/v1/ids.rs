//! Opaque ids: the side that did not assign an id only compares and returns it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::shape::*;

#[path = "../both/request_id.rs"]
mod request_id;

ids! {
    /// Id of a session, assigned by the agent.
    SessionId,
    /// Id of a tool call, unique in its session and assigned by the agent.
    ToolCallId,
    /// Id of a message, shared by its chunks.
    MessageId,
    /// Id of a terminal, assigned by the client.
    TerminalId,
    /// Id of an option of a permission request.
    PermissionOptionId,
    /// Id of a way to authenticate.
    AuthMethodId,
    /// Id of a session mode.
    SessionModeId,
    /// Id of a config option.
    SessionConfigId,
    /// Id of a value of a config option.
    SessionConfigValueId,
    /// Id of a group of values of a config option.
    SessionConfigGroupId,
    /// Id of a compaction of the conversation.
    CompactionId,
    /// Id of an elicitation that continues outside of the protocol.
    ElicitationId,
}

/// The id of a JSON-RPC request, where a message speaks about another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "JSON-RPC has no other kinds")]
pub enum RequestId {
    /// `null`, which JSON-RPC allows.
    Null,
    /// A whole number.
    Number(i64),
    /// A text.
    Str(String),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Null => f.write_str("null"),
            RequestId::Number(number) => number.fmt(f),
            RequestId::Str(text) => f.write_str(text),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RequestId::Null => serializer.serialize_unit(),
            RequestId::Number(number) => serializer.serialize_i64(*number),
            RequestId::Str(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RequestIdVisitor)
    }
}

struct RequestIdVisitor;

impl Visitor<'_> for RequestIdVisitor {
    type Value = RequestId;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request id (a whole number, a text or null)")
    }
    fn visit_unit<E>(self) -> Result<RequestId, E> {
        Ok(RequestId::Null)
    }
    fn visit_i64<E>(self, number: i64) -> Result<RequestId, E> {
        Ok(RequestId::Number(number))
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<RequestId, E> {
        let error = || E::invalid_value(Unexpected::Unsigned(number), &self);
        i64::try_from(number).map(RequestId::Number).map_err(|_| error())
    }
    fn visit_str<E>(self, text: &str) -> Result<RequestId, E> {
        Ok(RequestId::Str(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn request_ids_are_null_numbers_or_texts() {
        // shows RPC-06: every legal kind of id survives, everything else is refused
        for text in ["null", "0", "-7", "9223372036854775807", "\"a\""] {
            let id: RequestId = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
        }
        for text in ["1.5", "true", "[]", "{}", "9223372036854775808"] {
            assert!(serde_json::from_str::<RequestId>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ids_are_texts_and_nothing_else() {
        let id: SessionId = serde_json::from_str("\"s\\u0031\"").unwrap();
        assert_eq!(id, "s1");
        assert!(serde_json::from_str::<SessionId>("1").is_err());
        assert!(serde_json::from_str::<SessionId>("null").is_err());
    }
}
