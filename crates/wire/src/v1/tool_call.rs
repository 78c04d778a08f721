//! Tool calls, as the client shows them.

// TOOL-01 to TOOL-22

use crate::Json;
use crate::shape::*;
use crate::v1::{ContentBlock, TerminalId, ToolCallId};

#[path = "../both/tool_call.rs"]
mod both;
pub use both::*;

closed_enum! {
    /// The kind of a tool, for icons. Unlisted kinds count as `Other`.
    pub enum ToolKind { // TOOL-12
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
    } else Other
}

closed_enum! {
    /// The status of a tool call. Version 1 has no status for cancelled calls; an unlisted status
    /// is read as absent.
    pub enum ToolCallStatus { // TOOL-11
        /// Not started: its input is still streaming, or it waits for permission.
        Pending = "pending",
        /// Running.
        InProgress = "in_progress",
        /// Completed.
        Completed = "completed",
        /// Failed.
        Failed = "failed",
    }
}

object! {
    /// A location in a file that a tool call works on, so that clients can follow along.
    pub struct ToolCallLocation { // TOOL-18
        required {
            /// The absolute path.
            path "path": String [Required],
        }
        optional {
            /// The line, counted from 1.
            line "line": Option<u32> [Lenient],
        }
    }
}

object! {
    /// A change of one file.
    pub struct Diff { // TOOL-15
        required {
            /// The absolute path.
            path "path": String [Required],
            /// The text after the change.
            new_text "newText": String [Required],
        }
        optional {
            /// The text before the change; nothing for a new file.
            old_text "oldText": Option<String> [LenientText],
        }
    }
}

object! {
    /// A terminal whose output is shown inside the tool call.
    pub struct Terminal { // TOOL-16
        required {
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

tagged! {
    /// Content that a tool call produced. A bare content block is invalid.
    pub enum ToolCallContent by "type" { // TOOL-14
        /// A content block.
        Content(Content) = "content",
        /// A change of a file.
        Diff(Diff) = "diff",
        /// A terminal.
        Terminal(Terminal) = "terminal",
    }
}

object! {
    /// A new tool call.
    pub struct ToolCall { // TOOL-01, TOOL-03
        required {
            /// Id of the call, unique in its session.
            tool_call_id "toolCallId": ToolCallId [Required], // TOOL-02
            /// A title to show.
            title "title": String [Required],
        }
        optional {
            /// The name of the tool.
            name "name": Option<String> [LenientText], // TOOL-20
            /// The kind of tool; absent means [`ToolKind::Other`].
            kind "kind": Option<ToolKind> [Lenient], // TOOL-04
            /// The status; absent means [`ToolCallStatus::Pending`].
            status "status": Option<ToolCallStatus> [Lenient], // TOOL-04
            /// The content that it produced.
            content "content": Option<Vec<ToolCallContent>> [SkipInvalid],
            /// The files it works on.
            locations "locations": Option<Vec<ToolCallLocation>> [SkipInvalid],
            /// The tool's input as the model wrote it: any JSON.
            raw_input "rawInput": Option<Json> [AnyJson], // TOOL-19
            /// The tool's output as it came: any JSON.
            raw_output "rawOutput": Option<Json> [AnyJson], // TOOL-19
        }
    }
}

object! {
    /// A change of a tool call. Absent or `null` members stay; lists are
    /// replaced whole.
    pub struct ToolCallUpdate { // TOOL-05, TOOL-06, TOOL-07
        required {
            /// The call.
            tool_call_id "toolCallId": ToolCallId [Required],
        }
        optional {
            /// A title to show.
            title "title": Option<String> [LenientText],
            /// The name of the tool.
            name "name": Option<String> [LenientText],
            /// The kind of tool.
            kind "kind": Option<ToolKind> [Lenient],
            /// The status.
            status "status": Option<ToolCallStatus> [Lenient],
            /// The content that it produced.
            content "content": Option<Vec<ToolCallContent>> [SkipInvalid],
            /// The files it works on.
            locations "locations": Option<Vec<ToolCallLocation>> [SkipInvalid],
            /// The tool's input: any JSON.
            raw_input "rawInput": Option<Json> [AnyJson],
            /// The tool's output: any JSON.
            raw_output "rawOutput": Option<Json> [AnyJson],
        }
    }
}

impl ToolCallUpdate {
    /// Merges a later update: its members replace the earlier ones, and absent members stay.
    // TOOL-05, TOOL-06, TOOL-07
    pub fn merge(&mut self, later: ToolCallUpdate) {
        fn set<T>(earlier: &mut Option<T>, later: Option<T>) {
            if later.is_some() {
                *earlier = later;
            }
        }
        set(&mut self.title, later.title);
        set(&mut self.name, later.name);
        set(&mut self.kind, later.kind);
        set(&mut self.status, later.status);
        set(&mut self.content, later.content);
        set(&mut self.locations, later.locations);
        set(&mut self.raw_input, later.raw_input);
        set(&mut self.raw_output, later.raw_output);
        set(&mut self.meta, later.meta);
    }
}

impl From<ToolCall> for ToolCallUpdate {
    /// Returns an update with all members of the call; permission requests describe calls in this
    /// form.
    fn from(call: ToolCall) -> Self {
        ToolCallUpdate {
            tool_call_id: call.tool_call_id,
            title: Some(call.title),
            name: call.name,
            kind: call.kind,
            status: call.status,
            content: call.content,
            locations: call.locations,
            raw_input: call.raw_input,
            raw_output: call.raw_output,
            meta: call.meta,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn call(members: &str) -> ToolCall {
        serde_json::from_str(&format!(r#"{{"toolCallId":"c","title":"t",{members}}}"#)).unwrap()
    }

    #[test]
    fn unknown_kinds_are_other_and_unknown_statuses_are_not_mentioned() {
        // shows TOOL-12, TOOL-11
        assert_eq!(call(r#""kind":"paint""#).kind, Some(ToolKind::Other));
        assert_eq!(call(r#""kind":7"#).kind, None);
        assert_eq!(call(r#""status":"cancelled""#).status, None);
        assert_eq!(call(r#""status":null"#).status, None);
    }

    #[test]
    fn malformed_entries_of_lists_are_skipped() {
        // shows TOOL-14, TOOL-15, TOOL-18, CONT-07
        let call = call(concat!(
            r#""content":[{"type":"text","text":"bare"},{"type":"diff","path":"/a"},"#,
            r#"{"type":"content","content":{"type":"hologram"}},{"terminalId":"x","type":"terminal"}],"#,
            r#""locations":[{"line":3},{"path":"/a","line":-1}]"#
        ));
        assert_eq!(call.content, Some(vec![Terminal::new("x").into()]));
        assert_eq!(call.locations, Some(vec![ToolCallLocation::new("/a")]));
    }

    #[test]
    fn a_list_that_is_none_is_not_mentioned() {
        let call = call(r#""content":"x","locations":null"#);
        assert_eq!((call.content, call.locations), (None, None));
    }

    #[test]
    fn null_in_an_update_is_not_mentioned() {
        // shows TOOL-05, TOOL-07
        let text = r#"{"toolCallId":"c","title":null,"content":null,"rawInput":null,"kind":null}"#;
        let update: ToolCallUpdate = serde_json::from_str(text).unwrap();
        assert_eq!(update, ToolCallUpdate::new("c"));
        assert_eq!(serde_json::to_string(&update).unwrap(), r#"{"toolCallId":"c"}"#);
    }

    #[test]
    fn raw_input_is_any_json_and_comes_back_as_it_was() {
        // shows TOOL-19
        let text = r#"{"toolCallId":"c","title":"t","rawInput":"ls","rawOutput":[1e3,{"b":0,"a":1}]}"#;
        let call: ToolCall = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&call).unwrap(), text);
    }
}
