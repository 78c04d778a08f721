//! Request ids.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;

/// The `id` of a request: a string, an integer or null.
///
/// A response repeats the id exactly, so `1` and `"1"` are different ids.
// RPC-05
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// `null`: discouraged for requests; the id of error responses to unreadable lines.
    Null,
    /// A 64-bit integer.
    Int(i64),
    /// A string.
    Str(Box<str>),
}

impl Id {
    /// Parses the JSON text of an id. Returns `None` for fractions, booleans, arrays, objects and
    /// integers beyond 64 bits.
    // RPC-06
    pub fn from_raw(raw: &RawValue) -> Option<Id> {
        let text = raw.get();
        match text.as_bytes().first()? {
            b'"' => serde_json::from_str::<Box<str>>(text).ok().map(Id::Str),
            b'n' => Some(Id::Null),
            // "-0" parses as an integer but would not be repeated exactly.
            b'-' | b'0'..=b'9' if text != "-0" => text.parse().ok().map(Id::Int),
            _ => None,
        }
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Id::Null => serializer.serialize_unit(),
            Id::Int(number) => serializer.serialize_i64(*number),
            Id::Str(text) => serializer.serialize_str(text),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Null => f.write_str("null"),
            Id::Int(number) => write!(f, "{number}"),
            Id::Str(text) => write!(f, "{text:?}"),
        }
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Id {
        Id::Int(number)
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Id {
        Id::Str(text.into())
    }
}
