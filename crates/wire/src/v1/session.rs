//! Beginning and ending sessions: `session/new`, `load`, `resume`, `fork`, `close`.
//!
//! Requests are launch data and read strictly; what answers carry besides the id is display
//! data and read leniently.

// MCP-11, ROOT-10

#[cfg(feature = "drafts")]
use super::SessionModelState;
#[cfg(feature = "unstable")]
use super::SystemPrompt;
use super::{McpServer, SessionConfigOption, SessionId, SessionModeState};
use crate::shape::*;

object! {
    /// Begins a session.
    pub struct NewSessionRequest { // SESS-33
        required {
            /// The absolute path of the working directory.
            cwd "cwd": String [Required], // ROOT-01
            /// MCP servers to connect to.
            mcp_servers "mcpServers": Vec<McpServer> [NullAsDefault], // MCP-10
        }
        optional {
            /// Roots besides `cwd`, absolute; needs the capability.
            additional_directories "additionalDirectories": Option<Vec<String>> [Optional], // ROOT-08 to ROOT-11
            /// A system prompt; needs the capability.
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional], // SYSP-01
        }
    }
}

object! {
    /// The session has begun.
    pub struct NewSessionResponse {
        required {
            /// Id of the session.
            session_id "sessionId": SessionId [Required], // SESS-03, SESS-05
        }
        optional {
            /// Modes.
            modes "modes": Option<SessionModeState> [Lenient], // MODE-01
            /// Config options.
            config_options "configOptions": Option<Vec<SessionConfigOption>> [SkipInvalid], // CONF-01
            /// Models; only in older drafts.
            #[cfg(feature = "drafts")]
            models "models": Option<SessionModelState> [Lenient], // MODEL-01
        }
    }
}

object! {
    /// Loads a session and replays its conversation.
    pub struct LoadSessionRequest { // SESS-10, SESS-11
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory.
            cwd "cwd": String [Required], // ROOT-01, ROOT-20
            /// MCP servers to connect to.
            mcp_servers "mcpServers": Vec<McpServer> [NullAsDefault], // MCP-10
        }
        optional {
            /// Roots besides `cwd`, the full list.
            additional_directories "additionalDirectories": Option<Vec<String>> [Optional], // ROOT-12, ROOT-13
            /// The system prompt once more.
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional], // SYSP-04
        }
    }
}

object! {
    /// The conversation is replayed.
    pub struct LoadSessionResponse [nullable] { // SESS-12, SESS-13
        optional {
            /// Modes.
            modes "modes": Option<SessionModeState> [Lenient], // SESS-14
            /// Config options.
            config_options "configOptions": Option<Vec<SessionConfigOption>> [SkipInvalid], // SESS-14
            /// Models; only in older drafts.
            #[cfg(feature = "drafts")]
            models "models": Option<SessionModelState> [Lenient], // MODEL-01
        }
    }
}

object! {
    /// Resumes a session without a replay.
    pub struct ResumeSessionRequest { // SESS-22, SESS-23
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory.
            cwd "cwd": String [Required], // ROOT-01, ROOT-20
        }
        optional {
            /// Roots besides `cwd`, the full list.
            additional_directories "additionalDirectories": Option<Vec<String>> [Optional], // ROOT-12, ROOT-13
            /// MCP servers to connect to.
            mcp_servers "mcpServers": Option<Vec<McpServer>> [Optional],
            /// The system prompt once more.
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional], // SYSP-04
        }
    }
}

object! {
    /// The session is resumed.
    pub struct ResumeSessionResponse [nullable] {
        optional {
            /// Modes.
            modes "modes": Option<SessionModeState> [Lenient], // SESS-24
            /// Config options.
            config_options "configOptions": Option<Vec<SessionConfigOption>> [SkipInvalid], // SESS-24
            /// Models; only in older drafts.
            #[cfg(feature = "drafts")]
            models "models": Option<SessionModelState> [Lenient], // MODEL-01
        }
    }
}

object! {
    /// Cancels the work of a session and frees its resources.
    pub struct CloseSessionRequest { // SESS-27, SESS-34
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The session is closed.
    CloseSessionResponse, // SESS-29
}

object! {
    /// The `data` of error -32002 for a session.
    pub struct SessionNotFoundErrorData { // SESS-19, SESS-30
        required {
            /// The session that does not exist.
            session_id "sessionId": SessionId [Required],
        }
    }
}

crate::methods! {
    "session/new": NewSessionRequest => NewSessionResponse,
    "session/load": LoadSessionRequest => LoadSessionResponse,
    "session/resume": ResumeSessionRequest => ResumeSessionResponse,
    "session/close": CloseSessionRequest => CloseSessionResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::v1::*;

    fn new(rest: &str) -> serde_json::Result<NewSessionRequest> {
        serde_json::from_str(&format!(r#"{{"cwd":"/w"{rest}}}"#))
    }

    #[test]
    fn the_server_list_must_be_there_and_null_is_empty() {
        // shows MCP-10, SESS-33
        let expected = NewSessionRequest::new("/w", Vec::new());
        assert_eq!(new(r#","mcpServers":null"#).unwrap(), expected);
        assert_eq!(new(r#","mcpServers":[]"#).unwrap(), expected);
        assert_eq!(serde_json::to_string(&expected).unwrap(), r#"{"cwd":"/w","mcpServers":[]}"#);
        assert!(new("").is_err());
        assert!(serde_json::from_str::<NewSessionRequest>(r#"{"mcpServers":[]}"#).is_err());
        assert!(serde_json::from_str::<NewSessionRequest>("{}").is_err());
    }

    #[test]
    fn launch_data_is_refused_whole() {
        // shows MCP-11, ROOT-10, SYSP-02
        for rest in [
            r#","mcpServers":{}"#,
            r#","mcpServers":[5]"#,
            r#","mcpServers":[],"additionalDirectories":[5]"#,
            r#","mcpServers":[],"additionalDirectories":"/a""#,
            r#","mcpServers":[],"systemPrompt":"Be brief.""#,
        ] {
            assert!(new(rest).is_err(), "{rest}");
        }
    }

    #[test]
    fn absent_null_and_empty_roots_are_no_roots() {
        // shows ROOT-11
        let roots = |rest| new(rest).unwrap().additional_directories.unwrap_or_default();
        assert!(roots(r#","mcpServers":[]"#).is_empty());
        assert!(roots(r#","mcpServers":[],"additionalDirectories":null"#).is_empty());
        assert!(roots(r#","mcpServers":[],"additionalDirectories":[]"#).is_empty());
    }

    #[test]
    fn answers_are_display_data_except_for_the_id() {
        // shows SESS-03, SESS-14, CONF-01, MODE-01, MODEL-01
        let text = r#"{"modes":{"currentModeId":5},"models":{"currentModelId":"m","availableModels":[]},
            "configOptions":[5,{"id":"b","name":"B","type":"boolean","currentValue":true}],"sessionId":"s"}"#;
        let response: NewSessionResponse = serde_json::from_str(text).unwrap();
        assert_eq!(response.modes, None);
        assert_eq!(response.models.unwrap().current_model_id, "m");
        assert_eq!(response.config_options.unwrap().len(), 1);
        for text in ["null", "{}", r#"{"sessionId":7}"#, r#"["s"]"#] {
            assert!(serde_json::from_str::<NewSessionResponse>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn load_and_resume_may_be_answered_with_null() {
        // shows SESS-13, RPC-22
        assert_eq!(serde_json::from_str::<LoadSessionResponse>("null").unwrap(), LoadSessionResponse::new());
        assert_eq!(
            serde_json::from_str::<ResumeSessionResponse>("null").unwrap(),
            ResumeSessionResponse::new()
        );
        assert!(serde_json::from_str::<ForkSessionResponse>("null").is_err());
    }

    #[test]
    fn resume_and_fork_can_do_without_servers() {
        // shows SESS-22, SESS-10
        let text = r#"{"sessionId":"s","cwd":"/w"}"#;
        assert_eq!(serde_json::from_str::<ResumeSessionRequest>(text).unwrap().mcp_servers, None);
        assert_eq!(serde_json::from_str::<ForkSessionRequest>(text).unwrap().mcp_servers, None);
        assert!(serde_json::from_str::<LoadSessionRequest>(text).is_err());
    }
}
