//! Who is judged.

use std::path::{Path, PathBuf};

use super::super::install;
use super::super::real;

pub(super) struct Peer {
    /// As the page names it.
    pub(super) name: String,
    pub(super) version: String,
    /// The version of the protocol.
    pub(super) protocol: u8,
    side: &'static str,
    pub(super) command: Vec<String>,
    pub(super) flags: Vec<String>,
    /// The directory of `node` for an agent that has the scripted model.
    pub(super) node: Option<PathBuf>,
}

impl Peer {
    pub(super) fn side(&self) -> &'static str {
        self.side
    }

    pub(super) fn file(&self) -> String {
        let name = self.name.replace([' ', '/', '.', ','], "-");
        match self.protocol {
            1 => format!("{}-{name}", self.side()),
            version => format!("{}-{name}-v{version}", self.side()),
        }
    }

    /// Big programs take all of a small machine while they start, and codex cannot be started twice
    /// in a new home.
    pub(super) fn jobs(&self) -> &'static str {
        match self.name.as_str() {
            "codex" => "1",
            _ if self.node.is_some() => "2",
            _ => "4",
        }
    }
}

/// A server or a remote client; what starts it is not part of it.
pub(super) fn remote(name: &str, version: &str, side: &'static str) -> Peer {
    Peer { side, ..agent(name, version, Vec::new()) }
}

/// Agents that are judged and that our clients do not drive: name, version, script in
/// `node_modules`, arguments.
const ONLY_JUDGED: &[(&str, &str, &str, &[&str])] = &[
    ("pi", "0.0.24", "pi-acp/dist/index.js", &[]),
    ("kimi", "2.1.0", "@moonshot-ai/kimi-code/dist/main.mjs", &["acp"]),
    ("copilot", "1.0.102", "@github/copilot/npm-loader.js", &["--acp", "--no-auto-update"]),
    ("cline", "3.0.65", "cline/bin/cline", &["--acp", "--auto-approve", "false"]),
    ("zed-codex", "0.16.0", "@zed-industries/codex-acp/bin/codex-acp.js", &[]),
];

/// The prompts by which our coding agent's script knows what to do.
const SCENES: &[&str] = &["say", "read", "write", "run", "run-long", "ask", "plan", "think", "lines", "fail"];

/// A client that takes its prompt from standard input.
const PIPED: &str = r#"prompt=$1; shift; printf '%s\n' "$prompt" | "$@""#;

/// A client that starts its agent by `npx`: what is found under that name is the checker.
const BY_NPX: &str =
    r#"printf '#!/bin/sh\nexec %s\n' "$1" > npx; chmod +x npx; PATH=$PWD:$PATH; shift; exec "$@""#;

/// Peers that speak version 2 too.
const OF_VERSION_2: &[&str] = &["attache interop_agent", "attache agent", "attache exec", "claude", "codex"];

/// The peers in version 1, then those that speak version 2 in that.
pub(super) fn all(cache: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Peer>, String> {
    let mut peers = of_version_1(cache, wanted)?;
    let again = of_version_1(cache, &|name| OF_VERSION_2.contains(&name) && wanted(name))?;
    for mut peer in again.into_iter().filter(|peer| OF_VERSION_2.contains(&peer.name.as_str())) {
        match peer.name.as_str() {
            "attache interop_agent" => peer.flags.extend(["--login".to_owned(), "pass".to_owned()]),
            "attache exec" => peer = exec(&["--protocol", "2"])?,
            _ => {}
        }
        peer.protocol = 2;
        peers.push(peer);
    }
    official_of_version_2(cache, wanted, &mut peers)?;
    Ok(peers)
}

/// What makes the agents of version 2 on the official SDKs do things.
const WORDS: &[(&str, &str)] = &[
    ("say", "say hello"),
    ("lines", "say grüße, 世界"),
    ("ask", "edit {cwd}/notes.txt"),
    ("write", "edit {cwd}/notes.txt"),
    ("run", "run"),
    ("run-long", "forever"),
    ("think", "forever"),
    ("fail", "fail"),
    ("background", "background"),
];

fn official_of_version_2(
    cache: &Path,
    wanted: &dyn Fn(&str) -> bool,
    peers: &mut Vec<Peer>,
) -> Result<(), String> {
    let flags: Vec<String> = WORDS.iter().flat_map(|(kind, text)| prompt(kind, text)).collect();
    let mut push = |name: &str, version: &str, command: Vec<String>| {
        peers.push(Peer { protocol: 2, flags: flags.clone(), ..agent(name, version, command) });
    };
    let (ours, typescript, rust) =
        ("attache interop_client", "official TypeScript peer", "official Rust peer");
    let mut clients = Vec::new();
    if wanted(ours) {
        let program = install::our_peers(["interop_client_v2"])?;
        clients.push((ours, env!("CARGO_PKG_VERSION"), program.to_vec()));
    }
    if wanted(typescript) {
        push(typescript, "2.4.0", install::ts_agent_v2(cache)?);
        clients.push((typescript, "2.4.0", install::client_v2(cache)?));
    }
    if wanted(rust) {
        push(rust, "5.0.0", vec![install::rust_peer(cache, "agent_v2")?]);
        clients.push((rust, "5.0.0", vec![install::rust_peer(cache, "client_v2")?]));
    }
    for (name, version, mut command) in clients {
        command.extend(["--", "{agent:argv}"].map(str::to_owned));
        peers.push(Peer { protocol: 2, flags: Vec::new(), ..client(name, version, command) });
    }
    Ok(())
}

fn of_version_1(cache: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Peer>, String> {
    let mut peers = Vec::new();
    ours(wanted, &mut peers)?;
    official(cache, wanted, &mut peers)?;
    let modelled = |node: &Path, peer: Peer| {
        let flags = vec!["--fake-model".to_owned()];
        Peer { node: Some(node.to_owned()), flags, ..peer }
    };
    for agent in real::modelled(cache, wanted)? {
        peers.push(modelled(agent.node(), self::agent(agent.name(), &agent.version(), agent.command()?)));
    }
    for (name, version, script, args) in ONLY_JUDGED.iter().filter(|(name, ..)| wanted(name)) {
        let node = real::package("node", cache)?.join("node_modules/node/bin");
        let modules = real::package(name, cache)?.join("node_modules");
        let mut command = vec![node.join("node"), modules.join(script)];
        command.extend(args.iter().map(PathBuf::from));
        let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut peer = modelled(&node, agent(name, version, command));
        if *name == "pi" {
            let pi = modules.join(".bin/pi");
            peer.flags.extend(["--env".to_owned(), format!("PI_ACP_PI_COMMAND={}", pi.display())]);
        }
        peers.push(peer);
    }
    acpx(cache, wanted, &mut peers)?;
    Ok(peers)
}

fn prompt(kind: &str, text: &str) -> [String; 2] {
    ["--prompt".to_owned(), format!("{kind}={text}")]
}

fn agent(name: &str, version: &str, command: Vec<String>) -> Peer {
    Peer {
        name: name.to_owned(),
        version: version.to_owned(),
        protocol: 1,
        side: "agent",
        command,
        flags: Vec::new(),
        node: None,
    }
}

fn client(name: &str, version: &str, command: Vec<String>) -> Peer {
    let flags = vec!["--action".to_owned(), "cancel=SIGINT".to_owned()];
    Peer { side: "client", flags, ..agent(name, version, command) }
}

fn ours(wanted: &dyn Fn(&str) -> bool, peers: &mut Vec<Peer>) -> Result<(), String> {
    let here = env!("CARGO_PKG_VERSION");
    let names =
        ["attache echo_agent", "attache tool_agent", "attache interop_agent", "attache example client"];
    if names.iter().any(|name| wanted(name)) {
        let [echo, tool, example] = install::our_examples(["echo_agent", "tool_agent", "client"])?;
        let [interop] = install::our_peers(["interop_agent"])?;
        let all = [
            agent(names[0], here, vec![echo]),
            agent(names[1], here, vec![tool]),
            agent(names[2], here, vec![interop]),
            client(names[3], here, vec![example, "{agent:argv}".to_owned()]),
        ];
        peers.extend(all.into_iter().filter(|peer| wanted(&peer.name)));
    }
    if wanted("attache agent") {
        let model = format!("script:{}", super::super::home().join("conformance.script").display());
        let command = [install::program()?, "agent".to_owned(), "--model".to_owned(), model].to_vec();
        let flags = SCENES.iter().flat_map(|kind| prompt(kind, &format!("[[{kind}]]"))).collect();
        peers.push(Peer { flags, ..agent("attache agent", here, command) });
    }
    if wanted("attache exec") {
        peers.push(exec(&[])?);
    }
    Ok(())
}

/// Our program as a client, with these flags.
fn exec(flags: &[&str]) -> Result<Peer, String> {
    let program = install::program()?;
    let program = [&[program.as_str()], flags].concat();
    let words = ["--agent", "{agent}", "--approve-all", "exec", "{prompt}"];
    let command = [&*program, &words].concat().into_iter().map(str::to_owned).collect();
    let mut peer = client("attache exec", env!("CARGO_PKG_VERSION"), command);
    peer.flags.extend([ACTIONS, MORE_ACTIONS].concat().iter().flat_map(|act| action(&program, act)));
    Ok(peer)
}

/// How our program and acpx are made to do more than one prompt.
const ACTIONS: &[(&str, &str)] = &[
    ("ask", "exec {prompt}"),
    ("bare", "--no-fs --no-terminal --approve-all exec {prompt}"),
    ("list", "sessions list"),
    ("config", "--approve-all exec --config-option attache-effort=attache-high {prompt}"),
    ("model", "--model attache-big --approve-all exec {prompt}"),
    ("system_prompt", "--system-prompt short --approve-all exec {prompt}"),
];

/// What only ours can do of it.
const MORE_ACTIONS: &[(&str, &str)] = &[
    ("login", "auth login"),
    ("logout", "auth logout"),
    ("auth_status", "auth status"),
    ("roots", "--add-dir {root} --add-dir {root:2} --approve-all exec {prompt}"),
];

fn action(program: &[&str], (act, rest): &(&str, &str)) -> [String; 2] {
    let program: Vec<String> = program.iter().map(|word| format!("'{word}'")).collect();
    ["--action".to_owned(), format!("{act}={} --agent {{agent}} {rest}", program.join(" "))]
}

fn official(cache: &Path, wanted: &dyn Fn(&str) -> bool, peers: &mut Vec<Peer>) -> Result<(), String> {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut all = Vec::new();
    let any = |names: &[&str]| names.iter().any(|name| wanted(name));
    let typescript =
        ["official TypeScript agent.js", "official TypeScript peer", "official TypeScript client.js"];
    if any(&typescript) {
        // The last SDK whose package carries the examples, and one of those that acpx is made with.
        let sdk = real::package("acpx", cache)?.join("node_modules/@agentclientprotocol/sdk/dist/examples");
        let script = |name: &str| words(&["node", &sdk.join(name).to_string_lossy()]);
        let (_, peer) = install::official("ts", cache)?;
        all.push(agent(typescript[0], "1.9.0", script("agent.js")));
        all.push(agent(typescript[1], "2.4.0", peer.command));
        let started = words(&["sh", "-c", BY_NPX, "sh", "{agent}"]);
        all.push(client(typescript[2], "1.9.0", [started, script("client.js")].concat()));
    }
    let python = [
        "official Python agent.py",
        "official Python echo_agent.py",
        "official Python peer",
        "official Python client.py",
    ];
    if any(&python) {
        let (_, peer) = install::official("py", cache)?;
        let interpreter = peer.command[0].clone();
        let examples = install::python_examples(cache)?;
        let script =
            |name: &str| vec![interpreter.clone(), examples.join(name).to_string_lossy().into_owned()];
        all.push(agent(python[0], "0.12.1", script("agent.py")));
        all.push(agent(python[1], "0.12.1", script("echo_agent.py")));
        all.push(agent(python[2], "0.12.1", peer.command));
        let piped = words(&["sh", "-c", PIPED, "sh", "{prompt}"]);
        let command = [piped, script("client.py"), words(&["{agent:argv}"])].concat();
        all.push(client(python[3], "0.12.1", command));
    }
    let rust = ["official Rust simple_agent", "official Rust peer", "official Rust yolo_one_shot_client"];
    if any(&rust) {
        let (_, peer) = install::official("rust", cache)?;
        let [simple, yolo] = install::rust_examples(cache, ["simple_agent", "yolo_one_shot_client"])?;
        all.push(agent(rust[0], "5.0.0", vec![simple]));
        all.push(agent(rust[1], "5.0.0", peer.command));
        let command = [vec![yolo], words(&["--command", "{agent}", "{prompt}"])].concat();
        all.push(client(rust[2], "5.0.0", command));
    }
    peers.extend(all.into_iter().filter(|peer| wanted(&peer.name)));
    Ok(())
}

fn acpx(cache: &Path, wanted: &dyn Fn(&str) -> bool, peers: &mut Vec<Peer>) -> Result<(), String> {
    if !wanted("acpx") {
        return Ok(());
    }
    let node = real::package("node", cache)?.join("node_modules/node/bin/node");
    let program = real::package("acpx", cache)?.join("node_modules/acpx/dist/cli.js");
    let program = [node, program].map(|path| path.to_string_lossy().into_owned());
    let words = ["--agent", "{agent}", "--approve-all", "exec", "{prompt}"].map(str::to_owned);
    let mut peer = client("acpx", "0.19.1", [program.to_vec(), words.to_vec()].concat());
    peer.flags.extend(ACTIONS.iter().flat_map(|act| action(&[&program[0], &program[1]], act)));
    peers.push(peer);
    Ok(())
}
