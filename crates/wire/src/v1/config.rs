//! Config options of a session.

// CONF-01 to CONF-21

use super::{SessionConfigGroupId, SessionConfigId, SessionConfigValueId};
use crate::shape::*;

#[path = "../both/config.rs"]
mod both;
pub use both::*;

open_enum! {
    /// The category of an option. For display only. Custom categories begin with a `_`.
    pub enum SessionConfigOptionCategory { // CONF-09, CONF-11
        /// The mode of the agent.
        Mode = "mode",
        /// The model.
        Model = "model",
        /// A setting of the model.
        ModelConfig = "model_config", // CONF-12
        /// The thought level of the model.
        ThoughtLevel = "thought_level",
    }
}

flattened! {
    /// An option and its current value. An option of an unknown kind is refused here and skipped in
    /// lists.
    pub struct SessionConfigOption { // CONF-06
        required {
            /// Id of the option.
            id "id": SessionConfigId [Required],
            /// A name to show.
            name "name": String [Required],
        }
        unions {
            /// The choices and the current value; its members are flattened into the object.
            kind: SessionConfigKind,
        }
        optional {
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The category of the option.
            category "category": Option<SessionConfigOptionCategory> [LenientText], // CONF-21
        }
    }
}

impl SessionConfigOption {
    /// A choice among values.
    pub fn select(
        id: impl Into<SessionConfigId>,
        name: impl Into<String>,
        current_value: impl Into<SessionConfigValueId>,
        options: impl Into<SessionConfigSelectOptions>,
    ) -> Self {
        SessionConfigOption::new(id, name, SessionConfigSelect::new(current_value, options))
    }

    // CONF-07
    /// A switch; only for clients that show it.
    pub fn boolean(id: impl Into<SessionConfigId>, name: impl Into<String>, current_value: bool) -> Self {
        SessionConfigOption::new(id, name, SessionConfigBoolean::new(current_value))
    }
}

tagged! {
    /// The kind of option.
    pub enum SessionConfigKind by "type" {
        /// A choice among values.
        Select(SessionConfigSelect) = "select",
        /// A switch.
        Boolean(SessionConfigBoolean) = "boolean",
    }
}

object! {
    /// A switch.
    pub struct SessionConfigBoolean {
        required {
            /// The current value.
            current_value "currentValue": bool [Required],
        }
        no_meta!
    }
}

object! {
    /// A value to choose.
    pub struct SessionConfigSelectOption {
        required {
            /// Id of the value.
            value "value": SessionConfigValueId [Required],
            /// A name to show.
            name "name": String [Required],
        }
        optional {
            /// A description to show.
            description "description": Option<String> [LenientText],
        }
    }
}

object! {
    /// Values under a heading.
    pub struct SessionConfigSelectGroup {
        required {
            /// Id of the group.
            group "group": SessionConfigGroupId [Required],
            /// The heading.
            name "name": String [Required],
            /// The values.
            options "options": Vec<SessionConfigSelectOption> [SkipInvalid],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn same(text: &str) -> SessionConfigOption {
        let option: SessionConfigOption = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&option).unwrap(), text);
        option
    }

    fn options(text: &str) -> serde_json::Result<SessionConfigSelectOptions> {
        serde_json::from_str(text)
    }

    #[test]
    fn the_kinds_members_stand_beside_the_options() {
        // shows CONF-05, CONF-10: categories may be missing or unknown
        let select = same(
            r#"{"id":"m","name":"M","description":"d","category":"_x","type":"select","currentValue":"1","options":[{"value":"1","name":"One"}],"_meta":{"a":1}}"#,
        );
        assert_eq!(select.category, Some(SessionConfigOptionCategory::Other("_x".to_owned())));
        let switch = same(r#"{"id":"b","name":"B","type":"boolean","currentValue":false}"#);
        assert_eq!(switch, SessionConfigOption::boolean("b", "B", false));
    }

    #[test]
    fn display_data_may_be_malformed_and_the_rest_may_not() {
        // shows CONF-06, CONF-10
        let read = serde_json::from_str::<SessionConfigOption>;
        let odd = r#"{"name":"B","currentValue":true,"category":5,"description":[],"_meta":7,"id":"b","type":"boolean"}"#;
        assert_eq!(read(odd).unwrap(), SessionConfigOption::boolean("b", "B", true));
        assert!(read(r#"{"id":"b","name":"B","type":"slider","currentValue":3}"#).is_err());
        assert!(read(r#"{"id":"b","name":"B","currentValue":true}"#).is_err());
        assert!(read(r#"{"id":"b","name":"B","type":"boolean","currentValue":"true"}"#).is_err());
        assert!(read(r#"{"id":"b","name":"B","type":"select","currentValue":"1"}"#).is_err());
        assert!(read(r#"{"name":"B","type":"boolean","currentValue":true}"#).is_err());
    }

    #[test]
    fn values_are_flat_or_in_groups_and_never_mixed() {
        // shows CONF-20
        assert_eq!(options("[]").unwrap(), SessionConfigSelectOptions::Ungrouped(Vec::new()));
        let flat =
            options(r#"[{"value":"1","name":"One"},{"value":"2","name":"Two","description":7}]"#).unwrap();
        assert!(matches!(&flat, SessionConfigSelectOptions::Ungrouped(list) if list.len() == 2));
        let grouped = options(
            r#"[{"group":"a","name":"A","options":[{"value":"1","name":"One"},{"value":"2"}]},
                {"group":"b","name":"B","options":null}]"#,
        )
        .unwrap();
        assert!(matches!(&grouped, SessionConfigSelectOptions::Grouped(groups) if groups.len() == 2));
        // Inside a group a malformed value is skipped.
        assert_eq!(grouped.iter().map(|option| option.value.as_str()).collect::<Vec<_>>(), ["1"]);
        for text in [
            r#"[{"value":"1","name":"One"},{"value":"2"}]"#,
            r#"[{"value":"1","name":"One"},{"group":"a","name":"A","options":[]}]"#,
            "null",
            "{}",
        ] {
            assert!(options(text).is_err(), "{text}");
        }
    }
}
