//! Every flag: its name, its help text and the field of [`Flags`] that it sets.

use std::time::Duration;

/// The kind of value that a flag or a positional argument takes, for the parser and for
/// completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    Text,
    File,
    Dir,
    Command,
    /// An agent's name.
    Agent,
    /// The name of a session in this directory.
    Session,
    OneOf(&'static [&'static str]),
    /// A whole number from 1 to this.
    UpTo(usize),
}

/// A flag.
#[derive(Debug)]
pub(crate) struct Flag {
    /// The long name, without the dashes.
    pub(crate) name: &'static str,
    pub(crate) short: Option<char>,
    /// The placeholder of its value; `None` if it takes none.
    pub(crate) value: Option<&'static str>,
    pub(crate) hint: Hint,
    pub(crate) about: &'static str,
    pub(super) field: Field,
}

impl Flag {
    /// The same flag with another help text.
    pub(super) const fn about(mut self, about: &'static str) -> Flag {
        self.about = about;
        self
    }
}

type Switch = bool;
type Text = Option<String>;
type List = Vec<String>;
type Count = Option<usize>;
type Seconds = Option<Duration>;
type Names = Vec<&'static str>;

/// The field that a flag sets, by its type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    Switch(fn(&mut Flags) -> &mut Switch),
    /// The last value counts.
    Text(fn(&mut Flags) -> &mut Text),
    /// The flag may be repeated.
    List(fn(&mut Flags) -> &mut List),
    Count(fn(&mut Flags) -> &mut Count),
    Seconds(fn(&mut Flags) -> &mut Seconds),
    /// Collects the names of those flags of a group that were given.
    Names(fn(&mut Flags) -> &mut Names),
}

/// Defines a struct of flag values and one constant per flag: `CONSTANT field: Type "name" "VALUE"
/// Hint => "help";`. Flags after `also` share a field with another flag.
macro_rules! flags {
    (
        $(#[$meta:meta])* $name:ident $(at $at:ident)?
        { $($const:ident $field:ident: $kind:ident $long:literal $(short $short:literal)?
            $($value:literal $hint:ident $(($($detail:tt)*))?)? => $about:literal;)* }
        $(also { $($const2:ident $field2:ident: $kind2:ident $long2:literal
            $($value2:literal $hint2:ident)? => $about2:literal;)* })?
        $(with { $($group:ident: $type:ident,)* })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            $(pub(crate) $field: $kind,)*
            $($(pub(crate) $group: $type,)*)?
        }

        impl $name {
            fn of(flags: &mut Flags) -> &mut $name {
                &mut (*flags)$(.$at)?
            }

            $(pub(super) const $const: Flag = Flag {
                name: $long,
                short: flags!(@option $($short)?),
                value: flags!(@option $($value)?),
                hint: flags!(@hint $($hint $(($($detail)*))?)?),
                about: $about,
                field: Field::$kind(|flags| &mut $name::of(flags).$field),
            };)*
            $($(pub(super) const $const2: Flag = Flag {
                name: $long2,
                short: None,
                value: flags!(@option $($value2)?),
                hint: flags!(@hint $($hint2)?),
                about: $about2,
                field: Field::$kind2(|flags| &mut $name::of(flags).$field2),
            };)*)?
        }
    };
    (@option) => { None };
    (@option $value:literal) => { Some($value) };
    (@hint) => { Hint::Text };
    (@hint $hint:ident) => { Hint::$hint };
    (@hint $hint:ident ($($detail:tt)*)) => { Hint::$hint($($detail)*) };
}

pub(super) const PROTOCOLS: &[&str] = &["1", "2", "auto"];
pub(super) const FORMATS: &[&str] = &["text", "json", "quiet"];

flags! {
    /// The flags of a command line: those that every command takes, then those of single commands.
    Flags {
        AGENT agent: Text "agent" "COMMAND" Command =>
            "Run this agent: a command line, a URL (wss, https, ws, http), tcp://HOST:PORT or unix:PATH";
        CWD cwd: Text "cwd" "DIR" Dir => "Work in this directory instead of the current one";
        ADD_DIR add_dir: List "add-dir" "DIR" Dir => "A further directory that the session may work in";
        MODEL model: Text "model" "ID" Text => "Ask the agent to use this model";
        ENV env: List "env" "NAME=VALUE" Text => "Set a variable in the agent's environment";
        MCP_CONFIG mcp_config: Text "mcp-config" "FILE" File => "Take the MCP servers from this JSON file";
        SYSTEM_PROMPT system_prompt: Text "system-prompt" "TEXT" Text => "Replace the agent's system prompt";
        APPEND_SYSTEM_PROMPT append_system_prompt: Text "append-system-prompt" "TEXT" Text =>
            "Add to the agent's system prompt";
        ALLOWED_TOOLS allowed_tools: Text "allowed-tools" "LIST" Text =>
            "Only these tools, separated by commas; \"\" for none";
        AUTH_POLICY auth_policy: Text "auth-policy" "POLICY" OneOf(&["skip", "fail"]) =>
            "Without credentials: skip, or fail";
        PROTOCOL protocol: Text "protocol" "VERSION" OneOf(PROTOCOLS) =>
            "Speak version 1 or 2 with the agent, or the newest that it speaks: auto";
        NO_FS no_fs: Switch "no-fs" => "Do not provide files to the agent";
        NO_TERMINAL no_terminal: Switch "no-terminal" => "Do not provide terminals to the agent";
        TRUST trust: Switch "trust" => "Trust the files of this folder for this run (ATTACHE_TRUST=1)";
        SANDBOX sandbox: Switch "sandbox" =>
            "Sandbox the commands that an agent runs in terminals of the client; ask before each new host";
        ASK permission_modes: Names "ask" => "Ask before everything that the agent needs permission for (the default)";
        PERMISSION_POLICY permission_policy: Text "permission-policy" "JSON|FILE" File =>
            "Rules that come before the mode: autoApprove, autoDeny, escalate, defaultAction";
        NON_INTERACTIVE_PERMISSIONS non_interactive_permissions:
            Text "non-interactive-permissions" "POLICY" OneOf(&["deny", "fail"]) =>
            "Without a terminal to ask on: deny, or fail";
        TIMEOUT timeout: Text "timeout" "SECONDS" Text => "How long the agent may take to answer";
        MAX_TURNS max_turns: Text "max-turns" "COUNT" Text => "How many turns the session may have";
        MAX_TOKENS max_tokens: Text "max-tokens" "COUNT" Text =>
            "Cancel the turn when the session has used more tokens";
        MAX_COST max_cost: Text "max-cost" "AMOUNT" Text => "Cancel the turn when the session has cost more";
        PROMPT_RETRIES prompt_retries: Text "prompt-retries" "COUNT" Text => "Retry after temporary errors";
        TTL ttl: Text "ttl" "SECONDS" Text =>
            "How long an idle agent is kept for the next prompt; 0 keeps it forever";
        FORMAT format: Text "format" "FORMAT" OneOf(FORMATS) =>
            "text, json (the messages, in the form of version 1) or quiet (the answer)";
        JSON_STRICT json_strict: Switch "json-strict" =>
            "With --format json: print only JSON; silence stderr";
        SUPPRESS_READS suppress_reads: Switch "suppress-reads" => "Do not print the files that the agent reads";
        NO_COLOR no_color: Switch "no-color" => "No colours (as NO_COLOR)";
        VERBOSE verbose: Switch "verbose" short 'v' => "Show the messages on the wire, on stderr";
        LOG log: Text "log" "FILE" File =>
            "Log to this file, or to stderr (-): the messages on the wire, without secrets (see ATTACHE_LOG)";
        HELP help: Switch "help" short 'h' => "Print this help";
        VERSION version: Switch "version" short 'V' => "Print the version";
        ALL all: Switch "all" => "Also agents that are not installed";
        PROJECT project: Switch "project" => "In this directory's .attache.toml";
    } also {
        APPROVE_READS permission_modes: Names "approve-reads" => "Approve reading and searching, ask for the rest";
        APPROVE_ALL permission_modes: Names "approve-all" =>
            "Approve everything except changes of protected files";
        DENY_ALL permission_modes: Names "deny-all" => "Deny everything";
        POLICY permission_policy: Text "policy" "JSON|FILE" File => "The same as --permission-policy";
    } with {
        prompt: PromptFlags,
        sessions: SessionsFlags,
        auth: AuthFlags,
        import: ImportFlags,
        registry: RegistryFlags,
        record: RecordFlags,
        replay: ReplayFlags,
        trace: TraceFlags,
        own_agent: OwnAgentFlags,
        mcp_server: McpServerFlags,
        serve: ServeFlags,
        hub: HubFlags,
        token: TokenFlags,
        check: CheckFlags,
    }
}

flags! {
    /// Flags of prompts, and of all commands that take `--session`.
    PromptFlags at prompt {
        SESSION session: Text "session" short 's' "NAME" Session =>
            "The session of this name instead of the directory's own";
        CONTINUE continue_last: Switch "continue" short 'c' => "Resume the last conversation of this directory";
        RESUME resume: Switch "resume" short 'r' =>
            "Choose a conversation and resume it; the next word may be its id";
        NO_WAIT no_wait: Switch "no-wait" => "Queue the prompt and return at once";
        ANSWERS answers: Text "answers" "JSON|FILE" File =>
            "Fill in forms that the agent shows with these values, by field";
        FILE file: Text "file" short 'f' "FILE" File => "Read the prompt from a file; - for standard input";
        CONFIG_OPTION config_options: List "config-option" "KEY=VALUE" Text =>
            "Set an option of the session before the prompt";
    }
}

flags! {
    /// Flags of `attache sessions …`.
    SessionsFlags at sessions {
        NAME name: Text "name" short 's' "NAME" Text => "Give the session a name";
        RESUME_SESSION resume_session: Text "resume-session" "ID" Text =>
            "Take over a session that the agent has stored";
        LOCAL local: Switch "local" => "List the sessions recorded here instead of asking the agent";
        CURSOR cursor: Text "cursor" "CURSOR" Text => "Continue the agent's list from here";
        FILTER_CWD filter_cwd: Text "filter-cwd" "DIR" Dir => "Only sessions of this directory";
        LIMIT limit: Count "limit" "COUNT" Text => "How many messages (20)";
        TAIL tail: Count "tail" "COUNT" Text => "Only the last messages";
        OUTPUT output: Text "output" "FILE" File => "The file";
        CWD cwd: Text "cwd" "DIR" Dir => "The session's directory";
        AS copy_name: Text "as" "NAME" Text => "The name of the copy";
        DRY_RUN dry_run: Switch "dry-run" => "Only list the sessions that would be deleted";
        BEFORE before: Text "before" "DATE" Text => "Only sessions closed before this date";
        OLDER_THAN older_than: Count "older-than" "DAYS" UpTo(36_525) =>
            "Only sessions closed more than this many days ago";
        INCLUDE_HISTORY include_history: Switch "include-history" => "Delete their history too";
    }
}

flags! {
    /// Flags of `attache auth login`.
    AuthFlags at auth {
        METHOD method: Text "method" "ID" Text => "The login method, if there are several";
        YES yes: Switch "yes" => "Agree in advance to pages that the agent asks to visit; they are shown, not opened";
        SAVE save: Switch "save" => "Save variables without asking";
    }
}

flags! {
    /// Flags of `attache import`.
    ImportFlags at import {
        DRY_RUN dry_run: Switch "dry-run" => "Only show what would change";
        FORCE force: Switch "force" => "Replace existing agents and settings";
        FROM from: Text "from" "FILE" File => "The program's settings file, if it is not in the usual place";
    }
}

flags! {
    /// Flags of `attache registry …`.
    RegistryFlags at registry {
        REGISTRY sources: List "registry" "URL|PATH" File => "Use this registry instead of the configured ones";
        OFFLINE offline: Switch "offline" => "Use only files downloaded before";
        REFRESH refresh: Switch "refresh" => "Ask the servers even if the cached copies are recent";
        INSTALLED installed: Switch "installed" => "Only installed agents, with the commands that start them";
        VIA via: Text "via" "KIND" OneOf(&["binary", "npx", "uvx"]) => "Only this kind of installation";
        PREINSTALL preinstall: Switch "preinstall" => "Let npm install the package now";
        FORCE force: Switch "force" => "Reinstall";
        REQUIRE_CHECKSUM require_checksum: Switch "require-checksum" =>
            "Refuse archives for which the registry names no checksum";
        DRY_RUN dry_run: Switch "dry-run" => "Only show what would change";
    }
}

flags! {
    /// Flags of `attache record`.
    RecordFlags at record {
        MASK mask: Switch "mask" => "Replace secrets by ***: values of variables, headers, tokens (the default)";
        NO_MASK no_mask: Switch "no-mask" => "Keep secrets in the recording";
        OVERWRITE overwrite: Switch "overwrite" => "Replace a recording of that name";
    }
}

const PARTIES: &[&str] = &["agent", "client"];

flags! {
    /// Flags of `attache replay`.
    ReplayFlags at replay {
        AS party: Text "as" "PARTY" OneOf(PARTIES) => "The side to play: agent (the default) or client";
        DELAYS delays: Switch "delays" => "Keep the recorded delays";
        STRICT strict: Switch "strict" => "Report different content as a deviation, too";
        PATIENCE patience: Seconds "patience" "SECONDS" Text =>
            "How long the peer may take for its next message (30)";
        REPORT report: Text "report" "FILE" File => "Write the result as JSON";
    }
}

flags! {
    /// Flags of `attache trace`.
    TraceFlags at trace {
        SUMMARY summary: Switch "summary" => "Only a summary: counts, sessions, errors";
        TIMING timing: Switch "timing" => "How long tool calls and requests took";
        LINES lines: Switch "lines" => "One line per entry";
        SESSION session: Text "session" short 's' "ID" Text => "Only this session";
        METHOD method: Text "method" "NAME" Text =>
            "Only this method with its responses; `fs/*` matches every method below fs/";
        KIND kind: Text "kind" "KIND" Text => "Only this kind of session update";
        FROM from: Text "from" "PARTY" OneOf(PARTIES) => "Only messages of this side";
        FOLLOW follow: Switch "follow" => "Show entries while they are written, until the agent ends";
        HTML html: Text "html" "FILE" File => "Write a self-contained HTML page";
    }
}

flags! {
    /// Flags of `attache agent`.
    OwnAgentFlags at own_agent {
        MODE mode: Text "mode" "MODE" OneOf(&["ask", "plan", "code", "auto"]) =>
            "The mode of new sessions: ask (the default), plan, code or auto";
        THINKING thinking: Text "thinking" "LEVEL" OneOf(&["off", "low", "medium", "high"]) =>
            "How long the model may think";
        STORE store: Text "store" "FILE" File => "Keep sessions in this file";
        NO_STORE no_store: Switch "no-store" => "Keep sessions only as long as the agent runs";
        SANDBOX sandbox: Switch "sandbox" =>
            "Refuse commands if no sandbox works here (by default the agent asks about each)";
        NO_SANDBOX no_sandbox: Switch "no-sandbox" => "Run commands without a sandbox";
        NO_NETWORK no_network: Switch "no-network" =>
            "No network for sandboxed commands (by default the agent asks about each new host)";
        MAX_STEPS max_steps: Count "max-steps" "COUNT" UpTo(1_000_000) => "The most model requests in one turn";
        MODEL_TIMEOUT model_timeout: Text "model-timeout" "SECONDS" Text =>
            "How long a model may be silent: 120, and 300 before its first word (ATTACHE_MODEL_TIMEOUT)";
        LOGIN login: Text "login" "PROVIDER" Text => "Only ask for the key of a model provider, and save it";
        LOGOUT logout: Text "logout" "PROVIDER" Text => "Only delete the key of a provider";
    }
}

flags! {
    /// Flags of `attache mcp-server`.
    McpServerFlags at mcp_server {
        CONNECT connect: Text "connect" "SOCKET" File =>
            "Forward to the server of a running session, which started the agent with this";
    }
}

flags! {
    /// Flags of `attache serve`.
    ServeFlags at serve {
        LISTEN listen: Text "listen" "ADDRESS" Text => "Listen on this address (127.0.0.1:4848); port 0 lets the system choose";
        TLS_CERT tls_cert: Text "tls-cert" "FILE" File => "The certificate chain, in PEM form";
        TLS_KEY tls_key: Text "tls-key" "FILE" File => "The private key of the certificate, in PEM form";
        TLS_SELF tls_self: Switch "tls-self" => "Use a certificate that this program makes and keeps";
        TOKEN_FILE token_file: Text "token-file" "FILE" File =>
            "Accept the tokens of this file; if it does not exist, it is made with a new token, which is printed";
        BEHIND_PROXY behind_proxy: Switch "insecure-behind-proxy" =>
            "Listen on another address than loopback without TLS, because a proxy in front has it";
        ORIGIN origins: List "origin" "URL" Text => "Web pages of this origin may connect";
        HOST hosts: List "host" "NAME" Text => "A name of this server in Host headers";
        MAX_CLIENTS max_clients: Count "max-clients" "COUNT" UpTo(1_000_000) => "The most clients at once (64); each has an agent of its own";
        MAX_CLIENTS_PER_TOKEN max_clients_per_token: Count "max-clients-per-token" "COUNT" UpTo(1_000_000) =>
            "The most clients of one token at once (as many as there may be)";
        MAX_SESSIONS max_sessions: Count "max-sessions" "COUNT" UpTo(1_000_000) =>
            "The most sessions of a client (1024 over HTTP, 250000 over WebSocket)";
        MAX_MESSAGE max_message: Count "max-message" "MIB" UpTo(1_024) => "The longest message of a client in MiB (16)";
    }
}

const ROLES: &[&str] = &["watch", "answer", "drive", "admin"];

flags! {
    /// Flags of `attache hub`.
    HubFlags at hub {
        JOURNAL journal: Text "journal" "PLACE" Text =>
            "Keep sessions in sqlite:FILE (hub.db in the state directory), nats://HOST:PORT, or memory";
        NODE node: Text "node" "NAME" Text =>
            "The name of this hub among those that share a NATS journal (the host's name and a number)";
        LEASE lease: Count "lease" "SECONDS" UpTo(3_600) =>
            "How long the sessions of a hub that was killed are kept from other hubs on a NATS journal (15)";
        SOCKET socket: Text "socket" "FILE" File => "Listen on this Unix socket, for programs of this user; without --listen on nothing else";
        IDLE idle: Count "idle" "MINUTES" UpTo(100_000) => "End an agent this long after its last turn (30)";
        MAX_AGENTS max_agents: Count "max-agents" "COUNT" UpTo(100_000) => "The most agents at once (64)";
        ANSWERS answers: Text "answers" "POLICY" Text =>
            "Who decides questions: first, prompter, a role, or a number of equal answers";
        DEADLINE deadline: Count "deadline" "SECONDS" UpTo(1_000_000) => "Reject questions without an answer after this time";
        WARM warm: Count "warm" "COUNT" UpTo(1_000) => "Keep this many agents started for new sessions";
        KEEP_DAYS keep_days: Count "keep-days" "DAYS" UpTo(100_000) => "Remove sessions that were not used for so long";
        KEEP_SIZE keep_size: Count "keep-size" "MIB" UpTo(100_000_000) =>
            "Remove the oldest sessions of a tenant while all of them are larger";
        PROVIDE provide: Switch "provide" =>
            "Provide files and terminals of this machine to the agent; the permissions of settings and flags decide first";
    }
}

flags! {
    /// Flags of `attache token`.
    TokenFlags at token {
        ROLE role: Text "role" "ROLE" OneOf(ROLES) => "The rights in a hub: watch, answer, drive or admin (admin)";
        TENANT tenant: Text "tenant" "NAME" Text => "The tenant, whose sessions alone exist for this token";
    }
}

const VERSIONS: &[&str] = &["1", "2"];
const REPORTS: &[&str] = &["text", "json", "junit", "html"];
const LISTEN_KINDS: &[&str] = &["ws", "http"];
const TRANSPORTS: &[&str] = &["ws", "http", "both"];
const TIERS: &[&str] = &["mandatory", "capability", "strictness", "advisory", "informational"];

flags! {
    /// Flags of `attache check …`.
    CheckFlags at check {
        PROTOCOL protocol: Text "protocol" "VERSION" OneOf(VERSIONS) => "Test this version of the protocol (1)";
        ONLY only: List "only" "RULE,…" Text => "Only these rules, and only the scenarios that test them";
        SCENARIO scenarios: List "scenario" "NAME" Text => "Run only this scenario";
        TIER tiers: List "tier" "TIER" OneOf(TIERS) => "Only the rules of this tier";
        FAULTS faults: Switch "faults" => "Inject faults too: broken lines, late responses, closed pipes";
        PROMPT prompts: List "prompt" "KIND=TEXT" Text =>
            "The prompt that makes the peer do something (say, read, write, run, ask, think…)";
        FAKE_MODEL fake_model: Switch "fake-model" =>
            "Start a scripted model on loopback and set the agent up to use it; no account is needed";
        DEADLINE deadline: Seconds "deadline" "SECONDS" Text =>
            "How long one response may take (10); a turn may take six times as long";
        STARTUP_DEADLINE startup_deadline: Seconds "startup-deadline" "SECONDS" Text =>
            "How long the first response of a peer may take (three times --deadline)";
        JOBS jobs: Count "jobs" short 'j' "COUNT" UpTo(256) => "How many scenarios run at once (4)";
        LOGIN login: Text "login" "METHOD" Text =>
            "Log in with this authentication method, for an agent that opens no session before that";
        FORMAT format: Text "format" "FORMAT" OneOf(REPORTS) => "text, json, junit or html";
        OUT out: Text "out" "FILE" File => "Write the report to this file";
        REPORT reports: List "report" "FORMAT=FILE" Text =>
            "Write a further report; `badge` is a picture (SVG), `baseline` the list that --baseline reads";
        BASELINE baseline: Text "baseline" "FILE" File =>
            "Known failures, one rule per line: they fail no build, but listed rules that are kept do";
        REQUIRE_COVERAGE require_coverage: Count "require-coverage" "PERCENT" UpTo(100) =>
            "Fail if fewer of the mandatory rules were seen";
        TRACES traces: Text "traces" "DIR" Dir => "Write each conversation as a recording into this directory";
        EXPLAIN explain: Text "explain" "RULE" Text => "Explain a rule and how it is tested; run nothing";
        LIST list: Switch "list" => "List the scenarios; run nothing";
        ACTION actions: List "action" "NAME=HOW" Text =>
            "How the client is made to cancel, load…: SIGINT, or a command line";
        LISTEN listen: Text "listen" "KIND" OneOf(LISTEN_KINDS) =>
            "Test a client that connects to a URL: over ws or http";
        TRANSPORT transport: Text "transport" "KIND" OneOf(TRANSPORTS) =>
            "Test only this transport: ws or http; both by default";
        TOKEN_FILE token_file: Text "token-file" "FILE" File =>
            "Send the token in this file; without it, the one in ATTACHE_TOKEN";
        SESSIONS sessions: Count "sessions" "COUNT" UpTo(1_000_000) =>
            "How many sessions --faults opens on one connection (200)";
        SESSION_DIR session_dir: Text "session-dir" "DIR" Text =>
            "The directory of sessions, as the server sees it (one of the checker's own)";
        PARTY party: Text "party" "PARTY" OneOf(PARTIES) => "Check only this side";
    }
}
