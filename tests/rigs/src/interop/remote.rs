//! Clients of the official SDKs over WebSocket and Streamable HTTP, with `attache serve` before our
//! agent, and our client with the servers of the official SDKs.

mod cut;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::pair::Observed;
use super::report::{Report, Row};
use super::{Program, install, pair};

/// The scenario in which the connection is cut.
pub(super) const RECONNECT: &str = "reconnect";
/// The scenario with a message above the limit of a client, and the client.
const TOO_BIG: &str = "too_big";
const LIMITED: &str = "py";
/// How long a server may take to end.
const END: Duration = Duration::from_secs(10);

/// A transport, by its name in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    WebSocket,
    Http,
}

impl Transport {
    pub(super) const ALL: [Transport; 2] = [Transport::WebSocket, Transport::Http];

    /// The word for it in the scenarios.
    pub(super) fn word(self) -> &'static str {
        match self {
            Transport::WebSocket => "WebSocket",
            Transport::Http => "HTTP",
        }
    }

    /// Its name for readers.
    pub(super) fn title(self) -> &'static str {
        match self {
            Transport::WebSocket => "WebSocket",
            Transport::Http => "Streamable HTTP (POST and SSE)",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Transport::WebSocket => "ours (WebSocket)",
            Transport::Http => "ours (HTTP)",
        }
    }
}

/// How the agent is reached.
#[derive(Debug)]
pub(super) struct Via<'a> {
    pub(super) transport: Transport,
    /// The program whose server starts the agent; `None` if the agent is a server itself.
    pub(super) program: Option<&'a str>,
}

/// Runs the clients of the official SDKs against our agent behind our server.
pub(super) fn run(
    clients: &[Program],
    agent: &Program,
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    println!("build   ours: the program, for its server");
    let program = install::program()?;
    if let Some(client) = clients.iter().find(|client| client.name == LIMITED) {
        too_big(client, agent, &program, cache, report)?;
    }
    for client in clients {
        for transport in Transport::ALL {
            let agent = Program { name: transport.name(), command: agent.command.clone() };
            pair::run_via(client, &agent, &Via { transport, program: Some(&program) }, cache, report)?;
        }
    }
    Ok(())
}

/// Runs the scenario with a message over the limit of the client. The client reports an error, and
/// so does the log of the server.
fn too_big(
    client: &Program,
    agent: &Program,
    program: &str,
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    let (started, name) = (Instant::now(), "ours (WebSocket), too big");
    Report::start(client.name, name);
    let dir = pair::workspace(cache, &format!("{TOO_BIG}-{}", client.name))?;
    let via = Via { transport: Transport::WebSocket, program: Some(program) };
    let server = Server::start(&via, &agent.command, &dir)?;
    let url = server.url.clone();
    let mut observed = pair::play_only(client, &["initialize", "auth", TOO_BIG], &url, None, &dir)?;
    observed.bad.extend(server.stop());
    let log = dir.join("server.log");
    let text = std::fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    match text.contains("1009 (message too big)") {
        true => observed.good += 1,
        false => {
            observed.bad.push(format!("the log of the server has no status 1009: {}", pair::short(&text)))
        }
    }
    report.add(row(client, name, observed, dir, Vec::new(), started));
    Ok(())
}

/// Runs our client against the agents of the official SDKs, behind their own servers.
pub(super) fn run_official(
    client: &Program,
    agents: &[Program],
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    for agent in agents {
        for transport in Transport::ALL {
            let client = Program { name: transport.name(), command: client.command.clone() };
            pair::run_via(&client, agent, &Via { transport, program: None }, cache, report)?;
        }
    }
    Ok(())
}

/// Runs the scenario in which the connection is cut: the clients of the official SDKs with our
/// agent, our client with their agents. The agents are servers themselves, because a session must
/// outlive its connection.
pub(super) fn reconnect(
    ours: &install::Ours,
    official: &[(Program, Program)],
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    for transport in Transport::ALL {
        for (client, _) in official {
            cut_pair(client, &ours.agent, transport, cache, report)?;
        }
        for (_, agent) in official {
            cut_pair(&ours.client, agent, transport, cache, report)?;
        }
        cut_pair(&ours.client, &ours.agent, transport, cache, report)?;
    }
    Ok(())
}

fn cut_pair(
    client: &Program,
    agent: &Program,
    transport: Transport,
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    let (started, word) = (Instant::now(), transport.word());
    let name = format!("{}, cut {word}", agent.name);
    Report::start(client.name, &name);
    let who = [format!("{} over {word}", client.name), format!("{} agent over {word}", agent.name)];
    let lack = pair::lack(RECONNECT, &who)?;
    let dir = pair::workspace(cache, &format!("cut-{}-{}-{word}", client.name, agent.name))?;
    let observed = match lack {
        Some(_) => Observed { good: 0, bad: Vec::new() },
        None => play_cut(client, agent, transport, &["initialize", "auth", RECONNECT], &dir)?,
    };
    let left_out = lack.map(|reason| format!("{RECONNECT}: {reason}")).into_iter().collect();
    report.add(row(client, &name, observed, dir, left_out, started));
    Ok(())
}

/// The row of a run whose messages are not read.
fn row(
    client: &Program,
    agent: &str,
    observed: Observed,
    traces: PathBuf,
    left_out: Vec<String>,
    started: Instant,
) -> Row {
    Row {
        client: client.name.to_owned(),
        agent: agent.to_owned(),
        good: observed.good,
        messages: 0,
        bad: observed.bad,
        traces,
        left_out,
        took: started.elapsed(),
    }
}

/// Runs scenarios with a pair and a proxy between them that the client can have cut.
pub(super) fn play_cut(
    client: &Program,
    agent: &Program,
    transport: Transport,
    ids: &[&str],
    dir: &Path,
) -> Result<Observed, String> {
    let server = Server::start(&Via { transport, program: None }, &agent.command, dir)?;
    let address = server.url.split('/').nth(2).unwrap_or_default();
    let proxy = cut::Proxy::start(address).map_err(|error| format!("the proxy: {error}"))?;
    let url = server.url.replace(address, &proxy.address.to_string());
    pair::play_only(client, ids, &url, Some(format!("{}={}", cut::CONTROL, proxy.control)), dir)
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Server {
    process: Child,
    is_ours: bool,
    /// The address for clients.
    pub(super) url: String,
}

impl Server {
    /// Starts `attache serve` before an agent, or the agent as a server, which prints its port.
    pub(super) fn start(via: &Via<'_>, agent: &[String], dir: &Path) -> Result<Server, String> {
        let errors = std::fs::File::create(dir.join("server.log")).map_err(|error| error.to_string())?;
        let serve = ["--format", "quiet", "serve", "--listen", "127.0.0.1:0", "--"].map(str::to_owned);
        let command = match via.program {
            Some(program) => [&[program.to_owned()], &serve[..], agent].concat(),
            None => [agent, &["--http".to_owned()]].concat(),
        };
        let (program, rest) = command.split_first().ok_or("there is no agent")?;
        let mut process = Command::new(program)
            .args(rest)
            .current_dir(dir.join("work"))
            .env("ATTACHE_HOME", dir.join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let mut url = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut url).map_err(|error| error.to_string())?;
        }
        let url = match (via.program, url.trim()) {
            (None, port) if !port.is_empty() => format!("http://127.0.0.1:{port}/acp"),
            (_, url) => url.to_owned(),
        };
        let url = match via.transport {
            Transport::WebSocket => url.replacen("http", "ws", 1),
            Transport::Http => url,
        };
        let server = Server { process, is_ours: via.program.is_some(), url };
        match server.url.is_empty() {
            true => Err(format!("the server did not start; see {}", dir.join("server.log").display())),
            false => Ok(server),
        }
    }

    /// Ends the server as a user would, and returns what was wrong.
    pub(super) fn stop(mut self) -> Vec<String> {
        if !self.is_ours {
            // The servers of the SDKs do not end well by a signal, which is no concern of ours.
            return Vec::new();
        }
        let _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        match pair::within(END, || self.process.try_wait().transpose()) {
            Some(Ok(status)) if status.success() => Vec::new(),
            Some(Ok(status)) => vec![format!("the server ended with {status}")],
            Some(Err(error)) => vec![format!("the server: {error}")],
            None => vec!["the server did not end".to_owned()],
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
