//! Every command and every flag. Nothing else in the program knows their names but the code that acts on them.

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

const NOTHING: Verb = Verb {
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

const fn flag(name: &'static str, section: Section, about: &'static str) -> Flag {
    Flag { name, short: None, value: None, hint: Hint::Text, section, repeats: false, about }
}

const fn option(
    name: &'static str,
    value: &'static str,
    hint: Hint,
    section: Section,
    about: &'static str,
) -> Flag {
    Flag { name, short: None, value: Some(value), hint, section, repeats: false, about }
}

impl Flag {
    const fn short(mut self, short: char) -> Flag {
        self.short = Some(short);
        self
    }

    const fn repeats(mut self) -> Flag {
        self.repeats = true;
        self
    }
}

const fn word(name: &'static str, required: bool, hint: Hint, about: &'static str) -> Word {
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
    flag("no-fs", Agent, "Do not lend files to the agent"),
    flag("no-terminal", Agent, "Do not lend terminals to the agent"),
    flag("ask", Permissions, "Ask for everything that the agent wants permission for (the default)"),
    flag("approve-reads", Permissions, "Approve reading and searching, ask for the rest"),
    flag("approve-all", Permissions, "Approve everything"),
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
        "When nobody can be asked: deny, or fail",
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
    flag("json-strict", Output, "With --format json: nothing but JSON, on stderr neither"),
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

static NAME: &[Word] =
    &[word("name", false, Hint::Session, "The session's name; without it, the directory's own")];

static NEW: &[Flag] = &[
    option("name", "NAME", Hint::Text, Own, "Give the session a name").short('s'),
    option("resume-session", "ID", Hint::Text, Own, "Take over a session that the agent has stored"),
];

static LIST: &[Flag] = &[
    flag("local", Own, "List what is recorded here instead of asking the agent"),
    option("cursor", "CURSOR", Hint::Text, Own, "Continue the agent's list from here"),
    option("filter-cwd", "DIR", Hint::Dir, Own, "Only sessions of this directory"),
];

static SESSIONS: &[Verb] = &[
    Verb { name: "list", about: "List sessions", agent: true, flags: &[LIST], ..NOTHING },
    Verb {
        name: "new",
        about: "Start a session for this directory; an open one of the same name is closed",
        agent: true,
        flags: &[NEW],
        ..NOTHING
    },
    Verb {
        name: "ensure",
        about: "Print the open session of this directory, or start one",
        agent: true,
        flags: &[NEW],
        ..NOTHING
    },
    Verb { name: "show", about: "Show what is recorded of a session", agent: true, words: NAME, ..NOTHING },
    Verb {
        name: "history",
        about: "Show the last messages of a session",
        agent: true,
        words: NAME,
        flags: &[&[option("limit", "COUNT", Hint::Text, Own, "How many (20 unless said)")]],
        ..NOTHING
    },
    Verb {
        name: "read",
        about: "Show all messages of a session",
        agent: true,
        words: NAME,
        flags: &[&[option("tail", "COUNT", Hint::Text, Own, "Only the last ones")]],
        ..NOTHING
    },
    Verb {
        name: "export",
        about: "Write a session to a file that can be imported elsewhere",
        agent: true,
        words: NAME,
        flags: &[&[
            option("output", "FILE", Hint::File, Own, "The file"),
            option("cwd", "DIR", Hint::Dir, Own, "The session's directory"),
        ]],
        ..NOTHING
    },
    Verb {
        name: "import",
        about: "Take a session over from such a file",
        agent: true,
        words: &[word("archive", true, Hint::File, "The file")],
        flags: &[&[
            option("name", "NAME", Hint::Text, Own, "Give the session another name"),
            option("cwd", "DIR", Hint::Dir, Own, "Give the session another directory"),
        ]],
        ..NOTHING
    },
    Verb { name: "close", about: "Close a session; its record stays", agent: true, words: NAME, ..NOTHING },
    Verb {
        name: "delete",
        about: "Delete a session, here and in the agent if it can",
        agent: true,
        words: NAME,
        ..NOTHING
    },
    Verb {
        name: "fork",
        about: "Copy a session under another name, if the agent can",
        agent: true,
        words: NAME,
        flags: &[&[option("as", "NAME", Hint::Text, Own, "The name of the copy")]],
        ..NOTHING
    },
    Verb {
        name: "prune",
        about: "Delete the records of closed sessions",
        agent: true,
        flags: &[&[
            flag("dry-run", Own, "Only say what would be deleted"),
            option("before", "DATE", Hint::Text, Own, "Only sessions closed before this date"),
            option("older-than", "DAYS", Hint::Text, Own, "Only sessions closed longer ago than this"),
            flag("include-history", Own, "Delete their history too"),
        ]],
        ..NOTHING
    },
];

static PERMISSIONS: &[Verb] = &[
    Verb {
        name: "list",
        about: "List what was answered with \"always\"",
        flags: &[&[flag("all", Own, "Of all projects")]],
        ..NOTHING
    },
    Verb {
        name: "revoke",
        about: "Take an answer back",
        words: &[word("number", true, Hint::Text, "The answer's number in the list")],
        ..NOTHING
    },
    Verb { name: "clear", about: "Take all answers of this project back", ..NOTHING },
];

static CONFIG: &[Verb] = &[
    Verb { name: "show", about: "Show every setting, its value and where it comes from", ..NOTHING },
    Verb {
        name: "init",
        about: "Write a file of settings to begin with, unless there is one",
        flags: &[&[flag("project", Own, "For this directory, in .attache.toml")]],
        ..NOTHING
    },
    Verb {
        name: "set",
        about: "Change a setting in the user's file",
        words: &[
            word("key", true, Hint::Text, "The setting, for example `timeout` or `agents.mine.command`"),
            word("value", true, Hint::Text, "Its value"),
        ],
        flags: &[&[flag("project", Own, "In this directory's file instead")]],
        ..NOTHING
    },
    Verb { name: "path", about: "Print where the files are", ..NOTHING },
    Verb {
        name: "trust",
        about: "Let this directory's .attache.toml, as it is now, do all that settings can do",
        ..NOTHING
    },
    Verb { name: "untrust", about: "Take that back", ..NOTHING },
];

static AGENT: &[Word] = &[word("agent", false, Hint::Agent, "The agent; without it, the default one")];

static AUTH: &[Verb] = &[
    Verb {
        name: "login",
        about: "Log in to an agent, in a way that it offers",
        more: "Ways that the agent carries out itself may ask to visit a page. Ways that need a terminal run the agent's program here. \
               Ways that set variables ask for those that are missing; they are forgotten at the end, unless you agree to keep \
               them in a file that only you can read.",
        words: AGENT,
        flags: &[&[
            option("method", "ID", Hint::Text, Own, "The way to log in, if there are several"),
            flag(
                "yes",
                Own,
                "Agree in advance to pages that the agent wants visited; they are shown, not opened",
            ),
            flag("save", Own, "Keep variables without asking"),
        ]],
        agent: true,
        examples: &["attache auth login gemini", "attache auth login claude --method claude-login"],
        ..NOTHING
    },
    Verb {
        name: "logout",
        about: "Log out of an agent, and forget what was kept for it",
        words: AGENT,
        agent: true,
        ..NOTHING
    },
    Verb {
        name: "status",
        about: "Say whether somebody is logged in",
        more: "An agent that cannot tell is asked for a session. The exit code is 1 if a login is needed.",
        words: AGENT,
        agent: true,
        ..NOTHING
    },
];

const REGISTRY_SOURCES: &[Flag] = &[
    option("registry", "URL|PATH", Hint::File, Own, "Use this registry instead of the configured ones")
        .repeats(),
    flag("offline", Own, "Use only what was downloaded before"),
    flag("refresh", Own, "Ask the servers, also if the copies are young"),
];

const REGISTRY_AGENTS: Word =
    Word { name: "agent", required: true, many: true, hint: Hint::Text, about: "The id of an agent" };

static REGISTRY: &[Verb] = &[
    Verb {
        name: "list",
        about: "List the agents of the registry",
        flags: &[
            REGISTRY_SOURCES,
            &[flag("installed", Own, "Only what is installed, with how it is started")],
        ],
        ..NOTHING
    },
    Verb {
        name: "search",
        about: "List the agents whose name or description holds all of these words",
        words: &[Word { name: "word", required: true, many: true, hint: Hint::Text, about: "A word" }],
        flags: &[REGISTRY_SOURCES],
        ..NOTHING
    },
    Verb {
        name: "install",
        about: "Install agents for this user",
        more: "An archive is downloaded, compared with the checksum of the registry if there is one, unpacked beside the others and \
               recorded with its hash. A package is recorded as the npx or uvx command that runs it; with --preinstall npm \
               installs it now, so that the first start is not slow.",
        words: &[REGISTRY_AGENTS],
        flags: &[
            REGISTRY_SOURCES,
            &[
                option("via", "WAY", Hint::OneOf(&["binary", "npx", "uvx"]), Own, "Only in this way"),
                flag("preinstall", Own, "Let npm install the package now"),
                flag("force", Own, "Also if it is installed"),
                flag("require-checksum", Own, "Refuse archives for which the registry names no checksum"),
            ],
        ],
        examples: &[
            "attache registry search codex",
            "attache registry install codex-acp",
            "attache codex-acp exec hello",
        ],
        ..NOTHING
    },
    Verb {
        name: "update",
        about: "Update installed agents, all of them if none is named",
        words: &[Word { required: false, ..REGISTRY_AGENTS }],
        flags: &[REGISTRY_SOURCES, &[flag("dry-run", Own, "Only say what would change")]],
        ..NOTHING
    },
    Verb { name: "remove", about: "Remove installed agents", words: &[REGISTRY_AGENTS], ..NOTHING },
];

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
    Verb {
        name: "agents",
        about: "List the agents that are known here",
        more: "Agents come from the settings and from the table of this program; those that are not installed are listed \
               with --all.",
        flags: &[&[flag("all", Own, "Also those that are not installed")]],
        ..NOTHING
    },
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
