//! The shapes of messages and the names of methods, in version 1.
//!
//! A value that does not fit breaks the rule about its type, by the table below, or else INIT-10:
//! both sides follow the negotiated version.

use super::{EventLog, Findings, Kind, Message, Watcher};
use crate::schema::{Fault, FaultKind, JsonType, Method, Validated};
use crate::{Version, rules};

/// The rule about a definition. The innermost definition that is listed counts.
const ABOUT: &[(&str, &str)] = &[
    ("ProtocolVersion", "INIT-05"),
    ("InitializeResponse", "INIT-11"),
    ("NewSessionResponse", "SESS-03"),
    ("LoadSessionRequest", "SESS-10"),
    ("ResumeSessionRequest", "SESS-22"),
    ("CloseSessionRequest", "SESS-34"),
    ("McpServerStdio", "MCP-07"),
    ("McpServerHttp", "MCP-07"),
    ("McpServerSse", "MCP-07"),
    ("McpServer", "MCP-07"),
    ("ListSessionsResponse", "LIST-03"),
    ("SessionInfo", "LIST-10"),
    ("PromptRequest", "PROMPT-05"),
    ("PromptResponse", "PROMPT-08"),
    ("StopReason", "PROMPT-08"),
    ("ContentBlock", "CONT-01"),
    ("TextContent", "CONT-01"),
    ("ImageContent", "CONT-03"),
    ("AudioContent", "CONT-03"),
    ("EmbeddedResource", "CONT-04"),
    ("EmbeddedResourceResource", "CONT-04"),
    ("TextResourceContents", "CONT-04"),
    ("BlobResourceContents", "CONT-04"),
    ("ResourceLink", "CONT-05"),
    ("ToolCall", "TOOL-03"),
    ("ToolCallUpdate", "TOOL-05"),
    ("ToolCallStatus", "TOOL-11"),
    ("ToolKind", "TOOL-12"),
    ("ToolCallContent", "TOOL-14"),
    ("Diff", "TOOL-15"),
    ("Terminal", "TOOL-16"),
    ("ToolCallLocation", "TOOL-18"),
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
    ("PlanEntry", "PLAN-06"),
    ("PlanEntryPriority", "PLAN-06"),
    ("PlanEntryStatus", "PLAN-06"),
    ("PlanUpdate", "PLAN-09"),
    ("AvailableCommand", "CMD-03"),
    ("SetSessionModeRequest", "MODE-05"),
    ("CurrentModeUpdate", "MODE-07"),
    ("SessionConfigOption", "CONF-05"),
    ("SetSessionConfigOptionRequest", "CONF-14"),
    ("SetSessionConfigOptionResponse", "CONF-13"),
    ("ElicitationFormMode", "ELIC-05"),
    ("ElicitationUrlMode", "ELIC-05"),
    ("ElicitationSchema", "ELIC-10"),
    ("ElicitationPropertySchema", "ELIC-10"),
    ("CreateElicitationRequest", "ELIC-04"),
    ("CreateElicitationResponse", "ELIC-18"),
    ("Notice", "NOTE-02"),
    ("ListProvidersResponse", "PROV-03"),
    ("ProviderInfo", "PROV-03"),
    ("MessageMcpRequest", "MCPA-04"),
    ("MessageMcpResponse", "MCPA-05"),
    ("SystemPrompt", "SYSP-03"),
];

/// Members of older drafts and of version 2, with their definitions. Peers that support several
/// versions send them, so they are no custom members.
const OLDER: &[(&str, &str)] = &[
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

/// Methods of the next version. EXT-05 allows their names, INIT-10 forbids them.
const LATER_METHODS: &[&str] = &["auth/login", "auth/logout", "tool_call/cancel", "terminal/cancel"];

/// Judges shapes and names.
#[derive(Debug, Default)]
pub(super) struct Shape;

impl Watcher for Shape {
    fn rules(&self) -> &'static [&'static str] {
        static RULES: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(|| {
            let mut rules: Vec<&'static str> = ABOUT.iter().map(|(_, rule)| *rule).collect();
            rules.extend(["INIT-10", "INIT-27", "EXT-02", "EXT-05", "RPC-19", "RPC-25"]);
            rules.sort_unstable();
            rules.dedup();
            rules
        });
        &RULES
    }

    fn versions(&self) -> Vec<Version> {
        vec![Version::V1]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        match &message.kind {
            Kind::Request { method, params, .. } => {
                if let Some(known) = named(message, method, out)
                    && right_kind(message, method, known.is_request(), out)
                {
                    fitted(message, method, known.request(params), out);
                }
            }
            Kind::Notification { method, params } => {
                if let Some(known) = named(message, method, out)
                    && right_kind(message, method, known.is_notification(), out)
                {
                    fitted(message, method, known.notification(params), out);
                }
            }
            _ => {
                if let Some((asked, Ok(result))) = log.response(message)
                    && let Some(known) = Method::of(Version::V1, &asked.method)
                {
                    fitted(message, &format!("the result of {}", asked.method), known.result(result), out);
                }
            }
        }
    }
}

/// EXT-05: names without an underscore are the protocol's own.
fn named(message: &Message, method: &str, out: &mut Findings) -> Option<Method> {
    if method.starts_with('_') {
        out.pass("EXT-05", message);
        return None;
    }
    let Some(known) = Method::of(Version::V1, method) else {
        let older = OLDER_METHODS.contains(&method)
            || OLDER_FAMILIES.iter().any(|family| method.starts_with(family))
            || method.starts_with("$/");
        if LATER_METHODS.contains(&method) {
            out.fail(
                "INIT-10",
                message,
                format!("`{method}` is a method of version 2, and version 1 was agreed"),
            );
        } else if !older {
            let why =
                format!("`{method}` is no method of the protocol and does not begin with an underscore");
            out.fail("EXT-05", message, why);
        }
        return None;
    };
    out.pass("EXT-05", message);
    if !known.is_sent_by(message.from) {
        out.fail("INIT-10", message, format!("`{method}` is not sent by the {}", message.from));
        return None;
    }
    Some(known)
}

fn right_kind(message: &Message, method: &str, right: bool, out: &mut Findings) -> bool {
    if !right {
        let (is, should) = match message.kind {
            Kind::Request { .. } => ("a request", "a notification"),
            _ => ("a notification", "a request"),
        };
        out.fail("INIT-10", message, format!("`{method}` is sent as {is}, it is {should}"));
    }
    right
}

fn fitted(message: &Message, what: &str, fits: Result<Validated, Fault>, out: &mut Findings) {
    let fits = match fits {
        Ok(fits) => fits,
        Err(fault) => {
            let place =
                if fault.path.is_empty() { what.to_owned() } else { format!("{what}, `{}`", fault.path) };
            return out.fail(rule_of(message, &fault), message, format!("{place}: {}", fault.kind));
        }
    };
    out.pass("INIT-10", message);
    out.pass("RPC-25", message);
    for definition in &fits.met {
        let about = ABOUT.iter().filter(|(name, _)| name == definition).map(|(_, rule)| *rule);
        about.filter(|rule| binds(rule, message)).for_each(|rule| out.pass(rule, message));
    }
    let older = |within: &str, member: &str| OLDER.contains(&(within, member));
    let extras: Vec<_> = fits.extras.iter().filter(|extra| !older(extra.within, &extra.member)).collect();
    if extras.is_empty() {
        out.pass("EXT-02", message);
        out.pass("RPC-19", message);
    }
    for extra in extras {
        let place = if extra.path.is_empty() { what.to_owned() } else { format!("{what}, `{}`", extra.path) };
        let why = format!("{place}: `{}` is no member of {}", extra.member, extra.within);
        let rule = if extra.within.ends_with("Capabilities") { "INIT-27" } else { "EXT-02" };
        out.fail(rule, message, why.clone());
        if extra.member.trim_start_matches('_').contains('_') {
            out.fail("RPC-19", message, why);
        }
    }
}

/// The rule that a fault breaks.
fn rule_of(message: &Message, fault: &Fault) -> &'static str {
    if let FaultKind::Type { expected, actual: JsonType::Array } = &fault.kind
        && fault.path.is_empty()
        && expected.first() == Some(&"object")
    {
        return "RPC-25";
    }
    let is_missing = |name| fault.kind == FaultKind::Missing(name);
    let last = fault.path.rsplit('.').next().unwrap_or_default();
    let about = |name: &&'static str| ABOUT.iter().find(|(known, _)| known == name).map(|(_, rule)| *rule);
    let rule = fault.within.iter().rev().find_map(about);
    match rule {
        // Of these two types the rule is about one member each.
        Some("FS-07") if last == "line" => "FS-05",
        Some("FS-07") if !is_missing("sessionId") && last != "sessionId" => "INIT-10",
        Some("CONF-05") if !is_missing("currentValue") && last != "currentValue" => "INIT-10",
        Some(rule) if binds(rule, message) => rule,
        _ => "INIT-10",
    }
}

fn binds(rule: &str, message: &Message) -> bool {
    rules::get(rule).is_some_and(|rule| rule.binds(message.from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn the_table_names_definitions_and_rules_that_exist() {
        for (definition, rule) in ABOUT {
            assert!(schema::has(Version::V1, definition), "no definition {definition}");
            assert!(rules::get(rule).is_some(), "no rule {rule}");
        }
        for (definition, member) in OLDER {
            assert!(schema::has(Version::V1, definition), "no definition {definition} for {member}");
        }
    }
}
