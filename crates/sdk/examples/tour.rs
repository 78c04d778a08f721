//! The whole system in one program: it starts itself as an agent in another process and talks to
//! it.
//!
//!     cargo run --example tour
//!
//! The agent is scripted and says so: it plans, reads a file through the client, proposes a change
//! as a diff, asks for permission, writes the file, and runs a command in a terminal of the client.
//! On a terminal the permission is yours to give; without one, the tour's policy is printed and
//! applied.

#![allow(clippy::print_stdout, reason = "a program for people: it prints")]

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use attache::agent::{AgentSession, OpenRequest, Turn, serve, usual_options};
use attache::client::{Client, Event, PermissionAsk, RequestContext};
use attache::model::{
    PermissionOptionKind, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolCallContent, ToolKind,
};
use attache::wire::v1::{ReadTextFileRequest, WriteTextFileRequest};
use attache::{Command, Edit, Error, Link, Prompt, Result, StopReason};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("agent") {
        return serve(
            |request: OpenRequest| async move { Ok(Scripted { file: request.cwd.join("greet.py") }) },
            Link::stdio(),
        )
        .await;
    }
    tour().await
}

/// The agent: a stand-in for a model, announced as such.
struct Scripted {
    file: PathBuf,
}

impl AgentSession for Scripted {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let steps = ["read greet.py", "fix the greeting"];
        let plan = |done: usize| {
            let status = |at| if at < done { PlanEntryStatus::Completed } else { PlanEntryStatus::Pending };
            let entry =
                |(at, step): (usize, &&str)| PlanEntry::new(*step, PlanEntryPriority::Medium, status(at));
            steps.iter().enumerate().map(entry).collect()
        };
        turn.think("I am scripted, there is no model behind me. ").await?;
        turn.plan(plan(0)).await?;

        let (Some(reader), Some(writer)) = (turn.read_files(), turn.write_files()) else {
            turn.say("This client provides no files, so there is nothing I can do.").await?;
            return Ok(StopReason::EndTurn);
        };
        let old = reader.read(&self.file).await?;
        turn.plan(plan(1)).await?;
        turn.say(format!("You asked: “{}”. ", prompt.text())).await?;

        let new = old.replace("Helo", "Hello");
        let tool = turn
            .tool("Edit greet.py")
            .kind(ToolKind::Edit)
            .location(&self.file, Some(1))
            .edit(Edit::modify(&self.file, old, &new))
            .start()
            .await?;
        if !turn.ask(&tool, usual_options()).await?.is_allowed() {
            tool.fail("not allowed").await?;
            turn.say("I left the file alone.").await?;
            return Ok(StopReason::EndTurn);
        }
        tool.run().await?;
        writer.write(&self.file, new).await?;
        tool.complete([]).await?;
        turn.plan(plan(2)).await?;
        turn.say("The greeting is spelt right now.").await?;
        Ok(StopReason::EndTurn)
    }
}

/// The client.
async fn tour() -> Result<()> {
    let project = Scratch::new()?;
    let file = project.0.join("greet.py");
    std::fs::write(&file, "print(\"Helo, world\")\n")?;

    let this_program = std::env::current_exe()?;
    let link = Link::command(Command::new(this_program).arg("agent"))?;
    let client = Client::new().info("tour", env!("CARGO_PKG_VERSION")).read_files(read).write_files(write);
    let agent = client.connect(link).await?;
    println!("connected to an agent in a process of its own, protocol version {}", agent.protocol_version());

    let mut session = agent.new_session(project.0.clone()).await?;
    let prompt = "please fix the typo in greet.py";
    println!("> {prompt}");
    let mut turn = session.prompt(prompt).await?;
    while let Some(event) = turn.next().await? {
        show(event)?;
    }
    let end = turn.stop_reason();
    println!("\nthe turn ended: {}", end.map_or("unknown".to_owned(), |reason| reason.to_string()));
    println!("greet.py now reads: {}", std::fs::read_to_string(&file)?.trim_end());
    agent.shutdown().await;
    println!("the agent's process is gone");
    Ok(())
}

fn show(event: Event) -> Result<()> {
    match event {
        Event::Text(text) => print!("{text}"),
        Event::Thought(text) => print!("({})", text.trim()),
        Event::Plan(plan) => {
            println!("\nplan:");
            for entry in &plan.entries {
                let mark = if entry.status == PlanEntryStatus::Completed { 'x' } else { ' ' };
                println!("  [{mark}] {}", entry.content);
            }
        }
        Event::ToolCall(change) => {
            let call = &change.update;
            let status = call.status.map_or("pending", |status| status.as_str());
            println!("\ntool: {} ({status})", call.title.as_deref().unwrap_or("the same"));
            for content in call.content.iter().flatten() {
                if let ToolCallContent::Diff(diff) = content {
                    println!(
                        "  - {}\n  + {}",
                        diff.old_text.as_deref().unwrap_or("").trim_end(),
                        diff.new_text.trim_end()
                    );
                }
            }
        }
        Event::Permission(ask) => decide(ask)?,
        _ => {}
    }
    std::io::stdout().flush()?;
    Ok(())
}

/// Asks the person at the terminal, or follows the policy that it prints.
fn decide(ask: PermissionAsk) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        println!("permission asked; the tour's policy is to allow edits once");
        ask.choose_kind(PermissionOptionKind::AllowOnce);
        return Ok(());
    }
    println!("the agent asks for permission:");
    for (number, option) in ask.options().iter().enumerate() {
        println!("  {}) {}", number + 1, option.name);
    }
    print!("your choice: ");
    std::io::stdout().flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let chosen =
        line.trim().parse::<usize>().ok().and_then(|number| ask.options().get(number.checked_sub(1)?));
    match chosen.map(|option| option.option_id.clone()) {
        Some(option) => ask.choose(&option),
        // A dropped request is answered `cancelled`.
        None => Ok(()),
    }
}

async fn read(cx: RequestContext, request: ReadTextFileRequest) -> Result<String> {
    std::fs::read_to_string(inside(&cx, &request.path)?).map_err(|error| Error::not_found(error.to_string()))
}

async fn write(cx: RequestContext, request: WriteTextFileRequest) -> Result<()> {
    Ok(std::fs::write(inside(&cx, &request.path)?, request.content)?)
}

/// A client provides only files below the session's roots.
fn inside(cx: &RequestContext, path: &str) -> Result<PathBuf> {
    let path = Path::new(path).canonicalize().map_err(|error| Error::not_found(error.to_string()))?;
    match cx.roots().iter().any(|root| root.canonicalize().is_ok_and(|root| path.starts_with(root))) {
        true => Ok(path),
        false => Err(Error::invalid_params("that file is outside of the session's roots")),
    }
}

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("attache-tour-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
