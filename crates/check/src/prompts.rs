//! Texts of prompts, by their intended effect.

use std::collections::BTreeMap;

/// The intended effect of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PromptKind {
    /// Answer with a few words.
    Say,
    /// Read `notes.txt`.
    Read,
    /// Write `out.txt`.
    Write,
    /// Run a short command in a terminal that leaves the file `ran.txt`.
    Run,
    /// Run a command until it is killed.
    RunLong,
    /// Do something that needs permission.
    Ask,
    /// Work for long, so that there is time to cancel.
    Think,
    /// Make a plan.
    Plan,
    /// Ask the person for data by a form.
    Elicit,
    /// Ask the person to visit a page.
    ElicitUrl,
    /// Change the mode.
    Mode,
    /// Change a config option.
    Config,
    /// Say something with line breaks and letters beyond ASCII.
    Lines,
    /// Fail within.
    Fail,
    /// Start a command that goes on after the turn.
    Background,
}

impl PromptKind {
    /// All.
    pub const ALL: [PromptKind; 15] = [
        PromptKind::Say,
        PromptKind::Read,
        PromptKind::Write,
        PromptKind::Run,
        PromptKind::RunLong,
        PromptKind::Ask,
        PromptKind::Think,
        PromptKind::Plan,
        PromptKind::Elicit,
        PromptKind::ElicitUrl,
        PromptKind::Mode,
        PromptKind::Config,
        PromptKind::Lines,
        PromptKind::Fail,
        PromptKind::Background,
    ];

    /// Its name, as `--prompt` takes it.
    pub fn name(self) -> &'static str {
        match self {
            PromptKind::Say => "say",
            PromptKind::Read => "read",
            PromptKind::Write => "write",
            PromptKind::Run => "run",
            PromptKind::RunLong => "run-long",
            PromptKind::Ask => "ask",
            PromptKind::Think => "think",
            PromptKind::Plan => "plan",
            PromptKind::Elicit => "elicit",
            PromptKind::ElicitUrl => "elicit-url",
            PromptKind::Mode => "mode",
            PromptKind::Config => "config",
            PromptKind::Lines => "lines",
            PromptKind::Fail => "fail",
            PromptKind::Background => "background",
        }
    }

    /// The kind of that name.
    pub fn of(name: &str) -> Option<PromptKind> {
        PromptKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The default text, for an agent with a model. `{cwd}` is the session's directory.
    pub fn text(self) -> &'static str {
        match self {
            PromptKind::Say => "Answer with the one word hello. Use no tools.",
            PromptKind::Read => {
                "Read the file {cwd}/notes.txt with your file reading tool and tell me its first word."
            }
            PromptKind::Write => {
                "Write the text `done` into the file {cwd}/out.txt with your file writing tool."
            }
            PromptKind::Run => {
                "Run the command `touch {cwd}/ran.txt && echo attache` in the terminal and tell me what it prints."
            }
            PromptKind::RunLong => "Run the command `sleep 600` in the terminal and wait for it.",
            PromptKind::Ask => "Delete the file {cwd}/old.txt by running `rm {cwd}/old.txt`.",
            PromptKind::Think => "Count from 1 to 500, one number per line. Use no tools.",
            PromptKind::Plan => {
                "Make a plan with three steps for renaming a function, with your planning tool. Do not carry it out."
            }
            PromptKind::Elicit => "Ask me for my favourite colour with a form.",
            PromptKind::ElicitUrl => "Ask me to log in on a web page.",
            PromptKind::Mode => "Switch to another mode.",
            PromptKind::Config => "Change one of your configuration options.",
            PromptKind::Lines => "Answer with two lines: grüße and 世界. Use no tools.",
            PromptKind::Fail => "Fail with an internal error.",
            PromptKind::Background => {
                "Start the command `sleep 600` in the background, and end your turn without waiting for it."
            }
        }
    }
}

/// The texts of prompts.
#[derive(Clone, Debug, Default)]
pub struct Prompts {
    texts: BTreeMap<PromptKind, String>,
}

impl Prompts {
    /// The name of each kind as its text: for agents without a model that know the names.
    pub fn names() -> Prompts {
        Prompts { texts: PromptKind::ALL.map(|kind| (kind, kind.name().to_owned())).into() }
    }

    /// Sets the text of a kind.
    pub fn set(&mut self, kind: PromptKind, text: impl Into<String>) {
        self.texts.insert(kind, text.into());
    }

    /// Whether a text was set.
    pub fn has(&self, kind: PromptKind) -> bool {
        self.texts.contains_key(&kind)
    }

    /// The text of a kind; `{cwd}` in it becomes the session's directory.
    pub fn text(&self, kind: PromptKind, cwd: &std::path::Path) -> String {
        let text = self.texts.get(&kind).map_or(kind.text(), String::as_str);
        text.replace("{cwd}", &cwd.to_string_lossy())
    }
}
