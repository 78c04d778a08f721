//! Terminals of the agent: commands whose output the client shows.

use crate::shape::*;
use crate::v2::{SessionId, TerminalId};
use crate::{Meta, Patch};

object! {
    /// A terminal whose output is shown inside the tool call.
    pub struct Terminal {
        required {
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// The whole output of a terminal. It replaces all output so far.
    pub struct TerminalOutput {
        required {
            /// The bytes, as base64.
            data "data": String [Required],
        }
    }
}

object! {
    /// The exit status of a command; present means that it ended.
    pub struct TerminalExitStatus {
        optional {
            /// Its exit code, if it exited.
            exit_code "exitCode": Option<i64> [Lenient],
            /// The signal that ended it, if one did.
            signal "signal": Option<String> [LenientText],
        }
    }
}

object! {
    /// The size of a terminal in characters.
    pub struct TerminalSize {
        required {
            /// Columns, at least 1.
            cols "cols": u16 [Required],
            /// Rows, at least 1.
            rows "rows": u16 [Required],
        }
    }
}

empty_objects! {
    /// The command can be cancelled.
    TerminalCancelCapabilities,
}

object! {
    /// Operations on a terminal that the client may request.
    pub struct TerminalCapabilities {
        optional {
            /// `terminal/cancel`.
            cancel "cancel": Option<TerminalCancelCapabilities> [Lenient],
        }
    }
}

object! {
    // V2-17
    /// Creates or changes a terminal. Absent members stay, `null` clears.
    pub struct TerminalUpdate {
        required {
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
        optional {
            /// The command to show.
            command "command": Patch<String> [PatchText],
            /// The absolute path of its working directory.
            cwd "cwd": Patch<String> [PatchText],
            /// The whole output.
            output "output": Patch<TerminalOutput> [PatchLenient],
            /// The exit status, once the command ended.
            exit_status "exitStatus": Patch<TerminalExitStatus> [PatchLenient],
            /// The size.
            size "size": Patch<TerminalSize> [PatchLenient],
            /// Operations that the client may request.
            capabilities "capabilities": Patch<TerminalCapabilities> [PatchLenient],
            // V2-18
            /// Custom metadata of extensions (`_meta`), patched by key.
            meta "_meta": Patch<Meta> [PatchMeta],
        }
        no_meta!
    }
}

object! {
    /// Output that is appended. Each piece is decoded for itself, and may end inside of a
    /// character.
    pub struct TerminalOutputChunk {
        required {
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
            /// The bytes, as base64.
            data "data": String [Required],
        }
    }
}

object! {
    /// Cancels the command of a terminal.
    pub struct CancelTerminalRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The agent cancels the command; its exit status confirms it.
    CancelTerminalResponse,
}

crate::methods! {
    "terminal/cancel": CancelTerminalRequest => CancelTerminalResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_update_has_three_states_per_member() {
        // shows V2-17
        let text = r#"{"terminalId":"t","command":null,"output":{"data":"aGk="},"exitStatus":{"exitCode":-1},"_meta":null}"#;
        let update: TerminalUpdate = serde_json::from_str(text).unwrap();
        assert_eq!((&update.command, &update.cwd), (&Patch::Clear, &Patch::Keep));
        assert_eq!(update.exit_status, Patch::Set(TerminalExitStatus::new().exit_code(-1)));
        assert_eq!(serde_json::to_string(&update).unwrap(), text);
        let text = r#"{"terminalId":"t","command":5,"size":{"cols":80},"output":"aGk="}"#;
        assert_eq!(serde_json::from_str::<TerminalUpdate>(text).unwrap(), TerminalUpdate::new("t"));
        assert!(serde_json::from_str::<TerminalOutputChunk>(r#"{"terminalId":"t"}"#).is_err());
    }
}
