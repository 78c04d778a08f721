//! Who is measured, and how each of them comes into being.

use super::Places;
use std::path::Path;
use std::process::{Command, Stdio};

/// In the order of the table's columns.
pub(super) const NAMES: &[&str] =
    &["ours", "ours-v2", "ours-mt", "rust-sdk", "floor", "raw", "ts-sdk", "py-sdk"];

/// Measured only when named.
pub(super) const ON_DEMAND: &[&str] = &["raw"];

pub(super) struct Peer {
    pub name: &'static str,
    pub agent: Vec<String>,
    /// Raw bytes have no client.
    pub client: Option<Vec<String>>,
    /// Its server, if it has one and a scenario wants it.
    pub server: Option<Vec<String>>,
    /// The version of the protocol that it is measured in.
    pub protocol: u8,
    /// Fast enough for the full size of every scenario.
    pub fast: bool,
    /// The directory of its minimal agent, for the cost of a build.
    pub minimal: Option<&'static str>,
}

/// The driver and the load for clients.
pub(super) struct Tools {
    pub driver: String,
    pub raw_agent: String,
}

pub(super) fn build_tools(places: &Places) -> Result<Tools, String> {
    cargo_build(places, "bench-driver")?;
    Ok(Tools { driver: places.program("bench-driver"), raw_agent: places.program("raw-agent") })
}

/// Builds what is wanted. A peer that cannot be had here is left out with a word why; ours must be
/// there.
pub(super) fn prepare(
    places: &Places,
    wanted: impl Fn(&str) -> bool,
    with_servers: bool,
) -> Result<Vec<Peer>, String> {
    let mut peers = Vec::new();
    for name in NAMES.iter().copied().filter(|name| wanted(name)) {
        match prepare_one(places, name) {
            Ok(mut peer) => {
                if with_servers {
                    peer.server = server(places, name)?;
                }
                peers.push(peer);
            }
            Err(why) if name.starts_with("ours") => return Err(why),
            Err(why) => eprintln!("{name} is left out: {why}"),
        }
    }
    if peers.is_empty() { Err("no peer is left to measure".into()) } else { Ok(peers) }
}

fn prepare_one(places: &Places, name: &'static str) -> Result<Peer, String> {
    let rust = |package: &str, agent: &str, client: &str| {
        cargo_build(places, package)?;
        Ok::<_, String>((vec![places.program(agent)], Some(vec![places.program(client)])))
    };
    let ((agent, client), fast, minimal) = match name {
        "ours" => (rust("bench-ours", "bench-agent", "bench-client")?, true, Some("minimal-ours")),
        "ours-v2" => (rust("bench-ours", "bench-agent", "bench-client")?, true, None),
        "ours-mt" => {
            // The same programs on the runtime that `#[tokio::main]` gives.
            let (mut agent, mut client) = rust("bench-ours", "bench-agent", "bench-client")?;
            agent.push("--multi-thread".into());
            client.iter_mut().for_each(|client| client.push("--multi-thread".into()));
            ((agent, client), true, None)
        }
        "rust-sdk" => (rust("bench-rust-sdk", "sdk-agent", "sdk-client")?, false, Some("minimal-rust-sdk")),
        "floor" => (rust("bench-floor", "floor-agent", "floor-client")?, true, None),
        "raw" => ((vec![places.program("raw-agent")], None), true, None),
        "ts-sdk" => (typescript(places)?, false, None),
        "py-sdk" => (python(places)?, false, None),
        other => return Err(format!("nobody knows how to build {other}")),
    };
    let protocol = if name == "ours-v2" { 2 } else { 1 };
    Ok(Peer { name, agent, client, server: None, protocol, fast, minimal })
}

/// Builds the server of a peer whose agent is there.
fn server(places: &Places, name: &str) -> Result<Option<Vec<String>>, String> {
    let rust = |package: &str, program: &str| {
        cargo_build(places, package)?;
        Ok::<_, String>(Some(vec![places.program(program)]))
    };
    match name {
        "ours" => rust("bench-ours-net", "bench-server"),
        "rust-sdk" => rust("bench-rust-sdk-net", "sdk-server"),
        "ts-sdk" => Ok(Some(typescript_command(places, "server.mjs"))),
        "py-sdk" => Ok(Some(python_command(places, "server.py"))),
        _ => Ok(None),
    }
}

/// One package at a time: together they would share features that none asked for alone.
fn cargo_build(places: &Places, package: &str) -> Result<(), String> {
    eprintln!("building {package}");
    let mut cargo = cargo();
    cargo.args(["build", "--release", "--quiet", "--package", package]);
    cargo.current_dir(&places.sources).env("CARGO_TARGET_DIR", &places.target);
    finish(&mut cargo)
}

/// The cargo that runs this program, or the one in the path.
pub(super) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

type Commands = (Vec<String>, Option<Vec<String>>);

fn typescript(places: &Places) -> Result<Commands, String> {
    present("node")?;
    present("npm")?;
    let home = places.cache.join("ts");
    copy(&places.sources.join("peers-ts"), &home)?;
    once(&home, "package.json", || {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]);
        finish(npm.current_dir(&home).stdout(Stdio::null()))
    })?;
    Ok((typescript_command(places, "agent.mjs"), Some(typescript_command(places, "client.mjs"))))
}

/// What starts a script of the TypeScript SDK.
fn typescript_command(places: &Places, script: &str) -> Vec<String> {
    vec!["node".to_owned(), places.cache.join("ts").join(script).display().to_string()]
}

fn python(places: &Places) -> Result<Commands, String> {
    present("python3")?;
    let home = places.cache.join("py");
    copy(&places.sources.join("peers-py"), &home)?;
    let python = home.join("venv/bin/python");
    once(&home, "requirements.txt", || {
        finish(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(&home))?;
        let pip = ["-m", "pip", "install", "--quiet", "-r", "requirements.txt"];
        finish(Command::new(&python).args(pip).current_dir(&home))
    })?;
    Ok((python_command(places, "agent.py"), Some(python_command(places, "client.py"))))
}

/// What starts a script of the Python SDK.
fn python_command(places: &Places, script: &str) -> Vec<String> {
    let home = places.cache.join("py");
    [home.join("venv/bin/python"), home.join(script)].map(|path| path.display().to_string()).into()
}

fn present(program: &str) -> Result<(), String> {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("`{program}` is not installed")),
    }
}

/// Scripts run where their packages are, so that nothing is ever installed into the repository.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let say = |error: std::io::Error| format!("{}: {error}", to.display());
    std::fs::create_dir_all(to).map_err(say)?;
    for file in std::fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?.flatten() {
        if file.path().is_file() {
            std::fs::copy(file.path(), to.join(file.file_name())).map_err(say)?;
        }
    }
    Ok(())
}

/// Installs unless the last installation was made from the same list.
fn once(home: &Path, list: &str, install: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let wanted = std::fs::read(home.join(list)).map_err(|error| format!("{list}: {error}"))?;
    let stamp = home.join(".installed");
    if std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("installing what {list} names into {}", home.display());
    install()?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

pub(super) fn finish(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} ended with {status}")),
        Err(error) => Err(format!("{name} does not start: {error}")),
    }
}
