//! What is said when there is no model: plainly, with the ways to one.

use crate::session::Live;

/// Agents that can be had instead, by their programs.
const AGENTS: &[(&str, &str)] = &[
    ("claude-agent-acp", "claude"),
    ("codex-acp", "codex"),
    ("gemini", "gemini"),
    ("opencode", "opencode"),
    ("qwen", "qwen"),
    ("copilot", "copilot"),
    ("goose", "goose"),
];

/// The text, in Markdown.
pub(super) fn no_model(live: &Live) -> String {
    let mut text = String::new();
    match &live.house.options.model {
        Some(spec) => match live.house.models.open(spec) {
            Err(why) => text.push_str(&format!("The model `{spec}` cannot be used: {why}.\n\n")),
            Ok(_) => text.push_str(&format!("The model `{spec}` was not there when the session began.\n\n")),
        },
        None => text.push_str(
            "I have no language model to work with: no key is set, and no local server answers.\n\n",
        ),
    }
    text.push_str(
        "Ways to one:\n\
         - set a key, `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `GEMINI_API_KEY`, or have one kept with `attache agent --login anthropic` (or `openai`, `gemini`)\n\
         - start a model on this machine, such as `ollama serve`, LM Studio, `llama-server` or vLLM; it is found by itself\n\
         - see everything work without a model: `attache demo`\n",
    );
    let installed: Vec<&str> =
        AGENTS.iter().filter(|(program, _)| on_path(program)).map(|(_, name)| *name).collect();
    if let Some(first) = installed.first() {
        text.push_str(&format!(
            "- use another agent that is installed here ({}): `attache {first}`\n",
            installed.join(", ")
        ));
    }
    text
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
