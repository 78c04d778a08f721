//! The shapes of messages and the names of methods and values.
//!
//! A value that does not fit breaks the rule about its type, by the table below, or else INIT-10:
//! both sides follow the negotiated version.

use crate::judge::{EventLog, Findings, Kind, Message, Watcher};
use crate::role::Role;
use crate::rules;
use crate::schema::{Fault, FaultKind, JsonType, Method, Validated};
use crate::version::Version;

/// The rule about a definition. The innermost definition that is listed counts.
const ABOUT: &[(&str, &str)] = &[
    ("ProtocolVersion", "INIT-05"),
    ("InitializeRequest", "V2-03"),
    ("InitializeResponse", "V2-04"),
    ("NewSessionResponse", "SESS-03"),
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
    ("SetSessionConfigOptionRequest", "V2-40"),
    ("AvailableCommand", "V2-41"),
    ("Command", "V2-41"),
    ("AvailableCommandInput", "V2-41"),
];

/// Members of version 1. Peers that support both versions send them, so they are no custom members.
const OLDER: &[(&str, &str)] = &[
    ("InitializeRequest", "clientCapabilities"),
    ("InitializeRequest", "clientInfo"),
    ("InitializeResponse", "agentCapabilities"),
    ("InitializeResponse", "agentInfo"),
    // Redundant: some agents answer all ways to open a session alike.
    ("ResumeSessionResponse", "sessionId"),
];

/// Families of names that drafts and neighbouring protocols use.
const OTHER_FAMILIES: &[&str] = &["$/", "nes/", "document/", "proxy/", "mcp/"];

/// Judges shapes and names.
#[derive(Debug)]
pub(super) struct Shape;

impl Watcher for Shape {
    fn rules(&self) -> &'static [&'static str] {
        static RULES: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(|| {
            let mut rules: Vec<&'static str> = ABOUT.iter().map(|(_, rule)| *rule).collect();
            rules.extend(["INIT-10", "INIT-27", "EXT-02", "EXT-05", "RPC-19", "RPC-25", "V2-22", "V2-39"]);
            rules.sort_unstable();
            rules.dedup();
            rules
        });
        &RULES
    }

    fn versions(&self) -> Vec<Version> {
        vec![Version::V2]
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
                    && let Some(known) = Method::of(Version::V2, &asked.method)
                {
                    fitted(message, &format!("the result of {}", asked.method), known.result(result), out);
                }
            }
        }
    }
}

/// EXT-05: names without an underscore are the protocol's own. V2-39: those of version 1 are gone.
fn named(message: &Message, method: &str, out: &mut Findings) -> Option<Method> {
    if method.starts_with('_') {
        out.pass("EXT-05", message);
        return None;
    }
    let Some(known) = Method::of(Version::V2, method) else {
        if Method::of(Version::V1, method).is_some() {
            let rule = if message.from == Role::Client { "V2-39" } else { "INIT-10" };
            let why = format!("`{method}` is a method of version 1, and version 2 was agreed");
            out.fail(rule, message, why);
        } else if !OTHER_FAMILIES.iter().any(|family| method.starts_with(family)) {
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
    let place = |path: &str| if path.is_empty() { what.to_owned() } else { format!("{what}, `{path}`") };
    let fits = match fits {
        Ok(fits) => fits,
        Err(fault) => {
            let why = format!("{}: {}", place(&fault.path), fault.kind);
            return out.fail(rule_of(message, &fault), message, why);
        }
    };
    out.pass("INIT-10", message);
    out.pass("RPC-25", message);
    for definition in &fits.met {
        let about = ABOUT.iter().filter(|(name, _)| name == definition).map(|(_, rule)| *rule);
        about.filter(|rule| binds(rule, message)).for_each(|rule| out.pass(rule, message));
    }
    if fits.unknown.is_empty() {
        out.pass("V2-22", message);
    }
    for (path, value) in &fits.unknown {
        let why = format!("{}: `{value}` is not in the schema and has no underscore", place(path));
        out.fail("V2-22", message, why);
    }
    let older = |within: &str, member: &str| OLDER.contains(&(within, member));
    let extras: Vec<_> = fits.extras.iter().filter(|extra| !older(extra.within, &extra.member)).collect();
    if extras.is_empty() {
        out.pass("EXT-02", message);
        out.pass("RPC-19", message);
    }
    if extras.is_empty() && fits.met.iter().any(|definition| definition.ends_with("Capabilities")) {
        out.pass("INIT-27", message);
    }
    for extra in extras {
        let why = format!("{}: `{}` is no member of {}", place(&extra.path), extra.member, extra.within);
        let rule = if extra.within.ends_with("Capabilities") { "INIT-27" } else { "EXT-02" };
        out.fail(rule, message, why.clone());
        if extra.member.trim_start_matches('_').contains('_') {
            out.fail("RPC-19", message, why);
        }
    }
}

/// The rule that a fault breaks.
fn rule_of(message: &Message, fault: &Fault) -> &'static str {
    let about = |name: &&'static str| ABOUT.iter().find(|(known, _)| known == name).map(|(_, rule)| *rule);
    let last = fault.path.rsplit('.').next().unwrap_or_default();
    let is_about = |name: &'static str| fault.kind == FaultKind::Missing(name) || last == name;
    match fault.within.iter().rev().find_map(about) {
        // Of these types the rule is about one member each.
        Some("V2-16") if !is_about("messageId") => "INIT-10",
        Some("SESS-03") if !is_about("sessionId") && !is_null_list(fault) => "INIT-10",
        _ if is_null_list(fault) => "V2-44",
        Some(rule) if binds(rule, message) => rule,
        _ => "INIT-10",
    }
}

/// V2-44: a list in an answer about a session is left out, not null.
fn is_null_list(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Type { actual: JsonType::Null, .. })
        && matches!(fault.path.as_str(), "configOptions" | "availableCommands")
        && fault.within.first().is_some_and(|name| name.ends_with("SessionResponse"))
}

fn binds(rule: &str, message: &Message) -> bool {
    rules::get(rule).is_some_and(|rule| rule.binds(message.from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn the_tables_name_definitions_that_exist() {
        for (definition, _) in ABOUT.iter().chain(OLDER) {
            assert!(schema::has(Version::V2, definition), "no definition {definition}");
        }
    }
}
