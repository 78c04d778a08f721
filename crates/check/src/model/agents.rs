//! Settings of known agents, so that they talk to the scripted model.
//!
//! They are data, `agents.jsonl`: environment and files in the home directory, with `{url}` and
//! `{model}` in them.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

/// Variables for agents that are not known: those that the providers' own libraries read.
const COMMON: &[(&str, &str)] = &[
    ("OPENAI_API_KEY", "none"),
    ("OPENAI_BASE_URL", "{url}/v1"),
    ("OPENAI_API_BASE", "{url}/v1"),
    ("OPENAI_MODEL", "{model}"),
    ("ANTHROPIC_API_KEY", "none"),
    ("ANTHROPIC_BASE_URL", "{url}"),
    ("GEMINI_API_KEY", "none"),
    ("GOOGLE_API_KEY", "none"),
    ("GOOGLE_GEMINI_BASE_URL", "{url}"),
];

/// Programs that run a script or a package.
const RUNNERS: &[&str] =
    &["node", "bun", "deno", "python", "python3", "npx", "bunx", "pnpx", "pnpm", "yarn", "uvx", "uv", "pipx"];

/// Those of them that may have to download the package.
const INSTALLERS: &[&str] = &["npx", "bunx", "pnpx", "pnpm", "yarn", "uvx", "uv", "pipx"];

/// An agent whose settings are known.
#[derive(Debug, serde::Deserialize)]
pub struct KnownAgent {
    /// The name.
    pub name: String,
    /// Whether two of its processes must not start at once in a new home directory.
    #[serde(default)]
    pub alone: bool,
    /// Names of its programs and packages.
    programs: Vec<String>,
    env: serde_json::Map<String, Value>,
    /// Files in its home directory, as JSON or as text.
    files: serde_json::Map<String, Value>,
}

static KNOWN: LazyLock<Vec<KnownAgent>> = LazyLock::new(|| {
    let lines = include_str!("../../agents.jsonl").lines();
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
});

impl KnownAgent {
    /// All of them.
    pub fn all() -> &'static [KnownAgent] {
        &KNOWN
    }

    /// The agent that a command starts, also by a runner such as `npx`.
    pub fn of_command(command: &[String]) -> Option<&'static KnownAgent> {
        let (program, args) = command.split_first()?;
        let program = stem(program);
        let mut names = vec![program.to_owned()];
        if RUNNERS.contains(&program) {
            let script =
                args.iter().find(|word| !word.starts_with('-') && *word != "run" && *word != "dlx")?;
            names.extend(package(script));
            names.push(stem(script).to_owned());
        }
        names.iter().find_map(|name| KNOWN.iter().find(|agent| agent.programs.contains(name)))
    }
}

/// The last component of a path without its extension and, for a package, its version.
fn stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    [".js", ".mjs", ".cjs", ".exe", ".cmd", ".py"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name)
}

/// The npm package of a script, or the package that a runner is told to start.
fn package(script: &str) -> Option<String> {
    let path = script.rsplit_once("node_modules/").map_or(script, |(_, path)| path);
    let mut parts = path.split('/');
    let first = parts.next().filter(|part| !part.is_empty())?;
    let without_version = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
    match first.strip_prefix('@') {
        Some(scope) => Some(format!("@{scope}/{}", without_version(parts.next()?))),
        None => Some(without_version(first)),
    }
}

/// Writes the settings of the agent into `home` and returns the variables for its process.
pub(super) fn environment(command: &[String], url: &str, home: &Path) -> io::Result<Vec<(String, String)>> {
    let fill = |text: &str| text.replace("{url}", url).replace("{model}", super::MODEL);
    let agent = KnownAgent::of_command(command);
    let at = |sub: &str| home.join(sub).to_string_lossy().into_owned();
    let mut env: Vec<(String, String)> = [
        ("HOME", ""),
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CACHE_HOME", ".cache"),
    ]
    .map(|(name, sub)| (name.to_owned(), at(sub)))
    .into();
    let is_installer = command.first().is_some_and(|program| INSTALLERS.contains(&stem(program)));
    if is_installer {
        // Its packages are in the caches of the real home directory, or must be downloaded.
        if let Some(real) = std::env::var_os("HOME").map(std::path::PathBuf::from) {
            for (name, sub) in [("npm_config_cache", ".npm"), ("UV_CACHE_DIR", ".cache/uv")] {
                env.push((name.to_owned(), real.join(sub).to_string_lossy().into_owned()));
            }
        }
    } else {
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            env.push((name.to_owned(), url.to_owned()));
        }
        env.push(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        env.push((name.to_owned(), "127.0.0.1,localhost,::1".to_owned()));
    }
    env.extend(COMMON.iter().map(|(name, value)| ((*name).to_owned(), fill(value))));
    let Some(agent) = agent else { return Ok(env) };
    for (name, value) in &agent.env {
        env.push((name.clone(), fill(value.as_str().unwrap_or_default())));
    }
    for (path, content) in &agent.files {
        let path = home.join(path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        fs::write(path, fill(&text))?;
    }
    Ok(env)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn known(command: &str) -> Option<&'static str> {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        KnownAgent::of_command(&words).map(|agent| agent.name.as_str())
    }

    #[test]
    fn every_line_is_an_agent() {
        assert_eq!(KnownAgent::all().len(), include_str!("../../agents.jsonl").lines().count());
    }

    #[test]
    fn agents_are_recognised_by_program_package_and_script() {
        assert_eq!(known("gemini --acp"), Some("gemini"));
        assert_eq!(known("/opt/bin/opencode.exe acp"), Some("opencode"));
        assert_eq!(known("npx -y @google/gemini-cli@0.61.0 --acp"), Some("gemini"));
        assert_eq!(known("npx @zed-industries/claude-code-acp"), Some("claude"));
        assert_eq!(known("node /x/node_modules/@qwen-code/qwen-code/cli-entry.js --acp"), Some("qwen"));
        assert_eq!(known("node /x/node_modules/pi-acp/dist/index.js"), Some("pi"));
    }

    #[test]
    fn a_directory_or_an_argument_does_not_make_an_agent() {
        assert_eq!(known("/home/gemini/my-agent --acp"), None);
        assert_eq!(known("my-agent gemini"), None);
        assert_eq!(known("node ./agent.js --model gemini"), None);
    }

    #[test]
    fn settings_name_the_server() {
        let dir = attache_conn::private::TempDir::new("attache-check-home").unwrap();
        let home = dir.path();
        for agent in KnownAgent::all() {
            let env = environment(&agent.programs[..1], "http://127.0.0.1:9", home).unwrap();
            let names_it = env.iter().any(|(_, value)| value.starts_with("http://127.0.0.1:9"));
            assert!(names_it, "{}", agent.name);
            assert!(env.iter().all(|(_, value)| !value.contains("{url}") && !value.contains("{model}")));
            for path in agent.files.keys() {
                let text = fs::read_to_string(home.join(path)).unwrap();
                assert!(!text.contains("{url}") && !text.contains("{model}"), "{}: {text}", agent.name);
            }
        }
    }
}
