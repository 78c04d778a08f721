//! Rules, and the file that they come from.
//!
//! The file is the JSON that `acpx` reads, with more in it: where that has names of tools and kinds, ours may also have objects
//! that say what the request must be about.
//!
//! ```json
//! {
//!   "autoDeny": ["delete", { "path": [".env", "secrets/"] }, { "command": "git push" }],
//!   "autoApprove": ["read", "search", { "kind": "edit", "path": "src/**" }, { "command": ["cargo test", "git status"] }],
//!   "escalate": [{ "host": "*" }],
//!   "defaultAction": "escalate",
//!   "mode": "ask",
//!   "ask": { "timeout": 60, "then": "deny" }
//! }
//! ```

use std::path::PathBuf;
use std::time::Duration;

use attache::wire::v1::ToolKind;
use serde_json::{Map, Value};

use super::command::prefix_words;
use super::{Action, Glob, Mode, Unanswered};

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It may be done.
    Approve,
    /// It may not be done.
    Deny,
    /// A person decides.
    Ask,
}

/// Rules of a policy.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    approve: Vec<Rule>,
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    pub(super) default: Option<Effect>,
    pub(super) mode: Option<Mode>,
    pub(super) ask_limit: Option<Duration>,
    pub(super) unanswered: Option<Unanswered>,
}

/// Members that are not about permissions, and are passed over.
const NOTES: &[&str] = &["$schema", "version", "comment", "description"];

impl Rules {
    /// Reads a policy.
    ///
    /// # Errors
    /// When it is not JSON, or something in it is not understood: a rule with a mistake in it must not count for nothing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let Value::Object(members) = value else { return Err("a policy must be a JSON object".to_owned()) };
        let mut rules = Rules::default();
        for (name, value) in &members {
            match (name.as_str(), value) {
                (_, Value::Null) => {}
                ("autoApprove", value) => rules.approve = list(name, value)?,
                ("autoDeny", value) => rules.deny = list(name, value)?,
                ("escalate", value) => rules.ask = list(name, value)?,
                ("defaultAction", value) => rules.default = Some(effect(value)?),
                ("mode", value) => rules.mode = Some(text_of(name, value)?.parse()?),
                ("ask", Value::Object(ask)) => rules.read_ask(ask)?,
                (note, _) if NOTES.contains(&note) || note.starts_with('_') => {}
                _ => return Err(format!("`{name}` is not known, or not of the right type")),
            }
        }
        Ok(rules)
    }

    fn read_ask(&mut self, ask: &Map<String, Value>) -> Result<(), String> {
        for (name, value) in ask {
            match name.as_str() {
                "timeout" => {
                    let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
                    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    self.ask_limit = Some(limit.ok_or("`ask.timeout` must be a number of seconds")?);
                }
                "then" => self.unanswered = Some(text_of("ask.then", value)?.parse()?),
                _ => return Err(format!("`ask.{name}` is not known")),
            }
        }
        Ok(())
    }

    /// The first rule with this effect that fits.
    pub(super) fn find(&self, effect: Effect, action: &Action, roots: &[PathBuf]) -> Option<&str> {
        let rules = match effect {
            Effect::Approve => &self.approve,
            Effect::Deny => &self.deny,
            Effect::Ask => &self.ask,
        };
        let fits = |rule: &&Rule| match effect {
            Effect::Approve => rule.approves(action, roots),
            Effect::Deny | Effect::Ask => rule.concerns(action, roots),
        };
        rules.iter().find(fits).map(|rule| rule.text.as_str())
    }
}

fn effect(value: &Value) -> Result<Effect, String> {
    match value.as_str() {
        Some("approve") => Ok(Effect::Approve),
        Some("deny") => Ok(Effect::Deny),
        Some("escalate" | "ask") => Ok(Effect::Ask),
        _ => Err("`defaultAction` must be one of approve, deny, escalate".to_owned()),
    }
}

fn list(name: &str, value: &Value) -> Result<Vec<Rule>, String> {
    let Value::Array(entries) = value else { return Err(format!("`{name}` must be a list")) };
    entries.iter().map(Rule::read).collect::<Result<_, _>>().map_err(|error| format!("`{name}`: {error}"))
}

fn text_of<'a>(name: &str, value: &'a Value) -> Result<&'a str, String> {
    let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
    text.ok_or_else(|| format!("`{name}` must be a text"))
}

/// A text, or a list of texts.
fn texts<'a>(name: &str, value: &'a Value) -> Result<Vec<&'a str>, String> {
    match value {
        Value::Array(values) if !values.is_empty() => {
            values.iter().map(|value| text_of(name, value)).collect()
        }
        value => Ok(vec![text_of(name, value)?]),
    }
}

/// One rule. What is `None` does not matter; of each list one must fit.
#[derive(Clone, Debug, Default)]
struct Rule {
    text: String,
    /// A word that means a kind, a tool or a title; `*` means everything.
    word: Option<String>,
    kinds: Option<Vec<ToolKind>>,
    tools: Option<Vec<String>>,
    paths: Option<Vec<Glob>>,
    commands: Option<Vec<Vec<String>>>,
    hosts: Option<Vec<String>>,
}

impl Rule {
    fn read(value: &Value) -> Result<Self, String> {
        let mut rule =
            Rule { text: value.as_str().map_or_else(|| value.to_string(), str::to_owned), ..Rule::default() };
        let members = match value {
            Value::String(_) => {
                rule.word = Some(text_of("rule", value)?.to_lowercase());
                return Ok(rule);
            }
            Value::Object(members) if !members.is_empty() => members,
            _ => return Err("a rule is a name, or an object that says what it is about".to_owned()),
        };
        for (name, value) in members {
            let texts = texts(name, value)?;
            match name.as_str() {
                "kind" => rule.kinds = Some(texts.into_iter().map(kind).collect::<Result<_, _>>()?),
                "tool" => rule.tools = Some(texts.into_iter().map(str::to_lowercase).collect()),
                "path" => rule.paths = Some(texts.into_iter().map(Glob::new).collect::<Result<_, _>>()?),
                "command" => {
                    let read = |text: &str| {
                        prefix_words(text).ok_or_else(|| format!("`{text}` is not a simple command"))
                    };
                    rule.commands = Some(texts.into_iter().map(read).collect::<Result<_, _>>()?);
                }
                "host" => rule.hosts = Some(texts.into_iter().map(str::to_ascii_lowercase).collect()),
                _ => return Err(format!("`{name}` is none of kind, tool, path, command, host")),
            }
        }
        Ok(rule)
    }

    /// Whether it is certain that the rule means this, all of it.
    fn approves(&self, action: &Action, roots: &[PathBuf]) -> bool {
        use ToolKind::{Delete, Edit, Fetch, Move, Other, Read, Search};
        if let Some(word) = &self.word {
            return match kind(word) {
                // The name of a kind means the kind, and not a title that happens to begin like that.
                Ok(kind) => action.kind == Some(kind),
                Err(_) => word == "*" || names(action).any(|name| name == *word),
            };
        }
        // A rule that names no kind and no tool is for those kinds that have just what it names.
        let is_open = self.kinds.is_none() && self.tools.is_none() && self.commands.is_none();
        let fits_nature = match action.kind {
            _ if !is_open => true,
            Some(Read | Edit | Delete | Move | Search) => self.paths.is_some() && action.commands.is_empty(),
            Some(Fetch | Other) => self.hosts.is_some() && action.commands.is_empty(),
            _ => false,
        };
        fits_nature
            && self.fits_kind_and_tool(action)
            && self.paths.as_ref().is_none_or(|globs| {
                !action.paths.is_empty()
                    && action.paths.iter().all(|path| globs.iter().any(|glob| glob.matches(path, roots)))
            })
            && self.commands.as_ref().is_none_or(|prefixes| {
                !action.commands.is_empty()
                    && action
                        .commands
                        .iter()
                        .all(|line| prefixes.iter().any(|prefix| line.begins_with(prefix)))
            })
            && self.hosts.as_ref().is_none_or(|patterns| {
                !action.hosts.is_empty()
                    && action.hosts.iter().all(|host| patterns.iter().any(|pattern| host_fits(pattern, host)))
            })
    }

    /// Whether the rule may mean this, or a part of it.
    fn concerns(&self, action: &Action, roots: &[PathBuf]) -> bool {
        if let Some(word) = &self.word {
            return word == "*" || names(action).any(|name| name == *word);
        }
        let title = action.title.as_deref().unwrap_or_default();
        self.fits_kind_and_tool(action)
            && self.paths.as_ref().is_none_or(|globs| {
                let mut paths = action.paths.iter().chain(&action.named);
                paths.any(|path| globs.iter().any(|glob| glob.covers(path, roots)))
            })
            && self.commands.as_ref().is_none_or(|prefixes| {
                // Where the command itself is not told, the title of something that runs often is the command.
                let told = super::CommandLine::opaque(title);
                let title =
                    (action.commands.is_empty() && action.kind == Some(ToolKind::Execute)).then_some(&told);
                let mut lines = action.commands.iter().chain(title);
                lines.any(|line| prefixes.iter().any(|prefix| line.may_run(prefix)))
            })
            && self.hosts.as_ref().is_none_or(|patterns| {
                let fits = |host: &String| {
                    host.is_empty() || patterns.iter().any(|pattern| host_fits(pattern, host))
                };
                action.hosts.iter().any(fits)
            })
    }

    fn fits_kind_and_tool(&self, action: &Action) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| action.kind.is_some_and(|kind| kinds.contains(&kind)))
            && self.tools.as_ref().is_none_or(|tools| {
                let name = action.tool.as_deref().or(action.title_head()).map(str::to_lowercase);
                name.is_some_and(|name| tools.contains(&name))
            })
    }
}

/// All that a word in a rule may mean.
fn names(action: &Action) -> impl Iterator<Item = String> {
    let kind = action.kind.map(|kind| kind.as_str().to_owned());
    let texts = [action.tool.as_deref(), action.title.as_deref(), action.title_head()];
    kind.into_iter().chain(texts.into_iter().flatten().map(str::to_lowercase).collect::<Vec<_>>())
}

fn kind(name: &str) -> Result<ToolKind, String> {
    let all = [
        ToolKind::Read,
        ToolKind::Edit,
        ToolKind::Delete,
        ToolKind::Move,
        ToolKind::Search,
        ToolKind::Execute,
        ToolKind::Think,
        ToolKind::Fetch,
        ToolKind::SwitchMode,
        ToolKind::Other,
    ];
    let found = all.into_iter().find(|kind| kind.as_str() == name);
    found.ok_or_else(|| format!("`{name}` is no kind of tool"))
}

/// `*.example.com` means every host below, `*` every host.
fn host_fits(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        _ if host.is_empty() => false,
        Some("") => true,
        Some(suffix) => suffix.starts_with('.') && host.len() > suffix.len() && host.ends_with(suffix),
        None => host == pattern,
    }
}
