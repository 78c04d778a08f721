//! JSON text that is read later, borrowed from the input if possible.
//!
//! `serde_json` either borrows raw text (`&RawValue`, which fails for streams and trees) or copies
//! it (`Box<RawValue>`). Members can be megabytes of file content, so [`Raw`] borrows whenever the
//! input allows it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor,
};
use serde_json::value::RawValue;

use super::compact::from_text;
use super::tagged::AnyStr;
use crate::Json;

/// The name by which `serde_json` passes raw text. With an unknown name it calls
/// `visit_newtype_struct`, and the text is copied: slower, but correct.
pub(super) const TOKEN: &str = "$serde_json::private::RawValue";

/// Any JSON value as text.
#[derive(Default)]
pub(crate) struct Raw<'de>(Cow<'de, str>);

impl<'de> Raw<'de> {
    /// The text.
    pub(crate) fn get(&self) -> &str {
        &self.0
    }

    /// Whether the value is `null`.
    pub(crate) fn is_null(&self) -> bool {
        self.0 == "null"
    }

    /// Reads the value as a type that borrows nothing.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        from_text(&self.0)
    }

    /// Reads the value by a seed. Copied text does not live as long as the input, so it is read as
    /// a stream, from which nothing can be borrowed.
    pub(crate) fn read<V: DeserializeSeed<'de>>(self, seed: V) -> serde_json::Result<V::Value> {
        match self.0 {
            Cow::Borrowed(text) => seed.deserialize(&mut serde_json::Deserializer::from_str(text)),
            Cow::Owned(text) => seed.deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes())),
        }
    }

    /// The value as free JSON. The text came out of a parser, so it is JSON.
    pub(crate) fn into_json(self) -> Json {
        Json::from_text(self.0).unwrap_or_else(|_| serde_json::Value::Null.into())
    }
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TOKEN, RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw<'de>, A::Error> {
        // One member: the token, and the text as a string.
        if map.next_key::<IgnoredAny>()?.is_none() {
            return Err(A::Error::custom("raw JSON without text"));
        }
        map.next_value_seed(AnyStr).map(Raw)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw<'de>, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Raw(Cow::Owned(raw.get().to_owned())))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn text_is_borrowed_where_that_is_possible() {
        let list: Vec<Raw<'_>> = serde_json::from_str(r#"[ {"a": "\n"} ,5,null]"#).unwrap();
        assert!(list.iter().all(|raw| matches!(raw.0, Cow::Borrowed(_))));
        assert_eq!(list[0].get(), r#"{"a": "\n"}"#);
        assert!(list[2].is_null());
        let raw: Raw<'_> = serde_json::from_slice(b"[1]").unwrap();
        assert!(matches!(raw.0, Cow::Borrowed("[1]")));
    }

    #[test]
    fn text_is_copied_where_it_is_not() {
        let mut stream = serde_json::Deserializer::from_reader(&b"{\"a\":[1]}"[..]);
        let raw = Raw::deserialize(&mut stream).unwrap();
        assert_eq!(raw.get(), r#"{"a":[1]}"#);
        let raw = Raw::deserialize(serde_json::json!({"a": 1})).unwrap();
        assert_eq!(raw.get(), r#"{"a":1}"#);
    }
}
