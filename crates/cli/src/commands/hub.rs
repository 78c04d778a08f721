//! `attache hub`: sessions that outlive their connections, for many clients.

use std::fs::{File, TryLockError};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::SocketListener;
use attache_conn::private;
use attache_http::server::{self, Accepted, Metrics, Server};
use attache_hub::{Hub, Identity, NatsNetwork, Options, Policy, Responder, Role};
use attache_journal::{Journal, nats, sqlite};
use tokio::task::JoinSet;

use super::serve::{SHUT_DOWN, announce, bind, options, served_agents};
use crate::agents::AgentSpec;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::count;
#[cfg(unix)]
use crate::run::Permits;
use crate::runtime::{Interrupts, runtime};

/// Clients at once without `--max-clients`.
const CLIENTS: usize = 1_000;
/// The time between two looks for old sessions.
const SWEEP: Duration = Duration::from_secs(600);
/// How long only the author of a prompt may answer with `--answers prompter`.
const PATIENCE: Duration = Duration::from_secs(60);

/// The beginning of the address of a journal that hubs may share.
const NATS: &str = "nats://";
/// The most characters of a hub's name, and of that of the host in it.
const MAX_NODE: usize = 64;
const MAX_HOST: usize = 48;

/// How long the lock of a journal is waited for, and the pause between two attempts.
const LOCK_TIME: Duration = Duration::from_secs(3);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Runs a hub until a signal ends the program.
pub(crate) fn hub(cx: &Cx) -> Result<()> {
    cx.warn();
    let agents = served_agents(cx)?;
    let [agent] = agents.as_slice() else {
        return Err(
            Failure::usage("a hub has one agent").hint("start a hub for each, with a --journal of its own")
        );
    };
    let node = node(cx)?;
    let mut settings = settings(cx, Arc::clone(agent), &node)?;
    let mut server_options = options(cx, &agents, CLIENTS)?;
    runtime(async {
        // Before the address is announced: a signal after that ends the hub in order.
        let mut interrupts = Interrupts::new();
        let Opened { journal, network, _lock } = open_journal(cx, &node).await?;
        if let Some(network) = &network {
            settings = settings.network(network.clone());
        }
        let hub = Hub::new(journal, settings);
        let responder = match &network {
            Some(network) => Some(respond(network, &hub).await?),
            None => None,
        };
        let activated = Activated::take()?;
        let metrics = hub.clone();
        server_options.metrics = Some(Metrics::new(move || metrics.metrics()));
        let is_activated = activated.socket.is_some();
        let mut server = match (activated.tcp, &cx.flags.serve.listen, &cx.flags.hub.socket) {
            (Some(listener), _, _) => {
                Some(Server::from_listener(listener, server_options).context("the socket of systemd")?)
            }
            (None, None, Some(_)) => None,
            (None, None, None) if is_activated => None,
            (None, _, _) => Some(bind(cx, server_options).await?),
        };
        let socket = match activated.socket {
            Some(socket) => Some(socket.own_user_only()),
            None => open_socket(cx)?,
        };
        if let Some(server) = &server {
            announce(cx, &server.url(), &agents);
        } else if is_activated {
            announce(cx, "a socket of systemd", &agents);
        } else if let Some(path) = &cx.flags.hub.socket {
            announce(cx, &format!("unix:{}", cx.cwd.join(path).display()), &agents);
        }
        let mut sweep = tokio::time::interval(SWEEP);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut clients = JoinSet::new();
        loop {
            tokio::select! {
                client = accept(&mut server) => serve(cx, &hub, &mut clients, client?),
                link = accept_socket(&socket) => {
                    if let Ok(link) = link {
                        let hub = hub.clone();
                        clients.spawn(async move { hub.serve(link, Identity::new("local")).await });
                    }
                }
                Some(_) = clients.join_next() => {}
                _ = sweep.tick() => remove_old(cx, &hub).await,
                () = interrupts.next() => break,
            }
        }
        cx.output.note(format_args!("ending {}", count(clients.len() as u64, "connection")));
        if let Some(server) = &server {
            server.shut_down();
        }
        drop(socket);
        tokio::select! {
            () = async { while clients.join_next().await.is_some() {} } => {}
            () = tokio::time::sleep(SHUT_DOWN) => {}
            () = interrupts.next() => {}
        }
        // First: a request of another hub would open a session again.
        drop(responder);
        tokio::select! {
            () = hub.shut_down() => {}
            () = tokio::time::sleep(SHUT_DOWN) => cx.output.warn("some sessions could not be ended in order"),
            () = interrupts.next() => {}
        }
        Ok(())
    })
}

async fn respond(network: &NatsNetwork, hub: &Hub) -> Result<Responder> {
    network.respond(hub.clone()).await.map_err(|error| {
        let failure = Failure::runtime(format_args!("cannot share the journal: {error}"));
        match error.kind() {
            io::ErrorKind::AddrInUse => failure.hint("give each hub a name of its own with --node"),
            _ => failure,
        }
    })
}

/// Sockets that systemd passed.
#[derive(Default)]
struct Activated {
    tcp: Option<TcpListener>,
    socket: Option<SocketListener>,
}

impl Activated {
    #[cfg(unix)]
    fn take() -> Result<Activated> {
        use attache_conn::{ActivatedSocket, activated_sockets};
        let mut taken = Activated::default();
        for socket in activated_sockets().context("the sockets of systemd")? {
            let is_second = match socket {
                ActivatedSocket::Tcp(listener) => taken.tcp.replace(listener).is_some(),
                ActivatedSocket::Unix(listener) => taken.socket.replace(listener).is_some(),
                _ => false,
            };
            if is_second {
                return Err(Failure::usage(
                    "systemd passed two sockets of one kind; a hub takes one TCP and one Unix socket",
                ));
            }
        }
        Ok(taken)
    }

    #[cfg(not(unix))]
    fn take() -> Result<Activated> {
        Ok(Activated::default())
    }
}

/// Removes the sessions that are too old or too large.
async fn remove_old(cx: &Cx, hub: &Hub) {
    const DAY: u64 = 24 * 60 * 60;
    let flags = &cx.flags.hub;
    let age = flags.keep_days.map(|days| Duration::from_secs(days as u64 * DAY));
    let bytes = flags.keep_size.map(|size| (size as u64) << 20);
    if age.is_none() && bytes.is_none() {
        return;
    }
    let mut tenants = vec![Identity::TENANT.to_owned()];
    if let Some(file) = &cx.flags.serve.token_file
        && let Ok(text) = std::fs::read_to_string(cx.cwd.join(file))
        && let Ok(tokens) = server::Tokens::parse(&text)
    {
        let named =
            tokens.identities().filter_map(|identity| identity.attribute("tenant").map(str::to_owned));
        tenants.extend(named);
        tenants.sort();
        tenants.dedup();
    }
    for tenant in tenants {
        match hub.sweep(&tenant, age, bytes).await {
            Ok(0) => {}
            Ok(removed) => cx.output.note(format_args!("removed {}", count(removed as u64, "old session"))),
            Err(error) => cx.output.warn(format_args!("old sessions cannot be removed: {error}")),
        }
    }
}

async fn accept(server: &mut Option<Server>) -> Result<Accepted> {
    match server {
        Some(server) => server.accept().await.context("the server"),
        None => std::future::pending().await,
    }
}

async fn accept_socket(socket: &Option<SocketListener>) -> io::Result<attache::Link> {
    match socket {
        Some(socket) => socket.accept().await,
        None => std::future::pending().await,
    }
}

fn serve(cx: &Cx, hub: &Hub, clients: &mut JoinSet<()>, client: Accepted) {
    let identity = match identity(client.identity.as_ref(), &client.remote.to_string()) {
        Ok(identity) => identity,
        Err(why) => {
            cx.output.warn(format_args!("{}: {why}", client.remote));
            if let Some(closer) = &client.closer {
                closer.close(1008, "the token has an unknown role");
            }
            return;
        }
    };
    cx.output.note(format_args!("{} connected", client.remote));
    if let Some(closer) = &client.closer {
        closer.set_end(1008, "the client does not read");
    }
    let hub = hub.clone();
    clients.spawn(async move { hub.serve(client.link, identity).await });
}

/// The identity of a token. Without tokens, everybody who may connect is the user.
fn identity(token: Option<&server::Identity>, remote: &str) -> std::result::Result<Identity, String> {
    let Some(token) = token else { return Ok(Identity::new("local").from(remote)) };
    let mut identity = Identity::new(token.name()).from(remote);
    if let Some(role) = token.attribute("role") {
        let role: Role = role.parse().map_err(|error| format!("the token {}: {error}", token.name()))?;
        identity = identity.role(role);
    }
    if let Some(tenant) = token.attribute("tenant") {
        identity = identity.tenant(tenant);
    }
    Ok(identity)
}

/// Whether the journal may have other hubs.
fn is_shared(cx: &Cx) -> bool {
    cx.flags.hub.journal.as_deref().is_some_and(|journal| journal.starts_with(NATS))
}

/// The name of this hub among those on the journal.
///
/// It stays the same after a restart, so that the hub takes up its sessions at once. Hubs of one
/// machine differ by what they listen on, or in their state directory.
fn node(cx: &Cx) -> Result<String> {
    let flags = &cx.flags.hub;
    if !is_shared(cx) {
        for (flag, is_given) in [("node", flags.node.is_some()), ("lease", flags.lease.is_some())] {
            if is_given {
                return Err(Failure::usage(format_args!("--{flag} needs --journal nats://HOST:PORT")));
            }
        }
        // The lock of the journal says that there is no other hub.
        return Ok("hub".to_owned());
    }
    let is_part = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if let Some(name) = &flags.node {
        return match (1..=MAX_NODE).contains(&name.len()) && name.chars().all(is_part) {
            true => Ok(name.clone()),
            false => Err(Failure::usage(format_args!(
                "--node is 1 to {MAX_NODE} letters, digits, `-`, `_` and `.`, not `{name}`"
            ))),
        };
    }
    let host: String = host_name().chars().filter(|character| is_part(*character)).take(MAX_HOST).collect();
    let state = cx.paths.state.display().to_string();
    let socket = flags.socket.as_ref().map(|path| cx.cwd.join(path).display().to_string());
    let listen = cx.flags.serve.listen.clone();
    let parts = [Some(state), socket, listen].map(Option::unwrap_or_default);
    Ok(format!("{host}-{:08x}", checksum(parts.join("\n").as_bytes())))
}

/// FNV-1a, which is the same in every version of the program.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn settings(cx: &Cx, agent: Arc<super::serve::Served>, node: &str) -> Result<Options> {
    let flags = &cx.flags.hub;
    let spec = agent.spec.clone();
    let mut settings = Options::new(node, move || {
        let agent = Arc::clone(&agent);
        async move { agent.start().await.map_err(|failure| io::Error::other(failure.message)) }
    })
    .info("attache", env!("CARGO_PKG_VERSION"));
    if let Some(minutes) = flags.idle {
        settings = settings.idle(Duration::from_secs(minutes as u64 * 60));
    }
    if let Some(most) = flags.max_agents {
        settings = settings.agents(most);
    }
    if let Some(seconds) = flags.deadline {
        settings = settings.deadline(Duration::from_secs(seconds as u64));
    }
    if let Some(word) = &flags.answers {
        settings = settings.policy(policy(word)?);
    }
    if let Some(seconds) = flags.lease {
        settings = settings.lease(Duration::from_secs(seconds as u64));
    }
    if let Some(warm) = flags.warm {
        settings = settings.warm(warm);
    }
    match flags.provide {
        true => provide(cx, settings, spec),
        false => Ok(settings),
    }
}

/// Provides files and terminals under the permissions of the settings.
#[cfg(unix)]
fn provide(cx: &Cx, settings: Options, spec: AgentSpec) -> Result<Options> {
    use attache_host::policy::Guard;
    use attache_host::terminals::PtyTerminals;
    let permits = Permits::new(cx)?;
    let (paths, output, is_sandboxed) = (cx.paths.clone(), cx.output.clone(), cx.config.settings.sandbox);
    let program = std::env::current_exe().context("this program")?;
    let secrets = crate::credentials::secrets(&cx.paths);
    // Its terminals, and the bound on their output, are those of all sessions.
    let mut terminals = PtyTerminals::new(Guard::open()).sandbox(program, paths.all());
    if is_sandboxed {
        terminals = terminals.sandboxed();
    }
    Ok(settings.provide(move |roots| match permits.policy(&paths, &spec, roots, secrets.clone()) {
        Ok(policy) => Some(attache_hub::Provision::new(policy).terminals(terminals.clone())),
        Err(failure) => {
            output.warn(format_args!("nothing is provided to the agent: {}", failure.message));
            None
        }
    }))
}

#[cfg(not(unix))]
fn provide(_: &Cx, _: Options, _: AgentSpec) -> Result<Options> {
    Err(Failure::usage("files and terminals cannot be provided here"))
}

/// A policy by its name.
fn policy(word: &str) -> Result<Policy> {
    let unknown = || {
        Failure::usage(format_args!(
            "no policy \"{word}\"; available: first, prompter, ROLE, a number of answers"
        ))
    };
    Ok(match word {
        "first" => Policy::First,
        "prompter" => Policy::Prompter(PATIENCE),
        word => match (word.parse::<Role>(), word.parse::<usize>()) {
            (Ok(role), _) => Policy::Role(role),
            (_, Ok(votes)) if votes > 0 => Policy::Quorum(votes),
            _ => return Err(unknown()),
        },
    })
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "hub".to_owned() } else { name.to_owned() }
}

/// A journal that is ready for use.
struct Opened {
    journal: Journal,
    /// The way to other hubs on the journal.
    network: Option<NatsNetwork>,
    /// Keeps other hubs from the same file.
    _lock: Option<File>,
}

async fn open_journal(cx: &Cx, node: &str) -> Result<Opened> {
    let named = cx.flags.hub.journal.as_deref();
    match named {
        Some("memory") => return Ok(Opened { journal: Journal::memory(), network: None, _lock: None }),
        Some(url) if url.starts_with(NATS) => {
            let opened = nats::Nats::connect(url, nats::Options::default()).await;
            let opened = opened.map_err(|error| journal_failure(&without_credentials(url), &error))?;
            let network = Some(NatsNetwork::new(opened.messenger(), node));
            return Ok(Opened { journal: Journal::new(opened), network, _lock: None });
        }
        _ => {}
    }
    let path = match named {
        Some(named) => cx.cwd.join(named.strip_prefix("sqlite:").unwrap_or(named)),
        None => {
            crate::paths::private_dir(&cx.paths.state).context("the state directory")?;
            cx.paths.state.join("hub.db")
        }
    };
    // A link to a journal is that journal.
    let path = path.canonicalize().unwrap_or(path);
    let lock = lock(&path).await?;
    // This process is the only one that appends.
    let options = sqlite::Options::default().poll_interval(None);
    let journal = Journal::sqlite(&path, options).await;
    let journal = journal.map_err(|error| journal_failure(&path.display().to_string(), &error))?;
    Ok(Opened { journal, network: None, _lock: Some(lock) })
}

/// The address of a server as messages may have it.
fn without_credentials(url: &str) -> String {
    url.rsplit_once('@').map_or_else(|| url.to_owned(), |(_, place)| format!("{NATS}{place}"))
}

fn journal_failure(place: &str, error: &attache_journal::Error) -> Failure {
    Failure::runtime(format_args!("the journal {place}: {error}"))
}

/// Locks a journal file for this process.
///
/// A process that a killed hub was about to start shares its lock for a moment, so the lock is
/// waited for.
async fn lock(journal: &Path) -> Result<File> {
    let mut path = journal.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let file = private::open_or_create(&path).context("the lock of the journal")?;
    let limit = tokio::time::Instant::now() + LOCK_TIME;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if tokio::time::Instant::now() < limit => {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::runtime(format_args!(
                    "another hub uses the journal {}",
                    journal.display()
                ))
                .hint("connect to it, or give this one a --journal of its own"));
            }
            Err(TryLockError::Error(error)) => return Err(error).context("the lock of the journal"),
        }
    }
}

#[cfg(unix)]
fn open_socket(cx: &Cx) -> Result<Option<SocketListener>> {
    let Some(path) = &cx.flags.hub.socket else { return Ok(None) };
    let path = cx.cwd.join(path);
    let listener = attache::listen_unix(&path)
        .map_err(|error| Failure::runtime(format_args!("cannot listen on {}: {error}", path.display())))?;
    Ok(Some(listener.own_user_only()))
}

#[cfg(not(unix))]
fn open_socket(cx: &Cx) -> Result<Option<SocketListener>> {
    match &cx.flags.hub.socket {
        None => Ok(None),
        Some(_) => Err(Failure::usage("there are no Unix sockets here; use --listen")),
    }
}
