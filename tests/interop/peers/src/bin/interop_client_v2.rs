//! The client that `cargo xtask interop` puts before agents of protocol version 2:
//! `interop_client_v2 -- AGENT ARGS…`. Runs its checks and prints one line for each: `ok NAME`, or
//! `not ok NAME: WHY`. What each prompt does is written in `tests/interop/README.md`.

#![allow(clippy::print_stdout, reason = "a program that prints what it saw")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use attache::client::{AgentHandle, Client, Event, Protocol, Session, SessionState, Speaker};
use attache::wire::v1::PermissionOptionKind::{AllowOnce, RejectOnce};
use attache::wire::v1::{PermissionOptionKind, ProtocolVersion};
use attache::{Command, Error, Link, Result, StopReason};

/// For one check.
const TIME: Duration = Duration::from_secs(20);

/// Fails with the values if they differ.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: T, expected: T) -> Result<()> {
    match seen == expected {
        true => Ok(()),
        false => Err(Error::internal(format!("{what} is {seen:?} and not {expected:?}"))),
    }
}

/// What came of one prompt.
#[derive(Default)]
struct Seen {
    text: String,
    states: Vec<SessionState>,
    asked: Vec<String>,
    tools: Vec<(String, String)>,
    content: bool,
    output: Vec<u8>,
    exit_code: Option<String>,
    background: Vec<usize>,
    stop: Option<StopReason>,
}

impl Seen {
    fn take(&mut self, event: Event, answer: PermissionOptionKind) {
        match event {
            Event::Text(text) => self.text.push_str(&text),
            Event::Message(message) if message.speaker == Speaker::Agent => self.text = message.text(),
            Event::State(state) => self.states.push(state),
            Event::Permission(ask) => {
                self.asked.push(ask.title().unwrap_or_default().to_owned());
                ask.choose_kind(answer);
            }
            Event::ToolCall(change) => {
                if let Some(status) = &change.update.status {
                    self.tools.push((change.id().to_string(), status.as_str().to_owned()));
                }
                self.content |= !change.call.content.is_empty();
            }
            Event::Terminal(change) => {
                self.output.extend(&change.appended);
                let exit = change.terminal.exit_status.as_ref().and_then(|exit| exit.exit_code);
                self.exit_code = exit.map(|code| code.to_string());
            }
            Event::Background(work) => self.background.push(work.len()),
            _ => {}
        }
    }
}

struct Checks {
    agent: AgentHandle,
    cwd: PathBuf,
}

impl Checks {
    async fn open(&self) -> Result<Session> {
        self.agent.new_session(&self.cwd).await
    }

    async fn turn(&self, session: &mut Session, prompt: &str, answer: PermissionOptionKind) -> Result<Seen> {
        let mut seen = Seen::default();
        let mut turn = session.prompt(prompt).await?;
        while let Some(event) = turn.next().await? {
            seen.take(event, answer);
        }
        seen.stop = turn.stop_reason();
        Ok(seen)
    }

    async fn say(&self, prompt: &str) -> Result<Seen> {
        self.turn(&mut self.open().await?, prompt, AllowOnce).await
    }

    async fn initialize(&self) -> Result<()> {
        same("the version", self.agent.protocol_version(), ProtocolVersion::V2)?;
        if let Some(method) = self.agent.auth_methods().first().and_then(|method| method.id()) {
            self.agent.authenticate(method.clone()).await?;
        }
        let name = self.agent.info().map(|info| info.name.clone());
        same("the name", name.as_deref(), Some("interop-agent"))
    }

    async fn answer(&self) -> Result<()> {
        let seen = self.say("say hello").await?;
        same("the text", &*seen.text, "hello")?;
        same("the first state", seen.states.first(), Some(&SessionState::Running))?;
        same("the stop reason", seen.stop, Some(StopReason::EndTurn))
    }

    async fn stop_reasons(&self) -> Result<()> {
        same("the stop reason", self.say("stop max_tokens").await?.stop, Some(StopReason::MaxTokens))?;
        match self.say("fail").await {
            Err(Error::Refused(error)) => same("the code", error.code, -32603),
            other => Err(Error::internal(format!("a failure is {:?}", other.map(|seen| seen.stop)))),
        }
    }

    async fn replaced_message(&self) -> Result<()> {
        same("the text", &*self.say("replace").await?.text, "final")
    }

    async fn edit(&self, answer: PermissionOptionKind, said: &str, expected: &str) -> Result<()> {
        let path = self.cwd.join("draft.txt");
        std::fs::write(&path, "one\ntwo\n")?;
        let mut session = self.open().await?;
        let seen = self.turn(&mut session, &format!("edit {}", path.display()), answer).await?;
        same("the file", &*std::fs::read_to_string(&path)?, expected)?;
        same("the text", &*seen.text, said)?;
        same("the questions", seen.asked.iter().map(String::as_str).collect(), vec!["Edit draft.txt?"])?;
        same("a state", seen.states.contains(&SessionState::RequiresAction), true)?;
        same("content", seen.content, true)
    }

    async fn edit_granted(&self) -> Result<()> {
        self.edit(AllowOnce, "applied", "one\nTWO\n").await
    }

    async fn edit_denied(&self) -> Result<()> {
        self.edit(RejectOnce, "denied", "one\ntwo\n").await
    }

    async fn terminal(&self) -> Result<()> {
        let seen = self.say("run").await?;
        same("the output", String::from_utf8_lossy(&seen.output).as_ref(), "hä\n")?;
        same("the exit code", seen.exit_code.as_deref(), Some("3"))?;
        same("the end", seen.tools.last().map(|(id, status)| (&**id, &**status)), Some(("run-1", "failed")))
    }

    async fn cancel(&self) -> Result<()> {
        let mut session = self.open().await?;
        let mut turn = session.prompt("forever").await?;
        let mut said = String::new();
        while let Some(event) = turn.next().await? {
            if let Event::Text(text) = event {
                said.push_str(&text);
            }
            if said.contains("tick 1;") {
                turn.cancel();
            }
        }
        same("the stop reason", turn.stop_reason(), Some(StopReason::Cancelled))?;
        same("the text", &*self.turn(&mut session, "say again", AllowOnce).await?.text, "again")
    }

    async fn cancel_asked(&self) -> Result<()> {
        let path = self.cwd.join("draft.txt");
        std::fs::write(&path, "one\ntwo\n")?;
        let mut session = self.open().await?;
        let mut turn = session.prompt(format!("edit {}", path.display())).await?;
        let mut held = Vec::new();
        while let Some(event) = turn.next().await? {
            if let Event::Permission(ask) = event {
                held.push(ask);
                turn.cancel();
            }
        }
        same("the stop reason", turn.stop_reason(), Some(StopReason::Cancelled))?;
        same("the file", &*std::fs::read_to_string(&path)?, "one\ntwo\n")
    }

    async fn background(&self) -> Result<()> {
        let mut session = self.open().await?;
        let seen = self.turn(&mut session, "background", AllowOnce).await?;
        same("the text", &*seen.text, "started")?;
        same("the work", seen.background.last(), Some(&1))?;
        let seen = self.turn(&mut session, "finish", AllowOnce).await?;
        same("the work", seen.background.last(), Some(&0))?;
        same("the end", seen.tools.last().map(|(id, status)| (&**id, &**status)), Some(("bg-1", "completed")))
    }

    async fn resume_with_replay(&self) -> Result<()> {
        let mut session = self.open().await?;
        self.turn(&mut session, "say remember", AllowOnce).await?;
        let id = session.id().clone();
        session.close().await?;
        let loader = self.agent.loader().ok_or(Error::Unsupported("a replay"))?;
        let mut replay = loader.load(id, &self.cwd).await?;
        let (mut user, mut agent) = (String::new(), String::new());
        while let Some(event) = replay.next().await? {
            match event {
                Event::User(text) => user.push_str(&text),
                Event::Text(text) => agent.push_str(&text),
                _ => {}
            }
        }
        same("the replay", (&*user, &*agent), ("say remember", "remember"))?;
        let mut session = replay.finish().await?;
        same("the text", &*self.turn(&mut session, "say again", AllowOnce).await?.text, "again")
    }
}

/// Runs one check. Returns whether it holds.
async fn check(name: &str, check: impl Future<Output = Result<()>>) -> bool {
    let outcome =
        tokio::time::timeout(TIME, check).await.unwrap_or_else(|_| Err(Error::internal("timed out")));
    match outcome {
        Ok(()) => {
            println!("ok {name}");
            true
        }
        Err(error) => {
            println!("not ok {name}: {}", error.to_string().replace('\n', " "));
            false
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let args: Vec<String> = std::env::args().collect();
    let program = args.iter().skip_while(|arg| *arg != "--").skip(1).collect::<Vec<_>>();
    let Some((program, rest)) = program.split_first() else {
        return Err(Error::Invalid("usage: interop_client_v2 -- AGENT ARGS…".to_owned()));
    };
    let link = Link::command(Command::new(program.as_str()).args(rest.iter().map(|arg| arg.as_str())))?;
    let client = Client::new().info("interop-client-v2", "1").protocol(Protocol::V2);
    let agent = client.connect(link).await?;
    let cwd = Path::new(".").canonicalize()?;
    let checks = Checks { agent, cwd };
    let mut ok = check("initialize", checks.initialize()).await;
    ok &= check("answer", checks.answer()).await;
    ok &= check("stop_reasons", checks.stop_reasons()).await;
    ok &= check("replaced_message", checks.replaced_message()).await;
    ok &= check("edit_granted", checks.edit_granted()).await;
    ok &= check("edit_denied", checks.edit_denied()).await;
    ok &= check("terminal", checks.terminal()).await;
    ok &= check("cancel", checks.cancel()).await;
    ok &= check("cancel_asked", checks.cancel_asked()).await;
    ok &= check("background", checks.background()).await;
    ok &= check("resume_with_replay", checks.resume_with_replay()).await;
    checks.agent.shutdown().await;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
