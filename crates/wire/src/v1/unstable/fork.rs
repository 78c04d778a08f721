//! `session/fork`. Unstable.

use crate::shape::*;
#[cfg(feature = "drafts")]
use crate::v1::SessionModelState;
use crate::v1::{McpServer, SessionConfigOption, SessionId, SessionModeState, SystemPrompt};

empty_objects! {
    /// The agent has `session/fork`.
    SessionForkCapabilities,
}

object! {
    /// Begins a session with the history of another one.
    pub struct ForkSessionRequest { // FORK-01 to FORK-05
        required {
            /// The other session, which stays as it is.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory.
            cwd "cwd": String [Required], // ROOT-01
        }
        optional {
            /// Roots besides `cwd`; none are inherited.
            additional_directories "additionalDirectories": Option<Vec<String>> [Optional], // FORK-05
            /// MCP servers to connect to.
            mcp_servers "mcpServers": Option<Vec<McpServer>> [Optional],
            /// The system prompt once more.
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional], // SYSP-04
        }
    }
}

object! {
    /// The session has begun.
    pub struct ForkSessionResponse { // FORK-02
        required {
            /// Id of the new session.
            session_id "sessionId": SessionId [Required],
        }
        optional {
            /// Modes.
            modes "modes": Option<SessionModeState> [Lenient],
            /// Config options.
            config_options "configOptions": Option<Vec<SessionConfigOption>> [SkipInvalid],
            /// Models; only in older drafts.
            #[cfg(feature = "drafts")]
            models "models": Option<SessionModelState> [Lenient], // MODEL-01
        }
    }
}

crate::methods! {
    "session/fork": ForkSessionRequest => ForkSessionResponse,
}
