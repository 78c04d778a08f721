//! Slash commands: those of this agent, and Markdown files of projects and users.

mod custom;

use std::path::PathBuf;

use attache::wire::v1::{AvailableCommand, UnstructuredCommandInput};
use attache_host::trust::{FileKind, ProjectFiles, command_files};

use crate::state::SessionState;

/// A built-in command.
struct BuiltinCommand {
    name: &'static str,
    about: &'static str,
    hint: Option<&'static str>,
}

const COMMANDS: &[BuiltinCommand] = &[
    BuiltinCommand { name: "init", about: "Explore the project and write an AGENTS.md for it", hint: None },
    BuiltinCommand {
        name: "compact",
        about: "Replace the conversation with a summary",
        hint: Some("[FOCUS]"),
    },
    BuiltinCommand {
        name: "review",
        about: "Review uncommitted changes, or what you name",
        hint: Some("[WHAT]"),
    },
    BuiltinCommand { name: "plan", about: "Switch to plan mode and plan something", hint: Some("[WHAT]") },
    BuiltinCommand {
        name: "context",
        about: "Show what fills the model's window, and the tokens so far",
        hint: None,
    },
    BuiltinCommand { name: "undo", about: "Revert the file changes of the last turn", hint: None },
];

/// A command that the user entered.
pub(crate) enum SlashCommand {
    /// This text replaces the text of the prompt.
    Prompt(String),
    /// Switch to plan mode, then plan this, if not empty.
    Plan(String),
    /// Summarize the conversation, with a focus.
    Compact(String),
    /// Show what fills the model's window.
    Context,
    /// Revert the file changes of the last turn.
    Undo,
}

/// An unknown command is plain text.
// CMD-04, CMD-05, CMD-06
pub(crate) fn find(session: &SessionState, name: &str, input: &str) -> Option<SlashCommand> {
    match name {
        "init" => Some(SlashCommand::Prompt(INIT.to_owned())),
        "review" if input.is_empty() => Some(SlashCommand::Prompt(format!("{REVIEW}{REVIEW_ALL}"))),
        "review" => Some(SlashCommand::Prompt(format!("{REVIEW}Review this: {input}"))),
        "compact" => Some(SlashCommand::Compact(input.to_owned())),
        "plan" => Some(SlashCommand::Plan(input.to_owned())),
        "context" => Some(SlashCommand::Context),
        "undo" => Some(SlashCommand::Undo),
        name => custom::find(&files(session), name).map(|command| SlashCommand::Prompt(command.fill(input))),
    }
}

/// The commands to announce. Built-in ones come first and cannot be replaced.
// CMD-01, CMD-03
pub(crate) fn available(session: &SessionState) -> Vec<AvailableCommand> {
    let own = COMMANDS.iter().map(|command| announce(command.name, command.about, command.hint));
    let custom = custom::all(&files(session));
    let custom = custom.iter().filter(|command| COMMANDS.iter().all(|own| own.name != command.name));
    let custom = custom.map(|command| announce(&command.name, &command.about, command.hint.as_deref()));
    own.chain(custom).collect()
}

fn announce(name: &str, about: &str, hint: Option<&str>) -> AvailableCommand {
    let input = hint.map(|hint| UnstructuredCommandInput::new(hint).into());
    AvailableCommand::new(name, about).input(input)
}

/// Command files: the project's if it is trusted in its present state, then the user's.
fn files(session: &SessionState) -> Vec<PathBuf> {
    let project = ProjectFiles::scan(session.workspace.cwd());
    let mut files = Vec::new();
    if session.restricted.is_none() && session.agent.options.trust.is_trusted(&project) {
        let commands = project.files().iter().filter(|file| file.kind == FileKind::Command);
        files.extend(commands.map(|file| file.path.clone()));
    }
    if let Some(config) = &session.agent.options.config_dir {
        let dir = config.join("commands");
        files.extend(command_files(&dir, &dir.canonicalize().unwrap_or(dir.clone())));
    }
    files
}

const INIT: &str = "Look at this project and write a file AGENTS.md at its root, for people and agents who work here. If \
there is one, improve it. It says, in at most 60 lines: what the project is; the commands to build, test (also one test \
alone), lint and format, as they really are in this project; how the code is laid out and where to start reading; the \
conventions that can be seen in the code. Write only what you have seen in files; no general advice.";

const REVIEW: &str = "Review code as an experienced colleague would. Look for mistakes first: wrong results, missing \
cases, errors that are swallowed, races, security; then for what is hard to read or not tested. Read the code around \
a change before you judge it. Report findings by severity, each with file and line, what goes wrong and when, and \
how to fix it. Do not change anything. If it is fine, say so in one sentence.\n\n";

const REVIEW_ALL: &str = "Review the changes that are not committed yet (`git diff HEAD` and new files); if there are \
none, the last commit.";
