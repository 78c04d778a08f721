//! Starts an agent and initializes the connection.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::client::{AgentHandle, Client};
use attache::wire::v1::{AuthMethod, ProtocolVersion};
use attache::{Command, Link, Meta};
use parking_lot::Mutex;

use crate::agents::{Address, AgentSpec, BUILTIN, builtin};
use crate::args::nearest;
use crate::cx::Cx;
use crate::error::{DetailCode, Failure, Result};
use crate::wire::Wire;

/// Called with each line of stderr.
pub(crate) type OnStderr = Box<dyn FnMut(&str) + Send>;

/// The parameters of a connection, besides the address of the agent.
pub(crate) struct ConnectOptions {
    /// The client with its capabilities; [`client`] creates one.
    pub(crate) client: Client,
    /// The directory that the agent is started in, unless its settings name another.
    pub(crate) cwd: PathBuf,
    /// Receives the lines of the connection.
    pub(crate) wire: Option<Wire>,
    /// Called with each line of the agent's stderr. The last lines are kept for errors in any case.
    pub(crate) on_stderr: Option<OnStderr>,
    /// How long it may take to start.
    pub(crate) timeout: Duration,
    /// Credentials by authentication method; see [`credentials`].
    pub(crate) credentials: BTreeMap<String, String>,
    /// Fail without a credential for any of the agent's methods.
    pub(crate) must_authenticate: bool,
    /// The version of the protocol, if one was named: `1`, `2` or `auto`.
    pub(crate) protocol: Option<String>,
    /// The file of the versions that agents speak.
    pub(crate) versions: PathBuf,
}

/// A client with the name of this program.
pub(crate) fn client(cancel_deadline: Duration) -> Client {
    remembers_answers(
        Client::new()
            .info("attache", env!("CARGO_PKG_VERSION"))
            .title("Attaché")
            .boolean_options()
            // The log has the report; stderr may be the screen of the chat.
            .on_error(|_| {})
            .cancel_deadline(cancel_deadline),
    )
}

/// Tells our own agent that it need not offer to remember answers to permission questions, because
/// the client does.
pub(crate) fn remembers_answers(client: Client) -> Client {
    match Meta::new(&serde_json::json!({ "attache": { "permissions": true } })) {
        Ok(meta) => client.extensions(meta),
        Err(_) => client,
    }
}

/// The credentials of one agent, by authentication method: those that were stored for it, and those
/// of `ATTACHE_AUTH_…`, which come first and whose names are upper case.
///
/// A command line or an address that is no known agent gets none that were stored, nor does the
/// agent of a project; they get those of the environment only if they were given by `--agent`,
/// because the words of a file are no reason to hand credentials to a program.
pub(crate) fn credentials(cx: &Cx, spec: &AgentSpec) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let has_name = cx.can_have_credentials(spec);
    if has_name {
        // An agent of the table may be written by another of its names.
        let is_meant =
            |name: &str| name == spec.name || builtin(name).is_some_and(|known| known.name == spec.name);
        let stored = cx.config.auth.iter().filter(|(name, _)| is_meant(name));
        all.extend(stored.flat_map(|(_, methods)| methods.clone()));
    }
    if !has_name && cx.flags.agent.is_none() {
        return all;
    }
    for (name, value) in std::env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        if let Some(method) =
            name.strip_prefix("ATTACHE_AUTH_").filter(|_| name != "ATTACHE_AUTH_POLICY" && !value.is_empty())
        {
            all.retain(|known, _| variable(known) != method);
            all.insert(method.to_owned(), value.to_owned());
        }
    }
    all
}

/// The variable that stands for a way to authenticate: `openai-api-key` is `OPENAI_API_KEY`.
pub(crate) fn variable(method: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    method.chars().map(letter).collect()
}

/// The command that starts an agent; `None` if it runs already, somewhere.
pub(crate) fn command(
    spec: &AgentSpec,
    cwd: &Path,
    credentials: &BTreeMap<String, String>,
) -> Option<Command> {
    let Address::Command { command, args } = &spec.address else { return None };
    // A path is relative to where the user is, not to where the agent will be.
    let program = match command.contains(std::path::is_separator) {
        true => std::path::absolute(command).unwrap_or_else(|_| PathBuf::from(command)),
        false => PathBuf::from(command),
    };
    let mut command = Command::new(program).args(args).current_dir(spec.cwd.as_deref().unwrap_or(cwd));
    for (method, credential) in credentials {
        // The user's environment takes precedence.
        let name = variable(method);
        if std::env::var_os(&name).is_none() {
            command = command.env(name, credential);
        }
    }
    // The agent does not get variables for this program.
    for (name, _) in std::env::vars_os() {
        let is_ours = |name: &str| name.starts_with("ATTACHE_AUTH_") || name == crate::remote::TOKEN_VARIABLE;
        if name.to_str().is_some_and(is_ours) {
            command = command.env_remove(name);
        }
    }
    // STDIO-10: codex-acp and qwen take somewhat more than two seconds to leave by themselves.
    let command = command.grace(Duration::from_secs(3));
    Some(command.envs(spec.env.iter().map(|(name, value)| (name, value))))
}

/// Starts, or reaches, an agent and agrees on a version with it. Authenticates where there is a
/// credential for it.
///
/// All connections to agents are made here. Must be called within a runtime.
pub(crate) async fn connect(spec: &AgentSpec, options: ConnectOptions) -> Result<AgentHandle> {
    let on_stderr = options.on_stderr.map(|on_stderr| Arc::new(Mutex::new(on_stderr)));
    let mut client = options.client.initialize_timeout(options.timeout);
    if let Some(empty) = spec.missing_files_are_empty {
        client = client.missing_files_are_empty(empty);
    }
    let attempt = async |spec: &AgentSpec| {
        let offered = crate::versions::offered(options.protocol.as_deref(), &options.versions, spec);
        let mut not_reached = None;
        let mut starts = 0;
        let client = client.clone().protocol(offered.protocol);
        let connected = {
            let mut start = async || {
                starts += 1;
                // If the agent is started again, only the lines of the second connection are shown.
                if let Some(wire) = &options.wire {
                    wire.hold();
                }
                match link(spec, &options.cwd, on_stderr.clone(), &options.credentials).await {
                    Ok(link) => Ok(match &options.wire {
                        Some(wire) => link.tap(wire.tap()),
                        None => crate::log::tap(link),
                    }),
                    Err(failure) => {
                        not_reached = Some(failure);
                        Err(attache::Error::Cancelled)
                    }
                }
            };
            match spec.address {
                Address::Command { .. } if offered.starts_again => client.connect_with(start).await,
                // An agent that runs already is not started again for another version.
                _ => match start().await {
                    Ok(link) => client.connect(link).await,
                    Err(error) => Err(error),
                },
            }
        };
        if let Some(wire) = &options.wire {
            wire.release();
        }
        match (connected, not_reached) {
            (Ok(agent), _) => {
                // An agent that was started a second time is asked for version 1 at once from now
                // on. One that was only offered version 1 may speak version 2 too.
                let version = agent.protocol_version();
                if starts > 1 || version == ProtocolVersion::V2 {
                    crate::versions::remember(&options.versions, spec, version.0);
                }
                Ok(agent)
            }
            (Err(_), Some(failure)) => Err(failure),
            (Err(error), None) => Err(unwilling(spec, error)),
        }
    };
    let agent = match attempt(spec).await {
        Err(failure) => match older(spec).filter(|_| rejects_arguments(&failure)) {
            Some(older) => attempt(&older).await?,
            None => return Err(failure),
        },
        Ok(agent) => agent,
    };
    if let Some(wire) = &options.wire {
        wire.count_in(agent.backlog());
    }
    authenticate(spec, &agent, &options.credentials, options.must_authenticate).await?;
    Ok(agent)
}

/// The command of older versions of the agent, unless the user has configured one.
fn older(spec: &AgentSpec) -> Option<AgentSpec> {
    let known = builtin(&spec.name).filter(|known| spec.known && known.spec().address == spec.address)?;
    Some(AgentSpec { env: spec.env.clone(), cwd: spec.cwd.clone(), ..known.older_spec()? })
}

/// Whether the agent ended because it does not know its arguments.
fn rejects_arguments(failure: &Failure) -> bool {
    if failure.detail != Some(DetailCode::AgentDisconnected) {
        return false;
    }
    // No exit status is agreed on for wrong arguments: the foreign program's output is the only
    // source.
    let text = format!("{}\n{}", failure.message, failure.stderr.join("\n")).to_lowercase();
    let words = [
        "unknown argument",
        "unknown option",
        "unknown flag",
        "unrecognized",
        "unexpected argument",
        "invalid option",
    ];
    words.iter().any(|word| text.contains(word))
}

/// Starts, or reaches, an agent.
pub(crate) async fn link(
    spec: &AgentSpec,
    cwd: &Path,
    on_stderr: Option<Arc<Mutex<OnStderr>>>,
    credentials: &BTreeMap<String, String>,
) -> Result<Link> {
    let on_stderr = on_stderr.map(|on_stderr| {
        move |line: &str| {
            let mut on_stderr = on_stderr.lock();
            on_stderr(line);
        }
    });
    open(spec, cwd, on_stderr, credentials).await.map_err(|error| not_reached(spec, &error))
}

/// Opens the link to an agent.
pub(crate) async fn open(
    spec: &AgentSpec,
    cwd: &Path,
    on_stderr: Option<impl FnMut(&str) + Send + 'static>,
    credentials: &BTreeMap<String, String>,
) -> io::Result<Link> {
    match &spec.address {
        Address::Tcp(address) => Link::tcp(address).await,
        Address::Remote(url) => crate::remote::link(url, spec).await,
        #[cfg(unix)]
        Address::Unix(path) => Link::unix(path).await,
        #[cfg(not(unix))]
        Address::Unix(_) => Err(io::Error::other("there are no Unix sockets here")),
        Address::Command { .. } => {
            let Some(command) = command(spec, cwd, credentials) else {
                return Err(io::Error::other("the agent has no command"));
            };
            Link::command(match on_stderr {
                Some(on_stderr) => command.on_stderr_line(on_stderr),
                None => command,
            })
        }
    }
}

/// Explains why an agent could not be started.
fn not_reached(spec: &AgentSpec, error: &io::Error) -> Failure {
    let Some(program) = spec.program() else {
        let failure = Failure::runtime(format_args!("cannot reach the agent at {}: {error}", spec.address))
            .detail(DetailCode::AgentUnreachable);
        return match &spec.address {
            Address::Remote(_) => crate::remote::explain(failure, error),
            _ => failure.hint("is it running, and is the address right?"),
        };
    };
    if error.kind() != io::ErrorKind::NotFound {
        return Failure::runtime(error)
            .detail(DetailCode::AgentSpawnFailed)
            .hint(format!("the command is: {}", spec.address));
    }
    let failure = Failure::runtime(format_args!("the agent `{}` cannot be started: {error}", spec.name))
        .detail(DetailCode::AgentSpawnEnoent);
    match builtin(&spec.name).filter(|_| spec.known) {
        Some(known) => failure.hint(format!("install it: {}", known.install)),
        None => match nearest(&spec.name, BUILTIN.iter().map(|agent| agent.name)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure,
        }
        .hint(match program {
            "npx" | "npm" | "node" => format!("`{program}` comes with Node.js: https://nodejs.org"),
            "uvx" | "uv" => format!("`{program}` comes with uv: https://docs.astral.sh/uv"),
            _ => format!("is `{program}` installed and in PATH?"),
        })
        .hint("`attache agents` lists the known agents"),
    }
}

/// Explains why an agent that was started could not be initialized.
fn unwilling(spec: &AgentSpec, error: attache::Error) -> Failure {
    let timed_out = matches!(error, attache::Error::Timeout { .. });
    let mut failure = Failure::from(error).context(format_args!("the agent `{}`", spec.name));
    if timed_out {
        failure.detail = Some(DetailCode::AgentSilent);
        failure = failure
            .hint("it may wait for input in a terminal, or not speak ACP with these arguments")
            .hint("an agent that is downloaded first can take longer: set `start_timeout`");
    }
    failure.hint(format!("the command is: {}", spec.address)).hint("run again with -v to see its messages")
}

/// Before sessions are started. Where nothing is configured, the agent may know the user
/// already.
// AUTH-04
async fn authenticate(
    spec: &AgentSpec,
    agent: &AgentHandle,
    credentials: &BTreeMap<String, String>,
    must: bool,
) -> Result<()> {
    let fitting = agent.auth_methods().iter().find_map(|method| {
        let id = method.id()?;
        let known = credentials.keys().any(|known| variable(known) == variable(id.as_str()));
        (known && matches!(method, AuthMethod::Agent(_))).then_some(id)
    });
    match fitting {
        Some(id) => agent.authenticate(id.clone()).await.map_err(|error| {
            Failure::from(error)
                .context(format_args!("the agent `{}` does not accept the credential for `{id}`", spec.name))
                .detail(DetailCode::AuthFailed)
        }),
        None if must && !agent.auth_methods().is_empty() => {
            let ids: Vec<&str> =
                agent.auth_methods().iter().filter_map(|method| method.id().map(|id| id.as_str())).collect();
            Err(Failure::runtime(format_args!("no credential for any of: {}", ids.join(", ")))
                .detail(DetailCode::AuthRequired)
                .hint(match spec.known {
                    true => {
                        format!("set `auth.{}.METHOD` in the settings, or ATTACHE_AUTH_METHOD", spec.name)
                    }
                    false => "set ATTACHE_AUTH_METHOD".to_owned(),
                }))
        }
        None => Ok(()),
    }
}

/// Adds hints for a login to a failure that requires one.
pub(crate) fn explain_auth(failure: Failure, spec: &AgentSpec, agent: &AgentHandle) -> Failure {
    if failure.detail != Some(DetailCode::AuthRequired) {
        return failure;
    }
    let names: Vec<String> = agent
        .auth_methods()
        .iter()
        .filter_map(|method| method.id())
        .map(|id| format!("ATTACHE_AUTH_{}", variable(id.as_str())))
        .collect();
    let mut failure = failure
        .hint(format!("log in with the agent's own program, or `attache auth login {}`", spec.argument()));
    if !names.is_empty() {
        failure = failure.hint(format!("or set a credential: {}", names.join(" or ")));
    }
    failure
}
