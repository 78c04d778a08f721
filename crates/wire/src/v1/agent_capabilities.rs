//! Capabilities of the agent. Absent means unsupported; malformed means absent.

// INIT-15, INIT-20

#[cfg(feature = "unstable")]
use super::{
    AuthStatusCapabilities, ProvidersCapabilities, SessionArchiveCapabilities, SessionForkCapabilities,
    SessionStatusCapabilities, SessionSystemPromptCapabilities, SessionTitleCapabilities,
};
#[cfg(feature = "drafts")]
use super::{NesCapabilities, PositionEncodingKind};
use crate::shape::*;

object! {
    /// Capabilities of the agent, sent once in the response to `initialize`. Extensions use `meta`.
    pub struct AgentCapabilities { // INIT-18, INIT-27, INIT-28
        optional {
            /// Whether it has `session/load`.
            load_session "loadSession": bool [OrDefault], // SESS-07
            /// Kinds of content that prompts may contain besides text and resource links.
            prompt_capabilities "promptCapabilities": PromptCapabilities [OrDefault], // INIT-23
            /// MCP transports besides stdio.
            mcp_capabilities "mcpCapabilities": McpCapabilities [OrDefault],
            /// Session capabilities besides the baseline.
            session_capabilities "sessionCapabilities": SessionCapabilities [OrDefault], // INIT-22
            /// Authentication capabilities.
            auth "auth": AgentAuthCapabilities [OrDefault],
            /// Whether model providers can be set.
            #[cfg(feature = "unstable")]
            providers "providers": Option<ProvidersCapabilities> [Lenient], // PROV-01
            /// Next edit suggestions; only in older drafts.
            #[cfg(feature = "drafts")]
            nes "nes": Option<NesCapabilities> [Lenient],
            /// The position encoding it chose; only in older drafts.
            #[cfg(feature = "drafts")]
            position_encoding "positionEncoding": Option<PositionEncodingKind> [Lenient], // NES-10
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
    /// MCP transports that the agent supports besides stdio.
    pub struct McpCapabilities { // MCP-03
        optional {
            /// Streamable HTTP.
            http "http": bool [OrDefault], // MCP-04
            /// Server-sent events; deprecated by MCP.
            sse "sse": bool [OrDefault],
            /// Through this connection.
            #[cfg(feature = "unstable")]
            acp "acp": bool [OrDefault], // MCPA-01
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
            /// Whether it has `logout`.
            logout "logout": Option<LogoutCapabilities> [Lenient], // AUTH-16
        }
    }
}

object! {
    /// Session capabilities of the agent besides `session/new`, `prompt`, `cancel` and `update`.
    pub struct SessionCapabilities {
        optional {
            /// `session/list`.
            list "list": Option<SessionListCapabilities> [Lenient], // LIST-01
            /// `session/delete`.
            delete "delete": Option<SessionDeleteCapabilities> [Lenient], // DEL-01
            // ROOT-08
            /// Roots besides `cwd`.
            additional_directories "additionalDirectories":
                Option<SessionAdditionalDirectoriesCapabilities> [Lenient],
            /// A system prompt from the client.
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SessionSystemPromptCapabilities> [Lenient], // SYSP-01
            /// `session/fork`.
            #[cfg(feature = "unstable")]
            fork "fork": Option<SessionForkCapabilities> [Lenient], // FORK-01
            /// `session/archive` and `session/unarchive`.
            #[cfg(feature = "unstable")]
            archive "archive": Option<SessionArchiveCapabilities> [Lenient], // SSTAT-05
            /// `session/status`.
            #[cfg(feature = "unstable")]
            status "status": Option<SessionStatusCapabilities> [Lenient],
            /// `session/set_title`.
            #[cfg(feature = "unstable")]
            title "title": Option<SessionTitleCapabilities> [Lenient],
            /// `session/resume`.
            resume "resume": Option<SessionResumeCapabilities> [Lenient], // SESS-20
            /// `session/close`.
            close "close": Option<SessionCloseCapabilities> [Lenient], // SESS-25
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
