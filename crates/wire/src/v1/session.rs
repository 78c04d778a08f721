//! Beginning and ending sessions: `session/new`, `load`, `resume`, `fork`, `close`.
//!
//! Requests are launch data and read strictly (MCP-11, ROOT-10); what answers carry besides the id is display
//! data and read leniently.

#[cfg(feature = "drafts")]
use super::SessionModelState;
#[cfg(feature = "unstable")]
use super::SystemPrompt;
use super::{McpServer, SessionConfigOption, SessionId, SessionModeState};
use crate::shape::*;

object! {
    /// Begins a session (SESS-33).
    pub struct NewSessionRequest {
        required {
            /// The absolute path of the working directory (ROOT-01).
            cwd "cwd": String [Required],
            /// MCP servers to connect to (MCP-10).
            mcp_servers "mcpServers": Vec<McpServer> [NullAsDefault],
        }
        optional {
            /// Roots besides `cwd`, absolute; needs the capability (ROOT-08 to ROOT-11).
            additional_directories "additionalDirectories": Option<Vec<String>> [Optional],
            /// A system prompt; needs the capability (SYSP-01).
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional],
        }
    }
}

object! {
    /// The session has begun.
    pub struct NewSessionResponse {
        required {
            /// Id of the session (SESS-03, SESS-05).
            session_id "sessionId": SessionId [Required],
        }
        optional {
            /// Modes (MODE-01).
            modes "modes": Option<SessionModeState> [Lenient],
            /// Config options (CONF-01).
            config_options "configOptions": Option<Vec<SessionConfigOption>> [SkipInvalid],
            /// Models; only in older drafts (MODEL-01).
            #[cfg(feature = "drafts")]
            models "models": Option<SessionModelState> [Lenient],
        }
    }
}

object! {
    /// Loads a session and replays its conversation (SESS-10, SESS-11).
    pub struct LoadSessionRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory (ROOT-01, ROOT-20).
            cwd "cwd": String [Required],
            /// MCP servers to connect to (MCP-10).
            mcp_servers "mcpServers": Vec<McpServer> [NullAsDefault],
        }
        optional {
            /// Roots besides `cwd`, the full list (ROOT-12, ROOT-13).
            additional_directories "additionalDirectories": Option<Vec<String>> [Optional],
            /// The system prompt once more (SYSP-04).
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional],
        }
    }
}

object! {
    /// The conversation is replayed (SESS-12, SESS-13).
    pub struct LoadSessionResponse [nullable] {
        optional {
            /// Modes (SESS-14).
            modes "modes": Option<SessionModeState> [Lenient],
            /// Config options (SESS-14).
            config_options "configOptions": Option<Vec<SessionConfigOption>> [SkipInvalid],
            /// Models; only in older drafts (MODEL-01).
            #[cfg(feature = "drafts")]
            models "models": Option<SessionModelState> [Lenient],
        }
    }
}

object! {
    /// Resumes a session without a replay (SESS-22, SESS-23).
    pub struct ResumeSessionRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory (ROOT-01, ROOT-20).
            cwd "cwd": String [Required],
        }
        optional {
            /// Roots besides `cwd`, the full list (ROOT-12, ROOT-13).
            additional_directories "additionalDirectories": Option<Vec<String>> [Optional],
            /// MCP servers to connect to.
            mcp_servers "mcpServers": Option<Vec<McpServer>> [Optional],
            /// The system prompt once more (SYSP-04).
            #[cfg(feature = "unstable")]
            system_prompt "systemPrompt": Option<SystemPrompt> [Optional],
        }
    }
}

object! {
    /// The session is resumed.
    pub struct ResumeSessionResponse [nullable] {
        optional {
            /// Modes (SESS-24).
            modes "modes": Option<SessionModeState> [Lenient],
            /// Config options (SESS-24).
            config_options "configOptions": Option<Vec<SessionConfigOption>> [SkipInvalid],
            /// Models; only in older drafts (MODEL-01).
            #[cfg(feature = "drafts")]
            models "models": Option<SessionModelState> [Lenient],
        }
    }
}

object! {
    /// Cancels the work of a session and frees its resources (SESS-27, SESS-34).
    pub struct CloseSessionRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The session is closed (SESS-29).
    CloseSessionResponse,
}

object! {
    /// The `data` of error -32002 for a session (SESS-19, SESS-30).
    pub struct SessionNotFoundErrorData {
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
