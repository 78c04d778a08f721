//! The shapes of messages: a small JSON Schema validator and the schemas of both versions.
//!
//! `schema/v1.json` and `schema/v2.json` are the protocol's published schemas (unstable parts
//! included, Apache-2.0) without descriptions. `methods` lists for each method the receiver (`to`)
//! and the definitions of its `params`, `result` and, for a notification, `note`. The validator
//! supports only the keywords of these files.
//!
//! It reports the first place where a value does not fit, and unknown members. The latter fit the
//! schema (receivers ignore them), but a rule forbids them. In open unions and enums of version 2
//! it also reports values that neither the schema nor an underscore allows.

// EXT-02, V2-22

mod validate;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use crate::{Role, Version};

/// The first place where a value does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place: `update.content.type`; empty for the value itself.
    pub path: String,
    /// The cause.
    pub kind: FaultKind,
    /// The definitions around the place, outermost first.
    pub within: Vec<&'static str>,
}

/// The reason why a value does not fit. `Display` gives it in words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The value has another type.
    Type {
        /// The types of the schema.
        expected: Vec<&'static str>,
        /// The type of the value.
        actual: JsonType,
    },
    /// A required member is missing.
    Missing(&'static str),
    /// A constraint of the schema is violated: a constant, a list of values, a bound, a union.
    Constraint(String),
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FaultKind::Type { expected, actual } => {
                write!(f, "{actual} where {} is wanted", expected.join(" or "))
            }
            FaultKind::Missing(name) => write!(f, "`{name}` is missing"),
            FaultKind::Constraint(why) => f.write_str(why),
        }
    }
}

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonType {
    /// Returns the type of a value.
    pub fn of(value: &Value) -> JsonType {
        match value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }
}

impl std::fmt::Display for JsonType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            JsonType::Null => "null",
            JsonType::Boolean => "a boolean",
            JsonType::Number => "a number",
            JsonType::String => "a string",
            JsonType::Array => "an array",
            JsonType::Object => "an object",
        })
    }
}

/// An unknown member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The place of the object.
    pub path: String,
    /// The name of the member.
    pub member: String,
    /// The definition of the object.
    pub within: &'static str,
}

/// The report about a value that fits the schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validated {
    /// Unknown members.
    pub extras: Vec<Extra>,
    /// The definitions that occur in it.
    pub met: BTreeSet<&'static str>,
    /// Values of open unions and enums that are not in the schema, each with its place.
    pub unknown: Vec<(String, String)>,
}

/// A method of the protocol.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    entry: &'static Value,
    schema: &'static Value,
}

fn schema(version: Version) -> &'static Value {
    static V1: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(include_str!("../schema/v1.json")).unwrap_or_default());
    static V2: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(include_str!("../schema/v2.json")).unwrap_or_default());
    match version {
        Version::V1 => &V1,
        Version::V2 => &V2,
    }
}

impl Method {
    /// The method of this name, if the version has one.
    pub fn of(version: Version, name: &str) -> Option<Method> {
        let schema = schema(version);
        schema["methods"].get(name).map(|entry| Method { entry, schema })
    }

    /// Whether `role` may send it. Some go either way.
    pub fn is_sent_by(&self, role: Role) -> bool {
        let to = self.entry["to"].as_str().unwrap_or_default();
        to == role.other().name() || to == "protocol" || (self.is_request() && self.is_notification())
    }

    /// Whether it can be a request.
    pub fn is_request(&self) -> bool {
        self.entry.get("params").is_some()
    }

    /// Whether it can be a notification.
    pub fn is_notification(&self) -> bool {
        self.entry.get("note").is_some()
    }

    /// Validates the params of a request. Null counts as an empty object.
    ///
    /// # Errors
    /// The first place that does not fit.
    // RPC-21
    pub fn request(&self, params: &Value) -> Result<Validated, Fault> {
        self.fits("params", params)
    }

    /// Validates the params of a notification.
    ///
    /// # Errors
    /// The first place that does not fit.
    pub fn notification(&self, params: &Value) -> Result<Validated, Fault> {
        self.fits("note", params)
    }

    /// Validates a result. Null counts as an empty object.
    ///
    /// # Errors
    /// The first place that does not fit.
    // RPC-22
    pub fn result(&self, result: &Value) -> Result<Validated, Fault> {
        self.fits("result", result)
    }

    fn fits(&self, part: &str, value: &Value) -> Result<Validated, Fault> {
        let Some(name) = self.entry[part].as_str() else { return Ok(Validated::default()) };
        let nothing = Value::Object(serde_json::Map::new());
        validate_in(self.schema, name, if value.is_null() { &nothing } else { value })
    }
}

/// Validates a value by the definition of this name. A missing definition allows everything.
///
/// # Errors
/// The first place that does not fit.
pub fn validate(version: Version, definition: &str, value: &Value) -> Result<Validated, Fault> {
    validate_in(schema(version), definition, value)
}

fn validate_in(schema: &'static Value, definition: &str, value: &Value) -> Result<Validated, Fault> {
    match schema["$defs"].as_object().and_then(|all| all.get_key_value(definition)) {
        Some((name, inner)) => validate::validate(&schema["$defs"], name, inner, value),
        None => Ok(Validated::default()),
    }
}

/// Whether the schema has a definition of this name.
pub fn has(version: Version, definition: &str) -> bool {
    schema(version)["$defs"].get(definition).is_some()
}
