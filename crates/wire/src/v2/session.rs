//! Beginning and ending sessions: `session/new`, `resume`, `close`.
//!
//! Requests are launch data and read strictly; the members of answers besides the id are display
//! data and read leniently.

pub use crate::v1::{CloseSessionRequest, CloseSessionResponse};

use crate::shape::*;
#[cfg(feature = "unstable")]
use crate::v2::SystemPrompt;
use crate::v2::{AvailableCommand, McpServer, SessionConfigOption, SessionId};

object! {
    /// Begins a session, which is idle until the agent reports another state.
    pub struct NewSessionRequest {
        required {
            /// The absolute path of the working directory.
            cwd "cwd": String [Required],
        }
        optional {
            /// Roots besides `cwd`, absolute; needs the capability.
            additional_directories "additionalDirectories": Vec<String> [OptionalList],
            /// MCP servers to connect to.
            mcp_servers "mcpServers": Vec<McpServer> [OptionalList],
            /// A system prompt; needs the capability.
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional],
        }
    }
}

object! {
    // V2-44
    /// The session has begun. A list that is `null` is absent, and empty lists are not written.
    pub struct NewSessionResponse {
        required {
            /// Id of the session.
            session_id "sessionId": SessionId [Required],
        }
        optional {
            /// Config options.
            config_options "configOptions": Vec<SessionConfigOption> [SkipInvalidOrEmpty],
            /// Slash commands.
            available_commands "availableCommands": Vec<AvailableCommand> [SkipInvalidOrEmpty],
        }
    }
}

empty_objects! {
    /// From the beginning of the conversation.
    ReplayFromStart,
}

tagged! {
    /// The point from which a conversation is replayed. Agents refuse one that they do not support.
    pub enum ReplayFrom by "type" {
        /// From the beginning.
        Start(ReplayFromStart) = "start",
    }
    other Other
}

object! {
    /// Resumes a session.
    pub struct ResumeSessionRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory.
            cwd "cwd": String [Required],
        }
        optional {
            /// Roots besides `cwd`, the full list.
            additional_directories "additionalDirectories": Vec<String> [OptionalList],
            /// MCP servers to connect to.
            mcp_servers "mcpServers": Vec<McpServer> [OptionalList],
            /// The point to replay from; nothing is replayed if it is absent.
            replay_from "replayFrom": Option<ReplayFrom> [Optional],
            /// The system prompt once more.
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional],
        }
    }
}

object! {
    /// The session is resumed.
    pub struct ResumeSessionResponse [nullable] {
        optional {
            /// Config options.
            config_options "configOptions": Vec<SessionConfigOption> [SkipInvalidOrEmpty],
            /// Slash commands.
            available_commands "availableCommands": Vec<AvailableCommand> [SkipInvalidOrEmpty],
        }
    }
}

crate::methods! {
    "session/new": NewSessionRequest => NewSessionResponse,
    "session/resume": ResumeSessionRequest => ResumeSessionResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn launch_data_is_strict() {
        // shows V2-20
        let read = |rest: &str| {
            serde_json::from_str::<ResumeSessionRequest>(&format!(
                r#"{{"sessionId":"s","cwd":"/","mcpServers":null{rest}}}"#
            ))
        };
        assert_eq!(read("").unwrap(), ResumeSessionRequest::new("s", "/"));
        let start = read(r#","replayFrom":{"type":"start"}"#).unwrap();
        assert_eq!(start.replay_from, Some(ReplayFromStart::new().into()));
        let unknown = read(r#","replayFrom":{"type":"_cursor","at":5}"#).unwrap();
        assert!(matches!(unknown.replay_from, Some(ReplayFrom::Other(_))));
        for bad in [r#","replayFrom":"start""#, r#","replayFrom":{}"#, r#","additionalDirectories":[5]"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
