//! Asking for permission: `session/request_permission`.

pub use crate::v1::SelectedPermissionOutcome;

use crate::shape::*;
use crate::v2::{PermissionOptionId, SessionId, TerminalId, ToolCallId, ToolCallUpdate};

#[path = "../both/permission.rs"]
mod both;
pub use both::*;

open_enum! {
    /// The meaning of an option: a hint for icons and order; the choice is the option's id.
    pub enum PermissionOptionKind {
        /// Allow once.
        AllowOnce = "allow_once",
        /// Allow always; the agent remembers it.
        AllowAlways = "allow_always",
        /// Reject once.
        RejectOnce = "reject_once",
        /// Reject always; the agent remembers it.
        RejectAlways = "reject_always",
    }
}

impl PermissionOptionKind {
    /// Whether choosing it allows the operation; an unlisted kind does not say so.
    pub fn allows(&self) -> bool {
        matches!(self, PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways)
    }
}

object! {
    /// Permission for a tool call.
    pub struct ToolCallPermissionSubject {
        required {
            /// The call, with the members that matter for the question.
            tool_call "toolCall": ToolCallUpdate [Required],
        }
    }
}

object! {
    /// Permission for a command.
    pub struct CommandPermissionSubject {
        required {
            /// The command.
            command "command": String [Required],
            /// The absolute path of its working directory.
            cwd "cwd": String [Required],
        }
        optional {
            /// The tool call that runs it.
            tool_call_id "toolCallId": Option<ToolCallId> [LenientText],
            /// The terminal that it runs in.
            terminal_id "terminalId": Option<TerminalId> [LenientText],
        }
    }
}

tagged! {
    /// The operation that needs permission.
    pub enum RequestPermissionSubject by "type" {
        /// A tool call.
        ToolCall(Box<ToolCallPermissionSubject>) = "tool_call",
        /// A command.
        Command(CommandPermissionSubject) = "command",
    }
    other Other
}

impl From<ToolCallPermissionSubject> for RequestPermissionSubject {
    fn from(subject: ToolCallPermissionSubject) -> Self {
        RequestPermissionSubject::ToolCall(Box::new(subject))
    }
}

object! {
    // V2-24
    /// Asks for permission.
    pub struct RequestPermissionRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The question to show.
            title "title": String [Required],
            /// The options, at least one; a malformed option makes the whole request invalid.
            options "options": Vec<PermissionOption> [Required],
        }
        optional {
            /// Details to show.
            description "description": Option<String> [LenientText],
            /// The operation; malformed, it makes the whole request invalid.
            subject "subject": Option<RequestPermissionSubject> [Optional],
        }
    }
}

empty_objects! {
    /// The request was cancelled before the user chose.
    CancelledPermissionOutcome,
}

tagged! {
    // V2-23
    /// The outcome of a permission request. Only a selected option can be an approval.
    pub enum RequestPermissionOutcome by "outcome" {
        /// The request was cancelled before the user chose.
        Cancelled(CancelledPermissionOutcome) = "cancelled",
        /// An option was chosen.
        Selected(SelectedPermissionOutcome) = "selected",
    }
    other Other
}

impl RequestPermissionOutcome {
    /// The outcome of a cancelled request.
    pub fn cancelled() -> Self {
        RequestPermissionOutcome::Cancelled(CancelledPermissionOutcome::new())
    }

    /// The outcome of choosing an option.
    pub fn selected(option_id: impl Into<PermissionOptionId>) -> Self {
        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option_id))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_malformed_subject_or_option_refuses_the_request() {
        // shows V2-20, V2-24
        let read = |rest: &str| {
            let text = format!(r#"{{"sessionId":"s","title":"Run?",{rest}}}"#);
            serde_json::from_str::<RequestPermissionRequest>(&text)
        };
        let options = r#""options":[{"optionId":"a","name":"A","kind":"_maybe"}]"#;
        assert!(!read(options).unwrap().options[0].kind.allows());
        for bad in [
            r#""subject":{}"#,
            r#""subject":{"type":"command","command":"ls"}"#,
            r#""subject":{"type":"tool_call"}"#,
            r#""subject":5"#,
        ] {
            assert!(read(&format!("{options},{bad}")).is_err(), "{bad}");
        }
        assert!(read(r#""options":[{"optionId":"a"}]"#).is_err());
        let unknown = read(&format!(r#"{options},"subject":{{"type":"_x"}}"#)).unwrap();
        assert!(matches!(unknown.subject, Some(RequestPermissionSubject::Other(_))));
    }

    #[test]
    fn an_unknown_outcome_selects_nothing() {
        // shows V2-20, V2-23
        let read = serde_json::from_str::<RequestPermissionOutcome>;
        assert!(matches!(
            read(r#"{"outcome":"_maybe","optionId":"a"}"#).unwrap(),
            RequestPermissionOutcome::Other(_)
        ));
        assert!(read(r#"{"outcome":"selected"}"#).is_err() && read("{}").is_err());
        assert_eq!(read(r#"{"outcome":"cancelled"}"#).unwrap(), RequestPermissionOutcome::cancelled());
    }
}
