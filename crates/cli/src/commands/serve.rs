//! `attache serve`: agents of this machine for clients elsewhere; and `attache connect`: agents
//! elsewhere for clients of this machine.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::{BridgeEnd, ClientEnd, bridge};
use attache_conn::{Link, private};
use attache_http::Transport;
use attache_http::server::{Accepted, Access, Limits, Options, Server, Tls, TokenFile, Tokens};
use attache_rpc::{ErrorObject, Frame};
use serde_json::json;
use tokio::task::JoinSet;

use crate::agents::{Address, AgentSpec};
use crate::connect;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::{Format, Output, Relay, count};
use crate::runtime::{Interrupts, runtime, until_interrupted};

/// The address without `--listen`.
const ADDRESS: &str = "127.0.0.1:4848";
/// Clients at once without `--max-clients`: each of them starts a program.
const CLIENTS: usize = 64;
/// How long agents may take to exit when the server stops.
pub(super) const SHUT_DOWN: Duration = Duration::from_secs(5);
/// Levels of objects and arrays in the message of a client whose agent cannot be started.
const DEPTH: usize = 1024;

/// Serves until a signal ends the program.
pub(crate) fn serve(cx: &Cx) -> Result<()> {
    cx.warn();
    let agents = served_agents(cx)?;
    let options = options(cx, &agents, CLIENTS)?;
    runtime(async {
        // Before the address is announced: a signal after that ends the server in order.
        let mut interrupts = Interrupts::new();
        let mut server = bind(cx, options).await?;
        announce(cx, &server.url(), &agents);
        let mut clients = JoinSet::new();
        loop {
            tokio::select! {
                client = server.accept() => {
                    let client = client.context("the server")?;
                    let agent = agents.iter().find(|agent| Some(&agent.spec.name) == client.name.as_ref());
                    if let Some(agent) = agent.or(agents.first()) {
                        clients.spawn(converse(cx.output.clone(), Arc::clone(agent), client));
                    }
                }
                Some(_) = clients.join_next() => {}
                () = interrupts.next() => break,
            }
        }
        cx.output.note(format_args!("ending {}", count(clients.len() as u64, "connection")));
        server.shut_down();
        // Each client learns why, and its agent may exit by itself.
        tokio::select! {
            () = async { while clients.join_next().await.is_some() {} } => {}
            () = tokio::time::sleep(SHUT_DOWN) => {}
            () = interrupts.next() => {}
        }
        Ok(())
    })
}

/// Listens on the address of the command line.
pub(super) async fn bind(cx: &Cx, options: Options) -> Result<Server> {
    let address = cx.flags.serve.listen.as_deref().unwrap_or(ADDRESS);
    Server::bind(address, options).await.map_err(|error| not_bound(address, &error))
}

/// The agents of the command line, ready to start.
pub(super) fn served_agents(cx: &Cx) -> Result<Vec<Arc<Served>>> {
    Ok(agents(cx)?.into_iter().map(|spec| Arc::new(Served::new(cx, spec))).collect())
}

/// The agents that the words of the command line name: names of known agents, or one command.
fn agents(cx: &Cx) -> Result<Vec<AgentSpec>> {
    let words = &cx.args.words;
    if words.is_empty() {
        return cx.agent().map(|spec| vec![spec]);
    }
    if words.iter().all(|word| cx.config.is_known_agent(word)) {
        return words.iter().map(|name| cx.agent_named(name)).collect();
    }
    let address = Address::command(words.clone())?;
    let name = words.first().map(|word| Path::new(word).file_stem().unwrap_or_default().to_string_lossy());
    Ok(vec![AgentSpec::new(name.unwrap_or_default(), address)])
}

/// An agent, and what is needed to start it.
pub(super) struct Served {
    pub(super) spec: AgentSpec,
    cwd: PathBuf,
    credentials: std::collections::BTreeMap<String, String>,
}

impl Served {
    fn new(cx: &Cx, spec: AgentSpec) -> Served {
        Served { credentials: connect::credentials(cx, &spec), cwd: cx.cwd.clone(), spec }
    }

    /// Starts it.
    pub(super) async fn start(&self) -> Result<Link> {
        connect::link(&self.spec, &self.cwd, None, &self.credentials).await
    }
}

/// The options of a server from the flags; `clients` at once without `--max-clients`.
pub(super) fn options(cx: &Cx, agents: &[Arc<Served>], clients: usize) -> Result<Options> {
    let flags = &cx.flags.serve;
    let clients = flags.max_clients.unwrap_or(clients);
    let mut limits = Limits {
        connections: clients,
        connections_per_identity: flags.max_clients_per_token.unwrap_or(clients),
        ..Limits::default()
    };
    if let Some(sessions) = flags.max_sessions {
        (limits.sessions, limits.socket_sessions) = (sessions, sessions);
        limits.sessions_per_identity = limits.sessions_per_identity.max(sessions);
    }
    if let Some(mib) = flags.max_message {
        limits.message = mib << 20;
    }
    let tls = match (&flags.tls_cert, &flags.tls_key, flags.tls_self) {
        (None, None, false) => None,
        (Some(certificates), Some(key), false) => {
            let (certificates, key) = (cx.cwd.join(certificates), cx.cwd.join(key));
            Some(Tls::from_files(&certificates, &key).context("TLS")?)
        }
        (None, None, true) => Some(self_signed(cx)?),
        (_, _, true) => return Err(Failure::usage("give --tls-self or --tls-cert and --tls-key, not both")),
        _ => return Err(Failure::usage("--tls-cert and --tls-key belong together")),
    };
    let access = match &flags.token_file {
        None => Access::Open,
        Some(file) => Access::Token(Arc::new(tokens(cx, &cx.cwd.join(file))?)),
    };
    Ok(Options {
        names: agents.iter().map(|agent| agent.spec.name.clone()).collect(),
        tls,
        access,
        // Without a token, an agent with the rights of this user is for this user.
        same_user: flags.token_file.is_none(),
        behind_proxy: flags.behind_proxy,
        origins: flags.origins.clone(),
        hosts: flags.hosts.clone(),
        limits,
        ..Options::default()
    })
}

/// Reads the token file, or makes it with a first token.
fn tokens(cx: &Cx, file: &Path) -> Result<TokenFile> {
    let what = format!("the token file {}", file.display());
    match std::fs::read_to_string(file) {
        Ok(text) => {
            let tokens = Tokens::parse(&text).context(&what)?;
            if tokens.is_empty() {
                return Err(Failure::usage(format_args!("{what} has no token"))
                    .hint("delete it, and it is made again with a new one"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (token, entry) = Tokens::generate("default").context("a token")?;
            private::write(file, entry.as_bytes()).context(&what)?;
            cx.output.tell(format_args!(
                "{what} was made. Its token is shown this once; clients set it as ATTACHE_TOKEN:\n{token}"
            ));
        }
        Err(error) => return Err(error).context(&what),
    }
    TokenFile::open(file).context(&what)
}

/// The certificate of this machine, made at the first use.
fn self_signed(cx: &Cx) -> Result<Tls> {
    let directory = cx.paths.state.join("tls");
    let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    if !certificate.exists() || !key.exists() {
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        names.extend(cx.flags.serve.hosts.iter().cloned());
        let made = Tls::self_signed(names).context("a certificate")?;
        crate::paths::private_dir(&directory).context("the directory of the certificate")?;
        private::write(&key, made.key.as_bytes()).context("the key of the certificate")?;
        private::write(&certificate, made.certificate.as_bytes()).context("the certificate")?;
    }
    cx.output.tell(format_args!("clients trust this server with SSL_CERT_FILE={}", certificate.display()));
    Tls::from_files(&certificate, &key).context("TLS")
}

fn not_bound(address: &str, error: &io::Error) -> Failure {
    let failure = Failure::runtime(format_args!("cannot listen on {address}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => failure.hint("--listen 127.0.0.1:0 takes a free port"),
        io::ErrorKind::PermissionDenied if !address.starts_with("127.") => failure
            .hint("--token-file FILE makes a token")
            .hint("--tls-self or --tls-cert and --tls-key give TLS; --insecure-behind-proxy is for a proxy that has it"),
        _ => failure,
    }
}

/// Prints the addresses.
pub(super) fn announce(cx: &Cx, url: &str, agents: &[Arc<Served>]) {
    let named: Vec<(&str, String)> = match agents {
        [agent] => vec![(agent.spec.name.as_str(), url.to_owned())],
        all => {
            all.iter().map(|agent| (agent.spec.name.as_str(), format!("{url}/{}", agent.spec.name))).collect()
        }
    };
    match cx.output.format {
        Format::Json => {
            let agents: serde_json::Map<_, _> =
                named.iter().map(|(name, url)| ((*name).to_owned(), json!(url))).collect();
            cx.output.json(&json!({"url": url, "agents": agents}));
        }
        Format::Quiet => cx.output.line(url),
        Format::Text => {
            for (name, url) in named {
                cx.output.line(format_args!("{name} is served at {url}"));
            }
        }
    }
}

/// Starts the agent of a client and passes messages between them.
async fn converse(output: Output, agent: Arc<Served>, client: Accepted) {
    let remote = client.remote;
    let over = match client.transport {
        Transport::WebSocket => "WebSocket",
        Transport::StreamableHttp => "HTTP",
    };
    output.note(format_args!("{remote} connected to {} over {over}", agent.spec.name));
    if let Some(closer) = &client.closer {
        closer.set_end(1011, "the agent has ended");
    }
    let end = match agent.start().await {
        Ok(link) => bridge(client.link, link, ClientEnd::EndAgent).await,
        Err(failure) => {
            output.warn(format_args!("{remote}: {}", failure.message));
            if let Some(closer) = &client.closer {
                closer.set_end(1011, "the agent cannot be started");
            }
            return refuse(client.link, &agent.spec.name).await;
        }
    };
    let BridgeEnd { by_client, error, exit, stderr_tail, .. } = end;
    match (by_client, error) {
        (true, None) => output.note(format_args!("{remote} left")),
        // Such as a client for which a message was too large.
        (true, Some(error)) => output.warn(format_args!("the connection to {remote} failed: {error}")),
        (false, error) => {
            let why = match (error, exit) {
                (Some(error), _) => error.to_string(),
                (None, Some(exit)) => exit.to_string(),
                (None, None) => "end of its output".to_owned(),
            };
            output.warn(format_args!("the agent of {remote} ended: {why}"));
            stderr_tail.lines().for_each(|line| output.tell_row(line));
        }
    }
}

/// Answers the first request of a client whose agent cannot be started. The reason may hold paths
/// and stays here.
async fn refuse(client: Link, name: &str) {
    let (mut reader, mut writer) = client.split();
    if let Ok(Some(line)) = reader.next().await
        && let Frame::Request { id, .. } = Frame::parse(line, DEPTH)
    {
        let error = ErrorObject::internal(format!("the agent `{name}` cannot be started on the server"));
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        let _ = writer.send(answer.to_string().as_bytes()).await;
    }
    let _ = writer.close().await;
}

/// Passes messages between standard input and output and a remote agent.
pub(crate) fn connect(cx: &Cx) -> Result<()> {
    let Some(name) = cx.args.word(0) else {
        return Err(Failure::usage("no URL: attache connect URL"));
    };
    let spec = cx.agent_named(name)?;
    if !matches!(spec.address, Address::Remote(_)) {
        return Err(Failure::usage(format_args!("`{name}` is neither a URL nor an agent with one"))
            .hint("a URL begins with wss://, https://, ws:// or http://"));
    }
    let end = runtime(async {
        let agent = connect::link(&spec, &cx.cwd, None, &connect::credentials(cx, &spec)).await?;
        let client = match cx.output.stdout.terminal {
            // A person at a terminal sees foreign text as it may be shown.
            true => Link::from_io(tokio::io::stdin(), Relay::stdout()),
            false => Link::stdio(),
        };
        until_interrupted(async { Ok(bridge(client, agent, ClientEnd::AwaitAnswers).await) }).await
    })?;
    match (end.by_client, end.error) {
        (true, None) => Ok(()),
        (_, Some(error)) => {
            Err(Failure::runtime(format_args!("the connection to {}: {error}", spec.address)))
        }
        (false, None) => Err(Failure::runtime(format_args!("{} has closed the connection", spec.address))),
    }
}
