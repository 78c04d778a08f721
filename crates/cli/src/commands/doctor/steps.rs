//! The steps of an examination, in the order in which a session is made.

use std::collections::VecDeque;
use std::future::Future;
use std::future::IntoFuture;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache::client::{AgentHandle, Session};
use attache::wire::v1::AgentCapabilities;
use attache::{Error, Flow, Link};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::processes::{descendants, still_there};
use super::report::{Report, State, Step};
use super::versions;
use crate::agents::{AgentSpec, builtin, on_path};
use crate::auth::{method_json, method_text};
use crate::connect::{client, credentials};
use crate::cx::Cx;
use crate::error::{Failure, Result};
use crate::log::WireLog;

/// An agent that takes longer to initialize makes every prompt slow.
const SLOW: Duration = Duration::from_secs(5);
/// The number of lines of an agent's output that are kept.
const KEPT: usize = 40;

/// Output of an agent that is not a message.
#[derive(Clone, Default)]
struct AgentOutput(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    stdout: VecDeque<String>,
    stderr: VecDeque<String>,
    /// The number of lines on stdout.
    noise: usize,
    /// The answer to `initialize`.
    hello: Option<HelloResult>,
}

/// The response to `initialize`, with any version.
#[derive(Deserialize)]
struct Hello {
    result: HelloResult,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HelloResult {
    protocol_version: Option<Value>,
}

impl AgentOutput {
    fn with<T>(&self, look: impl FnOnce(&mut Lines) -> T) -> T {
        look(&mut self.0.lock())
    }

    fn stdout(&self, line: &[u8]) {
        self.with(|lines| {
            lines.noise += 1;
            keep(&mut lines.stdout, &String::from_utf8_lossy(line));
        });
    }

    fn all(&self) -> Vec<String> {
        self.with(|lines| {
            let named = |name: &'static str| move |line: &String| format!("{name}: {line}");
            let stdout = lines.stdout.iter().map(named("stdout"));
            stdout.chain(lines.stderr.iter().map(named("stderr"))).collect()
        })
    }

    fn stderr(&self) -> Vec<String> {
        self.with(|lines| lines.stderr.iter().cloned().collect())
    }
}

fn keep(lines: &mut VecDeque<String>, line: &str) {
    if line.trim().is_empty() {
        return;
    }
    if lines.len() == KEPT {
        lines.pop_front();
    }
    lines.push_back(line.trim_end().to_owned());
}

/// Runs the steps until one fails.
pub(super) async fn examine(cx: &Cx, spec: &AgentSpec, report: &mut Report<'_>) -> Result<()> {
    settings(cx, report);
    if !program(cx, spec, report) {
        return Ok(());
    }
    if !super::remote::examine(cx, spec, report).await {
        return Ok(());
    }
    let printed = AgentOutput::default();
    let Some(link) = start(cx, spec, &printed, report).await else { return Ok(()) };
    let Some(agent) = initialize(cx, spec, link, &printed, report).await else { return Ok(()) };
    methods(&agent, report);
    let session = session(cx, spec, &agent, &printed, report).await;
    model(spec, &agent, report).await;
    capabilities(&agent, report);
    end(&agent, session, spec, report).await;
    versions::report(cx, spec, agent.protocol_version().0.into(), report).await;
    stdout(&printed, report);
    Ok(())
}

fn settings(cx: &Cx, report: &mut Report<'_>) {
    let config = &cx.config;
    let mut lines = config.warnings.clone();
    lines.extend(
        config
            .ignored
            .iter()
            .map(|ignored| format!("`{}` of the project is ignored: {}", ignored.key, ignored.why)),
    );
    let step = match lines.is_empty() {
        true => Step::new("settings", State::Fine, "no problems"),
        false => Step::new("settings", State::Odd, "some settings are ignored")
            .lines(lines)
            .hint("attache config show"),
    };
    report.add(step);
}

/// Checks the program. Returns false if the examination ends here.
fn program(cx: &Cx, spec: &AgentSpec, report: &mut Report<'_>) -> bool {
    let Some(program) = spec.program() else {
        report.add(Step::new("program", State::Skipped, "the agent has an address and is not started"));
        return true;
    };
    if let Some(path) = on_path(program) {
        report.fact("program", json!(path));
        report.add(Step::new("program", State::Fine, path.display().to_string()));
        return true;
    }
    let there = program.contains(std::path::is_separator) && Path::new(program).exists();
    let mut step = match there {
        true => Step::new("program", State::Broken, format!("`{program}` exists, but is not executable"))
            .hint(format!("chmod +x {program}")),
        false => Step::new("program", State::Broken, format!("`{program}` not found")),
    };
    if let Some(known) = builtin(&spec.name).filter(|_| !there) {
        step = step.hint(format!("install it: {}", known.install));
    }
    if attache_registry::installed(&cx.paths.data).is_ok_and(|installed| installed.contains_key(&spec.name)) {
        step = step.hint(format!("install it again: attache registry install --force {}", spec.name));
    } else if let Some(entry) = attache_registry::cached_entry(&cx.paths.cache, &spec.name) {
        step = step.hint(format!("or from the registry: attache registry install {}", entry.id));
    }
    match program {
        "npx" | "npm" | "node" => step = step.hint("it comes with Node.js: https://nodejs.org"),
        "uvx" | "uv" => step = step.hint("it comes with uv: https://docs.astral.sh/uv"),
        _ if !there && !spec.known => step = step.hint("`attache agents --all` lists all known agents"),
        _ if !there => step = step.hint("if it is installed, is its directory in PATH?"),
        _ => {}
    }
    report.add(step);
    false
}

/// Starts the agent, or connects to its address.
pub(super) async fn open_link(
    cx: &Cx,
    spec: &AgentSpec,
    on_stderr: impl FnMut(&str) + Send + 'static,
) -> std::io::Result<Link> {
    crate::connect::open(spec, &cx.cwd, Some(on_stderr), &credentials(cx, spec)).await
}

async fn start(cx: &Cx, spec: &AgentSpec, printed: &AgentOutput, report: &mut Report<'_>) -> Option<Link> {
    let begun = Instant::now();
    let stderr = printed.clone();
    let on_stderr = move |line: &str| stderr.with(|lines| keep(&mut lines.stderr, line));
    match open_link(cx, spec, on_stderr).await {
        Ok(link) => {
            report.add(Step::new("start", State::Fine, "it starts").time(begun.elapsed()));
            Some(link)
        }
        Err(error) => {
            let step = Step::new("start", State::Broken, error.to_string());
            report.add(match spec.program() {
                Some(_) => step,
                None => step.hint("is it running, and is the address right?"),
            });
            None
        }
    }
}

/// How long an answer may take.
pub(super) fn patience(cx: &Cx) -> Duration {
    cx.config.settings.timeout.unwrap_or(cx.config.settings.start_timeout)
}

async fn initialize(
    cx: &Cx,
    spec: &AgentSpec,
    link: Link,
    printed: &AgentOutput,
    report: &mut Report<'_>,
) -> Option<AgentHandle> {
    let (noise, hello) = (printed.clone(), printed.clone());
    // The first answer is kept as it came: a version that we do not speak is only seen there.
    let secrets: Vec<String> = credentials(cx, spec).into_values().collect();
    crate::log::mask_values(secrets.clone());
    let mut log = WireLog::new(false, secrets);
    let link = link.tap(move |flow, line| {
        log.line(flow, line);
        if flow == Flow::In {
            hello.with(|lines| {
                if lines.hello.is_none() {
                    lines.hello = serde_json::from_slice::<Hello>(line).ok().map(|hello| hello.result);
                }
            });
        }
    });
    let client = client(Duration::from_secs(5))
        .terminal_auth()
        .on_noise(move |line, _| noise.stdout(line))
        .initialize_timeout(patience(cx));
    let begun = Instant::now();
    match client.connect(link).await {
        Ok(agent) => {
            let time = begun.elapsed();
            let who = agent.info().map_or_else(
                || "it does not report its name".to_owned(),
                |info| format!("{} {}", info.title.as_deref().unwrap_or(&info.name), info.version),
            );
            report.fact("protocolVersion", json!(agent.protocol_version()));
            report.fact("agentInfo", json!(agent.info()));
            let message = format!("{who}, version {} of the protocol", agent.protocol_version());
            let mut step = match time > SLOW {
                true => Step::new("initialize", State::Odd, format!("{message}; it starts slowly")),
                false => Step::new("initialize", State::Fine, message),
            };
            if time > SLOW && matches!(spec.program(), Some("npx" | "uvx")) {
                step = step.hint("it is downloaded or checked at every start; install it to avoid that");
            }
            report.add(step.time(time));
            Some(agent)
        }
        Err(error) => {
            report.add(explain(cx, spec, &error, printed).time(begun.elapsed()));
            None
        }
    }
}

/// Why there was no handshake.
fn explain(cx: &Cx, spec: &AgentSpec, error: &Error, printed: &AgentOutput) -> Step {
    let lines = printed.all();
    let broken = |message: String| Step::new("initialize", State::Broken, message).lines(lines.clone());
    let version = printed.with(|lines| lines.hello.as_ref().and_then(|hello| hello.protocol_version.clone()));
    if let Some(version) = version.filter(|version| *version != json!(1)) {
        // INIT-09
        return broken(format!(
            "it speaks version {version} of the protocol, and this program speaks version 1"
        ))
        .hint("update the older of the two");
    }
    let flags = builtin(&spec.name)
        .map(|known| known.commands.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(", or "));
    match error {
        Error::Refused(answer) => broken(format!("it answers with an error: {answer}")),
        Error::Closed(closed) => {
            let how = match closed.exit {
                Some(exit) => match exit.code() {
                    Some(code) => format!("exit code {code}"),
                    None => exit.to_string(),
                },
                None => "the connection was closed".to_owned(),
            };
            ended(broken(format!("it ended before it answered ({how})")), spec, &lines)
        }
        Error::Decode { reason, .. } => broken(format!("its answer cannot be read: {reason}")),
        _ if printed.with(|lines| lines.hello.is_none()) => {
            let time = patience(cx).as_secs_f64();
            let mut step = broken(format!("no answer within {time} s"))
                .hint(format!("it may wait for input in a terminal; run it yourself: {}", spec.identity()));
            step = match flags {
                Some(flags) => step.hint(format!("these arguments make it speak the protocol: {flags}")),
                None => step.hint("are these the arguments that make it speak the protocol?"),
            };
            step.hint("if it only needs longer: --timeout SECONDS, or `start_timeout` in the settings")
        }
        other => broken(other.to_string()),
    }
}

/// Hints for an agent that ends at once.
fn ended(step: Step, spec: &AgentSpec, lines: &[String]) -> Step {
    let said = lines.join("\n").to_lowercase();
    let complaints = [
        "unknown option",
        "unexpected argument",
        "unrecognized",
        "unknown argument",
        "unknown command",
        "invalid option",
    ];
    match complaints.iter().any(|text| said.contains(text)) {
        true => step.hint("this version does not know these arguments: update it"),
        false => step.hint(format!("run it yourself to see more: {}", spec.identity())),
    }
}

fn methods(agent: &AgentHandle, report: &mut Report<'_>) {
    let methods = agent.auth_methods();
    report.fact("authMethods", methods.iter().map(method_json).collect());
    let offer = match methods.len() {
        0 => return report.add(Step::new("login", State::Skipped, "it offers no login method")),
        1 => "it offers a login method".to_owned(),
        count => format!("it offers {count} login methods"),
    };
    // Many agents start sessions without a login and report it with the first prompt.
    let (state, offer) = match agent.auth_status() {
        Some(_) => (State::Fine, offer),
        None => (State::Odd, format!("{offer}; the first prompt shows whether a login is needed")),
    };
    report.add(Step::new("login", state, offer).lines(methods.iter().map(method_text)));
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = attache::Result<T>>,
) -> Option<attache::Result<T>> {
    tokio::time::timeout(limit, work).await.ok()
}

async fn session(
    cx: &Cx,
    spec: &AgentSpec,
    agent: &AgentHandle,
    printed: &AgentOutput,
    report: &mut Report<'_>,
) -> Option<Session> {
    let begun = Instant::now();
    let limit = patience(cx);
    let broken = |message: String| Step::new("session", State::Broken, message).time(begun.elapsed());
    match within(limit, agent.new_session(&cx.cwd).into_future()).await {
        Some(Ok(session)) => {
            let mut parts = Vec::new();
            let modes = session.modes().map(|modes| modes.available_modes.len()).unwrap_or_default();
            let models = session.models().map(|models| models.available_models.len()).unwrap_or_default();
            let options = session.config_options().len();
            for (count, what) in [(modes, "modes"), (models, "models"), (options, "options")] {
                if count > 0 {
                    parts.push(format!("{count} {what}"));
                }
            }
            report.fact("modes", json!(session.modes()));
            report.fact("models", json!(session.models()));
            report.fact("configOptions", json!(&*session.config_options()));
            let with = if parts.is_empty() { String::new() } else { format!(" with {}", parts.join(", ")) };
            report.add(
                Step::new("session", State::Fine, format!("it starts a session{with}")).time(begun.elapsed()),
            );
            Some(session)
        }
        Some(Err(error)) if error.is_auth_required() => {
            // AUTH-02
            let mut step =
                broken("login required".to_owned()).hint(format!("attache auth login {}", spec.argument()));
            if agent.auth_methods().is_empty() {
                step = step.hint("it offers no login method here: log in with its own program");
            }
            report.add(step);
            None
        }
        Some(Err(Error::Closed(closed))) => {
            report.add(
                broken(format!("it ended while it started a session: {}", closed.cause()))
                    .lines(printed.stderr()),
            );
            None
        }
        Some(Err(error)) => {
            report.add(broken(Failure::from(error).message).lines(printed.stderr()));
            None
        }
        None => {
            let step = broken(format!("no answer to `session/new` within {} s", limit.as_secs_f64()))
                .lines(printed.stderr());
            report.add(step.hint("it may wait for the network, or for a login in a terminal"));
            None
        }
    }
}

/// Whether our own agent has a model. Of another agent that is known after its first prompt.
async fn model(spec: &AgentSpec, agent: &AgentHandle, report: &mut Report<'_>) {
    if !spec.is_own() {
        return;
    }
    if crate::model_setup::is_missing(spec, agent).await {
        let failure = crate::model_setup::failure();
        let step = Step::new("model", State::Broken, failure.message);
        report.add(failure.hints.into_iter().fold(step, Step::hint));
    } else {
        report.add(Step::new("model", State::Fine, "it has a model"));
    }
}

/// The capabilities of the agent.
fn table(can: &AgentCapabilities) -> [(&'static str, bool); 16] {
    let (prompt, mcp, session) = (&can.prompt_capabilities, &can.mcp_capabilities, &can.session_capabilities);
    [
        ("load sessions", can.load_session),
        ("resume sessions", session.resume.is_some()),
        ("list sessions", session.list.is_some()),
        ("fork sessions", session.fork.is_some()),
        ("close sessions", session.close.is_some()),
        ("delete sessions", session.delete.is_some()),
        ("further directories", session.additional_directories.is_some()),
        ("system prompts", session.system_prompt.is_some()),
        ("images", prompt.image),
        ("audio", prompt.audio),
        ("embedded context", prompt.embedded_context),
        ("MCP over http", mcp.http),
        ("MCP over sse", mcp.sse),
        ("MCP over this connection", mcp.acp),
        ("logout", can.auth.logout.is_some()),
        ("login status", can.auth.status.is_some()),
    ]
}

fn capabilities(agent: &AgentHandle, report: &mut Report<'_>) {
    let can = agent.capabilities();
    report.fact("capabilities", json!(can));
    let (yes, no): (Vec<_>, Vec<_>) = table(can).into_iter().partition(|(_, can)| *can);
    let names = |list: &[(&str, bool)]| list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    if !yes.is_empty() {
        lines.push(format!("yes: {}", names(&yes)));
    }
    if !no.is_empty() {
        lines.push(format!("no:  {}", names(&no)));
    }
    let message = format!("{} of {}", yes.len(), yes.len() + no.len());
    report.add(Step::new("capabilities", State::Fine, message).lines(lines));
}

async fn end(agent: &AgentHandle, session: Option<Session>, spec: &AgentSpec, report: &mut Report<'_>) {
    if let Some(session) = session {
        // A session that cannot be closed ends with the agent.
        let _ = within(Duration::from_secs(5), session.close()).await;
    }
    let before = descendants();
    let begun = Instant::now();
    let exit = agent.shutdown().await;
    let time = begun.elapsed();
    if spec.program().is_none() {
        report.add(Step::new("end", State::Fine, "the connection closed").time(time));
        return;
    }
    let left = still_there(&before);
    if !left.is_empty() {
        let names = left.into_iter().map(|process| process.name);
        report.add(
            Step::new("end", State::Broken, "some of its processes are still running")
                .lines(names)
                .time(time),
        );
        return;
    }
    let step = match exit {
        Some(exit) if exit.success() => {
            Step::new("end", State::Fine, "it exits when its input is closed; nothing is left running")
        }
        Some(exit) => match exit.code() {
            // STDIO-10
            None => Step::new(
                "end",
                State::Odd,
                format!("it does not exit when its input is closed ({exit}); nothing is left running"),
            ),
            Some(code) => {
                Step::new("end", State::Odd, format!("it exits with code {code}; nothing is left running"))
            }
        },
        None => Step::new("end", State::Odd, "its exit status is unknown"),
    };
    report.add(step.time(time));
}

/// Lines on stdout that are not messages.
// STDIO-08
fn stdout(printed: &AgentOutput, report: &mut Report<'_>) {
    let (count, lines) =
        printed.with(|lines| (lines.noise, lines.stdout.iter().cloned().collect::<Vec<_>>()));
    if count > 0 {
        let what = if count == 1 { "a line".to_owned() } else { format!("{count} lines") };
        report.add(
            Step::new("stdout", State::Odd, format!("it prints {what} on stdout that is not a message"))
                .lines(lines)
                .hint("stdout belongs to the protocol: look for an option that makes it quiet, and report it to its authors"),
        );
    }
}
