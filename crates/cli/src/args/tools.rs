//! The commands for agents and recordings: the own agent, the MCP server, the demo, record, replay,
//! trace and check.

use super::flags::{
    CheckFlags, Flag, Hint, McpServerFlags, OwnAgentFlags, RecordFlags, ReplayFlags, TraceFlags,
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

#[cfg(unix)]
pub(super) const DEMO: Command =
    command("demo", "See client and agent work together on a small project, with a scripted model").details(
        "No key, no network. On a terminal you are asked for permission; otherwise the \
             demo's own policy answers. The exit code is 0 if the project's test passes in the \
             end.",
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
    CheckFlags::JOBS,
];

#[cfg(unix)]
const CHECK_REPORT: &[Flag] = &[
    CheckFlags::FORMAT,
    CheckFlags::OUT,
    CheckFlags::REPORT,
    CheckFlags::TRACES,
    CheckFlags::EXPLAIN,
    CheckFlags::LIST,
];

#[cfg(unix)]
static CHECKS: &[Command] = &[
    command("agent", "Test an agent: act as a client that exercises every rule")
        .agent()
        .positionals(&[many("command", false, Hint::Command, "The agent's command line, after `--`")])
        .flags(&[CHECK_RUN, &[CheckFlags::LOGIN], CHECK_REPORT])
        .details(
            "Each scenario has a fresh process. An agent that needs a model is steered by \
             prompts; --prompt replaces them by words that it follows, and rules that it never \
             reached are reported as not exercised. With -v every rule is listed.",
        )
        .examples(&[
            "attache check agent -- my-agent --acp",
            "attache check agent --faults --report junit=check.xml -- my-agent --acp",
            "attache check agent --explain CANCEL-05",
        ]),
    command("client", "Test a client: act as the agent that it starts")
        .positionals(&[many("command", false, Hint::Command, "The client's command line, after `--`")])
        .flags(&[CHECK_RUN, CHECK_REPORT, &[CheckFlags::ACTION]])
        .details(
            "The client's command line has placeholders: {agent} is the command of the agent \
             that it must start, as one text for a shell ({agent:argv}: as several words, \
             {agent:json}: as a JSON list), {prompt} is the prompt that it must send, {cwd} a \
             directory. --action says how the client is made to do anything besides sending one \
             prompt: by a signal, or by another command line.",
        )
        .examples(&[
            "attache check client -- attache --agent {agent} exec {prompt}",
            "attache check client --action cancel=SIGINT -- my-client --agent {agent} {prompt}",
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
    command("check", "Test an agent, a client or a recording against the rules of the protocol")
        .agent()
        .commands(CHECKS)
        .details(
            "The exit code is 0 if no mandatory rule was broken, 1 if one was, and 2 if nothing \
             could be tested.",
        );
