//! The commands that keep, play and show conversations.

use super::table::{Flag, Hint, NOTHING, Section, Verb, Word, flag, option, word};

const COMMAND: Word = Word {
    name: "command",
    required: true,
    many: true,
    hint: Hint::Command,
    about: "The agent's command, after `--`",
};

static RECORD_FLAGS: &[Flag] = &[
    flag("mask", Section::Own, "Replace secrets by ***: values of variables, headers, tokens (the default)"),
    flag("no-mask", Section::Own, "Keep secrets in the recording"),
    flag("overwrite", Section::Own, "Replace a recording of that name"),
];

pub(super) const RECORD: Verb = Verb {
    name: "record",
    about: "Start an agent and write down everything that it and its client say",
    more: "Use it wherever an agent's command is asked for, in an editor for example: bytes pass unchanged, each line is in the file before it is \
           passed on. If FILE is a directory, every run gets a file of its own in it. Only you can read the file, and secrets in it are replaced by ***. \
           The exit code is the agent's.",
    words: &[word("file", true, Hint::File, "The recording, or a directory for it"), COMMAND],
    flags: &[RECORD_FLAGS],
    examples: &[
        "attache record session.jsonl -- gemini --acp",
        "attache --agent 'attache record talks -- gemini --acp' exec hello",
    ],
    ..NOTHING
};

static REPLAY_FLAGS: &[Flag] = &[
    option(
        "as",
        "PARTY",
        Hint::OneOf(&["agent", "client"]),
        Section::Own,
        "Whose part is played: agent (the default) or client",
    ),
    flag("delays", Section::Own, "Wait as long as was waited then"),
    flag("strict", Section::Own, "Other content counts as a deviation, too"),
    option(
        "patience",
        "SECONDS",
        Hint::Text,
        Section::Own,
        "How long the peer may take for its next message (30)",
    ),
    option("report", "FILE", Hint::File, Section::Own, "Write what came of it as JSON"),
];

pub(super) const REPLAY: Verb = Verb {
    name: "replay",
    about: "Play one side of a recording to a living peer",
    more: "As the agent it can stand wherever an agent's command is asked for. It waits for what the client said then, recognised by method and \
           session, and says what was said back. As the client it needs the command of an agent. Where the peer does something else is told \
           on standard error; the exit code is 1 then.",
    words: &[
        word("file", true, Hint::File, "The recording"),
        Word {
            name: "command",
            required: false,
            many: true,
            hint: Hint::Command,
            about: "The peer's command, after `--`; standard input and output without it",
        },
    ],
    flags: &[REPLAY_FLAGS],
    examples: &[
        "attache --agent 'attache replay session.jsonl' exec hello",
        "attache replay session.jsonl --as client -- gemini --acp",
    ],
    ..NOTHING
};

static TRACE_FLAGS: &[Flag] = &[
    flag("summary", Section::Own, "Only in short: counts, sessions, errors"),
    flag("timing", Section::Own, "How long tool calls and requests took"),
    flag("lines", Section::Own, "Every entry on a line"),
    option("session", "ID", Hint::Text, Section::Own, "Only this session").short('s'),
    option(
        "method",
        "NAME",
        Hint::Text,
        Section::Own,
        "Only this method with its answers; `fs/*` is all that begin so",
    ),
    option("kind", "KIND", Hint::Text, Section::Own, "Only this kind of session update"),
    option("from", "PARTY", Hint::OneOf(&["agent", "client"]), Section::Own, "Only what this party said"),
    flag("follow", Section::Own, "Show entries while they are written, until the agent ends"),
    option("html", "FILE", Hint::File, Section::Own, "Draw it as a page that needs nothing else"),
];

pub(super) const TRACE: Verb = Verb {
    name: "trace",
    about: "Show a recording: in short, as a conversation, by time, line by line",
    more: "With --format json the entries that are taken are printed as they are in the file.",
    words: &[word("file", true, Hint::File, "The recording")],
    flags: &[TRACE_FLAGS],
    examples: &[
        "attache trace session.jsonl",
        "attache trace --method 'terminal/*' session.jsonl",
        "attache trace --html session.html session.jsonl",
    ],
    ..NOTHING
};
