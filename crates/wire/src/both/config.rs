//! Choices of a config option. Groups of values have different members in the versions.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use super::{SessionConfigSelectGroup, SessionConfigSelectOption, SessionConfigValueId};
use crate::Json;
use crate::shape::*;

object! {
    /// A choice among values.
    pub struct SessionConfigSelect {
        required {
            /// The current value.
            current_value "currentValue": SessionConfigValueId [Required], // CONF-05
            /// The values to choose from.
            options "options": SessionConfigSelectOptions [Required],
        }
        no_meta!
    }
}

// CONF-20
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
        // CONF-20: flat if every entry is a value, which an empty list is too; in groups if every
        // entry is a group. One entry that is neither refuses the option: a list with holes would
        // offer less than the agent has.
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
