//! Who is judged.

use std::path::Path;

use super::super::install;
use super::super::real::{self, Modelled};

pub(super) struct Peer {
    /// As the page names it.
    pub(super) name: String,
    pub(super) version: String,
    is_agent: bool,
    pub(super) command: Vec<String>,
    pub(super) flags: Vec<String>,
    pub(super) needs_model: bool,
    /// How it is set up, if it has a model.
    pub(super) agent: Option<Modelled>,
}

impl Peer {
    pub(super) fn side(&self) -> &'static str {
        if self.is_agent { "agent" } else { "client" }
    }

    pub(super) fn file(&self) -> String {
        format!("{}-{}", self.side(), self.name.replace([' ', '/', '.'], "-"))
    }

    /// Big programs take all of a small machine while they start, and codex cannot be started twice in a new home.
    pub(super) fn jobs(&self) -> &'static str {
        match self.name.as_str() {
            "codex" => "1",
            _ if self.needs_model => "2",
            _ => "4",
        }
    }
}

/// What makes agents with the fake model do things.
const PROMPTS: &[(&str, &str)] = &[
    ("say", "[[answer hello]]"),
    ("read", "[[edit {cwd}/notes.txt alpha gamma]]"),
    ("write", "[[edit {cwd}/notes.txt alpha gamma]]"),
    ("run", "[[run echo attache]]"),
    ("run-long", "[[run sleep 600]]"),
    ("ask", "[[run rm {cwd}/old.txt]]"),
    ("think", "[[slow]]"),
    ("lines", "[[answer grüße, 世界]]"),
];

/// A client that takes its prompt from standard input.
const PIPED: &str = r#"prompt=$1; shift; printf '%s\n' "$prompt" | "$@""#;

pub(super) fn all(cache: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Peer>, String> {
    let mut peers = Vec::new();
    ours(wanted, &mut peers)?;
    official(cache, wanted, &mut peers)?;
    for agent in real::modelled(cache, wanted)? {
        let flags = PROMPTS.iter().flat_map(|(kind, text)| ["--prompt".to_owned(), format!("{kind}={text}")]);
        peers.push(Peer {
            name: agent.name().to_owned(),
            version: agent.version(),
            is_agent: true,
            command: agent.command(),
            flags: flags.collect(),
            needs_model: true,
            agent: Some(agent),
        });
    }
    acpx(cache, wanted, &mut peers)?;
    Ok(peers)
}

fn agent(name: &str, version: &str, command: Vec<String>) -> Peer {
    Peer {
        name: name.to_owned(),
        version: version.to_owned(),
        is_agent: true,
        command,
        flags: Vec::new(),
        needs_model: false,
        agent: None,
    }
}

fn client(name: &str, version: &str, command: Vec<String>) -> Peer {
    let flags = vec!["--action".to_owned(), "cancel=SIGINT".to_owned()];
    Peer { is_agent: false, flags, ..agent(name, version, command) }
}

fn ours(wanted: &dyn Fn(&str) -> bool, peers: &mut Vec<Peer>) -> Result<(), String> {
    let here = env!("CARGO_PKG_VERSION");
    let names =
        ["attache echo_agent", "attache tool_agent", "attache interop_agent", "attache example client"];
    if names.iter().any(|name| wanted(name)) {
        let built = install::our_examples(["echo_agent", "tool_agent", "interop_agent", "client"])?;
        let [echo, tool, interop, example] = built;
        let all = [
            agent(names[0], here, vec![echo]),
            agent(names[1], here, vec![tool]),
            agent(names[2], here, vec![interop]),
            client(names[3], here, vec![example, "{agent:argv}".to_owned()]),
        ];
        peers.extend(all.into_iter().filter(|peer| wanted(&peer.name)));
    }
    if wanted("attache exec") {
        let program = install::program()?;
        let words = ["--agent", "{agent}", "--approve-all", "exec", "{prompt}"].map(str::to_owned);
        peers.push(client("attache exec", here, [vec![program], words.to_vec()].concat()));
    }
    Ok(())
}

fn official(cache: &Path, wanted: &dyn Fn(&str) -> bool, peers: &mut Vec<Peer>) -> Result<(), String> {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut all = Vec::new();
    if wanted("official TypeScript peer") {
        let (_, peer) = install::official("ts", cache)?;
        all.push(agent("official TypeScript peer", "2.4.0", peer.command));
    }
    if wanted("official Python") {
        let (_, peer) = install::official("py", cache)?;
        let python = peer.command[0].clone();
        let examples = install::python_examples(cache)?;
        let script = |name: &str| vec![python.clone(), examples.join(name).to_string_lossy().into_owned()];
        all.push(agent("official Python agent.py", "0.12.1", script("agent.py")));
        all.push(agent("official Python echo_agent.py", "0.12.1", script("echo_agent.py")));
        all.push(agent("official Python peer", "0.12.1", peer.command));
        let piped = words(&["sh", "-c", PIPED, "sh", "{prompt}"]);
        let command = [piped, script("client.py"), words(&["{agent:argv}"])].concat();
        all.push(client("official Python client.py", "0.12.1", command));
    }
    if wanted("official Rust") {
        let (_, peer) = install::official("rust", cache)?;
        let [simple, yolo] = install::rust_examples(cache, ["simple_agent", "yolo_one_shot_client"])?;
        all.push(agent("official Rust simple_agent", "5.0.0", vec![simple]));
        all.push(agent("official Rust peer", "5.0.0", peer.command));
        let command = [vec![yolo], words(&["--command", "{agent}", "{prompt}"])].concat();
        all.push(client("official Rust yolo_one_shot_client", "5.0.0", command));
    }
    peers.extend(all);
    Ok(())
}

fn acpx(cache: &Path, wanted: &dyn Fn(&str) -> bool, peers: &mut Vec<Peer>) -> Result<(), String> {
    if !wanted("acpx") {
        return Ok(());
    }
    let node = real::package("node", cache)?.join("node_modules/node/bin/node");
    let program = real::package("acpx", cache)?.join("node_modules/acpx/dist/cli.js");
    let mut command: Vec<String> = [node, program].map(|path| path.to_string_lossy().into_owned()).to_vec();
    command.extend(["--agent", "{agent}", "--approve-all", "exec", "{prompt}"].map(str::to_owned));
    peers.push(client("acpx", "0.19.1", command));
    Ok(())
}
