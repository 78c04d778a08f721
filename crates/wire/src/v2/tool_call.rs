//! Tool calls, as the client shows them.

use crate::shape::*;
use crate::v2::{ContentBlock, Diff, SessionId, Terminal, ToolCallId};
use crate::{Json, Meta, Patch};

#[path = "../both/tool_call.rs"]
mod both;
pub use both::*;

open_enum! {
    /// The kind of a tool, for icons. Unlisted kinds are shown as [`Other`](ToolKind::Other).
    pub enum ToolKind {
        /// Reads files or data.
        Read = "read",
        /// Changes files or content.
        Edit = "edit",
        /// Removes files or data.
        Delete = "delete",
        /// Moves or renames files.
        Move = "move",
        /// Searches.
        Search = "search",
        /// Runs commands or code.
        Execute = "execute",
        /// Reasons or plans.
        Think = "think",
        /// Fetches from outside.
        Fetch = "fetch",
        /// Switches the session's mode.
        SwitchMode = "switch_mode",
        /// Any other kind.
        Other = "other",
    } other Unlisted
}

open_enum! {
    /// The status of a tool call.
    pub enum ToolCallStatus {
        /// Not started: its input is still streaming, or it waits for permission.
        Pending = "pending",
        /// Running.
        InProgress = "in_progress",
        /// Interrupted; it may continue.
        Paused = "paused",
        /// Completed.
        Completed = "completed",
        /// Failed.
        Failed = "failed",
        /// Cancelled.
        Cancelled = "cancelled",
    }
}

impl ToolCallStatus {
    /// Whether the call has ended and its status no longer changes.
    pub fn is_final(&self) -> bool {
        matches!(self, ToolCallStatus::Completed | ToolCallStatus::Failed | ToolCallStatus::Cancelled)
    }
}

object! {
    /// A location in a file that a tool call works on, so that clients can follow along.
    pub struct ToolCallLocation {
        required {
            /// The absolute path.
            path "path": String [Required],
        }
        optional {
            /// The line, counted from 1; 0 is read as absent.
            line "line": Option<u32> [LenientPositive],
        }
    }
}

tagged! {
    /// Content that a tool call produced.
    pub enum ToolCallContent by "type" {
        /// A content block.
        Content(Content) = "content",
        /// Changes of files.
        Diff(Diff) = "diff",
        /// A terminal.
        Terminal(Terminal) = "terminal",
    }
    other Other
}

empty_objects! {
    /// The call can be cancelled.
    ToolCallCancelCapabilities,
}

object! {
    /// Operations on a tool call that the client may request.
    pub struct ToolCallCapabilities {
        optional {
            /// `tool_call/cancel`.
            cancel "cancel": Option<ToolCallCancelCapabilities> [Lenient],
        }
    }
}

object! {
    // V2-17
    /// Creates or changes a tool call. Absent members stay, `null` clears, and the first update of
    /// an id creates the call.
    pub struct ToolCallUpdate {
        required {
            /// Id of the call, unique in its session.
            tool_call_id "toolCallId": ToolCallId [Required],
        }
        optional {
            /// The name of the tool.
            name "name": Patch<String> [PatchText],
            /// A title to show.
            title "title": Patch<String> [PatchText],
            /// The kind of tool; `other` as long as none is given.
            kind "kind": Patch<ToolKind> [PatchText],
            /// The status; `pending` as long as none is given.
            status "status": Patch<ToolCallStatus> [PatchText],
            /// The content that it produced.
            content "content": Patch<Vec<ToolCallContent>> [PatchSkipInvalid],
            /// The files it works on.
            locations "locations": Patch<Vec<ToolCallLocation>> [PatchSkipInvalid],
            /// The tool's input as the model wrote it: any JSON.
            raw_input "rawInput": Patch<Json> [PatchJson],
            /// The tool's output as it came: any JSON.
            raw_output "rawOutput": Patch<Json> [PatchJson],
            /// Operations that the client may request.
            capabilities "capabilities": Patch<ToolCallCapabilities> [PatchLenient],
            // V2-18
            /// Custom metadata of extensions (`_meta`), patched by key.
            meta "_meta": Patch<Meta> [PatchMeta],
        }
        no_meta!
    }
}

object! {
    // V2-17
    /// Content that is appended to a tool call.
    pub struct ToolCallContentChunk {
        required {
            /// The call.
            tool_call_id "toolCallId": ToolCallId [Required],
            /// The content.
            content "content": ToolCallContent [Required],
        }
    }
}

object! {
    /// Cancels a tool call.
    pub struct CancelToolCallRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The call.
            tool_call_id "toolCallId": ToolCallId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The agent cancels the call; its final update confirms it.
    CancelToolCallResponse,
}

crate::methods! {
    "tool_call/cancel": CancelToolCallRequest => CancelToolCallResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(members: &str) -> ToolCallUpdate {
        serde_json::from_str(&format!(r#"{{"toolCallId":"c",{members}}}"#)).unwrap()
    }

    #[test]
    fn absent_null_and_a_value_are_different() {
        // shows V2-17
        let text = r#"{"toolCallId":"c","title":null,"kind":"_paint","status":"paused","rawInput":null,"_meta":{"k":null}}"#;
        let update: ToolCallUpdate = serde_json::from_str(text).unwrap();
        assert_eq!((&update.title, &update.name), (&Patch::Clear, &Patch::Keep));
        assert_eq!((&update.raw_input, &update.raw_output), (&Patch::Clear, &Patch::Keep));
        assert_eq!(update.kind, Patch::Set(ToolKind::Unlisted("_paint".to_owned())));
        assert_eq!(serde_json::to_string(&update).unwrap(), text);
    }

    #[test]
    fn what_is_malformed_says_nothing() {
        let members =
            r#""title":5,"kind":{},"status":7,"content":"x","locations":true,"capabilities":[],"_meta":5"#;
        assert_eq!(read(members), ToolCallUpdate::new("c"));
    }

    #[test]
    fn malformed_entries_are_skipped_and_unknown_ones_kept() {
        // shows V2-20, V2-21
        let update = read(
            r#""content":[{"type":"diff"},{"type":"_chart","x":1}],"locations":[{"path":"/a","line":0}]"#,
        );
        let Patch::Set(content) = update.content else { panic!() };
        assert!(matches!(&content[..], [ToolCallContent::Other(unknown)] if unknown.tag == "_chart"));
        assert_eq!(update.locations, Patch::Set(vec![ToolCallLocation::new("/a")]));
    }
}
