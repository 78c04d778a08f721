//! Slash commands: built-in ones and those of the agent.

use super::state::{SessionState, Setting, hint};
use attache_term::editor::complete::{Completer, Item};

/// A built-in command.
pub(crate) struct BuiltinCommand {
    pub(crate) name: &'static str,
    pub(crate) args: &'static str,
    pub(crate) about: &'static str,
}

const fn ours(name: &'static str, args: &'static str, about: &'static str) -> BuiltinCommand {
    BuiltinCommand { name, args, about }
}

pub(crate) static BUILTIN_COMMANDS: &[BuiltinCommand] = &[
    ours("mode", "[MODE]", "Show the modes, or switch to one"),
    ours("model", "[MODEL]", "Show the models, or switch to one"),
    ours("set", "[OPTION [VALUE]]", "Show the agent's options, or set one"),
    ours("sessions", "", "List the agent's sessions and resume one"),
    ours("new", "", "Start a new session"),
    ours("resume", "[ID]", "Resume a conversation with any agent"),
    ours("load", "[NUMBER|ID]", "Resume a session of this agent"),
    ours("fork", "", "Continue in a copy of this session"),
    ours("restart", "", "Restart the agent in this session"),
    ours("cancel", "", "Cancel and clear the queue"),
    ours("tasks", "", "List the agent's background work and cancel it"),
    ours("diff", "", "Show all file changes in full"),
    ours("undo", "[FILE]", "Undo the file changes of the last turn, or parts of one file"),
    ours("redo", "", "Restore what the last undo took back"),
    ours("rewind", "", "Undo all file changes since a prompt"),
    ours("show", "[NUMBER]", "List folded blocks, or show one in full"),
    ours("cost", "", "Show usage and cost"),
    ours("context", "", "Show how full the context is"),
    ours("permissions", "", "List what is always allowed or denied, and revoke it"),
    ours("mcp", "", "List the MCP servers of the session"),
    ours("login", "", "Log in to the agent"),
    ours("copy", "", "Copy the last answer"),
    ours("export", "[FILE]", "Save the conversation as Markdown, or as HTML if the name ends with .html"),
    ours("help", "", "Show commands and keys"),
    ours("quit", "", "Leave"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Mode(Option<String>),
    Model(Option<String>),
    Set(Option<(String, Option<String>)>),
    Sessions,
    New,
    /// Resumes a conversation from the list of all agents and directories.
    Resume,
    /// Resumes a session: a number of the list or an id, or one from a list.
    Load(Option<String>),
    Permissions,
    Mcp,
    Login,
    Copy,
    Export(Option<String>),
    Fork,
    Restart,
    Cancel,
    Tasks,
    Diff,
    Undo(Option<String>),
    Redo,
    Rewind,
    Show(Option<usize>),
    Cost,
    Context,
    Help,
    Quit,
}

/// The meaning of an input line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// A prompt for the agent.
    Prompt(String),
    Command(Command),
    /// An invalid command, with a message for the user.
    Mistake(String),
}

/// Parses a line. Commands of the agent are prompts. Two slashes send any text.
// CMD-04
pub(crate) fn parse(text: &str, state: &SessionState) -> Input {
    let Some(rest) = text.strip_prefix('/') else { return Input::Prompt(text.to_owned()) };
    if rest.starts_with('/') {
        return Input::Prompt(rest.to_owned());
    }
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let args = args.trim();
    let one = || (!args.is_empty()).then(|| args.to_owned());
    if is_agents(name, state) {
        return Input::Prompt(text.to_owned());
    }
    Input::Command(match name {
        "mode" => Command::Mode(one()),
        "model" => Command::Model(one()),
        "set" => Command::Set(one().map(|args| {
            let (option, value) = args.split_once([' ', '=']).unwrap_or((&args, ""));
            let value = value.trim();
            (option.to_owned(), (!value.is_empty()).then(|| value.to_owned()))
        })),
        "sessions" => Command::Sessions,
        "new" => Command::New,
        "resume" if one().is_none() => Command::Resume,
        "load" | "resume" => Command::Load(one()),
        "fork" => Command::Fork,
        "restart" => Command::Restart,
        "cancel" => Command::Cancel,
        "tasks" => Command::Tasks,
        "diff" => Command::Diff,
        "undo" => Command::Undo(one()),
        "redo" => Command::Redo,
        "rewind" => Command::Rewind,
        "show" => match args.trim_start_matches('#').parse() {
            Ok(number) => Command::Show(Some(number)),
            Err(_) if args.is_empty() => Command::Show(None),
            Err(_) => return Input::Mistake("/show takes a number; without one it lists them".to_owned()),
        },
        "cost" => Command::Cost,
        "context" => Command::Context,
        "permissions" => Command::Permissions,
        "mcp" => Command::Mcp,
        "login" => Command::Login,
        "copy" => Command::Copy,
        "export" => Command::Export(one()),
        "help" => Command::Help,
        "quit" | "exit" => Command::Quit,
        name if state.commands.iter().any(|command| command.name == name) => {
            return Input::Prompt(text.to_owned());
        }
        // A path, or a sentence that begins with a slash.
        name if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c)) => {
            return Input::Prompt(text.to_owned());
        }
        name => {
            return Input::Mistake(format!(
                "there is no command /{name}; /help lists them, //{name} sends it to the agent"
            ));
        }
    })
}

/// Whether an agent's command replaces the built-in one: an agent knows better what fills its
/// context.
fn is_agents(name: &str, state: &SessionState) -> bool {
    name == "context" && state.commands.iter().any(|command| command.name == name)
}

impl Completer for SessionState {
    fn commands(&self) -> Vec<Item> {
        let ours = BUILTIN_COMMANDS.iter().filter(|ours| !is_agents(ours.name, self)).map(|ours| {
            let label = format!("{} {}", ours.name, ours.args).trim_end().to_owned();
            Item { text: ours.name.to_owned(), label, about: ours.about.to_owned() }
        });
        let theirs = self.commands.iter().filter(|command| {
            is_agents(&command.name, self) || BUILTIN_COMMANDS.iter().all(|ours| ours.name != command.name)
        });
        let theirs = theirs.map(|command| {
            let label = format!("{} {}", command.name, hint(command)).trim_end().to_owned();
            Item { text: command.name.clone(), label, about: command.description.clone() }
        });
        let mut all: Vec<Item> = ours.chain(theirs).collect();
        all.sort_by(|a, b| a.text.cmp(&b.text));
        all
    }

    fn arguments(&self, command: &str, before: &[&str]) -> Vec<Item> {
        let values = |setting: Option<Setting>| -> Vec<Item> {
            let values = setting.map_or(Vec::new(), |setting| setting.values);
            values.into_iter().map(|value| Item::new(value.id, value.name)).collect()
        };
        match (command, before) {
            ("mode", []) => values(self.mode()),
            ("model", []) => values(self.model()),
            ("set", []) => {
                let item = |id: String, about: &str| Item {
                    text: format!("{id} "),
                    label: id,
                    about: about.to_owned(),
                };
                self.options.iter().map(|option| item(option.id.to_string(), &option.name)).collect()
            }
            ("set", [option]) => values(self.option(option)),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
