//! Where the programs come from: the official SDKs into a cache outside the repository, ours from
//! the workspace.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{OURS, Program, home};

/// The version of each official SDK. The lock files in `tests/interop` name the same.
pub(super) const PYTHON_SDK: &str = "agent-client-protocol==0.12.1";
pub(super) const RUST_SDK: &str = "agent-client-protocol@5.0.0";

pub(super) struct Ours {
    pub(super) agent: Program,
    pub(super) client: Program,
}

/// The cache directory, made if it is missing.
pub(crate) fn cache() -> Result<PathBuf, String> {
    let base = match (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")) {
        (Some(cache), _) if !cache.is_empty() => PathBuf::from(cache),
        (_, Some(home)) => PathBuf::from(home).join(".cache"),
        _ => return Err("neither XDG_CACHE_HOME nor HOME is set".to_owned()),
    };
    let cache = base.join("attache/interop");
    fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    Ok(cache)
}

/// Builds our agent and client for the scenarios.
pub(super) fn ours() -> Result<Ours, String> {
    println!("build   ours: the agent and the client for the scenarios");
    let [agent, client] = our_peers(["interop_agent", "interop_client"])?;
    Ok(Ours {
        agent: Program { name: OURS, command: vec![agent] },
        client: Program { name: OURS, command: vec![client] },
    })
}

/// Builds peers of `tests/interop/peers`.
pub(super) fn our_peers<const N: usize>(names: [&str; N]) -> Result<[String; N], String> {
    programs(false, ["attache-interop-peers"; N], names)
}

/// Builds examples of the SDK.
pub(super) fn our_examples<const N: usize>(names: [&str; N]) -> Result<[String; N], String> {
    let mut cargo = cargo();
    cargo.args(["build", "--quiet", "--package", "attache", "--message-format", "json-render-diagnostics"]);
    for name in names {
        cargo.args(["--example", name]);
    }
    built(cargo.current_dir(crate::repo::root()), names)
}

/// Installs one official SDK and returns the client and the agent on it.
pub(super) fn official(sdk: &'static str, cache: &Path) -> Result<(Program, Program), String> {
    let side = |command: Vec<String>| Program { name: sdk, command };
    match sdk {
        "ts" => {
            let dir = typescript(cache)?;
            let run = |file: &str| side(vec!["node".to_owned(), text(&dir.join(file))]);
            Ok((run("client.mjs"), run("agent.mjs")))
        }
        "py" => {
            let python = text(&python(cache)?);
            let run = |file: &str| side(vec![python.clone(), text(&home().join("py").join(file))]);
            Ok((run("client.py"), run("agent.py")))
        }
        _ => {
            println!("build   rust: the peers on agent-client-protocol 5.0.0");
            let [client, agent] = apart(&home().join("rust-peer"), cache, ["client", "agent"])?;
            Ok((side(vec![client]), side(vec![agent])))
        }
    }
}

/// The name of an official SDK for readers, with its version.
pub(super) fn title(sdk: &str) -> &'static str {
    match sdk {
        "ts" => "TypeScript 2.4.0",
        "py" => "Python 0.12.1",
        _ => "Rust SDK 5.0.0",
    }
}

/// The client on an official SDK that sends one prompt to a server: its command takes the URL, the
/// prompt and perhaps a session.
pub(super) fn remote_client(sdk: &'static str, cache: &Path) -> Result<Vec<String>, String> {
    Ok(match sdk {
        "ts" => vec!["node".to_owned(), text(&typescript(cache)?.join("remote.mjs"))],
        "py" => vec![text(&python(cache)?), text(&home().join("py/remote.py"))],
        _ => vec![rust_peer(cache, "remote")?],
    })
}

/// The client of version 2 on the official TypeScript SDK.
pub(super) fn client_v2(cache: &Path) -> Result<Vec<String>, String> {
    Ok(vec!["node".to_owned(), text(&typescript(cache)?.join("client_v2.mjs"))])
}

/// The agent of version 2 on the official TypeScript SDK.
pub(super) fn ts_agent_v2(cache: &Path) -> Result<Vec<String>, String> {
    Ok(vec!["node".to_owned(), text(&typescript(cache)?.join("agent_v2.mjs"))])
}

/// The agents of both versions behind the router of one SDK.
pub(super) fn router(sdk: &str, cache: &Path) -> Result<Vec<String>, String> {
    Ok(match sdk {
        "ts" => vec!["node".to_owned(), text(&typescript(cache)?.join("router.mjs"))],
        _ => vec![rust_peer(cache, "router")?],
    })
}

/// The client of one SDK that offers one version or both.
pub(super) fn versions_client(sdk: &str, cache: &Path) -> Result<Vec<String>, String> {
    Ok(match sdk {
        "ts" => vec!["node".to_owned(), text(&typescript(cache)?.join("versions.mjs"))],
        _ => vec![rust_peer(cache, "versions")?],
    })
}

/// A program on the official Rust SDK.
pub(super) fn rust_peer(cache: &Path, name: &str) -> Result<String, String> {
    let [program] = apart(&home().join("rust-peer"), cache, [name])?;
    Ok(program)
}

/// The client on the official MCP SDKs for TypeScript.
pub(super) fn mcp_client(source: &Path, dir: &Path) -> Result<Vec<String>, String> {
    need("node", "to run the MCP client")?;
    npm(source, dir, "mcp: @modelcontextprotocol/client 2.4.0 and @modelcontextprotocol/sdk 1.32.2")?;
    copy(&source.join("client.mjs"), &dir.join("client.mjs"))?;
    Ok(vec!["node".to_owned(), text(&dir.join("client.mjs"))])
}

/// The example programs of the official Rust SDK, by name.
pub(super) fn rust_examples<const N: usize>(cache: &Path, names: [&str; N]) -> Result<[String; N], String> {
    let root = cache.join("rust-examples");
    once(&root, &format!("{RUST_SDK} {names:?}"), || {
        println!("install rust: the examples of {RUST_SDK}");
        let mut cargo = cargo();
        cargo.args([
            "install",
            "--quiet",
            "--locked",
            "--force",
            RUST_SDK,
            "--features",
            "process,stdio",
            "--root",
        ]);
        cargo.arg(&root).env("CARGO_TARGET_DIR", cache.join("rust-target")).current_dir(cache);
        for name in names {
            cargo.args(["--example", name]);
        }
        ok(&mut cargo)
    })?;
    Ok(names.map(|name| text(&root.join("bin").join(name))))
}

/// The examples of the official Python SDK: only its source package carries them.
pub(super) fn python_examples(cache: &Path) -> Result<PathBuf, String> {
    let root = cache.join("py-source");
    once(&root, PYTHON_SDK, || {
        println!("install py: the source package of {PYTHON_SDK}, for its examples");
        let mut pip = Command::new(python_in(cache));
        pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        pip.args(["--no-binary", "agent-client-protocol", PYTHON_SDK, "--dest"]).arg(&root);
        ok(&mut pip)?;
        let archive = find(&root, ".tar.gz")?;
        ok(Command::new(python_in(cache)).args(["-m", "tarfile", "-e"]).arg(archive).arg(&root))
    })?;
    let archive = text(&find(&root, ".tar.gz")?);
    Ok(PathBuf::from(archive.trim_end_matches(".tar.gz")).join("examples"))
}

fn typescript(cache: &Path) -> Result<PathBuf, String> {
    need("node", "to run the TypeScript peers")?;
    let (source, dir) = (home().join("ts"), cache.join("ts"));
    npm(&source, &dir, "ts: @agentclientprotocol/sdk 2.4.0")?;
    // The peers import the SDK from the directory they are in.
    for file in [
        "agent.mjs",
        "agent_v2.mjs",
        "client.mjs",
        "client_v2.mjs",
        "remote.mjs",
        "router.mjs",
        "versions.mjs",
    ] {
        copy(&source.join(file), &dir.join(file))?;
    }
    Ok(dir)
}

/// Installs what a lock file lists, from the directory `source` into `dir`, and returns `dir`.
pub(super) fn npm(source: &Path, dir: &Path, what: &str) -> Result<PathBuf, String> {
    let lock = read(&source.join("package-lock.json"))?;
    once(dir, &lock, || {
        need("npm", "to install agents")?;
        println!("install {what}");
        for file in ["package.json", "package-lock.json"] {
            copy(&source.join(file), &dir.join(file))?;
        }
        // Not `ci`: that wants the lock file to name the packages for every other system too.
        let install = ["install", "--no-save", "--silent", "--no-audit", "--no-fund"];
        ok(Command::new("npm").args(install).current_dir(dir))
    })?;
    Ok(dir.to_owned())
}

/// Builds a package that stands outside of the workspace; its target directory is in the cache.
pub(super) fn apart<const N: usize>(
    package: &Path,
    cache: &Path,
    names: [&str; N],
) -> Result<[String; N], String> {
    let mut cargo = cargo();
    cargo.args(["build", "--quiet", "--locked", "--message-format", "json-render-diagnostics"]);
    cargo.env("CARGO_TARGET_DIR", cache.join("rust-target"));
    built(cargo.current_dir(package), names)
}

/// Builds the program `attache`.
pub(crate) fn program() -> Result<String, String> {
    let [program] = programs(false, ["attache-cli"], ["attache"])?;
    Ok(program)
}

/// Builds programs of packages of the workspace and returns their paths.
///
/// # Errors
/// When cargo fails, or does not report one of the programs.
pub fn programs<const N: usize>(
    release: bool,
    packages: [&str; N],
    names: [&str; N],
) -> Result<[String; N], String> {
    let mut cargo = cargo();
    cargo.args(["build", "--quiet", "--message-format", "json-render-diagnostics"]);
    if release {
        cargo.arg("--release");
    }
    for (package, name) in packages.iter().zip(names) {
        cargo.args(["--package", package, "--bin", name]);
    }
    built(cargo.current_dir(crate::repo::root()), names)
}

fn python_in(cache: &Path) -> PathBuf {
    cache.join("py").join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

fn python(cache: &Path) -> Result<PathBuf, String> {
    need("python3", "to run the Python peers")?;
    let dir = cache.join("py");
    let requirements = home().join("py/requirements.txt");
    once(&dir, &read(&requirements)?, || {
        println!("install py: {PYTHON_SDK}");
        ok(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
        let mut pip = Command::new(python_in(cache));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        ok(pip.arg(&requirements))
    })?;
    Ok(python_in(cache))
}

/// Runs `install` unless it has succeeded before with the same `what`.
pub(crate) fn once(
    dir: &Path,
    what: &str,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let stamp = dir.join(".installed");
    if fs::read_to_string(&stamp).is_ok_and(|before| before == what) {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    install()?;
    fs::write(&stamp, what).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn need(program: &str, what_for: &str) -> Result<(), String> {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("`{program}` is needed {what_for}; install it, or leave that SDK out with --only")),
    }
}

/// The cargo that runs us, without the variables that it set for us.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").as_deref().unwrap_or(OsStr::new("cargo")));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(name.as_ref());
        }
    }
    cargo
}

/// Runs a cargo build that reports its results as JSON, and returns the programs of those names.
fn built<const N: usize>(cargo: &mut Command, names: [&str; N]) -> Result<[String; N], String> {
    let output =
        cargo.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err("the build failed, see above".to_owned());
    }
    let mut found = names.map(|_| None);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let Some(program) = message["executable"].as_str() else { continue };
        if let Some(at) = names.iter().position(|name| message["target"]["name"] == **name) {
            found[at] = Some(program.to_owned());
        }
    }
    let missing: Vec<&str> =
        names.iter().zip(&found).filter(|(_, program)| program.is_none()).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        Ok(found.map(Option::unwrap_or_default))
    } else {
        Err(format!("cargo did not build {}", missing.join(", ")))
    }
}

pub(crate) fn ok(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&said).trim()))
}

fn find(dir: &Path, suffix: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| text(path).ends_with(suffix)).ok_or_else(|| format!("{}: no {suffix}", dir.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
