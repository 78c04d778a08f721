//! Capabilities of the agent. An absent, `null` or malformed capability is unsupported.

#[cfg(feature = "unstable")]
pub use crate::v1::{
    AuthStatusCapabilities, ProvidersCapabilities, SessionArchiveCapabilities, SessionForkCapabilities,
    SessionStatusCapabilities, SessionSystemPromptCapabilities, SessionSystemPromptModeCapabilities,
    SessionSystemPromptOverrideCapabilities, SessionTitleCapabilities,
};
pub use crate::v1::{SessionAdditionalDirectoriesCapabilities, SessionDeleteCapabilities};

use crate::shape::*;

object! {
    // V2-04
    /// Capabilities of the agent, sent once in the response to `initialize`.
    pub struct AgentCapabilities {
        optional {
            /// Sessions: `session/new`, `list`, `resume`, `close`, `prompt`, `cancel` and `update`.
            session "session": Option<SessionCapabilities> [Lenient],
            /// Authentication besides login and logout.
            auth "auth": Option<AgentAuthCapabilities> [Lenient],
            /// Whether model providers can be set.
            #[cfg(feature = "unstable")]
            providers "providers": Option<ProvidersCapabilities> [Lenient],
        }
    }
}

object! {
    /// Session capabilities of the agent besides the baseline.
    pub struct SessionCapabilities {
        optional {
            /// Kinds of content that prompts may contain besides text and resource links.
            prompt "prompt": Option<PromptCapabilities> [Lenient],
            /// MCP transports; none is implied.
            mcp "mcp": Option<McpCapabilities> [Lenient],
            /// `session/delete`.
            delete "delete": Option<SessionDeleteCapabilities> [Lenient],
            /// Roots besides `cwd`.
            additional_directories "additionalDirectories":
                Option<SessionAdditionalDirectoriesCapabilities> [Lenient],
            /// A system prompt from the client.
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SessionSystemPromptCapabilities> [Lenient],
            /// `session/fork`.
            #[cfg(feature = "unstable")]
            fork "fork": Option<SessionForkCapabilities> [Lenient],
            /// `session/archive` and `session/unarchive`.
            #[cfg(feature = "unstable")]
            archive "archive": Option<SessionArchiveCapabilities> [Lenient],
            /// `session/status`.
            #[cfg(feature = "unstable")]
            status "status": Option<SessionStatusCapabilities> [Lenient],
            /// `session/set_title`.
            #[cfg(feature = "unstable")]
            title "title": Option<SessionTitleCapabilities> [Lenient],
        }
    }
}

object! {
    /// Kinds of content that prompts may contain besides text and resource links.
    pub struct PromptCapabilities {
        optional {
            /// Images.
            image "image": Option<PromptImageCapabilities> [Lenient],
            /// Audio.
            audio "audio": Option<PromptAudioCapabilities> [Lenient],
            /// Resources that travel with the prompt.
            embedded_context "embeddedContext": Option<PromptEmbeddedContextCapabilities> [Lenient],
        }
    }
}

object! {
    /// MCP transports that the agent supports.
    pub struct McpCapabilities {
        optional {
            /// Programs that the agent starts.
            stdio "stdio": Option<McpStdioCapabilities> [Lenient],
            /// Streamable HTTP.
            http "http": Option<McpHttpCapabilities> [Lenient],
            /// Through this connection.
            #[cfg(feature = "unstable")]
            acp "acp": Option<McpAcpCapabilities> [Lenient],
        }
    }
}

object! {
    /// Authentication capabilities of the agent besides login and logout.
    pub struct AgentAuthCapabilities {
        optional {
            /// Whether it has `auth/status`.
            #[cfg(feature = "unstable")]
            status "status": Option<AuthStatusCapabilities> [Lenient],
        }
    }
}

empty_objects! {
    /// Prompts may contain images.
    PromptImageCapabilities,
    /// Prompts may contain audio.
    PromptAudioCapabilities,
    /// Prompts may contain resources.
    PromptEmbeddedContextCapabilities,
    /// The agent starts MCP servers that are programs.
    McpStdioCapabilities,
    /// The agent connects to MCP servers by streamable HTTP.
    McpHttpCapabilities,
}

#[cfg(feature = "unstable")]
empty_objects! {
    /// The agent uses MCP servers through this connection.
    McpAcpCapabilities,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_object_means_yes_and_everything_else_no() {
        let read = |text: &str| serde_json::from_str::<AgentCapabilities>(text).unwrap();
        let session = read(r#"{"session":{"prompt":{"image":{},"audio":true},"mcp":null}}"#).session.unwrap();
        let prompt = session.prompt.unwrap();
        assert!(prompt.image.is_some() && prompt.audio.is_none() && session.mcp.is_none());
        for text in ["{}", r#"{"session":null}"#, r#"{"session":true,"auth":[]}"#] {
            assert_eq!(read(text), AgentCapabilities::new(), "{text}");
        }
    }
}
