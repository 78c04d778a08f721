//! The subcommands of `sessions`, `permissions`, `config`, `trust`, `auth` and `registry`.

use super::flags::{AuthFlags, Flag, Flags, Hint, RegistryFlags, SessionsFlags};
use super::table::{Command, EMPTY, Positional, many, positional};

static NAME: &[Positional] =
    &[positional("name", false, Hint::Session, "The session's name; without it, the directory's own")];

static NEW: &[Flag] = &[SessionsFlags::NAME, SessionsFlags::RESUME_SESSION];

pub(super) static LIST: &[Flag] = &[SessionsFlags::LOCAL, SessionsFlags::CURSOR, SessionsFlags::FILTER_CWD];

pub(super) static SESSIONS: &[Command] = &[
    Command { name: "list", about: "List sessions", agent: true, flags: &[LIST], ..EMPTY },
    Command {
        name: "new",
        about: "Start a session for this directory; an open one of the same name is closed",
        agent: true,
        flags: &[NEW],
        ..EMPTY
    },
    Command {
        name: "ensure",
        about: "Print the open session of this directory, or start one",
        agent: true,
        flags: &[NEW],
        ..EMPTY
    },
    Command { name: "show", about: "Show the record of a session", agent: true, positionals: NAME, ..EMPTY },
    Command {
        name: "history",
        about: "Show the last messages of a session",
        agent: true,
        positionals: NAME,
        flags: &[&[SessionsFlags::LIMIT]],
        ..EMPTY
    },
    Command {
        name: "read",
        about: "Show all messages of a session",
        agent: true,
        positionals: NAME,
        flags: &[&[SessionsFlags::TAIL]],
        ..EMPTY
    },
    Command {
        name: "watch",
        about: "Follow a session: its messages so far, then new ones as they arrive",
        details: "It ends when the session is closed. Every event has a cursor; --cursor continues from there.",
        agent: true,
        flags: &[&[
            SessionsFlags::NAME.about("The session of this name instead of the directory's own"),
            SessionsFlags::CURSOR.about("Only events after this cursor"),
        ]],
        ..EMPTY
    },
    Command {
        name: "export",
        about: "Write a session to a file that can be imported elsewhere",
        agent: true,
        positionals: NAME,
        flags: &[&[SessionsFlags::OUTPUT, SessionsFlags::CWD]],
        ..EMPTY
    },
    Command {
        name: "import",
        about: "Import a session from an exported file",
        agent: true,
        positionals: &[positional("archive", true, Hint::File, "The file")],
        flags: &[&[
            SessionsFlags::NAME.about("Give the session another name"),
            SessionsFlags::CWD.about("Give the session another directory"),
        ]],
        ..EMPTY
    },
    Command {
        name: "close",
        about: "Close a session; its record stays",
        agent: true,
        positionals: NAME,
        ..EMPTY
    },
    Command {
        name: "delete",
        about: "Delete a session, here and in the agent if it can",
        agent: true,
        positionals: NAME,
        ..EMPTY
    },
    Command {
        name: "fork",
        about: "Copy a session under another name, if the agent can",
        agent: true,
        positionals: NAME,
        flags: &[&[SessionsFlags::AS]],
        ..EMPTY
    },
    Command {
        name: "prune",
        about: "Delete the records of closed sessions",
        agent: true,
        flags: &[&[
            SessionsFlags::DRY_RUN,
            SessionsFlags::BEFORE,
            SessionsFlags::OLDER_THAN,
            SessionsFlags::INCLUDE_HISTORY,
        ]],
        ..EMPTY
    },
];

pub(super) static PERMISSIONS: &[Command] = &[
    Command {
        name: "list",
        about: "List the permissions answered with \"always\"",
        flags: &[&[Flags::ALL.about("Of all projects")]],
        ..EMPTY
    },
    Command {
        name: "revoke",
        about: "Revoke a permission",
        positionals: &[positional("number", true, Hint::Text, "The permission's number in the list")],
        ..EMPTY
    },
    Command { name: "clear", about: "Revoke all permissions of this project", ..EMPTY },
];

pub(super) static CONFIG: &[Command] = &[
    Command { name: "show", about: "Show every setting, its value and where it comes from", ..EMPTY },
    Command {
        name: "init",
        about: "Create a settings file with all defaults, unless there is one",
        flags: &[&[Flags::PROJECT.about("For this directory, in .attache.toml")]],
        ..EMPTY
    },
    Command {
        name: "set",
        about: "Change a setting in the user's file",
        positionals: &[
            positional(
                "key",
                true,
                Hint::Text,
                "The setting, for example `timeout` or `agents.mine.command`",
            ),
            positional("value", true, Hint::Text, "Its value"),
        ],
        flags: &[&[Flags::PROJECT.about("In this directory's file instead")]],
        ..EMPTY
    },
    Command { name: "path", about: "Print the paths of the files", ..EMPTY },
];

static FOLDER: &[Positional] = &[positional("folder", false, Hint::Dir, "The folder; without it, this one")];

pub(super) static TRUST: &[Command] = &[
    Command { name: "list", about: "List the folders with an answer", ..EMPTY },
    Command {
        name: "add",
        about: "Trust the files of a folder as they are now",
        positionals: FOLDER,
        ..EMPTY
    },
    Command { name: "remove", about: "Delete the answer for a folder", positionals: FOLDER, ..EMPTY },
];

pub(super) static AGENT: &[Positional] =
    &[positional("agent", false, Hint::Agent, "The agent; without it, the default one")];

pub(super) static AUTH: &[Command] = &[
    Command {
        name: "login",
        about: "Log in to an agent with one of its methods",
        details: "Methods that the agent runs itself may ask you to visit a page. Methods that need a terminal run the agent's \
               program here. Methods that set variables ask for the missing ones; they are discarded at the end, unless you agree to \
               save them in a file that only you can read.",
        positionals: AGENT,
        flags: &[&[AuthFlags::METHOD, AuthFlags::YES, AuthFlags::SAVE]],
        agent: true,
        examples: &["attache auth login gemini", "attache auth login claude --method claude-login"],
        ..EMPTY
    },
    Command {
        name: "logout",
        about: "Log out of an agent and delete its saved credentials",
        positionals: AGENT,
        agent: true,
        ..EMPTY
    },
    Command {
        name: "status",
        about: "Show whether you are logged in",
        details: "An agent that does not report it is asked for a session. The exit code is 1 if a login is needed.",
        positionals: AGENT,
        agent: true,
        ..EMPTY
    },
];

const REGISTRY_SOURCES: &[Flag] = &[RegistryFlags::REGISTRY, RegistryFlags::OFFLINE, RegistryFlags::REFRESH];

const REGISTRY_AGENTS: Positional = many("agent", true, Hint::Text, "The id of an agent");

pub(super) static REGISTRY: &[Command] = &[
    Command {
        name: "list",
        about: "List the agents of the registry",
        flags: &[REGISTRY_SOURCES, &[RegistryFlags::INSTALLED]],
        ..EMPTY
    },
    Command {
        name: "search",
        about: "List the agents whose name or description contains all of these words",
        positionals: &[many("word", true, Hint::Text, "A word")],
        flags: &[REGISTRY_SOURCES],
        ..EMPTY
    },
    Command {
        name: "install",
        about: "Install agents for this user",
        details: "An archive is downloaded, verified against the checksum of the registry if there is one, unpacked and recorded with its hash. A package is recorded as the npx or uvx command that runs it; with --preinstall npm \
               installs it now, so that the first start is not slow.",
        positionals: &[REGISTRY_AGENTS],
        flags: &[
            REGISTRY_SOURCES,
            &[
                RegistryFlags::VIA,
                RegistryFlags::PREINSTALL,
                RegistryFlags::FORCE,
                RegistryFlags::REQUIRE_CHECKSUM,
            ],
        ],
        examples: &[
            "attache registry search codex",
            "attache registry install codex-acp",
            "attache codex-acp exec hello",
        ],
        ..EMPTY
    },
    Command {
        name: "update",
        about: "Update installed agents, all of them if none is named",
        positionals: &[Positional { required: false, ..REGISTRY_AGENTS }],
        flags: &[REGISTRY_SOURCES, &[RegistryFlags::DRY_RUN]],
        ..EMPTY
    },
    Command { name: "remove", about: "Remove installed agents", positionals: &[REGISTRY_AGENTS], ..EMPTY },
];
