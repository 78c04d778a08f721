//! The commands of commands: what `attache sessions`, `permissions`, `config`, `auth` and `registry` have below them.

use super::table::Section::Own;
use super::table::{Flag, Hint, NOTHING, Verb, Word, flag, option, word};

static NAME: &[Word] =
    &[word("name", false, Hint::Session, "The session's name; without it, the directory's own")];

static NEW: &[Flag] = &[
    option("name", "NAME", Hint::Text, Own, "Give the session a name").short('s'),
    option("resume-session", "ID", Hint::Text, Own, "Take over a session that the agent has stored"),
];

pub(super) static LIST: &[Flag] = &[
    flag("local", Own, "List what is recorded here instead of asking the agent"),
    option("cursor", "CURSOR", Hint::Text, Own, "Continue the agent's list from here"),
    option("filter-cwd", "DIR", Hint::Dir, Own, "Only sessions of this directory"),
];

pub(super) static SESSIONS: &[Verb] = &[
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
        name: "watch",
        about: "Show what was said in a session and what is being said, without taking part in it",
        more: "It ends when the session is closed. Every event has a cursor, from which watching can go on later.",
        agent: true,
        flags: &[&[
            option(
                "name",
                "NAME",
                Hint::Session,
                Own,
                "The session of this name instead of the directory's own",
            )
            .short('s'),
            option("cursor", "CURSOR", Hint::Text, Own, "Only what came after this"),
        ]],
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

pub(super) static PERMISSIONS: &[Verb] = &[
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

pub(super) static CONFIG: &[Verb] = &[
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
];

static FOLDER: &[Word] = &[word("folder", false, Hint::Dir, "The folder; without it, this one")];

pub(super) static TRUST: &[Verb] = &[
    Verb { name: "list", about: "List the folders that you were asked about", ..NOTHING },
    Verb { name: "add", about: "Trust the files of a folder as they are now", words: FOLDER, ..NOTHING },
    Verb { name: "remove", about: "Forget the answer about a folder", words: FOLDER, ..NOTHING },
];

pub(super) static AGENT: &[Word] =
    &[word("agent", false, Hint::Agent, "The agent; without it, the default one")];

pub(super) static AUTH: &[Verb] = &[
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

pub(super) static REGISTRY: &[Verb] = &[
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
