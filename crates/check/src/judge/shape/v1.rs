//! Shapes and names of version 1.

use super::{Dialect, is_about};
use crate::judge::Message;
use crate::schema::Fault;
use crate::version::Version;

pub(super) const DIALECT: Dialect = Dialect {
    version: Version::V1,
    about: ABOUT,
    foreign: FOREIGN,
    rules: &[],
    unknown_method,
    rule_of,
    accepted: |_, _, _, _, _| {},
};

const ABOUT: &[(&str, &str)] = &[
    ("InitializeResponse", "INIT-11"),
    ("AgentCapabilities", "INIT-31"),
    ("LoadSessionRequest", "SESS-10"),
    ("McpServerStdio", "MCP-07"),
    ("McpServerHttp", "MCP-07"),
    ("McpServerSse", "MCP-07"),
    ("McpServer", "MCP-07"),
    ("PromptResponse", "PROMPT-08"),
    ("StopReason", "PROMPT-08"),
    ("ContentBlock", "CONT-01"),
    ("ToolCall", "TOOL-03"),
    ("ToolCallUpdate", "TOOL-05"),
    ("ToolCallStatus", "TOOL-11"),
    ("ToolKind", "TOOL-12"),
    ("Diff", "TOOL-15"),
    ("Terminal", "TOOL-16"),
    ("RequestPermissionRequest", "PERM-02"),
    ("PermissionOption", "PERM-03"),
    ("PermissionOptionKind", "PERM-03"),
    ("RequestPermissionResponse", "PERM-04"),
    ("RequestPermissionOutcome", "PERM-04"),
    ("SelectedPermissionOutcome", "PERM-04"),
    ("ReadTextFileRequest", "FS-07"),
    ("WriteTextFileRequest", "FS-07"),
    ("CreateTerminalResponse", "TERM-04"),
    ("TerminalOutputResponse", "TERM-08"),
    ("WaitForTerminalExitResponse", "TERM-09"),
    ("Plan", "PLAN-03"),
    ("PlanEntryPriority", "PLAN-06"),
    ("PlanEntryStatus", "PLAN-06"),
    ("AvailableCommand", "CMD-03"),
    ("SetSessionModeRequest", "MODE-05"),
    ("CurrentModeUpdate", "MODE-07"),
    ("SetSessionConfigOptionRequest", "CONF-14"),
];

/// Members of older drafts and of version 2.
const FOREIGN: &[(&str, &str)] = &[
    ("NewSessionResponse", "models"),
    ("LoadSessionResponse", "models"),
    ("ResumeSessionResponse", "models"),
    ("ForkSessionResponse", "models"),
    // Not older, but redundant: some agents answer all ways to open a session alike.
    ("LoadSessionResponse", "sessionId"),
    ("ResumeSessionResponse", "sessionId"),
    ("SetSessionModeResponse", "meta"),
    ("PromptRequest", "messageId"),
    ("PromptResponse", "userMessageId"),
    ("InitializeRequest", "capabilities"),
    ("InitializeRequest", "info"),
    ("InitializeResponse", "capabilities"),
    ("InitializeResponse", "info"),
    ("AgentCapabilities", "nes"),
    ("AgentCapabilities", "positionEncoding"),
    ("ClientCapabilities", "nes"),
    ("ClientCapabilities", "positionEncodings"),
    ("ListSessionsRequest", "additionalDirectories"),
    ("McpServer", "type"),
    ("McpServerStdio", "type"),
    ("AuthMethod", "type"),
    ("AuthMethod", "vars"),
    ("AuthMethod", "link"),
];

/// Names of older drafts and of neighbouring protocols.
const OLDER_METHODS: &[&str] = &["session/set_model", "mcp/connect", "mcp/disconnect"];
const OLDER_FAMILIES: &[&str] = &["nes/", "document/", "proxy/"];

/// Methods of the next version.
// EXT-05 allows their names, INIT-10 forbids them.
const LATER_METHODS: &[&str] = &["auth/login", "auth/logout", "tool_call/cancel", "terminal/cancel"];

/// The rule that a method breaks which version 1 does not have.
fn unknown_method(_: &Message, method: &str) -> Option<(&'static str, String)> {
    if LATER_METHODS.contains(&method) {
        let why = format!("`{method}` is a method of version 2, and version 1 was agreed");
        return Some(("INIT-10", why));
    }
    let older = OLDER_METHODS.contains(&method)
        || OLDER_FAMILIES.iter().any(|family| method.starts_with(family))
        || method.starts_with("$/");
    (!older).then(|| super::no_method(method))
}

/// Exceptions from the table: of these types the rule is about one member each.
fn rule_of(about: Option<&'static str>, fault: &Fault) -> Option<&'static str> {
    match about {
        Some("FS-07") if is_about(fault, "line") => Some("FS-05"),
        Some("FS-07") if !is_about(fault, "sessionId") => Some("INIT-10"),
        Some("CONF-05") if !is_about(fault, "currentValue") => Some("INIT-10"),
        about => about,
    }
}
