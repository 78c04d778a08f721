//! The commands that judge by the rules of the protocol.

use super::table::{Flag, Hint, NOTHING, Section, Verb, Word, flag, option, word};

const CHECK_RUN: &[Flag] = &[
    option(
        "only",
        "RULE,…",
        Hint::Text,
        Section::Own,
        "Judge these rules only, and play only what shows them",
    )
    .repeats(),
    option("scenario", "NAME", Hint::Text, Section::Own, "Play this scenario only").repeats(),
    option("tier", "TIER", Hint::OneOf(TIERS), Section::Own, "Judge the rules of this tier only").repeats(),
    flag("faults", Section::Own, "Be an unkind peer too: broken lines, late answers, closed pipes"),
    option(
        "prompt",
        "KIND=TEXT",
        Hint::Text,
        Section::Own,
        "What to say to make the other side do something (say, read, write, run, ask, think…)",
    )
    .repeats(),
    option(
        "deadline",
        "SECONDS",
        Hint::Text,
        Section::Own,
        "How long one answer may take (10); a turn may take six times as long",
    ),
    option("jobs", "COUNT", Hint::Text, Section::Own, "How many scenarios at once (4)").short('j'),
];

const CHECK_LOGIN: &[Flag] = &[option(
    "login",
    "METHOD",
    Hint::Text,
    Section::Own,
    "Log in with this authentication method, for an agent that opens no session before that",
)];

const CHECK_REPORT: &[Flag] = &[
    option("format", "FORMAT", Hint::OneOf(REPORTS), Section::Own, "text, json, junit or html"),
    option("out", "FILE", Hint::File, Section::Own, "Write the report to this file"),
    option("report", "FORMAT=FILE", Hint::Text, Section::Own, "Write a further report").repeats(),
    option(
        "traces",
        "DIR",
        Hint::Dir,
        Section::Own,
        "Write each conversation as a recording into this directory",
    ),
    option(
        "explain",
        "RULE",
        Hint::Text,
        Section::Own,
        "Say what a rule is about and what shows it, and run nothing",
    ),
    flag("list", Section::Own, "List the scenarios, and run nothing"),
];

const TIERS: &[&str] = &["mandatory", "capability", "advisory", "informational"];

const REPORTS: &[&str] = &["text", "json", "junit", "html"];

static VERBS: &[Verb] = &[
    Verb {
        name: "agent",
        about: "Judge an agent: play a client that leads it through every duty",
        more: "Each scenario has a fresh process. An agent that needs a model does as it is told by prompts; --prompt says them in words that \
               it follows, and what it did not do is called not exercised. With -v every rule is listed.",
        words: &[Word {
            name: "command",
            required: false,
            many: true,
            hint: Hint::Command,
            about: "The agent's command line, behind --",
        }],
        flags: &[CHECK_RUN, CHECK_LOGIN, CHECK_REPORT],
        agent: true,
        examples: &[
            "attache check agent -- my-agent --acp",
            "attache check agent --faults --report junit=check.xml --report html=check.html -- my-agent --acp",
            "attache check agent --explain CANCEL-05",
        ],
        ..NOTHING
    },
    Verb {
        name: "client",
        about: "Judge a client: be the agent that it starts",
        more: "The client's command line has holes: {agent} is the command of the agent that it must start, as one text for a shell \
               ({agent:argv}: as several words, {agent:json}: as a JSON list), {prompt} is the prompt that it must send, {cwd} a directory. --action says \
               how it is made to do something else than one prompt: by a signal, or by another command line.",
        words: &[Word {
            name: "command",
            required: false,
            many: true,
            hint: Hint::Command,
            about: "The client's command line, behind --",
        }],
        flags: &[
            CHECK_RUN,
            CHECK_REPORT,
            &[option(
                "action",
                "NAME=HOW",
                Hint::Text,
                Section::Own,
                "How the client is made to cancel, load…: SIGINT, or a command line",
            )
            .repeats()],
        ],
        examples: &[
            "attache check client -- attache --agent {agent} exec {prompt}",
            "attache check client --action cancel=SIGINT -- my-client --agent {agent} {prompt}",
        ],
        ..NOTHING
    },
    Verb {
        name: "trace",
        about: "Judge a recording",
        words: &[word("file", false, Hint::File, "A file that `attache record` wrote")],
        flags: &[
            &[
                option("only", "RULE,…", Hint::Text, Section::Own, "Judge these rules only").repeats(),
                option("tier", "TIER", Hint::OneOf(TIERS), Section::Own, "Judge the rules of this tier only")
                    .repeats(),
                option(
                    "party",
                    "PARTY",
                    Hint::OneOf(&["agent", "client"]),
                    Section::Own,
                    "Judge this side only",
                ),
            ],
            CHECK_REPORT,
        ],
        ..NOTHING
    },
];

pub(super) const CHECK: Verb = Verb {
    name: "check",
    about: "Judge an agent, a client or a recording by the rules of the protocol",
    more: "The exit code is 0 if no duty was broken, 1 if one was, and 2 if there was nothing to judge.",
    verbs: VERBS,
    agent: true,
    ..NOTHING
};
