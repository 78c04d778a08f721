//! The commands of the program. Their subcommands are in `groups.rs` and `tools.rs`, their flags in
//! `flags.rs`.

use super::flags::{Flag, Flags, Hint, ImportFlags, PromptFlags};
use super::groups::{AUTH, CONFIG, LIST, PERMISSIONS, REGISTRY, SESSIONS, TRUST};

/// A positional argument.
#[derive(Debug)]
pub(crate) struct Positional {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    /// Whether it takes all remaining words.
    pub(crate) many: bool,
    pub(crate) hint: Hint,
    pub(crate) about: &'static str,
}

/// A command or a subcommand.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Further text for its own help and the man page.
    pub(crate) details: &'static str,
    pub(crate) positionals: &'static [Positional],
    pub(crate) flags: &'static [&'static [Flag]],
    pub(crate) commands: &'static [Command],
    /// The subcommand that runs when none is named.
    pub(crate) default: Option<&'static str>,
    /// Whether an agent's name may precede it.
    pub(crate) agent: bool,
    pub(crate) examples: &'static [&'static str],
}

/// A command with a name and a line of help.
pub(super) const fn command(name: &'static str, about: &'static str) -> Command {
    Command {
        name,
        about,
        details: "",
        positionals: &[],
        flags: &[],
        commands: &[],
        default: None,
        agent: false,
        examples: &[],
    }
}

macro_rules! setters {
    ($($field:ident: $type:ty,)*) => {
        $(pub(super) const fn $field(mut self, $field: &'static [$type]) -> Command {
            self.$field = $field;
            self
        })*
    };
}

impl Command {
    setters! { positionals: Positional, flags: &'static [Flag], commands: Command, examples: &'static str, }

    pub(super) const fn details(mut self, details: &'static str) -> Command {
        self.details = details;
        self
    }

    pub(super) const fn default(mut self, name: &'static str) -> Command {
        self.default = Some(name);
        self
    }

    pub(super) const fn agent(mut self) -> Command {
        self.agent = true;
        self
    }

    /// The subcommand of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Command> {
        let commands: &'static [Command] = self.commands;
        commands.iter().find(|command| command.name == name)
    }

    /// Its own flags.
    pub(crate) fn own_flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        let lists: &'static [&'static [Flag]] = self.flags;
        lists.iter().flat_map(|list| list.iter())
    }
}

pub(super) const fn positional(
    name: &'static str,
    required: bool,
    hint: Hint,
    about: &'static str,
) -> Positional {
    Positional { name, required, many: false, hint, about }
}

/// A positional argument that takes all remaining words.
pub(super) const fn many(name: &'static str, required: bool, hint: Hint, about: &'static str) -> Positional {
    Positional { name, required, many: true, hint, about }
}

/// The flags that every command takes, by section of the help.
pub(crate) static GLOBAL: &[(&str, &[Flag])] = &[
    (
        "Agent and session",
        &[
            Flags::AGENT,
            Flags::CWD,
            Flags::ADD_DIR,
            Flags::MODEL,
            Flags::ENV,
            Flags::MCP_CONFIG,
            Flags::SYSTEM_PROMPT,
            Flags::APPEND_SYSTEM_PROMPT,
            Flags::ALLOWED_TOOLS,
            Flags::AUTH_POLICY,
            Flags::PROTOCOL,
            Flags::NO_FS,
            Flags::NO_TERMINAL,
        ],
    ),
    (
        "Permissions",
        &[
            Flags::TRUST,
            Flags::SANDBOX,
            Flags::ASK,
            Flags::APPROVE_READS,
            Flags::APPROVE_ALL,
            Flags::DENY_ALL,
            Flags::PERMISSION_POLICY,
            Flags::POLICY,
            Flags::NON_INTERACTIVE_PERMISSIONS,
        ],
    ),
    (
        "Limits",
        &[
            Flags::TIMEOUT,
            Flags::MAX_TURNS,
            Flags::MAX_TOKENS,
            Flags::MAX_COST,
            Flags::PROMPT_RETRIES,
            Flags::TTL,
        ],
    ),
    (
        "Output",
        &[
            Flags::FORMAT,
            Flags::JSON_STRICT,
            Flags::SUPPRESS_READS,
            Flags::NO_COLOR,
            Flags::VERBOSE,
            Flags::LOG,
        ],
    ),
    ("Other", &[Flags::HELP, Flags::VERSION]),
];

/// The flags that every command takes.
pub(crate) fn global_flags() -> impl Iterator<Item = &'static Flag> {
    GLOBAL.iter().flat_map(|(_, flags)| flags.iter())
}

/// The flags of a prompt.
const PROMPT: &[Flag] =
    &[PromptFlags::SESSION, PromptFlags::NO_WAIT, PromptFlags::FILE, PromptFlags::ANSWERS];

/// The flags of the chat that prompts of scripts do not have.
const RESUME: &[Flag] = &[PromptFlags::CONTINUE, PromptFlags::RESUME];

const EXEC: &[Flag] = &[PromptFlags::FILE, PromptFlags::ANSWERS, PromptFlags::CONFIG_OPTION];

const SESSION: &[Flag] = &[PromptFlags::SESSION];

const PROMPT_ARGS: &[Positional] =
    &[many("prompt", false, Hint::Text, "The prompt; without it, standard input")];

static COMMANDS: &[Command] = &[
    command("chat", "Chat with an agent; the same as no command at all")
        .agent()
        .positionals(&[many("prompt", false, Hint::Text, "The first prompt")])
        .flags(&[RESUME, SESSION])
        .details(
            "The conversation is saved with its first prompt. `attache -c` resumes the last one \
             of this directory, `attache -r` lists those of all agents and directories.",
        )
        .examples(&["attache chat", "attache 'fix the failing test'", "attache claude", "attache -c"]),
    command("prompt", "Send a prompt to a session of this directory")
        .agent()
        .positionals(PROMPT_ARGS)
        .flags(&[PROMPT])
        .details(
            "The session must exist: `attache sessions new` starts one. It is searched for in \
             this directory and its parents up to the root of the repository. The agent is kept \
             running for a while (--ttl), for the next prompt; after that the session is \
             resumed or loaded. While a prompt runs, further ones are queued.",
        )
        .examples(&[
            "attache sessions new --name api",
            "attache prompt -s api 'find the slow query'",
            "git diff | attache prompt -s api -f - 'what could break?'",
        ]),
    command("exec", "Send one prompt without keeping the session")
        .agent()
        .positionals(PROMPT_ARGS)
        .flags(&[EXEC])
        .details(
            "Nothing is recorded and nothing keeps running. Text piped in without a command \
             runs the same way, unless this directory has an open session.",
        )
        .examples(&[
            "attache exec 'summarize this repository'",
            "attache --format quiet gemini exec 'one line about this branch'",
        ]),
    command("compare", "Send one prompt to several agents and compare the answers")
        .positionals(&[many("agent", true, Hint::Agent, "Agents, then the prompt")])
        .flags(&[&[PromptFlags::FILE, PromptFlags::ANSWERS]])
        .details(
            "The agents are asked one after the other, each in a session that is not kept. The \
             last word is the prompt, unless it comes from a file.",
        )
        .examples(&["attache --approve-reads compare gemini codex 'what does this repository do?'"]),
    command("cancel", "Cancel the prompt that runs in a session").agent().flags(&[SESSION]),
    command("set-mode", "Switch a session to another mode")
        .agent()
        .positionals(&[positional("mode", true, Hint::Text, "The mode's id")])
        .flags(&[SESSION]),
    command("set", "Set an option of a session")
        .agent()
        .positionals(&[
            positional("key", true, Hint::Text, "The option's id"),
            positional("value", true, Hint::Text, "The value's id, or true or false"),
        ])
        .flags(&[SESSION])
        .details(
            "The option `model` is the agent's option for models, or its older method to switch \
             them.",
        ),
    command("status", "Show whether a session's agent is running").agent().flags(&[SESSION]),
    command("sessions", "Start, list, show, move and delete sessions")
        .agent()
        .flags(&[LIST])
        .commands(SESSIONS)
        .default("list"),
    // Commands that are not built for a platform are not listed there.
    #[cfg(unix)]
    super::tools::AGENT,
    #[cfg(unix)]
    super::tools::MCP_SERVER,
    super::tools::SERVE,
    super::tools::HUB,
    super::tools::TOKEN,
    super::tools::CONNECT,
    #[cfg(unix)]
    super::tools::DEMO,
    command("agents", "List the known agents").flags(&[&[Flags::ALL]]).details(
        "Agents come from the settings and from a built-in table; --all lists those that \
             are not installed, too.",
    ),
    super::tools::RECORD,
    super::tools::REPLAY,
    super::tools::TRACE,
    command("doctor", "Start an agent, report what works and how to fix what does not")
        .agent()
        .positionals(&[many("agent", false, Hint::Agent, "The agent, or after `--` its command")])
        .details("No prompt is sent. The exit code is 0 if the agent can be used and 1 if not.")
        .examples(&[
            "attache doctor gemini",
            "attache doctor -- my-agent --acp",
            "attache --agent './my-agent --acp' doctor",
            "attache --format json doctor codex",
        ]),
    #[cfg(unix)]
    super::tools::CHECK,
    command("auth", "Log in to agents and out of them").agent().commands(AUTH).default("status"),
    command("import", "Import agents and settings from another program")
        .positionals(&[positional(
            "program",
            true,
            Hint::OneOf(&["zed", "jetbrains", "acpx"]),
            "zed, jetbrains or acpx",
        )])
        .flags(&[&[
            ImportFlags::DRY_RUN,
            ImportFlags::FORCE,
            ImportFlags::FROM,
            Flags::PROJECT.about("From .acpxrc.json here to .attache.toml here"),
        ]])
        .details(
            "Existing agents stay as they are. Secrets among the variables of agents go to a \
             file that only you can read, and are not printed.",
        )
        .examples(&["attache import zed --dry-run", "attache import acpx"]),
    command("registry", "Find, install, update and remove agents")
        .commands(REGISTRY)
        .default("list")
        .details(
            "The default is the public registry of the protocol; `[registry] url` in the \
             settings names others. `url` is an address, a file, a directory of \
             `ID/agent.json`, or a list of them; the first one that has an agent wins.",
        ),
    command("trust", "Show and change which folders you trust").commands(TRUST).details(
        "A folder can bring settings (.attache.toml), slash commands (.attache/commands) \
             and instructions for agents (AGENTS.md). They take effect once you trust the \
             folder, and you are asked again when they change. Until then the folder is \
             restricted: no value of its settings names or changes a program, an address, a \
             model or a policy, its slash commands are not offered, and Attaché's own agent \
             starts in plan mode.",
    ),
    command("permissions", "List and revoke what was always allowed or denied in this project")
        .commands(PERMISSIONS)
        .default("list"),
    command("config", "Show and change settings").commands(CONFIG).default("show"),
    command("completions", "Print completions for a shell")
        .positionals(&[positional("shell", true, Hint::OneOf(super::complete::SHELLS), "bash, zsh or fish")])
        .examples(&[
            "attache completions bash > ~/.local/share/bash-completion/completions/attache",
            "attache completions fish > ~/.config/fish/completions/attache.fish",
        ]),
    command("man", "Print the manual page").examples(&["attache man | man -l -"]),
    command("help", "Show the help of a command").positionals(&[many(
        "command",
        false,
        Hint::Text,
        "The command",
    )]),
];

/// The program itself.
pub(crate) static TOP: Command =
    command("attache", "Drive any ACP agent from a terminal, for people and for scripts")
        .agent()
        .positionals(PROMPT_ARGS)
        .flags(&[RESUME, PROMPT])
        .commands(COMMANDS)
        .details(
            "Without a command, `attache` on a terminal opens the chat; words are its first \
             prompt. Without a terminal they are a prompt for the session of this directory.",
        )
        .examples(&[
            "attache",
            "attache 'fix the failing test'",
            "attache --continue",
            "attache gemini exec 'what does this repository do?'",
            "attache sessions new && attache 'fix the failing test'",
            "echo 'review the last commit' | attache --approve-reads claude exec",
            "attache --agent './my-agent --acp' exec hello",
        ]);

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(command: &'static Command, seen: &mut Vec<&'static Command>) {
        seen.push(command);
        command.commands.iter().for_each(|command| walk(command, seen));
    }

    #[test]
    fn no_two_flags_of_a_verb_have_the_same_name() {
        let mut commands = Vec::new();
        walk(&TOP, &mut commands);
        for command in commands {
            let mut names: Vec<&str> = command.own_flags().map(|flag| flag.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{}", command.name);
            for flag in command.own_flags() {
                let clash = global_flags().any(|global| global.short.is_some() && global.short == flag.short);
                assert!(!clash, "-{:?} of {} is global too", flag.short, command.name);
            }
        }
    }
}
