//! Values of form fields.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::{Json, v1};

#[path = "../both/elicitation_value.rs"]
mod both;

/// The value of a form field.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationContentValue {
    /// A text.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
    /// The chosen values of a multiple choice.
    StringArray(Vec<String>),
    // V2-21
    /// Any other JSON, the value of a field of an unlisted type; kept unchanged.
    Other(Json),
}

impl From<Json> for ElicitationContentValue {
    fn from(json: Json) -> Self {
        ElicitationContentValue::Other(json)
    }
}

impl Serialize for ElicitationContentValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ElicitationContentValue::String(text) => text.serialize(serializer),
            ElicitationContentValue::Integer(number) => number.serialize(serializer),
            ElicitationContentValue::Number(number) => number.serialize(serializer),
            ElicitationContentValue::Boolean(yes) => yes.serialize(serializer),
            ElicitationContentValue::StringArray(list) => list.serialize(serializer),
            ElicitationContentValue::Other(json) => json.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ElicitationContentValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        Ok(match json.parse() {
            Ok(v1::ElicitationContentValue::String(text)) => text.into(),
            Ok(v1::ElicitationContentValue::Integer(number)) => number.into(),
            Ok(v1::ElicitationContentValue::Number(number)) => number.into(),
            Ok(v1::ElicitationContentValue::Boolean(yes)) => yes.into(),
            Ok(v1::ElicitationContentValue::StringArray(list)) => list.into(),
            Err(_) => json.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_json_is_a_value() {
        // shows V2-21
        let read = |text: &str| serde_json::from_str::<ElicitationContentValue>(text).unwrap();
        assert_eq!(read(r#"["a"]"#), vec!["a".to_owned()].into());
        assert_eq!((read("5"), read("0.5"), read("true")), (5.into(), 0.5.into(), true.into()));
        for text in ["null", r#"{"a":1}"#, r#"["a",5]"#] {
            let value = read(text);
            assert!(matches!(value, ElicitationContentValue::Other(_)), "{text}");
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
        }
    }
}
