//! Changing config options, by the client and by the agent.

use serde::de::{Error, MapAccess};
use serde::ser::SerializeMap;

use crate::shape::tagged::Tagged;
use crate::shape::*;
use crate::v2::{SessionConfigId, SessionConfigOption, SessionConfigValueId, SessionId};
use crate::{Json, Unknown};

#[path = "../both/set_config.rs"]
mod both;
pub use both::*;

// V2-40
/// The new value of an option. The type is always named.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SessionConfigOptionValue {
    /// For a select: one of its values.
    Id(SessionConfigValueId),
    /// For a switch.
    Boolean(bool),
    /// A value of an unlisted type, kept unchanged. Agents refuse it.
    Other(Unknown),
}

impl From<SessionConfigValueId> for SessionConfigOptionValue {
    fn from(value: SessionConfigValueId) -> Self {
        SessionConfigOptionValue::Id(value)
    }
}

impl Tagged for SessionConfigOptionValue {
    const NAME: &'static str = "SessionConfigOptionValue";
    const TAG: &'static str = "type";
    fn from_tag<'de, A: MapAccess<'de>>(tag: &str, map: A) -> Result<Self, A::Error> {
        let mut members = Members::from_map(map)?;
        match tag {
            "id" => members.take::<Required, _, A::Error>("value").map(SessionConfigOptionValue::Id),
            "boolean" => {
                members.take::<Required, _, A::Error>("value").map(SessionConfigOptionValue::Boolean)
            }
            other => {
                let unknown = Unknown::collect("type", other, members.rest::<A::Error>())?;
                // Any JSON will do, `null` too, but a value there must be.
                let members: crate::Fields<Json> = unknown.object.parse().map_err(A::Error::custom)?;
                members.get("value").ok_or_else(|| A::Error::missing_field("value"))?;
                Ok(SessionConfigOptionValue::Other(unknown))
            }
        }
    }
}

impl ToMap for SessionConfigOptionValue {
    fn to_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            SessionConfigOptionValue::Id(value) => {
                map.serialize_entry("type", "id")?;
                map.serialize_entry("value", value)
            }
            SessionConfigOptionValue::Boolean(value) => {
                map.serialize_entry("type", "boolean")?;
                map.serialize_entry("value", value)
            }
            SessionConfigOptionValue::Other(unknown) => unknown.to_map(map),
        }
    }
}

object! {
    /// The option is changed; lists all options afterwards.
    pub struct SetSessionConfigOptionResponse {
        required {
            /// All options.
            config_options "configOptions": Vec<SessionConfigOption> [ListSkipInvalid],
        }
    }
}

object! {
    /// The agent changed options itself.
    pub struct ConfigOptionUpdate {
        required {
            /// All options.
            config_options "configOptions": Vec<SessionConfigOption> [ListSkipInvalid],
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
    fn a_value_names_its_type() {
        // shows V2-20, V2-40
        for (value, expected) in [
            (r#""type":"id","value":"m2""#, SessionConfigOptionValue::from("m2")),
            (r#""type":"boolean","value":true"#, SessionConfigOptionValue::from(true)),
        ] {
            let request = read(value).unwrap();
            assert_eq!(request, SetSessionConfigOptionRequest::new("s", "c", expected));
            let again = serde_json::to_string(&request).unwrap();
            assert_eq!(again, format!(r#"{{"sessionId":"s","configId":"c",{value}}}"#));
        }
        for bad in [
            r#""value":"m2""#,
            r#""type":"id","value":true"#,
            r#""type":"boolean","value":"x""#,
            r#""type":"_number""#,
            r#""type":null,"value":"x""#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_of_unlisted_types_are_kept() {
        // shows V2-21
        let request = read(r#""type":"_number","value":null,"unit":"s""#).unwrap();
        assert!(
            matches!(&request.value, SessionConfigOptionValue::Other(unknown) if unknown.tag == "_number")
        );
        let written: serde_json::Value = serde_json::to_value(&request).unwrap();
        assert_eq!(written["unit"], "s");
        assert_eq!(written.get("value"), Some(&serde_json::Value::Null));
    }
}
