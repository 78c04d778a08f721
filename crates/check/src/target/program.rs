//! A client as a program: it is started with an agent command that leads back to the checker.
//!
//! The command line has placeholders. `{agent}` is the command of a bridge between the client's
//! pipes and a socket of the checker, `{prompt}` and `{cwd}` belong to the scenario, `{session}`,
//! `{root}` and `{root:2}` to actions such as `load` and `roots`. Actions other than one prompt
//! have commands or signals of their own.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use attache_conn::private::TempDir;
use attache_conn::process::{ChildGuard, ChildStdout, Command};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;

use super::process::exit_of;
use super::{BoxFuture, Connection, Exit, Launch, Need, PeerProcess, SESSION, StartOptions, Target, roots};
use crate::remote::Observations;

/// The variable with the URL of the server, for clients that connect to one.
const URL: &str = "ATTACHE_URL";

/// How to make a client perform an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Another command line, with the same placeholders.
    Command(Vec<String>),
    /// A signal while the client runs: `INT`.
    Signal(String),
}

/// A client under test.
#[derive(Clone, Debug)]
pub struct Program {
    /// The command line with placeholders.
    pub command: Vec<String>,
    /// The bridge's command line; the socket's path is added.
    pub bridge: Vec<String>,
    /// Actions other than one prompt.
    pub actions: BTreeMap<String, Action>,
    /// The timeout for the start of the agent.
    pub patience: Duration,
}

impl Target for Program {
    fn open<'a>(&'a self, fresh: &'a StartOptions) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            // Short, because so is the longest path of a socket.
            let place = TempDir::new("acheck")?;
            let socket = place.path().join("s");
            let listener = UnixListener::bind(&socket)?;
            let guard = start(&self.command, &self.actions, fresh, &self.agent(&socket), None)?;
            let stream = tokio::select! {
                accepted = listener.accept() => accepted?.0,
                status = guard.wait() => return Err(never_started(&guard, &format!("it ended with {status}"))),
                () = tokio::time::sleep(self.patience) => {
                    return Err(never_started(&guard, &format!("{} seconds were not enough", self.patience.as_secs())));
                }
            };
            let (reader, writer) = stream.into_split();
            let client = Client::new(Arc::new(guard), &self.actions, Some((listener, place)));
            Ok(Connection {
                reader: Box::new(reader),
                writer: Box::new(writer),
                process: Box::new(client),
                observations: Observations::default(),
            })
        })
    }

    fn lacks(&self, need: &Need) -> Option<String> {
        lacks(&self.actions, need)
    }

    fn command(&self) -> Vec<String> {
        self.command.clone()
    }
}

impl Program {
    fn agent(&self, socket: &Path) -> Vec<String> {
        let socket = socket.to_string_lossy().into_owned();
        self.bridge.iter().cloned().chain([socket]).collect()
    }
}

/// Starts a client for an action, with the command line of its agent or with the URL of its server.
pub(super) fn start(
    command: &[String],
    actions: &BTreeMap<String, Action>,
    fresh: &StartOptions,
    agent: &[String],
    url: Option<&str>,
) -> io::Result<ChildGuard> {
    let both = fresh.then.and_then(|then| actions.get(&both_acts(fresh.act, then)));
    let template = match both.or_else(|| actions.get(fresh.act)) {
        Some(Action::Command(words)) => words,
        Some(Action::Signal(_)) | None => command,
    };
    if template.iter().any(|word| word.contains("{root")) {
        roots(&fresh.cwd).iter().try_for_each(std::fs::create_dir_all)?;
    }
    let words = fill(template, agent, fresh, url);
    let Some((program, args)) = words.split_first() else {
        return Err(io::Error::other("no command: put the program to start after `--`"));
    };
    let command = Command::new(program).args(args).current_dir(&fresh.cwd).envs(url.map(|url| (URL, url)));
    let child = command.spawn()?;
    tracing::debug!(program, pid = child.guard.pid(), "client started");
    // A client that reads its input to the end must not wait for us.
    drop(child.stdin);
    tokio::spawn(throw_away(child.stdout));
    Ok(child.guard)
}

/// Why a client cannot do what a scenario needs.
pub(super) fn lacks(actions: &BTreeMap<String, Action>, need: &Need) -> Option<String> {
    let lacks = |act: &str| act != "prompt" && !actions.contains_key(act);
    let missing = match need {
        Need::Act(act) if lacks(act) => (*act).to_owned(),
        Need::Acts(one, two) if (lacks(one) || lacks(two)) && lacks(&both_acts(one, two)) => {
            both_acts(one, two)
        }
        _ => return None,
    };
    Some(format!("needs --action {missing}=… to make the client do so"))
}

/// The name of the action that is both of these.
fn both_acts(one: &str, two: &str) -> String {
    format!("{one}+{two}")
}

fn never_started(guard: &ChildGuard, why: &str) -> io::Error {
    let stderr = guard.stderr_tail();
    let tail = stderr.trim_end().lines().next_back().unwrap_or_default();
    let tail = if tail.is_empty() { String::new() } else { format!("; stderr: {tail}") };
    io::Error::other(format!("the client did not start the agent: {why}{tail}"))
}

/// Replaces the placeholders of a command line.
fn fill(template: &[String], agent: &[String], fresh: &StartOptions, url: Option<&str>) -> Vec<String> {
    let quoted = agent.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let json = serde_json::Value::from(agent.to_vec()).to_string();
    let cwd = fresh.cwd.to_string_lossy();
    let [one, two] = roots(&fresh.cwd).map(|root| root.to_string_lossy().into_owned());
    let mut words = Vec::with_capacity(template.len());
    for word in template {
        if word == "{agent:argv}" {
            words.extend_from_slice(agent);
            continue;
        }
        // The prompt comes last, so that placeholders in its text are not replaced.
        let word = word.replace("{agent:json}", &json).replace("{agent}", &quoted);
        let word = url.map_or(word.clone(), |url| word.replace("{url}", url));
        let word = word.replace("{session}", SESSION).replace("{root}", &one).replace("{root:2}", &two);
        words.push(word.replace("{cwd}", &cwd).replace("{prompt}", &fresh.prompt));
    }
    words
}

/// Quotes a word for a shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Sends a signal. The system's own program does it: this crate has no unsafe code.
fn signal(name: &str, act: &str, pid: u32) -> io::Result<()> {
    let sent = std::process::Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .stderr(std::process::Stdio::null())
        .status()?;
    if sent.success() { Ok(()) } else { Err(io::Error::other(format!("no signal {name} for {act}"))) }
}

/// Reads the output of a client to its end.
async fn throw_away(mut output: ChildStdout) {
    let mut chunk = vec![0; 16 << 10];
    while matches!(output.read(&mut chunk).await, Ok(1..)) {}
}

/// A client that was started.
pub(super) struct Client {
    guard: Arc<ChildGuard>,
    signals: BTreeMap<String, String>,
    /// The socket to which the bridge connects, if the client starts its agent.
    bridge: Option<(UnixListener, TempDir)>,
}

impl Client {
    pub(super) fn new(
        guard: Arc<ChildGuard>,
        actions: &BTreeMap<String, Action>,
        bridge: Option<(UnixListener, TempDir)>,
    ) -> Client {
        let signal = |(act, action): (&String, &Action)| match action {
            Action::Signal(name) => Some((act.clone(), name.clone())),
            Action::Command(_) => None,
        };
        Client { guard, signals: actions.iter().filter_map(signal).collect(), bridge }
    }
}

impl PeerProcess for Client {
    fn exit(&mut self) -> BoxFuture<'_, Option<Exit>> {
        Box::pin(async { Some(exit_of(self.guard.wait().await)) })
    }

    fn stderr(&self) -> String {
        self.guard.stderr_tail()
    }

    fn act(&mut self, act: &str) -> io::Result<()> {
        let Some(signal) = self.signals.get(act) else { return Ok(()) };
        self::signal(signal, act, self.guard.pid())
    }

    /// The bridge reports its arguments in the first line and exits with the code of the reply.
    fn relaunched(&mut self, code: u8) -> BoxFuture<'_, Option<Launch>> {
        Box::pin(async move {
            let (listener, _) = self.bridge.as_ref()?;
            let (stream, _) = listener.accept().await.ok()?;
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            // A bridge that was started as usual sends nothing.
            let _ = tokio::time::timeout(Duration::from_secs(2), stream.read_line(&mut line)).await;
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            let _ = stream.get_mut().write_all(format!("{code}\n").as_bytes()).await;
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let env = said["env"].as_object().into_iter().flatten();
            Some(Launch {
                args: said["args"].as_array().into_iter().flatten().filter_map(text).collect(),
                env: env.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect(),
            })
        })
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Option<Exit>> {
        Box::pin(async move {
            self.guard.terminate();
            Some(exit_of(self.guard.wait().await))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn two_actions_may_be_one_command() {
        let command = || Action::Command(vec!["client".to_owned()]);
        let has = |names: &[&str]| -> BTreeMap<String, Action> {
            names.iter().map(|name| ((*name).to_owned(), command())).collect()
        };
        let need = Need::Acts("ask", "cancel");
        assert_eq!(lacks(&has(&["ask", "cancel"]), &need), None);
        assert_eq!(lacks(&has(&["ask+cancel"]), &need), None);
        assert!(lacks(&has(&["ask"]), &need).is_some_and(|why| why.contains("--action ask+cancel=")));
        assert!(lacks(&has(&["ask+cancel"]), &Need::Act("ask")).is_some());
    }

    #[test]
    fn placeholders_are_replaced() {
        let fresh = StartOptions {
            scenario: "x",
            act: "prompt",
            then: None,
            prompt: "say {agent}".to_owned(),
            cwd: PathBuf::from("/w"),
            transport: None,
        };
        let agent = ["/bin/a b".to_owned(), "it's".to_owned()];
        let template = ["run", "--agent={agent}", "{agent:argv}", "{agent:json}", "{cwd}/x", "{prompt}"];
        let template: Vec<String> = template.map(str::to_owned).into();
        let words = fill(&template, &agent, &fresh, None);
        assert_eq!(
            words,
            [
                "run",
                "--agent='/bin/a b' 'it'\\''s'",
                "/bin/a b",
                "it's",
                "[\"/bin/a b\",\"it's\"]",
                "/w/x",
                "say {agent}"
            ]
        );
    }
}
