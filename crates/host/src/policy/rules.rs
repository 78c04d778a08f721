//! Rules, and the file that they come from.
//!
//! The file is the JSON that `acpx` reads, with more in it: where that has names of kinds and
//! tools, ours may also have objects that say which effects are meant. A rule matches one effect at
//! a time; a request is approved only if every one of its effects is.
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

use serde_json::{Map, Value};

use super::command::prefix_words;
use super::effect::Class;
use super::judge::Labels;
use super::{Effect, Glob, Mode, Unanswered};

/// What a rule does with the effects that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// They are allowed.
    Approve,
    /// They are denied.
    Deny,
    /// A person decides.
    Ask,
}

impl RuleAction {
    /// The member of the file that lists such rules.
    const fn list(self) -> &'static str {
        match self {
            RuleAction::Approve => "autoApprove",
            RuleAction::Deny => "autoDeny",
            RuleAction::Ask => "escalate",
        }
    }
}

/// Rules of a policy.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    approve: Vec<Rule>,
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    pub(super) default: Option<RuleAction>,
    pub(super) mode: Option<Mode>,
    pub(super) ask_limit: Option<Duration>,
    pub(super) unanswered: Option<Unanswered>,
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// Where it stands, such as `autoApprove 2`.
    pub(super) place: String,
    /// The rule as it is written.
    pub(super) text: String,
}

/// Members that are not about permissions.
const NOTES: &[&str] = &["$schema", "version", "comment", "description"];

impl Rules {
    /// Reads a policy.
    ///
    /// # Errors
    /// If it is not JSON, or contains anything unknown: a rule with a mistake in it must not be
    /// skipped.
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
                ("defaultAction", value) => rules.default = Some(action(value)?),
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
                    let seconds = value.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= 31_536_000.0);
                    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    self.ask_limit =
                        Some(limit.ok_or("`ask.timeout` must be a number of seconds, at most a year")?);
                }
                "then" => self.unanswered = Some(text_of("ask.then", value)?.parse()?),
                _ => return Err(format!("`ask.{name}` is not known")),
            }
        }
        Ok(())
    }

    /// The first rule with this action that matches the effect.
    pub(super) fn find(
        &self,
        action: RuleAction,
        effect: &Effect,
        labels: &Labels,
        roots: &[PathBuf],
    ) -> Option<Match> {
        let rules = match action {
            RuleAction::Approve => &self.approve,
            RuleAction::Deny => &self.deny,
            RuleAction::Ask => &self.ask,
        };
        let matches = |(_, rule): &(usize, &Rule)| match action {
            RuleAction::Approve => rule.approves(effect, labels, roots),
            RuleAction::Deny | RuleAction::Ask => rule.concerns(effect, labels, roots),
        };
        let (at, rule) = rules.iter().enumerate().find(matches)?;
        Some(Match { place: format!("{} {}", action.list(), at + 1), text: rule.text.clone() })
    }

    /// Whether some rule denies commands, or wants a person to decide about them. Then a command
    /// that is not understood must not be approved unseen.
    pub(super) fn restricts_commands(&self) -> bool {
        self.deny.iter().chain(&self.ask).any(|rule| rule.commands.is_some())
    }

    /// Programs that are denied with any arguments.
    pub fn denied_programs(&self) -> Vec<String> {
        let commands = self.deny.iter().filter(|rule| rule.is_only_about_commands());
        let single = commands.flat_map(|rule| rule.commands.iter().flatten()).filter_map(|words| match words
            .as_slice()
        {
            [program] => Some(program.clone()),
            _ => None,
        });
        single.collect()
    }
}

fn action(value: &Value) -> Result<RuleAction, String> {
    match value.as_str() {
        Some("approve") => Ok(RuleAction::Approve),
        Some("deny") => Ok(RuleAction::Deny),
        Some("escalate" | "ask") => Ok(RuleAction::Ask),
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

/// One rule. A member that is `None` does not matter; of each list one entry must match.
#[derive(Clone, Debug, Default)]
struct Rule {
    text: String,
    /// `*`: every effect.
    everything: bool,
    classes: Option<Vec<Class>>,
    /// The names of kinds after the classes.
    kinds: Vec<String>,
    tools: Option<Vec<String>>,
    paths: Option<Vec<Glob>>,
    commands: Option<Vec<Vec<String>>>,
    hosts: Option<Vec<String>>,
    /// Also protected files.
    protected: bool,
}

impl Rule {
    fn read(value: &Value) -> Result<Self, String> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut rule = Rule { text, ..Rule::default() };
        let members = match value {
            Value::String(_) => {
                let word = text_of("rule", value)?.to_lowercase();
                match classes(&word) {
                    _ if word == "*" => rule.everything = true,
                    Some(classes) => (rule.classes, rule.kinds) = (Some(classes), vec![word]),
                    None => rule.tools = Some(vec![word]),
                }
                return Ok(rule);
            }
            Value::Object(members) if !members.is_empty() => members,
            _ => return Err("a rule is a name, or an object that says what it is about".to_owned()),
        };
        for (name, value) in members {
            if name == "protected" {
                rule.protected = value.as_bool().ok_or("`protected` must be true or false")?;
                continue;
            }
            let texts = texts(name, value)?;
            match name.as_str() {
                "kind" => {
                    let read =
                        |text: &str| classes(text).ok_or_else(|| format!("`{text}` is not a kind of tool"));
                    let classes = texts.iter().copied().map(read).collect::<Result<Vec<_>, _>>()?;
                    rule.classes = Some(classes.concat());
                    rule.kinds = texts.into_iter().map(str::to_owned).collect();
                }
                "tool" => rule.tools = Some(texts.into_iter().map(str::to_lowercase).collect()),
                "path" => rule.paths = Some(texts.into_iter().map(Glob::new).collect::<Result<_, _>>()?),
                "command" => {
                    let read = |text: &str| {
                        prefix_words(text).ok_or_else(|| format!("`{text}` is not a simple command"))
                    };
                    rule.commands = Some(texts.into_iter().map(read).collect::<Result<_, _>>()?);
                }
                "host" => rule.hosts = Some(texts.into_iter().map(str::to_ascii_lowercase).collect()),
                _ => return Err(format!("`{name}` is none of kind, tool, path, command, host, protected")),
            }
        }
        let is_empty = rule.classes.is_none()
            && rule.tools.is_none()
            && rule.paths.is_none()
            && rule.commands.is_none()
            && rule.hosts.is_none();
        if is_empty { Err("`protected` needs a `path` or a `kind` beside it".to_owned()) } else { Ok(rule) }
    }

    fn is_only_about_commands(&self) -> bool {
        self.classes.as_ref().is_none_or(|classes| classes.contains(&Class::Run))
            && self.tools.is_none()
            && self.paths.is_none()
            && self.hosts.is_none()
    }

    /// Whether it is certain that the rule means this effect, all of it.
    fn approves(&self, effect: &Effect, labels: &Labels, roots: &[PathBuf]) -> bool {
        if effect.is_protected() && !self.protected {
            return false;
        }
        if self.everything {
            return true;
        }
        if let Some(classes) = &self.classes
            && !classes.contains(&effect.class())
        {
            return false;
        }
        let is_about_tools =
            self.classes.is_none() && self.paths.is_none() && self.commands.is_none() && self.hosts.is_none();
        // The name of a tool is the agent's claim. Alone it approves only a call that states no
        // other effect.
        if is_about_tools && !matches!(effect, Effect::Tool(_)) {
            return false;
        }
        self.fits_tool(effect, labels.tool.as_deref())
            && self.paths.as_ref().is_none_or(|globs| {
                let paths = effect.paths();
                !paths.is_empty()
                    && paths.iter().all(|path| globs.iter().any(|glob| glob.matches(path.real(), roots)))
            })
            && self.commands.as_ref().is_none_or(|prefixes| match effect {
                Effect::Run(run) => {
                    run.command.begins_with_any(prefixes)
                        && run.effective_env().next().is_none()
                        && (roots.is_empty() || run.cwd.is_inside(roots))
                }
                _ => false,
            })
            && self.hosts.as_ref().is_none_or(|patterns| match effect {
                Effect::Connect(to) => patterns.iter().any(|pattern| host_matches(pattern, &to.host)),
                _ => false,
            })
    }

    /// Whether the rule may mean this effect, or a part of it.
    fn concerns(&self, effect: &Effect, labels: &Labels, roots: &[PathBuf]) -> bool {
        if self.everything {
            return true;
        }
        if let Some(classes) = &self.classes
            && !classes.contains(&effect.class())
            // A file that is only named may be read, written or deleted.
            && !(effect.class() == Class::Touch && classes.iter().any(|class| is_about_files(*class)))
            // The agent says itself that it is of this kind.
            && !labels.kind.is_some_and(|kind| self.kinds.contains(&kind.as_str().to_owned()))
        {
            return false;
        }
        let title = labels.title.as_deref().map(str::trim);
        let head = title.and_then(|title| title.split([':', ' ', '\t', '\n', '\r']).next());
        let fits_title = self.tools.as_ref().is_some_and(|tools| {
            [title, head].into_iter().flatten().any(|name| tools.contains(&name.to_lowercase()))
        });
        (fits_title || self.fits_tool(effect, labels.tool.as_deref()))
            && self.paths.as_ref().is_none_or(|globs| {
                let covers = |path: &std::path::Path| globs.iter().any(|glob| glob.covers(path, roots));
                effect.paths().iter().any(|path| covers(path.real()) || covers(path.named()))
            })
            && self.commands.as_ref().is_none_or(|prefixes| match effect {
                Effect::Run(run) => prefixes.iter().any(|prefix| run.command.may_run(prefix)),
                _ => false,
            })
            && self.hosts.as_ref().is_none_or(|patterns| match effect {
                Effect::Connect(to) => {
                    to.host.is_empty() || patterns.iter().any(|pattern| host_matches(pattern, &to.host))
                }
                _ => false,
            })
    }

    fn fits_tool(&self, effect: &Effect, tool: Option<&str>) -> bool {
        let Some(tools) = &self.tools else { return true };
        let own = match effect {
            Effect::Tool(used) => used.name.as_deref(),
            _ => None,
        };
        tool.or(own).is_some_and(|name| tools.contains(&name.to_lowercase()))
    }
}

fn is_about_files(class: Class) -> bool {
    matches!(class, Class::Read | Class::Write | Class::Delete | Class::Rename)
}

/// The effects that the protocol's name of a kind stands for.
fn classes(kind: &str) -> Option<Vec<Class>> {
    Some(match kind {
        "read" | "search" => vec![Class::Read],
        "edit" => vec![Class::Write],
        "delete" => vec![Class::Delete],
        "move" => vec![Class::Rename],
        "execute" => vec![Class::Run],
        "fetch" => vec![Class::Connect],
        "think" | "switch_mode" | "other" => vec![Class::Tool],
        _ => return None,
    })
}

/// `*.example.com` means every host below, `*` every host.
fn host_matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        _ if host.is_empty() => false,
        Some("") => true,
        Some(suffix) => suffix.starts_with('.') && host.len() > suffix.len() && host.ends_with(suffix),
        None => host == pattern,
    }
}
