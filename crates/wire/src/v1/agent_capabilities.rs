//! Capabilities of the agent. INIT-15: absent means unsupported; INIT-20: malformed means absent.

#[cfg(feature = "unstable")]
use super::{
    AuthStatusCapabilities, ProvidersCapabilities, SessionArchiveCapabilities, SessionForkCapabilities,
    SessionStatusCapabilities, SessionSystemPromptCapabilities, SessionTitleCapabilities,
};
#[cfg(feature = "drafts")]
use super::{NesCapabilities, PositionEncodingKind};
use crate::shape::*;

object! {
    /// Capabilities of the agent, sent once in the response to `initialize` (INIT-18). Extensions use `meta`
    /// (INIT-27, INIT-28).
    pub struct AgentCapabilities {
        optional {
            /// Whether it has `session/load` (SESS-07).
            load_session "loadSession": bool [OrDefault],
            /// Kinds of content that prompts may contain besides text and resource links (INIT-23).
            prompt_capabilities "promptCapabilities": PromptCapabilities [OrDefault],
            /// MCP transports besides stdio.
            mcp_capabilities "mcpCapabilities": McpCapabilities [OrDefault],
            /// Session capabilities besides the baseline (INIT-22).
            session_capabilities "sessionCapabilities": SessionCapabilities [OrDefault],
            /// Authentication capabilities.
            auth "auth": AgentAuthCapabilities [OrDefault],
            /// Whether model providers can be set (PROV-01).
            #[cfg(feature = "unstable")]
            providers "providers": Option<ProvidersCapabilities> [Lenient],
            /// Next edit suggestions; only in older drafts.
            #[cfg(feature = "drafts")]
            nes "nes": Option<NesCapabilities> [Lenient],
            /// The position encoding it chose; only in older drafts (NES-10).
            #[cfg(feature = "drafts")]
            position_encoding "positionEncoding": Option<PositionEncodingKind> [Lenient],
        }
    }
}

object! {
    /// Kinds of content that prompts may contain besides text and resource links.
    pub struct PromptCapabilities {
        optional {
            /// Images.
            image "image": bool [OrDefault],
            /// Audio.
            audio "audio": bool [OrDefault],
            /// Resources that travel with the prompt.
            embedded_context "embeddedContext": bool [OrDefault],
        }
    }
}

object! {
    /// MCP transports that the agent supports besides stdio (MCP-03).
    pub struct McpCapabilities {
        optional {
            /// Streamable HTTP (MCP-04).
            http "http": bool [OrDefault],
            /// Server-sent events; deprecated by MCP.
            sse "sse": bool [OrDefault],
            /// Through this connection (MCPA-01).
            #[cfg(feature = "unstable")]
            acp "acp": bool [OrDefault],
        }
    }
}

object! {
    /// Authentication capabilities of the agent.
    pub struct AgentAuthCapabilities {
        optional {
            /// Whether it has `auth/status`.
            #[cfg(feature = "unstable")]
            status "status": Option<AuthStatusCapabilities> [Lenient],
            /// Whether it has `logout` (AUTH-16).
            logout "logout": Option<LogoutCapabilities> [Lenient],
        }
    }
}

object! {
    /// Session capabilities of the agent besides `session/new`, `prompt`, `cancel` and `update`.
    pub struct SessionCapabilities {
        optional {
            /// `session/list` (LIST-01).
            list "list": Option<SessionListCapabilities> [Lenient],
            /// `session/delete` (DEL-01).
            delete "delete": Option<SessionDeleteCapabilities> [Lenient],
            /// Roots besides `cwd` (ROOT-08).
            additional_directories "additionalDirectories":
                Option<SessionAdditionalDirectoriesCapabilities> [Lenient],
            /// A system prompt from the client (SYSP-01).
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SessionSystemPromptCapabilities> [Lenient],
            /// `session/fork` (FORK-01).
            #[cfg(feature = "unstable")]
            fork "fork": Option<SessionForkCapabilities> [Lenient],
            /// `session/archive` and `session/unarchive` (SSTAT-05).
            #[cfg(feature = "unstable")]
            archive "archive": Option<SessionArchiveCapabilities> [Lenient],
            /// `session/status`.
            #[cfg(feature = "unstable")]
            status "status": Option<SessionStatusCapabilities> [Lenient],
            /// `session/set_title`.
            #[cfg(feature = "unstable")]
            title "title": Option<SessionTitleCapabilities> [Lenient],
            /// `session/resume` (SESS-20).
            resume "resume": Option<SessionResumeCapabilities> [Lenient],
            /// `session/close` (SESS-25).
            close "close": Option<SessionCloseCapabilities> [Lenient],
        }
    }
}

empty_objects! {
    /// The agent has `session/list`.
    SessionListCapabilities,
    /// The agent has `session/delete`.
    SessionDeleteCapabilities,
    /// The agent takes roots besides `cwd`.
    SessionAdditionalDirectoriesCapabilities,
    /// The agent has `session/resume`.
    SessionResumeCapabilities,
    /// The agent has `session/close`.
    SessionCloseCapabilities,
    /// The agent has `logout`.
    LogoutCapabilities,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(text: &str) -> AgentCapabilities {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn malformed_capabilities_are_absent() {
        // shows INIT-15, INIT-20
        let text = r#"{"loadSession":1,"promptCapabilities":"all","mcpCapabilities":null,
            "sessionCapabilities":[],"auth":{"logout":true},"providers":true,"nes":5,"positionEncoding":"x"}"#;
        assert_eq!(read(text), AgentCapabilities::new());
    }

    #[test]
    fn one_malformed_member_does_not_hide_the_others() {
        // shows INIT-20
        let caps = read(
            r#"{"promptCapabilities":{"image":true,"audio":"loud"},"sessionCapabilities":{"list":{},"close":true}}"#,
        );
        assert!(caps.prompt_capabilities.image && !caps.prompt_capabilities.audio);
        assert!(caps.session_capabilities.list.is_some() && caps.session_capabilities.close.is_none());
    }

    #[test]
    fn empty_object_means_yes_and_null_means_no() {
        // shows INIT-19, AUTH-16, SYSP-01
        let caps = read(
            r#"{"auth":{"logout":{},"status":null},
                "sessionCapabilities":{"resume":null,"systemPrompt":{"mode":{"override":{}}}}}"#,
        );
        assert!(caps.auth.logout.is_some() && caps.auth.status.is_none());
        assert!(caps.session_capabilities.resume.is_none());
        let system_prompt = caps.session_capabilities.system_prompt.unwrap();
        assert!(system_prompt.mode.unwrap().overriding.is_some());
    }

    #[test]
    fn extensions_in_meta_survive() {
        // shows INIT-28, EXT-09
        let text = r#"{"loadSession":true,"_meta":{"example.org/x":{"on":true}}}"#;
        assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
    }
}
