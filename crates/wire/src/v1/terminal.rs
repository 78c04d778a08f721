//! Terminals of the client: `terminal/*`.

// TERM-01 to TERM-21

use crate::shape::*;
use crate::v1::{EnvVariable, SessionId, TerminalId};

object! {
    /// Starts a command. All members are launch data and read strictly.
    pub struct CreateTerminalRequest { // TERM-04, TERM-14
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The program.
            command "command": String [Required],
        }
        optional {
            /// Its arguments.
            args "args": Option<Vec<String>> [Optional],
            /// Variables to add to the environment.
            env "env": Option<Vec<EnvVariable>> [Optional], // TERM-15
            /// The absolute working directory; by default the session's.
            cwd "cwd": Option<String> [Optional], // TERM-13
            /// Maximum bytes of output to keep; older output is dropped first.
            output_byte_limit "outputByteLimit": Option<u64> [Optional], // TERM-06
        }
    }
}

object! {
    /// The terminal of the command.
    pub struct CreateTerminalResponse {
        required {
            /// Its id.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// Requests the output so far.
    pub struct TerminalOutputRequest { // TERM-08
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// The exit status of a command.
    pub struct TerminalExitStatus { // TERM-16
        optional {
            /// Its exit code, if it exited.
            exit_code "exitCode": Option<u32> [Lenient],
            /// The signal that ended it, if one did.
            signal "signal": Option<String> [LenientText],
        }
    }
}

object! {
    /// The output so far.
    pub struct TerminalOutputResponse {
        required {
            /// Both streams, merged.
            output "output": String [Required], // TERM-19
            /// Whether older output was dropped.
            truncated "truncated": bool [Required], // TERM-06
        }
        optional {
            /// The exit status, if the command ended.
            exit_status "exitStatus": Option<TerminalExitStatus> [Lenient],
        }
    }
}

object! {
    /// Waits for the command to end.
    pub struct WaitForTerminalExitRequest { // TERM-09
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// The exit status of the command.
    pub struct WaitForTerminalExitResponse [nullable] { // TERM-09, TERM-16
        optional {
            /// Its exit code, if it exited.
            exit_code "exitCode": Option<u32> [Lenient],
            /// The signal that ended it, if one did.
            signal "signal": Option<String> [LenientText],
        }
    }
}

impl From<TerminalExitStatus> for WaitForTerminalExitResponse {
    fn from(status: TerminalExitStatus) -> Self {
        WaitForTerminalExitResponse { exit_code: status.exit_code, signal: status.signal, meta: status.meta }
    }
}

impl From<WaitForTerminalExitResponse> for TerminalExitStatus {
    fn from(response: WaitForTerminalExitResponse) -> Self {
        TerminalExitStatus { exit_code: response.exit_code, signal: response.signal, meta: response.meta }
    }
}

object! {
    /// Ends the command; the terminal stays.
    pub struct KillTerminalRequest { // TERM-10
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
    /// It was asked to end.
    KillTerminalResponse,
}

object! {
    /// Ends the command and releases the terminal.
    pub struct ReleaseTerminalRequest { // TERM-05, TERM-11
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
    /// The terminal is released.
    ReleaseTerminalResponse,
}

crate::methods! {
    "terminal/create": CreateTerminalRequest => CreateTerminalResponse,
    "terminal/output": TerminalOutputRequest => TerminalOutputResponse,
    "terminal/wait_for_exit": WaitForTerminalExitRequest => WaitForTerminalExitResponse,
    "terminal/kill": KillTerminalRequest => KillTerminalResponse,
    "terminal/release": ReleaseTerminalRequest => ReleaseTerminalResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_starts_a_process_is_never_repaired() {
        // shows TERM-06, TERM-14
        let read = |rest: &str| {
            serde_json::from_str::<CreateTerminalRequest>(&format!(
                r#"{{"sessionId":"s","command":"ls",{rest}}}"#
            ))
        };
        assert_eq!(read(r#""args":null,"env":null"#).unwrap(), CreateTerminalRequest::new("s", "ls"));
        for bad in [
            r#""args":"-l""#,
            r#""args":["-l",5]"#,
            r#""env":[{"name":"A"}]"#,
            r#""env":{"A":"b"}"#,
            r#""cwd":5"#,
            r#""outputByteLimit":-1"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_exit_code_that_does_not_fit_is_dropped() {
        // shows TERM-16, RPC-22
        let read = serde_json::from_str::<WaitForTerminalExitResponse>;
        assert_eq!(read(r#"{"exitCode":-1}"#).unwrap(), WaitForTerminalExitResponse::new());
        assert_eq!(read("null").unwrap(), WaitForTerminalExitResponse::new());
        let killed = read(r#"{"exitCode":null,"signal":"SIGTERM"}"#).unwrap();
        assert_eq!(TerminalExitStatus::from(killed), TerminalExitStatus::new().signal("SIGTERM".to_owned()));
    }
}
