//! The table of settings.

use crate::args::{Flags, LONGEST_TIME};

/// What a setting holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Path,
    Yes,
    OneOf(&'static [&'static str]),
    /// A whole number within these bounds, which both fit.
    Count {
        least: i64,
        most: i64,
    },
    /// A number above the first and not above the second.
    Number {
        above: f64,
        most: f64,
    },
}

/// The most prompts that may wait in a session.
pub(crate) const MOST_PROMPTS: u64 = 10_000;
/// The most attempts after an error.
pub(crate) const MOST_RETRIES: u64 = 100;

/// A time in seconds that is not zero.
const SECONDS: Kind = Kind::Number { above: 0.0, most: LONGEST_TIME };

/// What a project's file may do with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Project {
    /// Anything.
    Free,
    /// Choose a value that allows less than the user's; of a list of choices, the earlier allow less.
    Narrow,
    /// Nothing, before the user trusts the folder.
    Consent,
}

/// A setting.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Option<&'static str>,
    pub(crate) env: &'static str,
    /// The value of the flag that sets it. The flag has the same name with dashes.
    pub(crate) flag: Option<fn(&Flags) -> &Option<String>>,
    pub(crate) project: Project,
    pub(crate) about: &'static str,
}

/// Permission modes; the earlier allow less.
pub(crate) const MODES: &[&str] = &["deny-all", "ask", "approve-reads", "approve-all"];

use Project::{Consent, Free, Narrow};

macro_rules! key {
    ($name:literal, $kind:expr, $default:expr, $env:literal, $flag:expr, $project:expr, $about:literal) => {
        Key {
            name: $name,
            kind: $kind,
            default: $default,
            env: $env,
            flag: $flag,
            project: $project,
            about: $about,
        }
    };
}

/// Every setting that is a single value.
pub(crate) static KEYS: &[Key] = &[
    key!(
        "default_agent",
        Kind::Text,
        Some("attache"),
        "ATTACHE_AGENT",
        None,
        Consent,
        "The agent that is meant when none is named"
    ),
    key!(
        "model",
        Kind::Text,
        None,
        "ATTACHE_MODEL",
        Some(|flags| &flags.model),
        Consent,
        "The model to ask for"
    ),
    key!(
        "format",
        Kind::OneOf(&["text", "json", "quiet"]),
        Some("text"),
        "ATTACHE_FORMAT",
        Some(|flags| &flags.format),
        Free,
        "How answers are printed"
    ),
    key!(
        "permissions",
        Kind::OneOf(MODES),
        // PERM-05: whoever has said nothing is asked.
        Some("ask"),
        "ATTACHE_PERMISSIONS",
        None,
        Narrow,
        "What is allowed without asking"
    ),
    key!(
        "permission_policy",
        Kind::Text,
        None,
        "ATTACHE_PERMISSION_POLICY",
        Some(|flags| &flags.permission_policy),
        Consent,
        "Rules that come before the mode: JSON, or a file"
    ),
    key!(
        "non_interactive_permissions",
        Kind::OneOf(&["deny", "fail"]),
        Some("deny"),
        "ATTACHE_NON_INTERACTIVE_PERMISSIONS",
        Some(|flags| &flags.non_interactive_permissions),
        Free,
        "Without a terminal to ask on: deny, or fail"
    ),
    key!(
        "auth_policy",
        Kind::OneOf(&["skip", "fail"]),
        Some("skip"),
        "ATTACHE_AUTH_POLICY",
        Some(|flags| &flags.auth_policy),
        Free,
        "Without credentials: skip, or fail"
    ),
    key!(
        "exec",
        Kind::Yes,
        Some("true"),
        "ATTACHE_EXEC",
        None,
        Narrow,
        "Whether prompts may be sent without a session: exec, compare, piped in"
    ),
    key!(
        "fs",
        Kind::Yes,
        Some("true"),
        "ATTACHE_FS",
        None,
        Narrow,
        "Whether files are provided to the agent"
    ),
    key!(
        "terminal",
        Kind::Yes,
        Some("true"),
        "ATTACHE_TERMINAL",
        None,
        Narrow,
        "Whether terminals are provided to the agent"
    ),
    key!(
        "sandbox",
        Kind::Yes,
        Some("false"),
        "ATTACHE_SANDBOX",
        None,
        Consent,
        "Whether commands that an agent runs in the terminals of the client are sandboxed"
    ),
    key!(
        "timeout",
        SECONDS,
        None,
        "ATTACHE_TIMEOUT",
        Some(|flags| &flags.timeout),
        Narrow,
        "Seconds that the agent may take to answer"
    ),
    key!(
        "max_turns",
        Kind::Count { least: 1, most: 1_000_000_000 },
        None,
        "ATTACHE_MAX_TURNS",
        Some(|flags| &flags.max_turns),
        Narrow,
        "Turns that a session may have"
    ),
    key!(
        "max_tokens",
        Kind::Count { least: 1, most: 1_000_000_000_000_000 },
        None,
        "ATTACHE_MAX_TOKENS",
        Some(|flags| &flags.max_tokens),
        Narrow,
        "Tokens that a session may use"
    ),
    key!(
        "max_cost",
        Kind::Number { above: 0.0, most: 1e9 },
        None,
        "ATTACHE_MAX_COST",
        Some(|flags| &flags.max_cost),
        Narrow,
        "What a session may cost"
    ),
    key!(
        "prompt_retries",
        Kind::Count { least: 0, most: MOST_RETRIES.cast_signed() },
        Some("0"),
        "ATTACHE_PROMPT_RETRIES",
        Some(|flags| &flags.prompt_retries),
        Free,
        "Attempts after an error that may pass"
    ),
    key!(
        "ttl",
        Kind::Number { above: -1e-9, most: LONGEST_TIME },
        Some("300"),
        "ATTACHE_TTL",
        Some(|flags| &flags.ttl),
        Free,
        "Seconds that an idle agent is kept; 0 for ever"
    ),
    key!(
        "queue_max_depth",
        Kind::Count { least: 1, most: MOST_PROMPTS.cast_signed() },
        Some("16"),
        "ATTACHE_QUEUE_MAX_DEPTH",
        None,
        Free,
        "Prompts that may wait in a session"
    ),
    key!(
        "start_timeout",
        SECONDS,
        Some("60"),
        "ATTACHE_START_TIMEOUT",
        None,
        Free,
        "Seconds that an agent may take to start"
    ),
    key!(
        "cancel_timeout",
        SECONDS,
        Some("10"),
        "ATTACHE_CANCEL_TIMEOUT",
        None,
        Free,
        "Seconds that a cancelled agent may take to end its turn"
    ),
    key!(
        "log",
        Kind::Path,
        None,
        "ATTACHE_LOG",
        Some(|flags| &flags.log),
        Consent,
        "A file for the messages on the wire"
    ),
];

/// Tables that a project's file may only bring with the user's consent, because they run commands or hold secrets.
pub(crate) const GUARDED_TABLES: &[(&str, &str)] =
    &[("agents", "it runs commands"), ("auth", "it holds credentials"), ("mcp_servers", "it runs commands")];

/// Environment variables for the man page, beside those of [`KEYS`].
pub(crate) const ENVIRONMENT: &[(&str, &str)] = &[
    ("ATTACHE_AGENT, ATTACHE_FORMAT, ATTACHE_TIMEOUT, …", "Settings: `attache config show` lists them all."),
    (
        "ATTACHE_AUTH_METHOD",
        "The credential for the way to authenticate of this name, for an agent with a name or one given by --agent.",
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
