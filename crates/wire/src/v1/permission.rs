//! Asking for permission: `session/request_permission`.

// PERM-01 to PERM-16

use serde::de::{Error, IgnoredAny, MapAccess};
use serde::ser::SerializeMap;

use crate::shape::tagged::Tagged;
use crate::shape::*;
use crate::v1::{PermissionOptionId, SessionId, ToolCallUpdate};

#[path = "../both/permission.rs"]
mod both;
pub use both::*;

closed_enum! {
    /// The meaning of an option. A hint for icons and order; the choice is the option's id.
    pub enum PermissionOptionKind { // PERM-11
        /// Allow once.
        AllowOnce = "allow_once",
        /// Allow always; the agent remembers it.
        AllowAlways = "allow_always", // PERM-14
        /// Reject once.
        RejectOnce = "reject_once",
        /// Reject always; the agent remembers it.
        RejectAlways = "reject_always", // PERM-14
    }
}

impl PermissionOptionKind {
    /// Whether choosing it lets the tool run.
    pub const fn allows(self) -> bool {
        matches!(self, PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways)
    }
}

object! {
    /// Asks whether a tool may run.
    pub struct RequestPermissionRequest { // PERM-02
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The tool call.
            tool_call "toolCall": ToolCallUpdate [Required],
            /// The options; a malformed option makes the whole request invalid.
            options "options": Vec<PermissionOption> [Required],
        }
    }
}

object! {
    /// One of the options was chosen.
    pub struct SelectedPermissionOutcome {
        required {
            /// The option.
            option_id "optionId": PermissionOptionId [Required],
        }
    }
}

// PERM-09
/// The outcome of a permission request. An unlisted outcome is not an approval, so it is refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RequestPermissionOutcome {
    /// The turn was cancelled before the user chose.
    Cancelled, // PERM-08
    /// An option was chosen.
    Selected(SelectedPermissionOutcome), // PERM-04
}

impl RequestPermissionOutcome {
    /// The outcome of choosing an option.
    pub fn selected(option_id: impl Into<PermissionOptionId>) -> Self {
        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option_id))
    }
}

impl From<SelectedPermissionOutcome> for RequestPermissionOutcome {
    fn from(outcome: SelectedPermissionOutcome) -> Self {
        RequestPermissionOutcome::Selected(outcome)
    }
}

impl Tagged for RequestPermissionOutcome {
    const NAME: &'static str = "RequestPermissionOutcome";
    const TAG: &'static str = "outcome";
    fn from_tag<'de, A: MapAccess<'de>>(tag: &str, mut map: A) -> Result<Self, A::Error> {
        match tag {
            "selected" => FromMap::from_map(map).map(RequestPermissionOutcome::Selected),
            "cancelled" => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(RequestPermissionOutcome::Cancelled)
            }
            other => Err(A::Error::unknown_variant(other, &["cancelled", "selected"])),
        }
    }
}

impl<'de> serde::Deserialize<'de> for RequestPermissionOutcome {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::shape::tagged::read(deserializer)
    }
}

impl serde::Serialize for RequestPermissionOutcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            RequestPermissionOutcome::Cancelled => map.serialize_entry("outcome", "cancelled")?,
            RequestPermissionOutcome::Selected(selected) => {
                map.serialize_entry("outcome", "selected")?;
                selected.to_map(&mut map)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_a_well_formed_outcome_is_an_outcome() {
        // shows PERM-04, PERM-09
        let read = |outcome: &str| {
            serde_json::from_str::<RequestPermissionResponse>(&format!(r#"{{"outcome":{outcome}}}"#))
                .map(|response| response.outcome)
        };
        let yes = RequestPermissionOutcome::selected("y");
        assert_eq!(read(r#"{"optionId":"y","outcome":"selected"}"#).unwrap(), yes);
        assert_eq!(
            read(r#"{"outcome":"cancelled","optionId":"y"}"#).unwrap(),
            RequestPermissionOutcome::Cancelled
        );
        for bad in [r#"{"outcome":"selected"}"#, r#"{"outcome":"approved"}"#, r#""selected""#, "null", "{}"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let text = serde_json::to_string(&RequestPermissionResponse::new(yes)).unwrap();
        assert_eq!(text, r#"{"outcome":{"outcome":"selected","optionId":"y"}}"#);
    }

    #[test]
    fn a_request_with_a_bad_option_is_refused() {
        // shows PERM-02, PERM-03
        let read = |rest: &str| {
            serde_json::from_str::<RequestPermissionRequest>(&format!(r#"{{"sessionId":"s",{rest}}}"#))
        };
        let good = r#"{"optionId":"y","name":"Y","kind":"allow_once"}"#;
        assert!(read(&format!(r#""toolCall":{{"toolCallId":"c"}},"options":[{good}]"#)).is_ok());
        assert!(read(&format!(r#""toolCall":{{"name":"bash"}},"options":[{good}]"#)).is_err());
        assert!(read(r#""toolCall":{"toolCallId":"c"}"#).is_err());
        let bad = r#"{"optionId":"z","name":"Z","kind":"allow_forever"}"#;
        assert!(read(&format!(r#""toolCall":{{"toolCallId":"c"}},"options":[{good},{bad}]"#)).is_err());
    }
}
