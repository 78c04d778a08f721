//! The table of settings.

use crate::args::{Flags, LONGEST_TIME};

/// The type and the range of a setting.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Path,
    Yes,
    OneOf(&'static [&'static str]),
    /// A whole number within these bounds, inclusive.
    Count {
        least: i64,
        most: i64,
    },
    /// A number greater than `above` and at most `most`.
    Number {
        above: f64,
        most: f64,
    },
}

/// The most attempts after an error.
pub(crate) const MOST_RETRIES: u64 = 100;

/// A time in seconds that is not zero.
const SECONDS: Kind = Kind::Number { above: 0.0, most: LONGEST_TIME };

/// The effect of a setting in a project's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Project {
    /// Any value.
    Free,
    /// A value that allows no more than the user's; of a list of choices, the earlier allow less.
    Narrow,
    /// None before the user trusts the folder.
    Consent,
}

/// A setting.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Option<&'static str>,
    /// The value of the flag that sets it. The flag has the same name with dashes.
    pub(crate) flag: Option<fn(&Flags) -> &Option<String>>,
    pub(crate) project: Project,
    pub(crate) about: &'static str,
}

impl Key {
    /// The environment variable that sets it.
    pub(crate) fn env(&self) -> String {
        match self.name {
            "default_agent" => "ATTACHE_AGENT".to_owned(),
            // `ATTACHE_LOG` selects the events.
            "log" => "ATTACHE_LOG_FILE".to_owned(),
            name => format!("ATTACHE_{}", name.to_uppercase()),
        }
    }
}

/// Permission modes; the earlier allow less.
const MODES: &[&str] = &["deny-all", "ask", "approve-reads", "approve-all"];

macro_rules! keys {
    ($($const:ident $name:ident: $kind:expr, $default:expr, $project:ident, $flag:expr => $about:literal;)*) => {
        $(pub(crate) const $const: Key = Key {
            name: stringify!($name),
            kind: $kind,
            default: $default,
            flag: $flag,
            project: Project::$project,
            about: $about,
        };)*

        /// Every setting that is a single value.
        pub(crate) static KEYS: &[Key] = &[$($const),*];
    };
}

keys! {
    DEFAULT_AGENT default_agent: Kind::Text, Some("attache"), Consent, None => "The agent if none is named";
    MODEL model: Kind::Text, None, Consent, Some(|flags| &flags.model) => "The model to ask for";
    FORMAT format: Kind::OneOf(&["text", "json", "quiet"]), Some("text"), Free, Some(|flags| &flags.format) =>
        "How answers are printed";
    // PERM-05: by default the user is asked.
    PERMISSIONS permissions: Kind::OneOf(MODES), Some("ask"), Narrow, None => "What is allowed without asking";
    PERMISSION_POLICY permission_policy: Kind::Text, None, Consent, Some(|flags| &flags.permission_policy) =>
        "Rules that come before the mode: JSON, or a file";
    NON_INTERACTIVE_PERMISSIONS non_interactive_permissions:
        Kind::OneOf(&["deny", "fail"]), Some("deny"), Free, Some(|flags| &flags.non_interactive_permissions) =>
        "Without a terminal to ask on: deny, or fail";
    AUTH_POLICY auth_policy: Kind::OneOf(&["skip", "fail"]), Some("skip"), Free, Some(|flags| &flags.auth_policy) =>
        "Without credentials: skip, or fail";
    PROTOCOL protocol: Kind::OneOf(&["1", "2", "auto"]), None, Free, Some(|flags| &flags.protocol) =>
        "The version of the protocol to speak: 1, 2, or auto for the newest that the agent speaks (unset: auto for agents with a name; command lines are asked for 1 first)";
    EXEC exec: Kind::Yes, Some("true"), Narrow, None =>
        "Whether prompts may be sent without a session: exec, compare, piped in";
    FS fs: Kind::Yes, Some("true"), Narrow, None => "Whether files are provided to the agent";
    TERMINAL terminal: Kind::Yes, Some("true"), Narrow, None => "Whether terminals are provided to the agent";
    MCP_SERVER mcp_server: Kind::Yes, Some("false"), Narrow, None =>
        "Whether agents of version 2, which has no files and terminals of clients, get them as an MCP server";
    SANDBOX sandbox: Kind::Yes, Some("false"), Consent, None =>
        "Whether commands that an agent runs in terminals of the client are sandboxed";
    DIAGNOSTICS diagnostics: Kind::Text, None, Consent, None =>
        "A command line that attache's own agent runs after edits, such as cargo check -q; the model gets its output if it fails";
    HOOK_BEFORE_TOOL hook_before_tool: Kind::Text, None, Consent, None =>
        "A command line that attache's own agent runs before each tool call that may change something; if it fails the call is not run";
    HOOK_AFTER_TOOL hook_after_tool: Kind::Text, None, Consent, None =>
        "A command line that attache's own agent runs after such a call; the model gets its output if it fails";
    HOOK_TURN_END hook_turn_end: Kind::Text, None, Consent, None =>
        "A command line that attache's own agent runs when a turn ends; if it fails the model gets its output and continues";
    TIMEOUT timeout: SECONDS, None, Narrow, Some(|flags| &flags.timeout) =>
        "Seconds that the agent may take to answer";
    MAX_TURNS max_turns: Kind::Count { least: 1, most: 1_000_000_000 }, None, Narrow, Some(|flags| &flags.max_turns) =>
        "Turns that a session may have";
    MAX_TOKENS max_tokens:
        Kind::Count { least: 1, most: 1_000_000_000_000_000 }, None, Narrow, Some(|flags| &flags.max_tokens) =>
        "Tokens that a session may use";
    MAX_COST max_cost: Kind::Number { above: 0.0, most: 1e9 }, None, Narrow, Some(|flags| &flags.max_cost) =>
        "The most that a session may cost";
    PROMPT_RETRIES prompt_retries:
        Kind::Count { least: 0, most: MOST_RETRIES.cast_signed() }, Some("0"), Free, Some(|flags| &flags.prompt_retries) =>
        "Attempts after a temporary error";
    TTL ttl: Kind::Number { above: -1e-9, most: LONGEST_TIME }, Some("300"), Free, Some(|flags| &flags.ttl) =>
        "Seconds that an idle agent is kept; 0 keeps it forever";
    QUEUE_MAX_DEPTH queue_max_depth: Kind::Count { least: 1, most: 10_000 }, Some("16"), Free, None =>
        "Prompts that may be queued in a session";
    START_TIMEOUT start_timeout: SECONDS, Some("60"), Free, None => "Seconds that an agent may take to start";
    CANCEL_TIMEOUT cancel_timeout: SECONDS, Some("10"), Free, None =>
        "Seconds that a cancelled agent may take to end its turn";
    NOTIFY notify: Kind::OneOf(&["auto", "bell", "osc9", "osc777", "off"]), Some("auto"), Free, None =>
        "How the chat calls you when it asks or is done: the bell, a notice on the desktop by OSC 9 or OSC 777, auto for the bell and the notice that the terminal knows, or off";
    NOTIFY_AFTER notify_after: Kind::Number { above: -1e-9, most: LONGEST_TIME }, Some("5"), Free, None =>
        "Seconds that a turn must take before the chat calls you at its end";
    CHECKPOINTS checkpoints: Kind::Yes, Some("true"), Narrow, None =>
        "Whether the chat keeps files as they were before each turn, for /undo";
    TITLE title: Kind::Yes, Some("true"), Free, None => "Whether the chat sets the title of the window";
    LOG log: Kind::Path, None, Consent, Some(|flags| &flags.log) => "The log file; - is stderr";
}

/// Tables that a project's file may only bring with the user's consent, because they run commands
/// or hold secrets.
pub(crate) const GUARDED_TABLES: &[(&str, &str)] =
    &[("agents", "it runs commands"), ("auth", "it holds credentials"), ("mcp_servers", "it runs commands")];

/// Environment variables for the man page, beside those of [`KEYS`].
pub(crate) const ENVIRONMENT: &[(&str, &str)] = &[
    ("ATTACHE_AGENT, ATTACHE_FORMAT, ATTACHE_TIMEOUT, …", "Settings: `attache config show` lists them all."),
    (
        "ATTACHE_AUTH_METHOD",
        "The credential for the way to authenticate of this name, for an agent with a name or one given by --agent.",
    ),
    (
        "ATTACHE_TOKEN",
        "The token for an agent at a URL, if it is an agent with a name or one given on the command line.",
    ),
    (
        "ATTACHE_LOG",
        "Log events: a level (error, warn, info, debug, trace), or levels by target, as in `warn,attache_conn=debug`. The target attache::wire has the messages on the wire. Without --log, the log goes to stderr.",
    ),
    ("ATTACHE_REGISTRY", "The registries of agents: addresses or paths, separated by commas."),
    ("ATTACHE_HOME", "Keep settings, sessions and all else under this directory."),
    ("ATTACHE_TRUST", "1 trusts the files of every folder, for scripts."),
    ("NO_COLOR", "No colours."),
    (
        "XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_CACHE_HOME, XDG_DATA_HOME, XDG_RUNTIME_DIR",
        "Where things are kept.",
    ),
];

/// Files for the man page.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("~/.config/attache/config.toml", "The user's settings."),
    (
        ".attache.toml",
        "The settings of a project. Values that run programs or allow more than the user does count after `attache trust add`.",
    ),
    ("~/.config/attache/credentials.json", "What was kept at logins. Only the user can read it."),
    (
        "~/.local/share/attache/agents.lock.json",
        "Which agents are installed from registries: version, source, hash.",
    ),
    ("~/.local/state/attache", "Sessions and logs."),
];
