//! Opaque ids: the side that did not assign an id only compares and returns it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

pub use crate::v1::plan_id::PlanId;
pub use crate::v1::{
    AuthMethodId, CompactionId, ElicitationId, MessageId, PermissionOptionId, SessionConfigGroupId,
    SessionConfigId, SessionConfigValueId, SessionId, ToolCallId,
};

use crate::shape::*;

#[path = "../both/request_id.rs"]
mod request_id;

ids! {
    /// Id of a terminal, assigned by the agent.
    TerminalId,
}

// V2-01
/// The id of a JSON-RPC request, where a message speaks about another one. Never `null`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "JSON-RPC has no other kinds")]
pub enum RequestId {
    /// A whole number.
    Number(i64),
    /// A text.
    Str(String),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Number(number) => number.fmt(f),
            RequestId::Str(text) => f.write_str(text),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RequestId::Number(number) => serializer.serialize_i64(*number),
            RequestId::Str(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match crate::v1::RequestId::deserialize(deserializer)? {
            crate::v1::RequestId::Number(number) => Ok(RequestId::Number(number)),
            crate::v1::RequestId::Str(text) => Ok(RequestId::Str(text)),
            crate::v1::RequestId::Null => Err(D::Error::custom("a request id is never null")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn request_ids_are_numbers_or_texts() {
        // shows V2-01
        for text in ["0", "-7", "\"a\""] {
            let id: RequestId = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
        }
        for text in ["null", "1.5", "true", "{}"] {
            assert!(serde_json::from_str::<RequestId>(text).is_err(), "{text}");
        }
    }
}
