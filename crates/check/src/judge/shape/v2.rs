//! Shapes and names of version 2.

use super::{Dialect, is_about};
use crate::judge::{Findings, Message};
use crate::role::Role;
use crate::schema::{Fault, FaultKind, JsonType, Method, Validated};
use crate::version::Version;

pub(super) const DIALECT: Dialect = Dialect {
    version: Version::V2,
    about: ABOUT,
    foreign: FOREIGN,
    rules: &["MSG-02", "V2-22", "V2-39", "V2-44"],
    unknown_method,
    rule_of,
    accepted,
};

const ABOUT: &[(&str, &str)] = &[
    ("InitializeRequest", "V2-03"),
    ("InitializeResponse", "V2-04"),
    ("PromptResponse", "V2-08"),
    ("ContentChunk", "V2-16"),
    ("UserMessage", "V2-16"),
    ("AgentMessage", "V2-16"),
    ("AgentThought", "V2-16"),
    ("RequestPermissionRequest", "V2-24"),
    ("PermissionOption", "V2-24"),
    ("Diff", "V2-33"),
    ("DiffChange", "V2-33"),
    ("DiffPathChange", "V2-33"),
    ("DiffPathPairChange", "V2-33"),
    ("DiffPatch", "V2-33"),
    ("SessionConfigSelect", "CONF-05"),
    ("SessionConfigBoolean", "CONF-05"),
    ("SetSessionConfigOptionRequest", "V2-40"),
    ("AvailableCommand", "V2-41"),
    ("Command", "V2-41"),
    ("AvailableCommandInput", "V2-41"),
];

/// Members of version 1.
const FOREIGN: &[(&str, &str)] = &[
    ("InitializeRequest", "clientCapabilities"),
    ("InitializeRequest", "clientInfo"),
    ("InitializeResponse", "agentCapabilities"),
    ("InitializeResponse", "agentInfo"),
    // Redundant: some agents answer all ways to open a session alike.
    ("ResumeSessionResponse", "sessionId"),
];

/// Families of names that drafts and neighbouring protocols use.
const OTHER_FAMILIES: &[&str] = &["$/", "nes/", "document/", "proxy/", "mcp/"];

/// The rule that a method breaks which version 2 does not have. Those of version 1 are gone.
// V2-39
fn unknown_method(message: &Message, method: &str) -> Option<(&'static str, String)> {
    if Method::of(Version::V1, method).is_some() {
        let rule = if message.from == Role::Client { "V2-39" } else { "INIT-10" };
        return Some((rule, format!("`{method}` is a method of version 1, and version 2 was agreed")));
    }
    let other = OTHER_FAMILIES.iter().any(|family| method.starts_with(family));
    (!other).then(|| super::no_method(method))
}

/// Exceptions from the table: of these types the rule is about one member each.
fn rule_of(about: Option<&'static str>, fault: &Fault) -> Option<&'static str> {
    match about {
        _ if is_null_list(fault) => Some("V2-44"),
        // An id that is there and no string is one of the wrong form.
        Some("V2-16") if is_about(fault, "messageId") && !is_absent(fault) => Some("MSG-02"),
        Some("V2-16") if !is_about(fault, "messageId") => Some("INIT-10"),
        Some("SESS-03" | "SESS-34") if !is_about(fault, "sessionId") => Some("INIT-10"),
        Some("SESS-22") if !is_about(fault, "sessionId") && !is_about(fault, "cwd") => Some("INIT-10"),
        Some("PROMPT-05") if !is_about(fault, "prompt") => Some("INIT-10"),
        Some("PLAN-09") if is_about(fault, "entries") => Some("PLAN-06"),
        Some("CONF-05") if !is_about(fault, "currentValue") => Some("INIT-10"),
        about => about,
    }
}

/// Whether the fault is a member that is missing or null.
fn is_absent(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Missing(_) | FaultKind::Type { actual: JsonType::Null, .. })
}

/// A list in an answer about a session is left out, not null.
// V2-44
fn is_null_list(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Type { actual: JsonType::Null, .. })
        && matches!(fault.path.as_str(), "configOptions" | "availableCommands")
        && fault.within.first().is_some_and(|name| name.ends_with("SessionResponse"))
}

/// A value that the schema does not list has an underscore. So does a capability.
// V2-22, INIT-27
fn accepted(message: &Message, what: &str, fits: &Validated, has_extras: bool, out: &mut Findings) {
    if fits.unknown.is_empty() {
        out.pass("V2-22", message);
    }
    for (path, value) in &fits.unknown {
        let place = super::place(what, path);
        out.fail("V2-22", message, format!("{place}: `{value}` is not in the schema and has no underscore"));
    }
    if !has_extras && fits.met.iter().any(|definition| definition.ends_with("Capabilities")) {
        out.pass("INIT-27", message);
    }
}
