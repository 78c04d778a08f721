//! The name of a request.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;

/// The `id` of a request, as version 1 of ACP allows it: a string, an integer or null.
///
/// RPC-05: an id goes back exactly as it came, so the type of the JSON value is part of it: `1` and `"1"` differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// `null`: legal, discouraged, and the id of answers to something that could not be read.
    Null,
    /// An integer of 64 bits.
    Int(i64),
    /// A string.
    Str(Box<str>),
}

impl Id {
    /// Reads an id from its JSON text. RPC-06: fractions, booleans, arrays and objects are no ids, nor are
    /// integers beyond 64 bits.
    pub fn from_raw(raw: &RawValue) -> Option<Id> {
        let text = raw.get();
        match text.as_bytes().first()? {
            b'"' => serde_json::from_str::<Box<str>>(text).ok().map(Id::Str),
            b'n' => Some(Id::Null),
            // "-0" is the one spelling that parses as an integer and would not come back as it was written.
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
