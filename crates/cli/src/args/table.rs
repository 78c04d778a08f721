//! Every command and every flag, with `groups.rs`. Nothing else in the program knows their names but the code that acts on them.

use super::groups::{AGENT, AUTH, CONFIG, LIST, PERMISSIONS, REGISTRY, SESSIONS, TRUST};

/// What a word or the value of a flag is, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Anything.
    Text,
    /// A file.
    File,
    /// A directory.
    Dir,
    /// A command.
    Command,
    /// An agent's name.
    Agent,
    /// The name of a session of this directory.
    Session,
    /// One of these.
    OneOf(&'static [&'static str]),
}

/// Where the help lists a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Agent,
    Permissions,
    Limits,
    Output,
    Other,
    /// Flags of a verb of its own.
    Own,
}

impl Section {
    pub(crate) const GLOBAL: [Section; 5] =
        [Section::Agent, Section::Permissions, Section::Limits, Section::Output, Section::Other];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Section::Agent => "Agent and session",
            Section::Permissions => "Permissions",
            Section::Limits => "Limits",
            Section::Output => "Output",
            Section::Other => "Other",
            Section::Own => "Options",
        }
    }
}

/// A flag.
#[derive(Debug)]
pub(crate) struct Flag {
    /// Its long name, without the dashes.
    pub(crate) name: &'static str,
    pub(crate) short: Option<char>,
    /// What its value is called; `None` if it has none.
    pub(crate) value: Option<&'static str>,
    pub(crate) hint: Hint,
    pub(crate) section: Section,
    /// Whether it may be given more than once.
    pub(crate) repeats: bool,
    pub(crate) about: &'static str,
}

/// A positional argument.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    pub(crate) many: bool,
    pub(crate) hint: Hint,
    pub(crate) about: &'static str,
}

/// A command, or a command of a command.
#[derive(Debug)]
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Paragraphs for its own help and the man page.
    pub(crate) more: &'static str,
    pub(crate) words: &'static [Word],
    pub(crate) flags: &'static [&'static [Flag]],
    pub(crate) verbs: &'static [Verb],
    /// Which of `verbs` is meant when none is named.
    pub(crate) default: Option<&'static str>,
    /// Whether an agent's name may stand before it.
    pub(crate) agent: bool,
    pub(crate) examples: &'static [&'static str],
}

pub(super) const NOTHING: Verb = Verb {
    name: "",
    about: "",
    more: "",
    words: &[],
    flags: &[],
    verbs: &[],
    default: None,
    agent: false,
    examples: &[],
};

pub(super) const fn flag(name: &'static str, section: Section, about: &'static str) -> Flag {
    Flag { name, short: None, value: None, hint: Hint::Text, section, repeats: false, about }
}

pub(super) const fn option(
    name: &'static str,
    value: &'static str,
    hint: Hint,
    section: Section,
    about: &'static str,
) -> Flag {
    Flag { name, short: None, value: Some(value), hint, section, repeats: false, about }
}

impl Flag {
    pub(super) const fn short(mut self, short: char) -> Flag {
        self.short = Some(short);
        self
    }

    pub(super) const fn repeats(mut self) -> Flag {
        self.repeats = true;
        self
    }
}

pub(super) const fn word(name: &'static str, required: bool, hint: Hint, about: &'static str) -> Word {
    Word { name, required, many: false, hint, about }
}

pub(crate) const FORMATS: &[&str] = &["text", "json", "quiet"];

use Section::{Agent, Limits, Other, Output, Own, Permissions};

/// What every command takes, before or behind its name.
pub(crate) static GLOBAL: &[Flag] = &[
    option(
        "agent",
        "COMMAND",
        Hint::Command,
        Agent,
        "Run this agent: a command line, tcp://HOST:PORT or unix:PATH",
    ),
    option("cwd", "DIR", Hint::Dir, Agent, "Work in this directory instead of the current one"),
    option("add-dir", "DIR", Hint::Dir, Agent, "A further directory that the session may work in").repeats(),
    option("model", "ID", Hint::Text, Agent, "Ask the agent to use this model"),
    option("env", "NAME=VALUE", Hint::Text, Agent, "Set a variable in the agent's environment").repeats(),
    option("mcp-config", "FILE", Hint::File, Agent, "Take the MCP servers from this JSON file"),
    option("system-prompt", "TEXT", Hint::Text, Agent, "Replace the agent's system prompt"),
    option("append-system-prompt", "TEXT", Hint::Text, Agent, "Add to the agent's system prompt"),
    option(
        "allowed-tools",
        "LIST",
        Hint::Text,
        Agent,
        "Only these tools, separated by commas; \"\" for none",
    ),
    option(
        "auth-policy",
        "POLICY",
        Hint::OneOf(&["skip", "fail"]),
        Agent,
        "Without credentials: skip, or fail",
    ),
    flag("no-fs", Agent, "Do not provide files to the agent"),
    flag("no-terminal", Agent, "Do not provide terminals to the agent"),
    flag("trust", Permissions, "Trust the files of this folder for this run (ATTACHE_TRUST=1)"),
    flag(
        "sandbox",
        Permissions,
        "Sandbox the commands that an agent runs in the terminals of the client; a new host is a question",
    ),
    flag("ask", Permissions, "Ask for everything that the agent wants permission for (the default)"),
    flag("approve-reads", Permissions, "Approve reading and searching, ask for the rest"),
    flag("approve-all", Permissions, "Approve everything except for changes of protected files"),
    flag("deny-all", Permissions, "Deny everything"),
    option(
        "permission-policy",
        "JSON|FILE",
        Hint::File,
        Permissions,
        "Rules that come before the mode: autoApprove, autoDeny, escalate, defaultAction",
    ),
    option("policy", "JSON|FILE", Hint::File, Permissions, "The same as --permission-policy"),
    option(
        "non-interactive-permissions",
        "POLICY",
        Hint::OneOf(&["deny", "fail"]),
        Permissions,
        "Without a terminal to ask on: deny, or fail",
    ),
    option("timeout", "SECONDS", Hint::Text, Limits, "How long the agent may take to answer"),
    option("max-turns", "COUNT", Hint::Text, Limits, "How many turns the session may have"),
    option(
        "max-tokens",
        "COUNT",
        Hint::Text,
        Limits,
        "Cancel the turn when the session has used more tokens",
    ),
    option("max-cost", "AMOUNT", Hint::Text, Limits, "Cancel the turn when the session has cost more"),
    option("prompt-retries", "COUNT", Hint::Text, Limits, "Try again after errors that may pass"),
    option(
        "ttl",
        "SECONDS",
        Hint::Text,
        Limits,
        "How long an idle agent is kept for the next prompt; 0 for ever",
    ),
    option(
        "format",
        "FORMAT",
        Hint::OneOf(FORMATS),
        Output,
        "text, json (the raw messages) or quiet (the answer)",
    ),
    flag("json-strict", Output, "With --format json: print only JSON; silence stderr"),
    flag("suppress-reads", Output, "Do not print what the agent reads"),
    flag("no-color", Output, "No colours (as NO_COLOR)"),
    flag("verbose", Output, "Show the messages on the wire, on stderr").short('v'),
    option("log", "FILE", Hint::File, Output, "Write the messages on the wire to this file, without secrets"),
    flag("help", Other, "This text").short('h'),
    flag("version", Other, "The version").short('V'),
];

/// What a prompt takes.
pub(crate) static PROMPT: &[Flag] = &[
    option("session", "NAME", Hint::Session, Own, "The session of this name instead of the directory's own")
        .short('s'),
    flag("no-wait", Own, "Queue the prompt and return at once"),
    FILE,
    ANSWERS,
];

const ANSWERS: Flag = option(
    "answers",
    "JSON|FILE",
    Hint::File,
    Own,
    "Fill in forms that the agent shows with these values, by field",
);

const FILE: Flag =
    option("file", "FILE", Hint::File, Own, "Read the prompt from a file; - for standard input").short('f');

static EXEC: &[Flag] = &[
    FILE,
    ANSWERS,
    option("config-option", "KEY=VALUE", Hint::Text, Own, "Set an option of the session before the prompt")
        .repeats(),
];

static SESSION: &[Flag] = &[option(
    "session",
    "NAME",
    Hint::Session,
    Own,
    "The session of this name instead of the directory's own",
)
.short('s')];

static PROMPT_WORDS: &[Word] = &[Word {
    name: "prompt",
    required: false,
    many: true,
    hint: Hint::Text,
    about: "The prompt; without it, standard input",
}];

static VERBS: &[Verb] = &[
    Verb {
        name: "prompt",
        about: "Send a prompt to a session of this directory",
        more: "The session must exist: `attache sessions new` starts one. It is looked for in this directory and in those \
               above it up to the root of the repository. The agent is kept running for a while (--ttl), so that the next \
               prompt finds it; when it is gone, the session is resumed or loaded. While a prompt runs, others wait their turn.",
        words: PROMPT_WORDS,
        flags: &[PROMPT],
        agent: true,
        examples: &[
            "attache sessions new --name api",
            "attache prompt -s api 'find the slow query'",
            "git diff | attache prompt -s api -f - 'what could break?'",
        ],
        ..NOTHING
    },
    Verb {
        name: "exec",
        about: "Send one prompt and forget the session",
        more: "Nothing is recorded and nothing keeps running. With text piped in and no command, this is what happens too, \
               unless this directory has an open session.",
        words: PROMPT_WORDS,
        flags: &[EXEC],
        agent: true,
        examples: &[
            "attache exec 'summarize this repository'",
            "attache --format quiet gemini exec 'one line about this branch'",
        ],
        ..NOTHING
    },
    Verb {
        name: "compare",
        about: "Send one prompt to several agents and compare what comes back",
        more: "The agents are asked one after the other, each in a session of its own that is forgotten afterwards. The last word is the \
               prompt, unless it comes from a file.",
        words: &[Word {
            name: "agent",
            required: true,
            many: true,
            hint: Hint::Agent,
            about: "Agents, then the prompt",
        }],
        flags: &[&[FILE, ANSWERS]],
        examples: &["attache --approve-reads compare gemini codex 'what does this repository do?'"],
        ..NOTHING
    },
    Verb {
        name: "cancel",
        about: "Cancel the prompt that runs in a session",
        flags: &[SESSION],
        agent: true,
        ..NOTHING
    },
    Verb {
        name: "set-mode",
        about: "Switch a session to another mode",
        words: &[word("mode", true, Hint::Text, "The mode's id")],
        flags: &[SESSION],
        agent: true,
        ..NOTHING
    },
    Verb {
        name: "set",
        about: "Set an option of a session",
        more: "The option `model` is the agent's option for models, or its older way to switch them.",
        words: &[
            word("key", true, Hint::Text, "The option's id"),
            word("value", true, Hint::Text, "The value's id, or true or false"),
        ],
        flags: &[SESSION],
        agent: true,
        ..NOTHING
    },
    Verb {
        name: "status",
        about: "Say whether a session's agent is running",
        flags: &[SESSION],
        agent: true,
        ..NOTHING
    },
    Verb {
        name: "sessions",
        about: "Start, list, show, move and delete sessions",
        verbs: SESSIONS,
        flags: &[LIST],
        default: Some("list"),
        agent: true,
        ..NOTHING
    },
    // What is not built for a platform is not offered there.
    #[cfg(unix)]
    super::agent::AGENT,
    #[cfg(unix)]
    super::agent::DEMO,
    Verb {
        name: "agents",
        about: "List the agents that are known here",
        more: "Agents come from the settings and from the table of this program; those that are not installed are listed \
               with --all.",
        flags: &[&[flag("all", Own, "Also those that are not installed")]],
        ..NOTHING
    },
    super::recordings::RECORD,
    super::recordings::REPLAY,
    super::recordings::TRACE,
    Verb {
        name: "doctor",
        about: "Start an agent and say what works, and what to do about what does not",
        more: "No prompt is sent. The exit code is 0 if the agent can be used and 1 if not.",
        words: AGENT,
        agent: true,
        examples: &[
            "attache doctor gemini",
            "attache --agent './my-agent --acp' doctor",
            "attache --format json doctor codex",
        ],
        ..NOTHING
    },
    #[cfg(unix)]
    super::checking::CHECK,
    Verb {
        name: "auth",
        about: "Log in to agents and out of them",
        verbs: AUTH,
        default: Some("status"),
        agent: true,
        ..NOTHING
    },
    Verb {
        name: "import",
        about: "Take agents and settings over from another program",
        more: "Agents that you have already stay as they are. Secrets among the variables of agents go to a file that only you can \
               read, and are not printed.",
        words: &[word("program", true, Hint::OneOf(&["zed", "jetbrains", "acpx"]), "zed, jetbrains or acpx")],
        flags: &[&[
            flag("dry-run", Own, "Only say what would change"),
            flag("force", Own, "Replace what is there already"),
            option("from", "FILE", Hint::File, Own, "Its file of settings, if it is not in its usual place"),
            flag("project", Own, "From .acpxrc.json here to .attache.toml here"),
        ]],
        examples: &["attache import zed --dry-run", "attache import acpx"],
        ..NOTHING
    },
    Verb {
        name: "registry",
        about: "Find, install, update and remove agents",
        more: "Without `[registry] url` in the settings it is the public registry of the protocol. `url` is an address, a file, a \
               directory of `ID/agent.json`, or a list of them; of several with the same agent, the first counts.",
        verbs: REGISTRY,
        default: Some("list"),
        ..NOTHING
    },
    Verb {
        name: "trust",
        about: "Show and change which folders you trust",
        more: "A folder can bring settings (.attache.toml), slash commands (.attache/commands) and instructions for agents (AGENTS.md). They take \
               effect after you trusted the folder, and you are asked again when they change. Until then the folder is restricted: no value \
               of its settings names or changes a program, an address, a model or a policy, its slash commands are not offered, and \
               Attaché's own agent starts in plan mode.",
        verbs: TRUST,
        ..NOTHING
    },
    Verb {
        name: "permissions",
        about: "List and take back what was always allowed or denied in this project",
        verbs: PERMISSIONS,
        default: Some("list"),
        ..NOTHING
    },
    Verb {
        name: "config",
        about: "Show and change settings",
        verbs: CONFIG,
        default: Some("show"),
        ..NOTHING
    },
    Verb {
        name: "completions",
        about: "Print completions for a shell",
        words: &[word("shell", true, Hint::OneOf(super::complete::SHELLS), "bash, zsh or fish")],
        examples: &[
            "attache completions bash > ~/.local/share/bash-completion/completions/attache",
            "attache completions fish > ~/.config/fish/completions/attache.fish",
        ],
        ..NOTHING
    },
    Verb { name: "man", about: "Print the manual page", examples: &["attache man | man -l -"], ..NOTHING },
    Verb {
        name: "help",
        about: "Show the help of a command",
        words: &[Word {
            name: "command",
            required: false,
            many: true,
            hint: Hint::Text,
            about: "The command",
        }],
        ..NOTHING
    },
];

/// The program itself.
pub(crate) static TOP: Verb = Verb {
    name: "attache",
    about: "Drive any ACP agent from a terminal, for people and for scripts",
    more: "Without a command, words are a prompt for the session of this directory.",
    words: PROMPT_WORDS,
    flags: &[PROMPT],
    verbs: VERBS,
    default: None,
    agent: true,
    examples: &[
        "attache gemini exec 'what does this repository do?'",
        "attache sessions new && attache 'fix the failing test'",
        "echo 'review the last commit' | attache --approve-reads claude exec",
        "attache --agent './my-agent --acp' exec hello",
    ],
};

impl Verb {
    /// The verb of this name within this one.
    pub(crate) fn verb(&self, name: &str) -> Option<&'static Verb> {
        let verbs: &'static [Verb] = self.verbs;
        verbs.iter().find(|verb| verb.name == name)
    }

    /// Its own flags.
    pub(crate) fn own_flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        let lists: &'static [&'static [Flag]] = self.flags;
        lists.iter().flat_map(|list| list.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(verb: &'static Verb, seen: &mut Vec<&'static Verb>) {
        seen.push(verb);
        verb.verbs.iter().for_each(|verb| walk(verb, seen));
    }

    #[test]
    fn no_two_flags_of_a_verb_have_the_same_name() {
        let mut verbs = Vec::new();
        walk(&TOP, &mut verbs);
        for verb in verbs {
            let mut names: Vec<&str> = verb.own_flags().map(|flag| flag.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{}", verb.name);
            for flag in verb.own_flags() {
                let clash = GLOBAL.iter().any(|global| global.short.is_some() && global.short == flag.short);
                assert!(!clash, "-{:?} of {} is global too", flag.short, verb.name);
            }
        }
    }
}
