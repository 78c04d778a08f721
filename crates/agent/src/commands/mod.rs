//! Slash commands: those of this agent, and those that projects and users write as Markdown files.

mod custom;

use std::path::PathBuf;

use attache::wire::v1::{AvailableCommand, UnstructuredCommandInput};
use attache_host::trust::{FileKind, ProjectFiles, command_files};

use crate::session::Live;

/// A command of this agent.
struct Command {
    name: &'static str,
    about: &'static str,
    hint: Option<&'static str>,
}

const COMMANDS: &[Command] = &[
    Command { name: "init", about: "Look at the project and write an AGENTS.md for it", hint: None },
    Command {
        name: "compact",
        about: "Shorten the conversation to a summary",
        hint: Some("what to keep in mind"),
    },
    Command {
        name: "review",
        about: "Review changes that are not committed, or what is named",
        hint: Some("what to review"),
    },
    Command { name: "plan", about: "Switch to plan mode and plan something", hint: Some("what to plan") },
    Command { name: "undo", about: "Take back the file changes of the last turn", hint: None },
];

/// What a prompt that begins with a slash asks for.
pub(crate) enum Asked {
    /// To be told to the model in the place of the prompt's text.
    Prompt(String),
    /// Plan mode, and then this, if something is said.
    Plan(String),
    /// A compaction, with something to keep in mind.
    Compact(String),
    /// The last turn's changes back.
    Undo,
}

/// CMD-04, CMD-05. CMD-06: what is no command is plain text.
pub(crate) fn asked(live: &Live, name: &str, input: &str) -> Option<Asked> {
    match name {
        "init" => Some(Asked::Prompt(INIT.to_owned())),
        "review" => Some(Asked::Prompt(format!("{REVIEW}{}", wish("Review this:", input, REVIEW_ALL)))),
        "compact" => Some(Asked::Compact(input.to_owned())),
        "plan" => Some(Asked::Plan(input.to_owned())),
        "undo" => Some(Asked::Undo),
        name => custom::find(&files(live), name).map(|command| Asked::Prompt(command.fill(input))),
    }
}

fn wish(before: &str, input: &str, or_else: &str) -> String {
    if input.is_empty() { or_else.to_owned() } else { format!("{before} {input}") }
}

/// CMD-01, CMD-03: what is announced. The agent's own commands come first and cannot be replaced.
pub(crate) fn offered(live: &Live) -> Vec<AvailableCommand> {
    let own = COMMANDS.iter().map(|command| announce(command.name, command.about, command.hint));
    let custom = custom::all(&files(live));
    let custom = custom.iter().filter(|command| COMMANDS.iter().all(|own| own.name != command.name));
    let custom = custom.map(|command| announce(&command.name, &command.about, command.hint.as_deref()));
    own.chain(custom).collect()
}

fn announce(name: &str, about: &str, hint: Option<&str>) -> AvailableCommand {
    let input = hint.map(|hint| UnstructuredCommandInput::new(hint).into());
    AvailableCommand::new(name, about).input(input)
}

/// The files of commands: the project's if it is trusted as it is now, then the user's.
fn files(live: &Live) -> Vec<PathBuf> {
    let project = ProjectFiles::scan(live.ground.cwd());
    let mut files = Vec::new();
    if live.restricted.is_none() && live.house.options.trust.is_trusted(&project) {
        let commands = project.files().iter().filter(|file| file.kind == FileKind::Command);
        files.extend(commands.map(|file| file.path.clone()));
    }
    if let Some(config) = &live.house.options.config_dir {
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
a change before you judge it. Tell findings in order of weight, each with file and line, what goes wrong and when, and \
how to mend it. Do not change anything. If it is fine, say so in one sentence.\n\n";

const REVIEW_ALL: &str = "Review the changes that are not committed yet (`git diff HEAD` and new files); if there are \
none, the last commit.";
