//! Config options of a session, modes among them.

pub use crate::v1::{SessionConfigBoolean, SessionConfigOptionCategory, SessionConfigSelectOption};

use crate::shape::*;
use crate::v2::{SessionConfigGroupId, SessionConfigId, SessionConfigValueId};

#[path = "../both/config.rs"]
mod both;
pub use both::*;

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
