//! Changing config options, by the client and by the agent.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{SessionConfigId, SessionConfigOption, SessionConfigValueId, SessionId};
use crate::Meta;
use crate::shape::*;

/// Changes an option, at any time (CONF-14, CONF-17).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SetSessionConfigOptionRequest {
    /// The session.
    pub session_id: SessionId,
    /// The option.
    pub config_id: SessionConfigId,
    /// Its new value.
    pub value: SessionConfigOptionValue,
    /// Custom metadata of extensions (`_meta`).
    pub meta: Option<Meta>,
}

impl SetSessionConfigOptionRequest {
    /// A `SetSessionConfigOptionRequest` with its required members.
    pub fn new(
        session_id: impl Into<SessionId>,
        config_id: impl Into<SessionConfigId>,
        value: impl Into<SessionConfigOptionValue>,
    ) -> Self {
        SetSessionConfigOptionRequest {
            session_id: session_id.into(),
            config_id: config_id.into(),
            value: value.into(),
            meta: None,
        }
    }

    /// Custom metadata of extensions (`_meta`).
    pub fn meta(mut self, meta: impl crate::IntoField<Option<Meta>>) -> Self {
        self.meta = meta.into_field();
        self
    }
}

/// The new value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionConfigOptionValue {
    /// For a select: one of its values.
    ValueId(SessionConfigValueId),
    /// For a switch.
    Boolean(bool),
}

impl From<bool> for SessionConfigOptionValue {
    fn from(value: bool) -> Self {
        SessionConfigOptionValue::Boolean(value)
    }
}

impl From<SessionConfigValueId> for SessionConfigOptionValue {
    fn from(value: SessionConfigValueId) -> Self {
        SessionConfigOptionValue::ValueId(value)
    }
}

impl From<&str> for SessionConfigOptionValue {
    fn from(value: &str) -> Self {
        SessionConfigOptionValue::ValueId(value.into())
    }
}

impl<'de> Deserialize<'de> for SetSessionConfigOptionRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members::deserialize(deserializer)?;
        let kind: Option<String> = members.take::<LenientText, _, D::Error>("type")?;
        // CONF-19: a text under the type `boolean` is refused, not taken for the name of a value. Every other
        // type, and none, announces a value's name, so a bare `true` is refused as well (CONF-18).
        let value = if kind.as_deref() == Some("boolean") {
            SessionConfigOptionValue::Boolean(members.take::<Required, _, D::Error>("value")?)
        } else {
            SessionConfigOptionValue::ValueId(members.take::<Required, _, D::Error>("value")?)
        };
        Ok(SetSessionConfigOptionRequest {
            session_id: members.take::<Required, _, D::Error>("sessionId")?,
            config_id: members.take::<Required, _, D::Error>("configId")?,
            value,
            meta: members.take::<OptionalMeta, _, D::Error>("_meta")?,
        })
    }
}

impl Serialize for SetSessionConfigOptionRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("sessionId", &self.session_id)?;
        map.serialize_entry("configId", &self.config_id)?;
        match &self.value {
            SessionConfigOptionValue::ValueId(value) => map.serialize_entry("value", value)?,
            SessionConfigOptionValue::Boolean(value) => {
                map.serialize_entry("type", "boolean")?;
                map.serialize_entry("value", value)?;
            }
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

object! {
    /// The option is changed; lists all options afterwards (CONF-13).
    pub struct SetSessionConfigOptionResponse {
        required {
            /// All options.
            config_options "configOptions": Vec<SessionConfigOption> [SkipInvalid],
        }
    }
}

object! {
    /// The agent changed options itself (CONF-16).
    pub struct ConfigOptionUpdate {
        required {
            /// All options.
            config_options "configOptions": Vec<SessionConfigOption> [SkipInvalid],
        }
    }
}

crate::methods! {
    "session/set_config_option": SetSessionConfigOptionRequest => SetSessionConfigOptionResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(value: &str) -> serde_json::Result<SetSessionConfigOptionRequest> {
        serde_json::from_str(&format!(r#"{{"sessionId":"s","configId":"c",{value}}}"#))
    }

    #[test]
    fn a_value_is_named_and_a_switch_is_typed() {
        // shows CONF-14
        for (value, expected) in [
            (r#""value":"m2""#, SessionConfigOptionValue::from("m2")),
            (r#""type":"boolean","value":true"#, SessionConfigOptionValue::from(true)),
        ] {
            let request = read(value).unwrap();
            assert_eq!(request, SetSessionConfigOptionRequest::new("s", "c", expected));
            let again = serde_json::to_string(&request).unwrap();
            assert_eq!(again, format!(r#"{{"sessionId":"s","configId":"c",{value}}}"#));
        }
    }

    #[test]
    fn other_types_with_a_text_name_a_value() {
        // shows CONF-14: version 2 says `id`
        for kind in [r#""id""#, r#""slider""#, "null", "7"] {
            let request = read(&format!(r#""value":"x","type":{kind}"#)).unwrap();
            assert_eq!(request.value, "x".into(), "{kind}");
        }
    }

    #[test]
    fn values_of_the_wrong_type_are_refused() {
        // shows CONF-18, CONF-19
        for value in [
            r#""value":true"#,
            r#""type":"boolean","value":"x""#,
            r#""value":"x","type":"boolean""#,
            r#""type":"boolean""#,
            r#""type":"slider","value":3"#,
            r#""value":3"#,
            r#""value":null"#,
        ] {
            assert!(read(value).is_err(), "{value}");
        }
        assert!(
            serde_json::from_str::<SetSessionConfigOptionRequest>(r#"{"sessionId":"s","value":"x"}"#)
                .is_err()
        );
    }

    #[test]
    fn unknown_kinds_of_option_are_skipped_and_order_is_kept() {
        // shows CONF-03, CONF-06, CONF-13
        let text = r#"{"configOptions":[
            {"type":"boolean","id":"b","name":"B","currentValue":false},
            {"type":"slider","id":"s","name":"S","currentValue":3},
            {"type":"boolean","id":"x","name":"X","currentValue":"no"},
            {"id":"m","name":"M","currentValue":"1","options":[],"type":"select"},
            {"type":"select","id":"h","name":"H","currentValue":"1","options":[{"value":"1","name":"1"},{"value":"2"}]}]}"#;
        let response: SetSessionConfigOptionResponse = serde_json::from_str(text).unwrap();
        let ids: Vec<_> = response.config_options.iter().map(|option| option.id.as_str()).collect();
        assert_eq!(ids, ["b", "m"]);
    }
}
