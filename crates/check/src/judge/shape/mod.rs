//! The shapes of messages and the names of methods.
//!
//! A value that does not fit breaks the rule about its type, by the table of the version, or else
//! the one that both sides follow the negotiated version.

// INIT-10

mod v1;
mod v2;

use std::sync::LazyLock;

use super::{EventLog, Findings, Kind, Message, Watcher};
use crate::schema::{Fault, FaultKind, JsonType, Method, Validated};
use crate::{Version, rules};

/// The tables and exceptions of a version.
struct Dialect {
    version: Version,
    /// The rule about a definition, beside those of [`ABOUT`]. The innermost definition that is
    /// listed counts.
    about: &'static [(&'static str, &'static str)],
    /// Members of other versions, with their definitions. Peers that support several versions send
    /// them, so they are no custom members.
    foreign: &'static [(&'static str, &'static str)],
    /// Rules beside those of `about` and [`COMMON`].
    rules: &'static [&'static str],
    /// The rule that an unknown method breaks, and why; `None` if it is tolerated.
    unknown_method: fn(&Message, &str) -> Option<(&'static str, String)>,
    /// The rule that a fault breaks, given the one of `about`; `None` is the one about the version.
    // INIT-10
    rule_of: fn(Option<&'static str>, &Fault) -> Option<&'static str>,
    /// Judges more about a value that fits; the flag says whether it has custom members.
    accepted: fn(&Message, &str, &Validated, bool, &mut Findings),
}

/// The rules about definitions that both versions have, for all versions.
const ABOUT: &[(&str, &str)] = &[
    ("ProtocolVersion", "INIT-05"),
    ("NewSessionResponse", "SESS-03"),
    ("ResumeSessionRequest", "SESS-22"),
    ("CloseSessionRequest", "SESS-34"),
    ("ListSessionsResponse", "LIST-03"),
    ("SessionInfo", "LIST-10"),
    ("PromptRequest", "PROMPT-05"),
    ("TextContent", "CONT-01"),
    ("ImageContent", "CONT-03"),
    ("AudioContent", "CONT-03"),
    ("EmbeddedResource", "CONT-04"),
    ("EmbeddedResourceResource", "CONT-04"),
    ("TextResourceContents", "CONT-04"),
    ("BlobResourceContents", "CONT-04"),
    ("ResourceLink", "CONT-05"),
    ("ToolCallContent", "TOOL-14"),
    ("ToolCallLocation", "TOOL-18"),
    ("PlanUpdate", "PLAN-09"),
    ("PlanEntry", "PLAN-06"),
    ("SessionConfigOption", "CONF-05"),
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

/// The rules about shapes in every version.
const COMMON: [&str; 6] = ["INIT-10", "INIT-27", "EXT-02", "EXT-05", "RPC-19", "RPC-25"];

/// Judges shapes and names by the tables of a version.
pub(super) struct Shape(&'static Dialect);

impl Shape {
    pub(super) fn v1() -> Shape {
        Shape(&v1::DIALECT)
    }

    pub(super) fn v2() -> Shape {
        Shape(&v2::DIALECT)
    }
}

impl Watcher for Shape {
    fn rules(&self) -> &'static [&'static str] {
        static RULES: LazyLock<[Vec<&'static str>; 2]> =
            LazyLock::new(|| [&v1::DIALECT, &v2::DIALECT].map(Dialect::all_rules));
        &RULES[usize::from(self.0.version == Version::V2)]
    }

    fn versions(&self) -> Vec<Version> {
        vec![self.0.version]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        let dialect = self.0;
        match &message.kind {
            Kind::Request { method, params, .. } => {
                if let Some(known) = dialect.named(message, method, out)
                    && right_kind(message, method, known.is_request(), out)
                {
                    dialect.fitted(message, method, known.request(params), out);
                }
            }
            Kind::Notification { method, params } => {
                if let Some(known) = dialect.named(message, method, out)
                    && right_kind(message, method, known.is_notification(), out)
                {
                    dialect.fitted(message, method, known.notification(params), out);
                }
            }
            _ => {
                if let Some((asked, Ok(result))) = log.response(message)
                    && let Some(known) = Method::of(dialect.version, &asked.method)
                {
                    let what = format!("the result of {}", asked.method);
                    dialect.fitted(message, &what, known.result(result), out);
                }
            }
        }
    }
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

impl Dialect {
    /// The definitions that a rule is about, with their rules.
    fn listed(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        ABOUT.iter().chain(self.about)
    }

    fn all_rules(&self) -> Vec<&'static str> {
        let listed = self.listed().map(|(_, rule)| *rule);
        let mut rules: Vec<&'static str> = listed.chain(COMMON).chain(self.rules.iter().copied()).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// Names without an underscore are the protocol's own.
    // EXT-05
    fn named(&self, message: &Message, method: &str, out: &mut Findings) -> Option<Method> {
        if method.starts_with('_') {
            out.pass("EXT-05", message);
            return None;
        }
        let Some(known) = Method::of(self.version, method) else {
            if let Some((rule, why)) = (self.unknown_method)(message, method) {
                out.fail(rule, message, why);
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

    fn fitted(&self, message: &Message, what: &str, fits: Result<Validated, Fault>, out: &mut Findings) {
        let fits = match fits {
            Ok(fits) => fits,
            Err(fault) => {
                let why = format!("{}: {}", place(what, &fault.path), fault.kind);
                return out.fail(self.rule_of(message, &fault), message, why);
            }
        };
        out.pass("INIT-10", message);
        out.pass("RPC-25", message);
        for definition in &fits.met {
            let about = self.listed().filter(|(name, _)| name == definition).map(|(_, rule)| *rule);
            about.filter(|rule| binds(rule, message)).for_each(|rule| out.pass(rule, message));
        }
        let foreign = |within: &str, member: &str| self.foreign.contains(&(within, member));
        let extras: Vec<_> =
            fits.extras.iter().filter(|extra| !foreign(extra.within, &extra.member)).collect();
        if extras.is_empty() {
            out.pass("EXT-02", message);
            out.pass("RPC-19", message);
        }
        (self.accepted)(message, what, &fits, !extras.is_empty(), out);
        for extra in extras {
            let place = place(what, &extra.path);
            let why = format!("{place}: `{}` is no member of {}", extra.member, extra.within);
            let rule = if extra.within.ends_with("Capabilities") { "INIT-27" } else { "EXT-02" };
            out.fail(rule, message, why.clone());
            if extra.member.trim_start_matches('_').contains('_') {
                out.fail("RPC-19", message, why);
            }
        }
    }

    /// The rule that a fault breaks.
    fn rule_of(&self, message: &Message, fault: &Fault) -> &'static str {
        if let FaultKind::Type { expected, actual: JsonType::Array } = &fault.kind
            && fault.path.is_empty()
            && expected.first() == Some(&"object")
        {
            return "RPC-25";
        }
        let about =
            |name: &&'static str| self.listed().find(|(known, _)| known == name).map(|(_, rule)| *rule);
        let about = fault.within.iter().rev().find_map(about);
        (self.rule_of)(about, fault).filter(|rule| binds(rule, message)).unwrap_or("INIT-10")
    }
}

/// The place of a value in a message.
fn place(what: &str, path: &str) -> String {
    if path.is_empty() { what.to_owned() } else { format!("{what}, `{path}`") }
}

/// Whether a fault is about this member: it is missing or wrong.
fn is_about(fault: &Fault, member: &'static str) -> bool {
    fault.kind == FaultKind::Missing(member) || fault.path.rsplit('.').next() == Some(member)
}

/// The fault of a method that no version has.
// EXT-05
fn no_method(method: &str) -> (&'static str, String) {
    ("EXT-05", format!("`{method}` is no method of the protocol and does not begin with an underscore"))
}

fn binds(rule: &str, message: &Message) -> bool {
    rules::get(rule).is_some_and(|rule| rule.binds(message.from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn the_tables_name_definitions_and_rules_that_exist() {
        for dialect in [&v1::DIALECT, &v2::DIALECT] {
            for (definition, rule) in dialect.about {
                assert!(schema::has(dialect.version, definition), "no definition {definition}");
                assert!(rules::is_of(rule, dialect.version), "no rule {rule} in version {}", dialect.version);
            }
            for (definition, member) in dialect.foreign {
                assert!(schema::has(dialect.version, definition), "no definition {definition} for {member}");
            }
        }
    }
}
