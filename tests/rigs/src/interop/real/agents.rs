//! The agents: how each is started and set up, and what is odd about it.

use serde_json::{Value, json};

use super::environment::AgentEnvironment;
use crate::repo;

/// The settings by which `attache check --fake-model` sets agents up.
const SETTINGS: &str = "crates/check/agents.jsonl";

pub(super) struct Agent {
    /// Its name for `--only`, and of its lock file's directory in `tests/interop/real`.
    pub(super) name: &'static str,
    pub(super) setup: fn(&AgentEnvironment) -> Result<Setup, String>,
    /// How a turn ends in which a permission was denied.
    pub(super) denied: &'static str,
    /// With which codes it ends by itself when its input ends.
    pub(super) exits: &'static [i32],
    /// Whether it shows what a command printed.
    pub(super) shows_output: bool,
    /// Whether a session can be loaded again within the minute in which it was begun.
    pub(super) loads_at_once: bool,
    /// Whether it speaks version 2 of the protocol.
    pub(super) speaks_v2: bool,
    /// Whether it runs commands in the background, which version 2 shows.
    pub(super) has_background: bool,
    /// Whether its model is offered the tools of MCP servers from the start, without a search that
    /// only a real model can do.
    pub(super) offers_mcp_tools: bool,
    /// What it does on the wire that agents should not do, by the words of the report, and why it
    /// is let pass.
    pub(super) odd: &'static [(&'static str, &'static str)],
}

#[derive(Default)]
pub(super) struct Setup {
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    /// Files in its home.
    pub(super) files: Vec<(String, String)>,
}

const UNBEGUN: (&str, &str) =
    ("a tool call must begin exactly once", "tool calls that need permission begin with the question");

pub(super) const AGENTS: &[Agent] = &[
    Agent {
        name: "gemini",
        setup: gemini,
        denied: "end_turn",
        exits: &[0],
        shows_output: false,
        loads_at_once: false,
        speaks_v2: false,
        has_background: false,
        offers_mcp_tools: false,
        odd: &[UNBEGUN, ("outside any turn", "most of a loaded session's history comes after the answer")],
    },
    Agent {
        name: "opencode",
        setup: opencode,
        denied: "end_turn",
        exits: &[0],
        shows_output: true,
        loads_at_once: true,
        speaks_v2: false,
        has_background: false,
        offers_mcp_tools: false,
        odd: &[(
            "was cancelled and does not say so",
            "a prompt that is cancelled at once is answered -32603",
        )],
    },
    Agent {
        name: "claude",
        setup: claude,
        denied: "end_turn",
        exits: &[0],
        shows_output: true,
        loads_at_once: true,
        speaks_v2: true,
        has_background: true,
        offers_mcp_tools: true,
        odd: &[],
    },
    Agent {
        name: "codex",
        setup: codex,
        denied: "cancelled",
        exits: &[0],
        shows_output: true,
        loads_at_once: true,
        speaks_v2: true,
        has_background: false,
        offers_mcp_tools: false,
        odd: &[],
    },
    Agent {
        name: "qwen",
        setup: qwen,
        denied: "end_turn",
        exits: &[0, 1],
        shows_output: true,
        loads_at_once: true,
        speaks_v2: false,
        has_background: false,
        offers_mcp_tools: false,
        odd: &[],
    },
];

/// The settings of a known agent for the model of this place.
fn set_up(name: &str, place: &AgentEnvironment, command: Vec<String>) -> Result<Setup, String> {
    let text = repo::read(SETTINGS)?;
    let mut known = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let agent = known.find(|agent| agent["name"] == name).ok_or_else(|| format!("{SETTINGS}: no {name}"))?;
    let fill = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.replace("{url}", &place.url).replace("{model}", &place.model)
    };
    let pairs = |key: &str| {
        let members = agent[key].as_object().into_iter().flatten();
        members.map(|(name, value)| (name.clone(), fill(value))).collect()
    };
    Ok(Setup { command, env: pairs("env"), files: pairs("files") })
}

/// Changes a file of the settings that is JSON.
fn change(setup: &mut Setup, file: &str, change: impl FnOnce(&mut Value)) {
    let content = setup.files.iter_mut().find(|(name, _)| name == file);
    if let Some((_, text)) = content
        && let Ok(mut value) = serde_json::from_str(text)
    {
        change(&mut value);
        *text = value.to_string();
    }
}

fn gemini(place: &AgentEnvironment) -> Result<Setup, String> {
    // A named model: for `auto` another model is asked first which one to take.
    let args = ["--acp", "--model", "gemini-2.5-pro"];
    set_up("gemini", place, place.script("@google/gemini-cli/bundle/gemini.js", &args))
}

pub(super) fn opencode(place: &AgentEnvironment) -> Result<Setup, String> {
    let command = vec![place.installed("opencode-ai/bin/opencode.exe"), "acp".to_owned()];
    // It installs a package into its settings unless it finds it there; that it is listed is
    // enough.
    let mut setup = set_up("opencode", place, command)?;
    if let Some(window) = place.window {
        change(&mut setup, ".config/opencode/opencode.json", |settings| {
            settings["provider"]["fake"]["models"][&place.model]["limit"] =
                json!({"context": window, "output": window / 8});
        });
    }
    Ok(setup)
}

fn claude(place: &AgentEnvironment) -> Result<Setup, String> {
    // Tools of MCP servers are offered from the start, not found by a search.
    set_up("claude", place, place.script("@agentclientprotocol/claude-agent-acp/dist/index.js", &[]))
}

fn codex(place: &AgentEnvironment) -> Result<Setup, String> {
    // The name of a model that it knows: for others it warns in the text of every answer. In its
    // usual mode it edits and runs without asking, inside a sandbox.
    set_up("codex", place, place.script("@agentclientprotocol/codex-acp/dist/index.js", &[]))
}

pub(super) fn qwen(place: &AgentEnvironment) -> Result<Setup, String> {
    // In its usual mode a model decides what needs no question.
    let args = ["--acp", "--approval-mode", "default"];
    set_up("qwen", place, place.script("@qwen-code/qwen-code/cli-entry.js", &args))
}

/// pi, through the adapter `pi-acp`.
pub(super) fn pi(place: &AgentEnvironment) -> Result<Setup, String> {
    let mut setup = set_up("pi", place, place.script("pi-acp/dist/index.js", &[]))?;
    setup.env.push(("PI_ACP_PI_COMMAND".to_owned(), place.installed(".bin/pi")));
    if let Some(window) = place.window {
        change(&mut setup, ".pi/agent/models.json", |models| {
            let model = &mut models["providers"]["local"]["models"][0];
            model["contextWindow"] = json!(window);
            model["maxTokens"] = json!(window / 8);
        });
    }
    Ok(setup)
}
