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
    /// Begins a session with the history of another one (FORK-01 to FORK-05).
    pub struct ForkSessionRequest {
        required {
            /// The other session, which stays as it is.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory (ROOT-01).
            cwd "cwd": String [Required],
        }
        optional {
            /// Roots besides `cwd`; none are inherited (FORK-05).
            additional_directories "additionalDirectories": Option<Vec<String>> [Optional],
            /// MCP servers to connect to.
            mcp_servers "mcpServers": Option<Vec<McpServer>> [Optional],
            /// The system prompt once more (SYSP-04).
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional],
        }
    }
}

object! {
    /// The session has begun (FORK-02).
    pub struct ForkSessionResponse {
        required {
            /// Id of the new session.
            session_id "sessionId": SessionId [Required],
        }
        optional {
            /// Modes.
            modes "modes": Option<SessionModeState> [Lenient],
            /// Config options.
            config_options "configOptions": Option<Vec<SessionConfigOption>> [SkipInvalid],
            /// Models; only in older drafts (MODEL-01).
            #[cfg(feature = "drafts")]
            models "models": Option<SessionModelState> [Lenient],
        }
    }
}

crate::methods! {
    "session/fork": ForkSessionRequest => ForkSessionResponse,
}
