//! Config options of a session, modes among them.

pub use crate::v1::{SessionConfigBoolean, SessionConfigOptionCategory, SessionConfigSelectOption};

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use crate::Json;
use crate::shape::*;
use crate::v2::{SessionConfigGroupId, SessionConfigId, SessionConfigValueId};

tagged! {
    /// The kind of option.
    pub enum SessionConfigKind by "type" {
        /// A choice among values.
        Select(SessionConfigSelect) = "select",
        /// A switch.
        Boolean(SessionConfigBoolean) = "boolean",
    }
    other Other
}

flattened! {
    /// An option and its current value.
    pub struct SessionConfigOption {
        required {
            /// Id of the option.
            config_id "configId": SessionConfigId [Required],
            /// A name to show.
            name "name": String [Required],
        }
        unions {
            /// The choices and the current value; the members are flattened into the object.
            kind: SessionConfigKind,
        }
        optional {
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The category of the option.
            category "category": Option<SessionConfigOptionCategory> [LenientText],
        }
    }
}

impl SessionConfigOption {
    /// A choice among values.
    pub fn select(
        config_id: impl Into<SessionConfigId>,
        name: impl Into<String>,
        current_value: impl Into<SessionConfigValueId>,
        options: impl Into<SessionConfigSelectOptions>,
    ) -> Self {
        SessionConfigOption::new(config_id, name, SessionConfigSelect::new(current_value, options))
    }

    /// A switch.
    pub fn boolean(
        config_id: impl Into<SessionConfigId>,
        name: impl Into<String>,
        current_value: bool,
    ) -> Self {
        SessionConfigOption::new(config_id, name, SessionConfigBoolean::new(current_value))
    }
}

object! {
    /// A choice among values.
    pub struct SessionConfigSelect {
        required {
            /// The current value.
            current_value "currentValue": SessionConfigValueId [Required],
            /// The values to choose from, at least one.
            options "options": SessionConfigSelectOptions [Required],
        }
        no_meta!
    }
}

object! {
    /// Values under a heading.
    pub struct SessionConfigSelectGroup {
        required {
            /// Id of the group.
            group_id "groupId": SessionConfigGroupId [Required],
            /// The heading.
            name "name": String [Required],
            /// The values, at least one.
            options "options": Vec<SessionConfigSelectOption> [SkipInvalid],
        }
    }
}

/// The values to choose from, flat or in groups.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SessionConfigSelectOptions {
    /// A flat list.
    Ungrouped(Vec<SessionConfigSelectOption>),
    /// Lists under headings.
    Grouped(Vec<SessionConfigSelectGroup>),
}

impl SessionConfigSelectOptions {
    /// Returns all values of all groups.
    pub fn iter(&self) -> impl Iterator<Item = &SessionConfigSelectOption> {
        let (flat, groups): (&[_], &[SessionConfigSelectGroup]) = match self {
            SessionConfigSelectOptions::Ungrouped(options) => (options, &[]),
            SessionConfigSelectOptions::Grouped(groups) => (&[], groups),
        };
        flat.iter().chain(groups.iter().flat_map(|group| &group.options))
    }
}

impl From<Vec<SessionConfigSelectOption>> for SessionConfigSelectOptions {
    fn from(options: Vec<SessionConfigSelectOption>) -> Self {
        SessionConfigSelectOptions::Ungrouped(options)
    }
}

impl From<Vec<SessionConfigSelectGroup>> for SessionConfigSelectOptions {
    fn from(groups: Vec<SessionConfigSelectGroup>) -> Self {
        SessionConfigSelectOptions::Grouped(groups)
    }
}

impl<'de> Deserialize<'de> for SessionConfigSelectOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // CONF-20: one entry that is neither a value nor a group refuses the option, as in version 1.
        let list = Json::deserialize(deserializer)?;
        let flat = match list.parse() {
            Ok(options) => return Ok(SessionConfigSelectOptions::Ungrouped(options)),
            Err(error) => error,
        };
        list.parse().map(SessionConfigSelectOptions::Grouped).map_err(|grouped| {
            D::Error::custom(format_args!("neither values ({flat}) nor groups of values ({grouped})"))
        })
    }
}

impl Serialize for SessionConfigSelectOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SessionConfigSelectOptions::Ungrouped(options) => options.serialize(serializer),
            SessionConfigSelectOptions::Grouped(groups) => groups.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn unknown_kinds_are_kept_with_the_common_members() {
        // shows V2-20, V2-21
        let read = serde_json::from_str::<SessionConfigOption>;
        let text = r#"{"configId":"c","name":"N","type":"_slider","max":9,"description":"d"}"#;
        let option = read(text).unwrap();
        assert_eq!((option.name.as_str(), option.description.as_deref()), ("N", Some("d")));
        let written = serde_json::to_string(&option).unwrap();
        assert_eq!(read(&written).unwrap(), option);
        assert!(written.contains(r#""max":9"#) && written.contains(r#""type":"_slider""#), "{written}");
        for bad in [
            r#"{"id":"c","name":"N","type":"boolean","currentValue":true}"#,
            r#"{"configId":"c","name":"N","type":"boolean","currentValue":"yes"}"#,
            r#"{"configId":"c","name":"N","currentValue":true}"#,
            r#"{"name":"N","type":"_slider"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
