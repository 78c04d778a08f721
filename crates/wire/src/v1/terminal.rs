//! Terminals of the client: `terminal/*` (TERM-01 to TERM-21).

use crate::shape::*;
use crate::v1::{EnvVariable, SessionId, TerminalId};

object! {
    /// Starts a command (TERM-04, TERM-14). All of it is launch data: what is malformed is refused.
    pub struct CreateTerminalRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The program.
            command "command": String [Required],
        }
        optional {
            /// Its arguments.
            args "args": Option<Vec<String>> [Optional],
            /// What is added to the environment (TERM-15).
            env "env": Option<Vec<EnvVariable>> [Optional],
            /// Where it runs, as an absolute path; otherwise in the session's directory (TERM-13).
            cwd "cwd": Option<String> [Optional],
            /// How many bytes of output are kept; older output goes first (TERM-06).
            output_byte_limit "outputByteLimit": Option<u64> [Optional],
        }
    }
}

object! {
    /// The terminal of the command.
    pub struct CreateTerminalResponse {
        required {
            /// Names it.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// Asks for the output so far (TERM-08).
    pub struct TerminalOutputRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// How a command ended (TERM-16).
    pub struct TerminalExitStatus {
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
            /// Both streams, merged (TERM-19).
            output "output": String [Required],
            /// Whether older output is gone (TERM-06).
            truncated "truncated": bool [Required],
        }
        optional {
            /// How the command ended, if it did.
            exit_status "exitStatus": Option<TerminalExitStatus> [Lenient],
        }
    }
}

object! {
    /// Asks to be told when the command ends (TERM-09).
    pub struct WaitForTerminalExitRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// How the command ended (TERM-09, TERM-16).
    pub struct WaitForTerminalExitResponse [nullable] {
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
    /// Ends the command; the terminal stays (TERM-10).
    pub struct KillTerminalRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// It was told to end.
    pub struct KillTerminalResponse [nullable] {}
}

object! {
    /// Ends the command and gives the terminal back (TERM-05, TERM-11).
    pub struct ReleaseTerminalRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// The terminal's id means nothing any more.
    pub struct ReleaseTerminalResponse [nullable] {}
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
