//! `session/fork`. Unstable.

use crate::shape::*;
use crate::v2::{AvailableCommand, McpServer, SessionConfigOption, SessionId, SystemPrompt};

object! {
    /// Begins a session with the history of another one.
    pub struct ForkSessionRequest {
        required {
            /// The other session, which stays as it is.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory.
            cwd "cwd": String [Required],
        }
        optional {
            /// Roots besides `cwd`; none are inherited.
            additional_directories "additionalDirectories": Vec<String> [OptionalList],
            /// MCP servers to connect to.
            mcp_servers "mcpServers": Vec<McpServer> [OptionalList],
            /// The system prompt once more.
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional],
        }
    }
}

object! {
    /// The session has begun.
    pub struct ForkSessionResponse {
        required {
            /// Id of the new session.
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

crate::methods! {
    "session/fork": ForkSessionRequest => ForkSessionResponse,
}
