//! The error object of a response.

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;

/// Error codes with a defined meaning. Any other 32-bit number is accepted as it is.
///
/// Example: [`ErrorObject`].
// RPC-15, RPC-16
pub mod code {
    /// The line is not JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// The JSON is not a message.
    pub const INVALID_REQUEST: i32 = -32600;
    /// Unknown or unsupported method.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The params do not match the method.
    pub const INVALID_PARAMS: i32 = -32602;
    /// Internal failure of the receiver.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// The request was cancelled.
    pub const CANCELLED: i32 = -32800;
    /// The client must authenticate first.
    pub const AUTH_REQUIRED: i32 = -32000;
    /// A session, file or other resource does not exist.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
}

/// The `error` member of a response.
///
/// ```
/// use attache_rpc::{ErrorObject, code};
/// use serde_json::json;
///
/// let error = ErrorObject::new(code::RESOURCE_NOT_FOUND, "session not found");
/// let error = error.with_data(&json!({ "sessionId": "sess-1" }));
/// assert_eq!(error.code, -32002);
/// ```
// RPC-03
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ErrorObject {
    /// The kind of failure, see [`code`].
    pub code: i32,
    /// One short sentence.
    // RPC-17
    pub message: String,
    /// Details as undecoded JSON.
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// Creates an error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds `data`. Data that cannot be serialized is left out.
    pub fn with_data(mut self, data: &impl Serialize) -> Self {
        self.data = serde_json::value::to_raw_value(data).ok();
        self
    }

    /// -32700
    pub fn parse_error() -> Self {
        Self::new(code::PARSE_ERROR, "the line is not JSON")
    }

    /// -32600
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// -32601
    pub fn method_not_found(method: &str) -> Self {
        // RPC-17: the peer chose the name, which may be of any length.
        let shown: String = method.chars().take(80).collect();
        Self::new(code::METHOD_NOT_FOUND, format!("method not found: {shown}"))
    }

    /// -32602
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// -32603
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// -32800
    pub fn cancelled() -> Self {
        Self::new(code::CANCELLED, "request cancelled")
    }

    /// -32000
    pub fn auth_required() -> Self {
        Self::new(code::AUTH_REQUIRED, "authentication required")
    }

    /// -32002
    pub fn resource_not_found(message: impl Into<String>) -> Self {
        Self::new(code::RESOURCE_NOT_FOUND, message)
    }
}

impl PartialEq for ErrorObject {
    fn eq(&self, other: &Self) -> bool {
        let text = |error: &Self| error.data.as_ref().map(|data| data.get().to_owned());
        self.code == other.code && self.message == other.message && text(self) == text(other)
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)?;
        match &self.data {
            Some(data) => write!(f, ": {}", data.get()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ErrorObject {}

impl Serialize for ErrorObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.message)?;
        if let Some(data) = &self.data {
            map.serialize_entry("data", data)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ErrorObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ErrorVisitor)
    }
}

struct ErrorVisitor;

impl<'de> Visitor<'de> for ErrorVisitor {
    type Value = ErrorObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error object with an integer code")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ErrorObject, A::Error> {
        let mut code = None;
        let mut message = None;
        let mut data: Option<Box<RawValue>> = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match &*key {
                "code" => code = Some(map.next_value::<i32>()?),
                "message" => message = map.next_value::<Option<String>>()?,
                "data" => data = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        // RPC-03 demands both members, but a missing message can be tolerated.
        let code = code.ok_or_else(|| serde::de::Error::missing_field("code"))?;
        let data = data.filter(|data| data.get() != "null");
        Ok(ErrorObject { code, message: message.unwrap_or_default(), data })
    }
}
