//! The agents: how each is started and set up, and what is odd about it.

use serde_json::{Value, json};

use super::place::Place;

pub(super) struct Agent {
    /// Its name for `--only`, and of its lock file's directory in `tests/interop/real`.
    pub(super) name: &'static str,
    pub(super) setup: fn(&Place) -> Setup,
    /// How a turn ends in which a permission was denied.
    pub(super) denied: &'static str,
    /// With which codes it ends by itself when its input ends.
    pub(super) exits: &'static [i32],
    /// Whether it shows what a command printed.
    pub(super) shows_output: bool,
    /// Whether a session can be loaded again within the minute in which it was begun.
    pub(super) loads_at_once: bool,
    /// What it does on the wire that agents should not do, by the words of the report, and why it is let pass.
    pub(super) odd: &'static [(&'static str, &'static str)],
}

#[derive(Default)]
pub(super) struct Setup {
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(&'static str, String)>,
    /// Files in its home.
    pub(super) files: Vec<(&'static str, String)>,
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
        odd: &[UNBEGUN, ("outside any turn", "most of a loaded session's history comes after the answer")],
    },
    Agent {
        name: "opencode",
        setup: opencode,
        denied: "end_turn",
        exits: &[0],
        shows_output: true,
        loads_at_once: true,
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
        odd: &[],
    },
    Agent {
        name: "codex",
        setup: codex,
        denied: "cancelled",
        exits: &[0],
        shows_output: true,
        loads_at_once: true,
        odd: &[],
    },
    Agent {
        name: "qwen",
        setup: qwen,
        denied: "end_turn",
        exits: &[0, 1],
        shows_output: true,
        loads_at_once: true,
        odd: &[],
    },
];

fn text(value: &Value) -> String {
    value.to_string()
}

fn gemini(place: &Place) -> Setup {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
    });
    Setup {
        // A named model: for `auto` another model is asked first which one to take.
        command: place.script("@google/gemini-cli/bundle/gemini.js", &["--acp", "--model", "gemini-2.5-pro"]),
        env: vec![
            ("GEMINI_API_KEY", "none".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL", place.url.clone()),
            ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
        ],
        files: vec![(".gemini/settings.json", text(&settings))],
    }
}

fn opencode(place: &Place) -> Setup {
    let settings = json!({
        "autoupdate": false,
        "share": "disabled",
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "provider": {"fake": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": {"baseURL": format!("{}/v1", place.url), "apiKey": "none"},
            "models": {"fake-model": {"name": "Fake"}},
        }},
        "permission": {"edit": "ask", "bash": "ask"},
    });
    // It installs a package into its settings unless it finds it there; that it is listed is enough.
    let installed = json!({"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}});
    Setup {
        command: vec![place.installed("opencode-ai/bin/opencode.exe"), "acp".to_owned()],
        env: [
            "OPENCODE_DISABLE_AUTOUPDATE",
            "OPENCODE_DISABLE_MODELS_FETCH",
            "OPENCODE_DISABLE_LSP_DOWNLOAD",
        ]
        .map(|name| (name, "1".to_owned()))
        .to_vec(),
        files: vec![
            (".config/opencode/opencode.json", text(&settings)),
            (".config/opencode/package-lock.json", text(&installed)),
            (".config/opencode/node_modules/.keep", String::new()),
        ],
    }
}

fn claude(place: &Place) -> Setup {
    Setup {
        command: place.script("@agentclientprotocol/claude-agent-acp/dist/index.js", &[]),
        env: vec![
            ("ANTHROPIC_BASE_URL", place.url.clone()),
            ("ANTHROPIC_API_KEY", "none".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
        ],
        files: Vec::new(),
    }
}

fn codex(place: &Place) -> Setup {
    // The name of a model that it knows: for others it warns in the text of every answer.
    let settings = format!(
        r#"model = "gpt-5.5"
model_provider = "fake"
check_for_update_on_startup = false

[features]
plugins = false

[analytics]
enabled = false

[model_providers.fake]
name = "Fake"
base_url = "{}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
"#,
        place.url
    );
    Setup {
        command: place.script("@agentclientprotocol/codex-acp/dist/index.js", &[]),
        // In its usual mode it edits and runs without asking, inside a sandbox.
        env: vec![("FAKE_KEY", "none".to_owned()), ("INITIAL_AGENT_MODE", "read-only".to_owned())],
        files: vec![(".codex/config.toml", settings)],
    }
}

fn qwen(place: &Place) -> Setup {
    let settings = json!({
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true, "enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "model": {"name": "fake-model"},
    });
    Setup {
        // In its usual mode a model decides what needs no question.
        command: place.script("@qwen-code/qwen-code/cli-entry.js", &["--acp", "--approval-mode", "default"]),
        env: vec![
            ("OPENAI_API_KEY", "none".to_owned()),
            ("OPENAI_BASE_URL", format!("{}/v1", place.url)),
            ("OPENAI_MODEL", "fake-model".to_owned()),
        ],
        files: vec![(".qwen/settings.json", text(&settings))],
    }
}
