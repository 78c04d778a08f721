//! Questions to a person: the effects, and the answers with their scope in our own words.

use std::path::{Path, PathBuf};
use std::time::Duration;

use attache::wire::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionRequest, SessionId,
};
use serde::{Deserialize, Serialize};

use super::{Confined, Content, Effect, Reason, Run, Scope};

/// A question about a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The session in which it comes up.
    pub session: Option<SessionId>,
    /// The agent that wants to do it.
    pub agent: String,
    /// The agent's title, if it asked for permission.
    pub title: Option<String>,
    /// Texts that the agent wants to be shown.
    pub notes: Vec<String>,
    /// Everything that happens if the answer is yes.
    pub effects: Vec<Effect>,
    /// Why neither a rule nor the mode decides.
    pub reason: Reason,
    /// How long the question stands; it is withdrawn afterwards.
    pub limit: Option<Duration>,
    /// The possible answers.
    pub choices: Vec<Choice>,
    /// What the longer answers are remembered for.
    pub(super) scopes: Vec<Scope>,
    pub(super) base: PathBuf,
}

/// A possible answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The key that chooses it; its number always does.
    pub key: Option<char>,
    /// What it means, in our own words. An agent's label is quoted.
    pub label: String,
    /// Whether it lets the effects happen.
    pub allows: bool,
    /// The answer.
    pub answer: Answer,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this time.
    Once,
    /// Yes, and until the session ends.
    Session,
    /// Yes, and always in this project.
    Project,
    /// No.
    Reject,
    /// No, and never in this project.
    Never,
    /// One of the agent's own options, with the meaning that the agent gives it.
    Offered(PermissionOptionId),
    /// No answer: there is no user to ask, or the question was withdrawn.
    Unanswered,
}

/// A part of a question, for a screen. Together the parts of a question show every effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// A sentence of ours. Paths and names in it may come from the agent.
    Text(String),
    /// Text of the agent, to be marked as such.
    Quote(String),
    /// A command line.
    Command(String),
    /// A change of a file.
    Change {
        /// The path.
        path: String,
        /// The text before.
        old: Option<String>,
        /// The text afterwards.
        new: String,
    },
}

impl Question {
    /// The question in one line.
    pub fn headline(&self) -> String {
        match self.effects.as_slice() {
            [one] => format!("{}?", self.sentence(one)),
            many => format!("Allow these {} actions?", many.len()),
        }
    }

    /// Everything that is to be shown before the answers.
    pub fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        if let Some(title) = &self.title {
            sections.push(Section::Quote(title.clone()));
        }
        let several = self.effects.len() > 1;
        for (at, effect) in (1..).zip(&self.effects) {
            if several {
                sections.push(Section::Text(format!("{at}. {}", self.sentence(effect))));
            }
            self.details(effect, &mut sections);
        }
        // A command is often repeated as a note; once is enough.
        let repeats = |note: &str| {
            let note = note.trim().trim_start_matches("```sh").trim_matches('`').trim();
            self.effects
                .iter()
                .any(|effect| matches!(effect, Effect::Run(run) if run.command.text().trim() == note))
        };
        sections.extend(self.notes.iter().filter(|note| !repeats(note)).cloned().map(Section::Quote));
        sections
    }

    fn sentence(&self, effect: &Effect) -> String {
        let short = |path: &super::FilePath| self.short(path);
        match effect {
            Effect::Read(path) => format!("Read {}", short(path)),
            Effect::Write { path, content: Content::Known { old: None, .. } } if !path.real().exists() => {
                format!("Create {}", short(path))
            }
            Effect::Write { path, .. } => format!("Edit {}", short(path)),
            Effect::Delete(path) => format!("Delete {}", short(path)),
            Effect::Rename { from, to } => format!("Move {} to {}", short(from), short(to)),
            Effect::Touch(path) => format!("Use {}", short(path)),
            Effect::Run(run) => {
                format!("Run this in {}{}", short_dir(run.cwd.real(), &self.base), confinement(run))
            }
            Effect::Connect(to) if to.is_near => {
                format!("Connect to {to}, on this machine or its local network")
            }
            Effect::Connect(to) => format!("Connect to {to}"),
            Effect::Tool(used) => match (&used.server, &used.name) {
                (Some(server), Some(name)) => format!("Call the tool `{name}` of the MCP server `{server}`"),
                (_, Some(name)) => format!("Let {} use its tool `{name}`", self.agent_name()),
                _ => format!("Let {} do this", self.agent_name()),
            },
            Effect::Keep(path) => format!("Keep what the command did to {}", short(path)),
            Effect::SwitchMode(to) => format!("Switch to {to} mode"),
        }
    }

    fn details(&self, effect: &Effect, sections: &mut Vec<Section>) {
        let text = |text: &str| Section::Text(text.to_owned());
        match effect {
            Effect::Write { path, content: Content::Known { old, new } } => sections.push(Section::Change {
                path: self.short(path),
                old: old.as_deref().map(str::to_owned),
                new: new.to_string(),
            }),
            Effect::Write { content: Content::Unknown, .. } => {
                sections.push(text(
                    "the agent does not show the change; it is asked again before it writes through Attaché",
                ));
            }
            Effect::Touch(_) => sections.push(text("the agent does not say what it does with it")),
            Effect::Run(run) => {
                sections.push(Section::Command(run.command.text().to_owned()));
                let harmless = run.env.len() - run.effective_env().count();
                for (name, value) in run.effective_env() {
                    sections.push(Section::Text(format!("with {name}={value}")));
                }
                match harmless {
                    0 => {}
                    1 => sections.push(text("+1 variable")),
                    count => sections.push(Section::Text(format!("+{count} variables"))),
                }
            }
            Effect::Tool(used) => sections.extend(used.input.clone().map(Section::Quote)),
            _ => {}
        }
        if effect.is_protected() {
            sections.push(text("protected: other programs run this file, or agents follow it"));
        }
        for path in effect.paths() {
            if path.named() != path.real() && !is_same_place(path, &self.base) {
                sections.push(Section::Text(format!("leads to {}", path.real().display())));
            }
        }
    }

    fn agent_name(&self) -> &str {
        if self.agent.is_empty() { "the agent" } else { &self.agent }
    }

    fn short(&self, path: &super::FilePath) -> String {
        let below = path.named().strip_prefix(&self.base).or_else(|_| path.real().strip_prefix(&self.base));
        match below {
            Ok(relative) if relative.as_os_str().is_empty() => "this directory".to_owned(),
            Ok(relative) => relative.display().to_string(),
            Err(_) => path.named().display().to_string(),
        }
    }
}

/// Whether a path differs from its real one only because the working directory is reached through a
/// link.
fn is_same_place(path: &super::FilePath, base: &Path) -> bool {
    let name = path.named().file_name();
    path.real()
        .strip_prefix(base)
        .is_ok_and(|relative| path.named().ends_with(relative) && path.real().file_name() == name)
}

fn short_dir(dir: &Path, base: &Path) -> String {
    match dir.strip_prefix(base) {
        Ok(relative) if relative.as_os_str().is_empty() => "this directory".to_owned(),
        Ok(relative) => relative.display().to_string(),
        Err(_) => dir.display().to_string(),
    }
}

fn confinement(run: &Run) -> &'static str {
    match run.confined {
        Confined::No => "",
        Confined::Workspace => ", sandboxed",
        Confined::ReadOnly => ", read-only",
    }
}

/// The name of the time until which an answer holds, for its label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// "until this chat ends"
    #[default]
    Chat,
    /// "until this command ends"
    Command,
    /// "until this session ends"
    Session,
}

impl Span {
    const fn text(self) -> &'static str {
        match self {
            Span::Chat => "until this chat ends",
            Span::Command => "until this command ends",
            Span::Session => "until this session ends",
        }
    }
}

/// The answers to a question about something that the agent does without asking.
pub(super) fn choices(scopes: &[Scope], base: &Path, agent: &str, span: Span) -> Vec<Choice> {
    let mut choices = vec![choice('y', "Yes, once".to_owned(), true, Answer::Once)];
    choices.extend(remembering(scopes, base, agent, span));
    choices.push(choice('n', "No".to_owned(), false, Answer::Reject));
    choices
}

// PERM-04
/// The answers to a permission request. Each of them leads to an option that was offered, or to
/// none.
pub(super) fn offered_choices(
    request: &RequestPermissionRequest,
    scopes: &[Scope],
    base: &Path,
    agent: &str,
    span: Span,
) -> Vec<Choice> {
    use PermissionOptionKind::{AllowOnce, RejectAlways, RejectOnce};
    let first = |kind| request.options.iter().position(|option| option.kind == kind);
    let (once, reject) = (first(AllowOnce), first(RejectOnce));
    let mut choices = Vec::new();
    if let Some(option) = once.and_then(|at| request.options.get(at)) {
        choices.push(choice('y', with_label("Yes, once", option), true, Answer::Once));
        choices.extend(remembering(scopes, base, agent, span));
    }
    let name = if agent.is_empty() { "the agent" } else { agent };
    for (at, option) in request.options.iter().enumerate() {
        // PERM-11: two options of one kind are not the same.
        if Some(at) != once && Some(at) != reject && (option.kind != RejectAlways || scopes.is_empty()) {
            choices.push(Choice {
                key: None,
                label: format!("{name}: “{}”", option.name.trim()),
                allows: option.kind.allows(),
                answer: Answer::Offered(option.option_id.clone()),
            });
        }
    }
    let no = reject.and_then(|at| request.options.get(at));
    let label = no.map_or_else(|| "No".to_owned(), |option| with_label("No", option));
    choices.push(choice('n', label, false, Answer::Reject));
    if first(RejectAlways).is_some() && !scopes.is_empty() {
        choices.push(choice(
            'N',
            format!("Never in this project: {}", describe(scopes, base)),
            false,
            Answer::Never,
        ));
    }
    choices
}

fn describe(scopes: &[Scope], base: &Path) -> String {
    scopes.iter().map(|scope| scope.describe(base)).collect::<Vec<_>>().join(", ")
}

fn remembering(scopes: &[Scope], base: &Path, agent: &str, span: Span) -> Vec<Choice> {
    if scopes.is_empty() {
        return Vec::new();
    }
    let scope = describe(scopes, base);
    let agent = if agent.is_empty() { String::new() } else { format!(" ({agent})") };
    vec![
        choice('s', format!("Yes, {}: {scope}", span.text()), true, Answer::Session),
        choice('a', format!("Always in this project: {scope}{agent}"), true, Answer::Project),
    ]
}

fn choice(key: char, label: String, allows: bool, answer: Answer) -> Choice {
    Choice { key: Some(key), label, allows, answer }
}

/// Adds the agent's label where it says more than yes or no.
fn with_label(ours: &str, option: &PermissionOption) -> String {
    let name = option.name.trim();
    let plain = [
        "allow",
        "allow once",
        "yes",
        "yes, once",
        "accept",
        "approve",
        "ok",
        "proceed",
        "reject",
        "reject once",
        "no",
        "deny",
        "decline",
    ];
    match name.is_empty() || plain.contains(&name.to_lowercase().trim_end_matches(['.', '!'])) {
        true => ours.to_owned(),
        false => format!("{ours} (“{name}”)"),
    }
}
