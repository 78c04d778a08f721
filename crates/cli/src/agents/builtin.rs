//! Known agents that speak ACP, and their commands.

use super::{Address, AgentSpec};

/// A well-known agent.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    /// Other names for it.
    pub(crate) also: &'static [&'static str],
    pub(crate) title: &'static str,
    /// How it is started; the first whose program is installed is taken, else the last.
    pub(crate) commands: &'static [&'static [&'static str]],
    /// How older versions are started, whose arguments are others.
    pub(crate) older: &'static [&'static str],
    /// How to get it.
    pub(crate) install: &'static str,
}

const fn agent(
    name: &'static str,
    title: &'static str,
    commands: &'static [&'static [&'static str]],
    install: &'static str,
) -> Builtin {
    Builtin { name, also: &[], title, commands, older: &[], install }
}

impl Builtin {
    const fn also(mut self, names: &'static [&'static str]) -> Builtin {
        self.also = names;
        self
    }

    const fn older(mut self, command: &'static [&'static str]) -> Builtin {
        self.older = command;
        self
    }

    /// The command to start it with on this machine.
    pub(crate) fn command(&self) -> &'static [&'static str] {
        let commands: &'static [&'static [&'static str]] = self.commands;
        let installed = |command: &&&'static [&'static str]| {
            command.first().is_some_and(|program| super::on_path(program).is_some())
        };
        commands.iter().find(installed).or(commands.last()).copied().unwrap_or_default()
    }

    pub(crate) fn spec(&self) -> AgentSpec {
        self.spec_of(self.command())
    }

    /// The same agent in an older version, if that is started differently.
    pub(crate) fn older_spec(&self) -> Option<AgentSpec> {
        (!self.older.is_empty()).then(|| AgentSpec { known: true, ..self.spec_of(self.older) })
    }

    fn spec_of(&self, command: &'static [&'static str]) -> AgentSpec {
        let mut words = command.iter().map(|&word| word.to_owned());
        let mut command = words.next().unwrap_or_default();
        if self.name == OWN {
            command = own_program(command);
        }
        AgentSpec::new(self.name, Address::Command { command, args: words.collect() })
    }
}

/// This program's own agent.
pub(crate) const OWN: &str = "attache";

/// This program, whether it is installed or not: by its name if that leads here, else by its path.
fn own_program(name: String) -> String {
    let Ok(here) = std::env::current_exe().and_then(std::fs::canonicalize) else { return name };
    let found = super::on_path(&name).and_then(|path| path.canonicalize().ok());
    if found.as_ref() == Some(&here) { name } else { here.to_string_lossy().into_owned() }
}

/// The agent of this name.
pub(crate) fn builtin(name: &str) -> Option<&'static Builtin> {
    BUILTIN.iter().find(|agent| agent.name == name || agent.also.contains(&name))
}

/// The table. Programs that are installed come before packages that are fetched.
pub(crate) static BUILTIN: &[Builtin] = &[
    agent(OWN, "Attaché's own agent", &[&["attache", "agent"]], ""),
    agent(
        "claude",
        "Claude Code",
        &[
            &["claude-agent-acp"],
            &["claude-code-acp"],
            &["npx", "-y", "@agentclientprotocol/claude-agent-acp"],
        ],
        "npm install -g @agentclientprotocol/claude-agent-acp",
    )
    .also(&["claude-code"]),
    agent(
        "codex",
        "Codex",
        &[&["codex-acp"], &["npx", "-y", "@agentclientprotocol/codex-acp"]],
        "npm install -g @agentclientprotocol/codex-acp",
    ),
    agent("gemini", "Gemini CLI", &[&["gemini", "--acp"]], "npm install -g @google/gemini-cli")
        .older(&["gemini", "--experimental-acp"]),
    agent(
        "opencode",
        "OpenCode",
        &[&["opencode", "acp"], &["npx", "-y", "opencode-ai", "acp"]],
        "npm install -g opencode-ai",
    ),
    agent("qwen", "Qwen Code", &[&["qwen", "--acp"]], "npm install -g @qwen-code/qwen-code")
        .older(&["qwen", "--experimental-acp"]),
    agent("copilot", "GitHub Copilot", &[&["copilot", "--acp", "--stdio"]], "npm install -g @github/copilot"),
    agent("goose", "Goose", &[&["goose", "acp"]], "https://block.github.io/goose"),
    agent("cursor", "Cursor", &[&["cursor-agent", "acp"]], "https://cursor.com/cli"),
    agent("kimi", "Kimi CLI", &[&["kimi", "acp"]], "uv tool install kimi-cli"),
    agent("auggie", "Augment Code", &[&["auggie", "--acp"]], "npm install -g @augmentcode/auggie"),
    agent("pi", "pi", &[&["pi-acp"], &["npx", "-y", "pi-acp"]], "npm install -g pi-acp"),
    agent("openclaw", "OpenClaw", &[&["openclaw", "acp"]], "npm install -g openclaw"),
    agent("devin", "Devin", &[&["devin", "acp"]], "https://devin.ai"),
    agent("droid", "Factory Droid", &[&["droid", "exec", "--output-format", "acp"]], "https://factory.ai")
        .also(&["factory-droid", "factorydroid"]),
    agent(
        "fast-agent",
        "fast-agent",
        &[&["fast-agent-acp"], &["uvx", "fast-agent-mcp", "acp"]],
        "uv tool install fast-agent-mcp",
    ),
    agent("fx", "fx", &[&["fx", "acp"]], "https://github.com/openclaw/fx"),
    agent("grok-build", "Grok", &[&["grok", "agent", "stdio"]], "https://x.ai/cli"),
    agent("iflow", "iFlow", &[&["iflow", "--experimental-acp"]], "npm install -g @iflow-ai/iflow-cli"),
    agent("junie", "Junie", &[&["junie", "--acp=true"]], "https://www.jetbrains.com/junie"),
    agent(
        "kilocode",
        "Kilo Code",
        &[&["kilo", "acp"], &["npx", "-y", "@kilocode/cli", "acp"]],
        "npm install -g @kilocode/cli",
    ),
    agent("kiro", "Kiro", &[&["kiro-cli-chat", "acp"], &["kiro-cli", "acp"]], "https://kiro.dev/cli"),
    agent("mcode", "MCode", &[&["mcode", "acp"]], "npm install -g mcode"),
    agent("mistral-vibe", "Mistral Vibe", &[&["vibe-acp"]], "uv tool install mistral-vibe").also(&["vibe"]),
    agent("mux", "Mux", &[&["mux", "acp"], &["npx", "-y", "mux", "acp"]], "npm install -g mux"),
    agent("openhands", "OpenHands", &[&["openhands", "acp"]], "uv tool install openhands"),
    agent("pool", "Pool", &[&["pool", "acp"]], "https://poolside.ai"),
    agent("qoder", "Qoder", &[&["qodercli", "--acp"]], "npm install -g @qoder-ai/qodercli"),
    agent("stakpak", "Stakpak", &[&["stakpak", "acp"]], "https://stakpak.dev"),
    agent("trae", "Trae", &[&["traecli", "acp", "serve"]], "https://www.trae.ai"),
    agent("zeroclaw", "ZeroClaw", &[&["zeroclaw", "acp"]], "https://github.com/zeroclaw-labs/zeroclaw"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_one_agent() {
        for agent in BUILTIN {
            for name in agent.also.iter().chain([&agent.name]) {
                let found = BUILTIN.iter().filter(|other| other.name == *name || other.also.contains(name));
                assert_eq!(found.count(), 1, "{name}");
            }
            assert!(agent.commands.iter().all(|command| !command.is_empty()), "{}", agent.name);
        }
    }
}
