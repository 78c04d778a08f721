//! Free JSON, `_meta`, and members with three states.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Free JSON, kept as text: one allocation whatever its depth or size, parsed only on request.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Serializes a value.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Json::from)
    }

    /// Validates JSON text.
    pub fn from_text(text: impl Into<String>) -> serde_json::Result<Self> {
        RawValue::from_string(text.into()).map(Json::from)
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The undecoded value.
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads the value as a type.
    pub fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.0.get())
    }
}

// STDIO-05
/// A message holds no raw line break. Between JSON tokens a line break is only blank space (inside
/// strings it cannot stand), so it may be replaced.
impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        if !raw.get().contains(['\n', '\r']) {
            return Json(raw);
        }
        let text = raw.get().replace(['\n', '\r'], " ");
        Json(RawValue::from_string(text).unwrap_or(raw))
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Json::new(&value).unwrap_or_else(|_| Json(RawValue::NULL.to_owned()))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Json::from)
    }
}

/// `_meta`: custom metadata that extensions attach to any object. It is passed on and never
/// interpreted.
#[derive(Clone, PartialEq)]
pub struct Meta(Json);

impl Meta {
    /// Any value that serializes to an object.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        let json = Json::new(value)?;
        Meta::from_json(json).ok_or_else(|| serde_json::Error::custom("`_meta` must be an object"))
    }

    // EXT-11
    /// `None` if the JSON is not an object.
    pub fn from_json(json: Json) -> Option<Self> {
        json.get().trim_start().starts_with('{').then_some(Meta(json))
    }

    /// Reads one member.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let members: std::collections::HashMap<String, Json> = self.0.parse().ok()?;
        members.get(key)?.parse().ok()
    }

    /// The whole object.
    pub fn as_json(&self) -> &Json {
        &self.0
    }
}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Meta::from_json(Json::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("expected an object"))
    }
}

/// A member with three states: absent leaves the value as it is, `null` clears it, anything else
/// replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(clippy::exhaustive_enums, reason = "a member has no fourth state")]
pub enum Patch<T> {
    /// The member is absent.
    #[default]
    Keep,
    /// The member is `null`.
    Clear,
    /// The member has a value.
    Set(T),
}

impl<T> Patch<T> {
    /// Whether the patch changes nothing.
    pub fn is_keep(&self) -> bool {
        matches!(self, Patch::Keep)
    }

    /// Applies the patch to a value.
    pub fn apply(self, value: &mut Option<T>) {
        match self {
            Patch::Keep => {}
            Patch::Clear => *value = None,
            Patch::Set(new) => *value = Some(new),
        }
    }
}

impl Patch<Meta> {
    /// Applies the patch of an update to stored metadata, key by key: a key that is `null` is
    /// removed, any other replaces the stored key whole, and keys that are not named stay. Version
    /// 2 patches metadata in this way.
    // V2-18
    pub fn apply_by_key(self, stored: &mut Option<Meta>) {
        let patch = match self {
            Patch::Keep => return,
            Patch::Clear => {
                *stored = None;
                return;
            }
            Patch::Set(patch) => patch,
        };
        let members = |meta: &Meta| meta.0.parse::<BTreeMap<String, Json>>().unwrap_or_default();
        let mut merged = stored.as_ref().map(members).unwrap_or_default();
        for (key, value) in members(&patch) {
            if value.get() == "null" {
                merged.remove(&key);
            } else {
                merged.insert(key, value);
            }
        }
        *stored = Meta::new(&merged).ok().filter(|_| !merged.is_empty());
    }
}

impl<T> From<Option<T>> for Patch<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Patch::Clear, Patch::Set)
    }
}

impl<T> From<T> for Patch<T> {
    fn from(value: T) -> Self {
        Patch::Set(value)
    }
}

impl From<&str> for Patch<String> {
    fn from(value: &str) -> Self {
        Patch::Set(value.to_owned())
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Patch::Keep | Patch::Clear => serializer.serialize_none(),
            Patch::Set(value) => value.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn metadata_is_patched_key_by_key() {
        // shows V2-18
        let meta = |text: &str| Meta::from_json(Json::from_text(text).unwrap()).unwrap();
        let mut stored = None;
        Patch::Set(meta(r#"{"a":1,"b":{"x":1},"gone":null}"#)).apply_by_key(&mut stored);
        assert_eq!(stored, Some(meta(r#"{"a":1,"b":{"x":1}}"#)));
        Patch::Set(meta(r#"{"a":null,"b":{"y":null},"c":[]}"#)).apply_by_key(&mut stored);
        assert_eq!(stored, Some(meta(r#"{"b":{"y":null},"c":[]}"#)));
        Patch::Keep.apply_by_key(&mut stored);
        Patch::Set(meta("{}")).apply_by_key(&mut stored);
        assert_eq!(stored, Some(meta(r#"{"b":{"y":null},"c":[]}"#)));
        Patch::Set(meta(r#"{"b":null,"c":null}"#)).apply_by_key(&mut stored);
        assert_eq!(stored, None);
        stored = Some(meta(r#"{"a":1}"#));
        Patch::Clear.apply_by_key(&mut stored);
        assert_eq!(stored, None);
    }
}
