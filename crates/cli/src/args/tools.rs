//! The commands for agents and recordings: the own agent, the MCP server, the server, the demo,
//! record, replay, trace and check.

use super::flags::{
    CheckFlags, Flag, Hint, HubFlags, McpServerFlags, OwnAgentFlags, RecordFlags, ReplayFlags, ServeFlags,
    TokenFlags, TraceFlags,
};
use super::table::{Command, Positional, command, many, positional};

#[cfg(unix)]
const AGENT_FLAGS: &[Flag] = &[
    OwnAgentFlags::MODE,
    OwnAgentFlags::THINKING,
    OwnAgentFlags::STORE,
    OwnAgentFlags::NO_STORE,
    OwnAgentFlags::SANDBOX,
    OwnAgentFlags::NO_SANDBOX,
    OwnAgentFlags::NO_NETWORK,
    OwnAgentFlags::MAX_STEPS,
    OwnAgentFlags::MODEL_TIMEOUT,
    OwnAgentFlags::LOGIN,
    OwnAgentFlags::LOGOUT,
];

#[cfg(unix)]
pub(super) const AGENT: Command = command("agent", "Run Attaché's own coding agent (for editors)")
    .flags(&[AGENT_FLAGS])
    .details(
        "It speaks ACP on standard input and output. The model is given with --model \
             (anthropic/…, openai/…, gemini/…, ollama/…, or script:FILE for a scripted one); \
             without it, the best model that can be reached is used.",
    )
    .examples(&[
        "attache agent",
        "attache agent --model ollama/qwen3 --mode code",
        "attache agent --login anthropic",
    ]);

#[cfg(unix)]
pub(super) const MCP_SERVER: Command =
    command("mcp-server", "Provide the files and commands of this directory as an MCP server")
        .flags(&[&[McpServerFlags::CONNECT]])
        .details(
            "It speaks the Model Context Protocol on standard input and output and has the tools \
             read_file, write_file and run_command. Files are limited to the working directory \
             and --add-dir; permissions come from the settings and flags, as for agents. A \
             question goes to the user if the MCP client supports elicitation, and is denied \
             if not. Commands end with the connection.",
        )
        .examples(&[
            "attache mcp-server",
            "attache mcp-server --approve-reads --no-terminal --cwd ~/notes",
            "claude mcp add files -- attache mcp-server --sandbox",
        ]);

const SERVE_FLAGS: &[Flag] = &[
    ServeFlags::LISTEN,
    ServeFlags::TLS_CERT,
    ServeFlags::TLS_KEY,
    ServeFlags::TLS_SELF,
    ServeFlags::TOKEN_FILE,
    ServeFlags::BEHIND_PROXY,
    ServeFlags::ORIGIN,
    ServeFlags::HOST,
    ServeFlags::MAX_CLIENTS,
    ServeFlags::MAX_CLIENTS_PER_TOKEN,
    ServeFlags::MAX_SESSIONS,
    ServeFlags::MAX_MESSAGE,
];

pub(super) const SERVE: Command = command("serve", "Make agents reachable over WebSocket and HTTP")
    .positionals(&[many(
        "agent",
        false,
        Hint::Command,
        "Names of agents, or the command of one after `--`; our own agent without it",
    )])
    .flags(&[SERVE_FLAGS])
    .details(
        "Each client gets an agent of its own, which ends with the connection. Clients connect to \
             /acp by WebSocket or by POST and server-sent events; several agents are at \
             /acp/NAME, the first one also at /acp. Any address but a loopback one needs TLS and a \
             token. The token file has a line for each token: its name and its SHA-256 hash.",
    )
    .examples(&[
        "attache serve",
        "attache serve gemini codex",
        "attache serve --listen 0.0.0.0:4848 --tls-self --token-file tokens -- gemini --acp",
    ]);

const HUB_FLAGS: &[Flag] = &[
    HubFlags::JOURNAL,
    HubFlags::NODE,
    HubFlags::LEASE,
    HubFlags::SOCKET,
    HubFlags::IDLE,
    HubFlags::MAX_AGENTS,
    HubFlags::ANSWERS,
    HubFlags::DEADLINE,
    HubFlags::WARM,
    HubFlags::KEEP_DAYS,
    HubFlags::KEEP_SIZE,
    HubFlags::PROVIDE,
];

const HUB_COMMANDS: &[Command] = &[command("top", "Show the sessions of a hub and what they need")
    .positionals(&[positional(
        "hub",
        false,
        Hint::Command,
        "Its URL or unix:FILE (http://127.0.0.1:4848/acp); its token has the role admin",
    )])];

pub(super) const HUB: Command = command("hub", "Keep sessions of an agent, and share them between clients")
    .positionals(&[many(
        "agent",
        false,
        Hint::Command,
        "The name of an agent, or its command after `--`; our own agent without it",
    )])
    .flags(&[HUB_FLAGS, SERVE_FLAGS])
    .commands(HUB_COMMANDS)
    .details(
        "Clients connect as to `attache serve`. Their sessions go on when they leave: another client \
             joins with session/load and comes back with session/resume, and a prompt that is sent \
             twice runs once. Everything that clients see is kept in the journal first. \
             Hubs on the same NATS server share their sessions. \
             /health, /ready and /metrics answer programs of this machine. Sockets of systemd are used \
             instead of --listen and --socket.",
    )
    .examples(&[
        "attache hub",
        "attache hub --socket ~/hub.sock -- gemini --acp",
        "attache hub --journal nats://10.0.0.1 --node desk gemini",
        "attache hub --listen 0.0.0.0:4848 --tls-self --token-file tokens --answers prompter gemini",
        "attache hub top",
    ]);

const TOKEN_COMMANDS: &[Command] = &[
    command("new", "Make a token, print it, and add its hash to the file")
        .positionals(&[positional("name", true, Hint::Text, "One word")])
        .flags(&[&[ServeFlags::TOKEN_FILE, TokenFlags::ROLE, TokenFlags::TENANT]]),
    command("list", "List names, roles and tenants").flags(&[&[ServeFlags::TOKEN_FILE]]),
    command("revoke", "Remove a token; its connections end")
        .positionals(&[positional("name", true, Hint::Text, "The name of the token")])
        .flags(&[&[ServeFlags::TOKEN_FILE]]),
];

pub(super) const TOKEN: Command = command("token", "Make, list and revoke tokens of `serve` and `hub`")
    .flags(&[&[ServeFlags::TOKEN_FILE]])
    .commands(TOKEN_COMMANDS)
    .default("list")
    .examples(&[
        "attache token new phone --role answer --token-file tokens",
        "attache token list --token-file tokens",
        "attache token revoke phone --token-file tokens",
    ]);

pub(super) const CONNECT: Command =
    command("connect", "Connect standard input and output to a remote agent (for editors)")
        .positionals(&[positional("url", true, Hint::Text, "wss://…, https://…, ws://… or http://…")])
        .details(
            "Use it in place of an agent's command, in an editor that starts agents itself: it passes \
             messages between the editor and the agent at the URL. The token is in ATTACHE_TOKEN, \
             or in the file that `token_file` of an agent in the settings names. The exit code is 0 \
             when the editor leaves, and 1 when the agent does.",
        )
        .examples(&[
            "attache connect wss://agents.example.com/acp",
            "attache --agent wss://agents.example.com/acp exec hello",
        ]);

#[cfg(unix)]
pub(super) const DEMO: Command =
    command("demo", "See client and agent work together on a small project, with a scripted model").details(
        "No key, no network. On a terminal it plays in the chat and you are asked for \
             permission; otherwise the demo's own policy answers, and the exit code is 0 if the \
             project's test passes in the end.",
    );

const COMMAND: Positional = many("command", true, Hint::Command, "The agent's command, after `--`");

const RECORD_FLAGS: &[Flag] = &[RecordFlags::MASK, RecordFlags::NO_MASK, RecordFlags::OVERWRITE];

pub(super) const RECORD: Command =
    command("record", "Start an agent and record its conversation with the client")
        .positionals(&[positional("file", true, Hint::File, "The recording, or a directory for it"), COMMAND])
        .flags(&[RECORD_FLAGS])
        .details(
            "Use it in place of an agent's command, in an editor for example: bytes pass \
             unchanged, and each line is written to the file before it is passed on. If FILE is \
             a directory, every run creates a file in it. Only you can read the file, and \
             secrets in it are replaced by ***. The exit code is the agent's.",
        )
        .examples(&[
            "attache record session.jsonl -- gemini --acp",
            "attache --agent 'attache record talks -- gemini --acp' exec hello",
        ]);

const REPLAY_FLAGS: &[Flag] =
    &[ReplayFlags::AS, ReplayFlags::DELAYS, ReplayFlags::STRICT, ReplayFlags::PATIENCE, ReplayFlags::REPORT];

pub(super) const REPLAY: Command = command("replay", "Replay one side of a recording to a real peer")
    .positionals(&[
        positional("file", true, Hint::File, "The recording"),
        many(
            "command",
            false,
            Hint::Command,
            "The peer's command, after `--`; standard input and output without it",
        ),
    ])
    .flags(&[REPLAY_FLAGS])
    .details(
        "As the agent it replaces an agent's command: it waits for each recorded message of \
             the client, matched by method and session, and sends the recorded replies. As the \
             client it needs the command of an agent. Deviations of the peer are reported on \
             standard error; the exit code is 1 then.",
    )
    .examples(&[
        "attache --agent 'attache replay session.jsonl' exec hello",
        "attache replay session.jsonl --as client -- gemini --acp",
    ]);

const TRACE_FLAGS: &[Flag] = &[
    TraceFlags::SUMMARY,
    TraceFlags::TIMING,
    TraceFlags::LINES,
    TraceFlags::SESSION,
    TraceFlags::METHOD,
    TraceFlags::KIND,
    TraceFlags::FROM,
    TraceFlags::FOLLOW,
    TraceFlags::HTML,
];

pub(super) const TRACE: Command =
    command("trace", "Show a recording: summary, conversation, timing or single lines")
        .positionals(&[positional("file", true, Hint::File, "The recording")])
        .flags(&[TRACE_FLAGS])
        .details("With --format json the selected entries are printed as they are in the file.")
        .examples(&[
            "attache trace session.jsonl",
            "attache trace --method 'terminal/*' session.jsonl",
            "attache trace --html session.html session.jsonl",
        ]);

#[cfg(unix)]
const CHECK_RUN: &[Flag] = &[
    CheckFlags::PROTOCOL,
    CheckFlags::ONLY,
    CheckFlags::SCENARIO,
    CheckFlags::TIER,
    CheckFlags::FAULTS,
    CheckFlags::PROMPT,
    CheckFlags::DEADLINE,
    CheckFlags::STARTUP_DEADLINE,
    CheckFlags::JOBS,
];

#[cfg(unix)]
const CHECK_REPORT: &[Flag] = &[
    CheckFlags::FORMAT,
    CheckFlags::OUT,
    CheckFlags::REPORT,
    CheckFlags::BASELINE,
    CheckFlags::REQUIRE_COVERAGE,
    CheckFlags::TRACES,
    CheckFlags::EXPLAIN,
    CheckFlags::LIST,
];

#[cfg(unix)]
static CHECKS: &[Command] = &[
    command("agent", "Test an agent: act as a client that exercises every rule")
        .agent()
        .positionals(&[many("command", false, Hint::Command, "The agent's command line, after `--`")])
        .flags(&[CHECK_RUN, &[CheckFlags::FAKE_MODEL, CheckFlags::LOGIN], CHECK_REPORT])
        .details(
            "Each scenario has a fresh process. An agent that needs a model is steered by \
             prompts; --prompt replaces them by words that it follows, and rules that it never \
             reached are reported as not exercised. With -v every rule is listed.\n\n\
             With --fake-model the agent talks to a scripted model on loopback, which speaks the \
             APIs of OpenAI, Anthropic and Gemini, and uses the agent's tools as the scenarios \
             need it. The agent gets an empty home directory with settings for that model, if it is \
             a known one, and the usual variables of providers; --env adds more.",
        )
        .examples(&[
            "attache check agent -- my-agent --acp",
            "attache check agent --fake-model -- gemini --acp",
            "attache check agent --faults --report junit=check.xml -- my-agent --acp",
            "attache check agent --explain CANCEL-05",
        ]),
    command("server", "Test a server: an agent at a URL, and its WebSocket and HTTP transports")
        .positionals(&[positional("url", false, Hint::Text, "wss://…, https://…, ws://… or http://…")])
        .flags(&[
            &[CheckFlags::TRANSPORT, CheckFlags::TOKEN_FILE],
            CHECK_RUN,
            &[CheckFlags::LOGIN, CheckFlags::SESSIONS, CheckFlags::SESSION_DIR],
            CHECK_REPORT,
        ])
        .details(
            "Each scenario has a connection of its own. The scenarios of `check agent` run over \
             WebSocket, or over HTTP if the server has nothing else; others send requests and frames \
             of their own and judge the transports. --faults adds clients that are cut off, stall, \
             flood or send garbage.",
        )
        .examples(&[
            "attache check server http://127.0.0.1:4848/acp",
            "attache check server --faults --token-file token wss://agents.example.com/acp",
        ]),
    command("client", "Test a client: act as the agent that it starts")
        .positionals(&[many("command", false, Hint::Command, "The client's command line, after `--`")])
        .flags(&[CHECK_RUN, CHECK_REPORT, &[CheckFlags::ACTION, CheckFlags::LISTEN]])
        .details(
            "The client's command line has placeholders: {agent} is the command of the agent \
             that it must start, as one text for a shell ({agent:argv}: as several words, \
             {agent:json}: as a JSON list), {prompt} is the prompt that it must send, {cwd} a \
             directory. --action says how the client is made to do anything besides sending one \
             prompt: by a signal, or by another command line. With --listen the client connects to \
             {url} instead, which is in the variable ATTACHE_URL too.",
        )
        .examples(&[
            "attache check client -- attache --agent {agent} exec {prompt}",
            "attache check client --action cancel=SIGINT -- my-client --agent {agent} {prompt}",
            "attache check client --listen ws -- attache --agent {url} exec {prompt}",
        ]),
    command("trace", "Test a recording")
        .positionals(&[positional("file", false, Hint::File, "A file that `attache record` wrote")])
        .flags(&[
            &[CheckFlags::ONLY.about("Only these rules"), CheckFlags::TIER, CheckFlags::PARTY],
            CHECK_REPORT,
        ]),
];

#[cfg(unix)]
pub(super) const CHECK: Command =
    command("check", "Test an agent, a server, a client or a recording against the rules of the protocol")
        .agent()
        .commands(CHECKS)
        .details(
            "The exit code is 0 if no binding rule was broken, 1 if one was, and 2 if nothing \
             could be tested. The verdict says how many of the mandatory rules were seen.",
        );
