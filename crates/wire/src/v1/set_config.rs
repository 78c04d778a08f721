//! Changing config options, by the client and by the agent.

use serde::de::Error;
use serde::ser::SerializeMap;

use super::{SessionConfigId, SessionConfigOption, SessionConfigValueId, SessionId};
use crate::shape::*;

#[path = "../both/set_config.rs"]
mod both;
pub use both::*;

/// The new value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionConfigOptionValue {
    /// For a select: one of its values.
    ValueId(SessionConfigValueId),
    /// For a switch.
    Boolean(bool),
}

impl From<SessionConfigValueId> for SessionConfigOptionValue {
    fn from(value: SessionConfigValueId) -> Self {
        SessionConfigOptionValue::ValueId(value)
    }
}

impl Flat for SessionConfigOptionValue {
    fn take<E: Error>(members: &mut Members<'_>) -> Result<Self, E> {
        let kind: Option<String> = members.take::<LenientText, _, E>("type")?;
        // CONF-19: a text under the type `boolean` is refused, not taken for the name of a value.
        // Every other type, and none, announces a value's name, so a bare `true` is refused as well
        // (CONF-18).
        if kind.as_deref() == Some("boolean") {
            return members.take::<Required, _, E>("value").map(SessionConfigOptionValue::Boolean);
        }
        members.take::<Required, _, E>("value").map(SessionConfigOptionValue::ValueId)
    }
}

impl ToMap for SessionConfigOptionValue {
    fn to_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            SessionConfigOptionValue::ValueId(value) => map.serialize_entry("value", value),
            SessionConfigOptionValue::Boolean(value) => {
                map.serialize_entry("type", "boolean")?;
                map.serialize_entry("value", value)
            }
        }
    }
}

object! {
    /// The option is changed; lists all options afterwards.
    pub struct SetSessionConfigOptionResponse { // CONF-13
        required {
            /// All options.
            config_options "configOptions": Vec<SessionConfigOption> [SkipInvalid],
        }
    }
}

object! {
    /// The agent changed options itself.
    pub struct ConfigOptionUpdate { // CONF-16
        required {
            /// All options.
            config_options "configOptions": Vec<SessionConfigOption> [SkipInvalid],
        }
    }
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
