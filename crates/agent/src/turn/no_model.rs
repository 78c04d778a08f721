//! The error of a prompt without a model, with advice.

use attache::{Error, ErrorObject, code};
use serde_json::json;

use crate::state::SessionState;

/// Programs of other agents and their names in Attaché.
const AGENTS: &[(&str, &str)] = &[
    ("claude-agent-acp", "claude"),
    ("codex-acp", "codex"),
    ("gemini", "gemini"),
    ("opencode", "opencode"),
    ("qwen", "qwen"),
    ("copilot", "copilot"),
    ("goose", "goose"),
];

/// A client offers a login for this code. The message names the problem in one line,
/// `details` gives advice.
// AUTH-02
pub(super) fn error(session: &SessionState) -> Error {
    let (code, message) = match &session.agent.options.model {
        Some(spec) => match session.agent.models.open(spec) {
            Err(why) => (code::INTERNAL_ERROR, format!("the model `{spec}` cannot be used: {why}")),
            Ok(_) => {
                (code::INTERNAL_ERROR, format!("the model `{spec}` was not available when the session began"))
            }
        },
        None => (
            code::AUTH_REQUIRED,
            "no model: no API key is set, and no model server answers on this machine".to_owned(),
        ),
    };
    let mut details = String::from(
        "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or save a key: attache agent --login anthropic\n\
         start a model server on this machine: ollama serve, LM Studio, llama-server or vLLM; it is found automatically\n\
         see everything work without a model: attache demo",
    );
    let installed: Vec<&str> =
        AGENTS.iter().filter(|(program, _)| on_path(program)).map(|(_, name)| *name).collect();
    if let Some(first) = installed.first() {
        details.push_str(&format!(
            "\nuse another agent that is installed here ({}): attache {first}",
            installed.join(", ")
        ));
    }
    let mut error = ErrorObject::new(code, message);
    error.data = serde_json::value::to_raw_value(&json!({ "details": details })).ok();
    Error::Refused(error)
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
