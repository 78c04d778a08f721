//! A client, the agent and a project, tied together.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use attache::client::{AgentHandle, Client, Event, PermissionAsk, Session};
use attache::wire::v1::{PermissionOptionKind, ToolCallUpdate};
use attache::{Link, Prompt, StopReason};
use attache_agent::{Mode, Options, Sandbox, SandboxOptions, TrustSource};

/// A directory that is removed at the end.
pub(crate) struct Project(PathBuf);

impl Project {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("attache-agent-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(path.join("project")).unwrap();
        Project(path)
    }

    /// The session's directory.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("project")
    }

    /// A place beside it.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }

    /// Options with this script as the model.
    pub(crate) fn script(&self, script: &str) -> Options {
        let path = self.0.join("script");
        std::fs::write(&path, script).unwrap();
        let model = Some(format!("script:{}", path.display()));
        Options { model, trust: TrustSource::All, sandbox: Sandbox::Off, ..Options::default() }
    }

    /// The same, with commands in a sandbox.
    pub(crate) fn sandboxed(&self, script: &str) -> Options {
        let tests = std::env::current_exe().unwrap();
        let program = tests.ancestors().nth(2).unwrap().join("examples/confine");
        assert!(program.is_file(), "{} is built with the tests", program.display());
        let sandbox = SandboxOptions { program, required: true, network: true, hidden: Vec::new() };
        Options { sandbox: Sandbox::On(sandbox), ..self.script(script) }
    }

    pub(crate) fn path_of(&self, name: &str) -> String {
        self.path().join(name).display().to_string()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Connects a client to an agent in the same process.
pub(crate) async fn connect(client: Client, options: Options) -> AgentHandle {
    let (ours, theirs) = Link::pair();
    tokio::spawn(async move { attache_agent::serve(options, theirs).await });
    client.connect(ours).await.unwrap()
}

/// A session of a client that provides nothing, in a mode.
pub(crate) async fn session(project: &Project, script: &str, mode: Mode) -> Session {
    session_of(Client::new().notices(), project, script, mode).await
}

pub(crate) async fn session_of(client: Client, project: &Project, script: &str, mode: Mode) -> Session {
    let options = Options { mode: Some(mode), ..project.script(script) };
    connect(client, options).await.new_session(project.path()).await.unwrap()
}

/// What happened in a turn.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) text: String,
    pub(crate) thoughts: String,
    /// Every state of every tool call, in order.
    pub(crate) calls: Vec<ToolCallUpdate>,
    /// What was asked for, by title.
    pub(crate) asked: Vec<ToolCallUpdate>,
    pub(crate) plans: Vec<Vec<String>>,
    pub(crate) notices: Vec<String>,
    pub(crate) others: Vec<String>,
    pub(crate) stop: Option<StopReason>,
    pub(crate) error: Option<attache::Error>,
}

impl Seen {
    /// The states that calls went through: `title: status`, without repetitions.
    pub(crate) fn states(&self) -> Vec<String> {
        let mut titles = std::collections::HashMap::new();
        let mut states: Vec<String> = Vec::new();
        for call in &self.calls {
            if let Some(title) = &call.title {
                titles.insert(call.tool_call_id.clone(), title.clone());
            }
            if let Some(status) = call.status {
                states.push(format!("{}: {}", titles[&call.tool_call_id], status.as_str()));
            }
        }
        states
    }

    pub(crate) fn titles_asked(&self) -> Vec<String> {
        self.asked.iter().map(|call| call.title.clone().unwrap()).collect()
    }

    /// All content of tool calls as JSON.
    pub(crate) fn contents(&self) -> String {
        self.calls
            .iter()
            .map(|call| serde_json::to_string(&call.content).unwrap())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Sends a prompt and answers every question with an option of this kind.
pub(crate) async fn run(
    session: &mut Session,
    prompt: impl Into<Prompt>,
    kind: PermissionOptionKind,
) -> Seen {
    run_with(session, prompt, |ask| ask.choose_kind(kind)).await
}

pub(crate) async fn allow(session: &mut Session, prompt: impl Into<Prompt>) -> Seen {
    run(session, prompt, PermissionOptionKind::AllowOnce).await
}

pub(crate) async fn run_with(
    session: &mut Session,
    prompt: impl Into<Prompt>,
    mut decide: impl FnMut(PermissionAsk),
) -> Seen {
    let mut seen = Seen::default();
    let mut turn = match session.prompt(prompt).await {
        Ok(turn) => turn,
        Err(error) => return Seen { error: Some(error), ..seen },
    };
    loop {
        match turn.next().await {
            Ok(Some(event)) => take(&mut seen, event, &mut decide),
            Ok(None) => break,
            Err(error) => {
                seen.error = Some(error);
                return seen;
            }
        }
    }
    seen.stop = turn.stop_reason();
    seen
}

pub(crate) fn take(seen: &mut Seen, event: Event, decide: &mut impl FnMut(PermissionAsk)) {
    match event {
        Event::Text(text) => seen.text.push_str(&text),
        Event::Thought(text) => seen.thoughts.push_str(&text),
        Event::ToolCall(change) => seen.calls.push(*change.update),
        Event::Plan(plan) => {
            let entry =
                |entry: &attache::wire::v1::PlanEntry| format!("{} {}", entry.status.as_str(), entry.content);
            seen.plans.push(plan.entries.iter().map(entry).collect());
        }
        Event::Notice(notice) => seen.notices.push(notice.title.clone()),
        Event::Permission(ask) => {
            seen.asked.push(ask.tool_call().clone());
            decide(ask);
        }
        other => seen.others.push(format!("{other:?}")),
    }
}

/// A file's name below a directory, for scripts.
pub(crate) fn json(path: &Path) -> String {
    serde_json::to_string(&path.display().to_string()).unwrap()
}
