//! The subcommands of `sessions`, `permissions`, `config`, `trust`, `auth` and `registry`.

use super::flags::{AuthFlags, Flag, Flags, Hint, RegistryFlags, SessionsFlags};
use super::table::{Command, Positional, command, many, positional};

const NAME: &[Positional] = &[positional(
    "name",
    false,
    Hint::Session,
    "The session's name, or the id of one of any directory; without it, the directory's own",
)];

const OWN_NAME: &[Positional] =
    &[positional("name", false, Hint::Session, "The session's name; without it, the directory's own")];

const NEW: &[Flag] = &[SessionsFlags::NAME, SessionsFlags::RESUME_SESSION];

pub(super) const LIST: &[Flag] = &[SessionsFlags::LOCAL, SessionsFlags::CURSOR, SessionsFlags::FILTER_CWD];

pub(super) static SESSIONS: &[Command] = &[
    command("list", "List sessions").agent().flags(&[LIST]),
    command("new", "Start a session for this directory; an open one of the same name is closed")
        .agent()
        .flags(&[NEW]),
    command("ensure", "Print the open session of this directory, or start one").agent().flags(&[NEW]),
    command("show", "Show the record of a session").agent().positionals(NAME),
    command("history", "Show the last messages of a session")
        .agent()
        .positionals(NAME)
        .flags(&[&[SessionsFlags::LIMIT]]),
    command("read", "Show all messages of a session")
        .agent()
        .positionals(NAME)
        .flags(&[&[SessionsFlags::TAIL]]),
    command("watch", "Follow a session: its messages so far, then new ones as they arrive")
        .agent()
        .flags(&[&[
            SessionsFlags::NAME.about("The session of this name instead of the directory's own"),
            SessionsFlags::CURSOR.about("Only events after this cursor"),
        ]])
        .details(
            "It ends when the session is closed. Every event has a cursor; --cursor continues \
             from there.",
        ),
    command("export", "Write a session to a file that can be imported elsewhere")
        .agent()
        .positionals(OWN_NAME)
        .flags(&[&[SessionsFlags::OUTPUT, SessionsFlags::CWD]]),
    command("import", "Import a session from an exported file")
        .agent()
        .positionals(&[positional("archive", true, Hint::File, "The file")])
        .flags(&[&[
            SessionsFlags::NAME.about("Give the session another name"),
            SessionsFlags::CWD.about("Give the session another directory"),
        ]]),
    command("close", "Close a session; its record stays").agent().positionals(NAME),
    command("delete", "Delete a session, here and in the agent if it can").agent().positionals(OWN_NAME),
    command("fork", "Copy a session under another name, if the agent can")
        .agent()
        .positionals(OWN_NAME)
        .flags(&[&[SessionsFlags::AS]]),
    command("prune", "Delete the records of closed sessions").agent().flags(&[&[
        SessionsFlags::DRY_RUN,
        SessionsFlags::BEFORE,
        SessionsFlags::OLDER_THAN,
        SessionsFlags::INCLUDE_HISTORY,
    ]]),
];

pub(super) static PERMISSIONS: &[Command] = &[
    command("list", "List the permissions answered with \"always\"")
        .flags(&[&[Flags::ALL.about("Of all projects")]]),
    command("revoke", "Revoke a permission").positionals(&[positional(
        "number",
        true,
        Hint::Text,
        "The permission's number in the list",
    )]),
    command("clear", "Revoke all permissions of this project"),
];

const SETTING: Positional =
    positional("key", true, Hint::Text, "The setting, for example `timeout` or `agents.mine.command`");

pub(super) static CONFIG: &[Command] = &[
    command("show", "Show every setting, its value and where it comes from"),
    command("init", "Create a settings file with all defaults, unless there is one")
        .flags(&[&[Flags::PROJECT.about("For this directory, in .attache.toml")]]),
    command("set", "Change a setting in the user's file")
        .positionals(&[SETTING, positional("value", true, Hint::Text, "Its value")])
        .flags(&[&[Flags::PROJECT.about("In this directory's file instead")]]),
    command("get", "Print the value of a setting that holds; exit code 1 if it is not set")
        .positionals(&[SETTING]),
    command("unset", "Remove a setting from the user's file")
        .positionals(&[SETTING])
        .flags(&[&[Flags::PROJECT.about("From this directory's file instead")]]),
    command("edit", "Open the user's file in $VISUAL or $EDITOR, and check it afterwards")
        .flags(&[&[Flags::PROJECT.about("This directory's file instead")]]),
    command("path", "Print the paths of the files"),
];

const FOLDER: &[Positional] = &[positional("folder", false, Hint::Dir, "The folder; without it, this one")];

pub(super) static TRUST: &[Command] = &[
    command("list", "List the folders with an answer"),
    command("add", "Trust the files of a folder as they are now").positionals(FOLDER),
    command("remove", "Delete the answer for a folder").positionals(FOLDER),
];

pub(super) const AGENT: &[Positional] =
    &[positional("agent", false, Hint::Agent, "The agent; without it, the default one")];

pub(super) static AUTH: &[Command] = &[
    command("login", "Log in to an agent with one of its methods")
        .agent()
        .positionals(AGENT)
        .flags(&[&[AuthFlags::METHOD, AuthFlags::YES, AuthFlags::SAVE]])
        .details(
            "Methods that the agent runs itself may ask you to visit a page. Methods that need \
             a terminal run the agent's program here. Methods that set variables ask for the \
             missing ones; they are discarded at the end, unless you agree to save them in a \
             file that only you can read.",
        )
        .examples(&["attache auth login gemini", "attache auth login claude --method claude-login"]),
    command("logout", "Log out of an agent and delete its saved credentials").agent().positionals(AGENT),
    command("status", "Show whether you are logged in").agent().positionals(AGENT).details(
        "An agent that does not report it is asked for a session. The exit code is 1 if a \
             login is needed.",
    ),
];

const REGISTRY_SOURCES: &[Flag] = &[RegistryFlags::REGISTRY, RegistryFlags::OFFLINE, RegistryFlags::REFRESH];

const REGISTRY_AGENTS: Positional = many("agent", true, Hint::Text, "The id of an agent");

pub(super) static REGISTRY: &[Command] = &[
    command("list", "List the agents of the registry")
        .flags(&[REGISTRY_SOURCES, &[RegistryFlags::INSTALLED]]),
    command("search", "List the agents whose name or description contains all of these words")
        .positionals(&[many("word", true, Hint::Text, "A word")])
        .flags(&[REGISTRY_SOURCES]),
    command("install", "Install agents for this user")
        .positionals(&[REGISTRY_AGENTS])
        .flags(&[
            REGISTRY_SOURCES,
            &[
                RegistryFlags::VIA,
                RegistryFlags::PREINSTALL,
                RegistryFlags::FORCE,
                RegistryFlags::REQUIRE_CHECKSUM,
            ],
        ])
        .details(
            "An archive is downloaded, verified against the checksum of the registry if there \
             is one, unpacked and recorded with its hash. A package is recorded as the npx or \
             uvx command that runs it; with --preinstall npm installs it now, so that the first \
             start is not slow.",
        )
        .examples(&[
            "attache registry search codex",
            "attache registry install codex-acp",
            "attache codex-acp exec hello",
        ]),
    command("update", "Update installed agents, all of them if none is named")
        .positionals(&[Positional { required: false, ..REGISTRY_AGENTS }])
        .flags(&[REGISTRY_SOURCES, &[RegistryFlags::DRY_RUN]]),
    command("remove", "Remove installed agents").positionals(&[REGISTRY_AGENTS]),
];
