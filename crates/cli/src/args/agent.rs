//! The commands of this program's own agent.

use super::table::{Flag, Hint, NOTHING, Section, Verb, flag, option};

static FLAGS: &[Flag] = &[
    option(
        "mode",
        "MODE",
        Hint::OneOf(&["ask", "plan", "code", "auto"]),
        Section::Own,
        "The mode of new sessions: ask (the default), plan, code or auto",
    ),
    option(
        "thinking",
        "LEVEL",
        Hint::OneOf(&["off", "low", "medium", "high"]),
        Section::Own,
        "How long the model may think",
    ),
    option("store", "FILE", Hint::File, Section::Own, "Keep sessions in this file"),
    flag("no-store", Section::Own, "Keep sessions only as long as the agent runs"),
    flag(
        "sandbox",
        Section::Own,
        "Run no command if no sandbox works here (the default asks about every one)",
    ),
    flag("no-sandbox", Section::Own, "Run commands without a sandbox"),
    flag("no-network", Section::Own, "No network for sandboxed commands; otherwise a new host is a question"),
    option(
        "max-steps",
        "COUNT",
        Hint::Text,
        Section::Own,
        "How often the model is asked in one turn, at most",
    ),
    option(
        "model-timeout",
        "SECONDS",
        Hint::Text,
        Section::Own,
        "How long a model may be silent: 120, and 300 before it begins (ATTACHE_MODEL_TIMEOUT)",
    ),
    option(
        "login",
        "PROVIDER",
        Hint::Text,
        Section::Own,
        "Only ask for the key of a provider of models, and keep it",
    ),
    option("logout", "PROVIDER", Hint::Text, Section::Own, "Only forget the key of a provider"),
];

pub(super) const AGENT: Verb = Verb {
    name: "agent",
    about: "Run Attaché's own coding agent (for editors)",
    more: "It speaks ACP on standard input and output. The model is given with --model (anthropic/…, openai/…, gemini/…, ollama/…, or \
           script:FILE for one that is played from a file); without it, the best that can be reached is taken.",
    flags: &[FLAGS],
    examples: &[
        "attache agent",
        "attache agent --model ollama/qwen3 --mode code",
        "attache agent --login anthropic",
    ],
    ..NOTHING
};

pub(super) const DEMO: Verb = Verb {
    name: "demo",
    about: "See client and agent work together on a small project, with a scripted model",
    more: "No key, no network. On a terminal you are asked for permission; otherwise the demo's own policy answers, and is printed. \
           The exit code is 0 if the project's test passes in the end.",
    ..NOTHING
};
