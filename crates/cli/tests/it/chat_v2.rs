//! The chat with agents of protocol version 2.

use attache::agent::{Agent, AgentSession, OpenRequest, TerminalExit, ToolStatus, Turn, usual_options};
use attache::wire::v1::{PlanEntry, PlanEntryPriority as Priority, PlanEntryStatus as Step, ToolKind};
use attache::{Prompt, Result, StopReason};

use crate::chat_rig::{CTRL_C, Chat, Cue, ENTER, Start};

#[derive(Clone, Default)]
struct Worker {
    cue: Cue,
}

impl AgentSession for Worker {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        if &*prompt.text() == "wait" {
            turn.say("I wait").await?;
            turn.until_cancelled(std::future::pending::<()>()).await?;
        }
        turn.think("let me see").await?;
        let entry = |step| vec![PlanEntry::new("First step", Priority::High, step)];
        turn.plan(entry(Step::InProgress)).await?;
        let tool = turn.tool("Edit main.rs").kind(ToolKind::Edit).start().await?;
        tool.edit(attache::Edit::modify("/w/main.rs", "one\ntwo\n", "one\n2\n")).await?;
        if !turn.ask(&tool, usual_options()).await?.is_allowed() {
            tool.fail("not allowed").await?;
            turn.say("left alone").await?;
            return Ok(StopReason::EndTurn);
        }
        tool.complete([]).await?;
        let tool = turn.tool("Make").kind(ToolKind::Execute).start().await?;
        let terminal = tool.terminal("make all").start().await?;
        terminal.write("building é").await?;
        self.cue.given().await;
        terminal.write("\nbuilt\n").await?;
        terminal.exit(TerminalExit::code(3)).await?;
        tool.update(tool.change().status(ToolStatus::Completed)).await?;
        turn.plan(entry(Step::Completed)).await?;
        turn.say("all done").await?;
        Ok(StopReason::EndTurn)
    }
}

/// A chat with an agent whose sessions are all like this one.
async fn open(session: impl AgentSession + Clone) -> Chat {
    let agent = Agent::new(move |_: OpenRequest| {
        let session = session.clone();
        async move { Ok(session) }
    });
    let start = Start::new().args(&["--protocol", "2"]);
    start.with(agent.info("tester", "1.0").protocol_v2()).await
}

#[tokio::test]
async fn everything_that_an_agent_of_version_2_reports_is_shown() {
    let worker = Worker::default();
    let mut chat = open(worker.clone()).await;
    chat.say("work");
    chat.sees("let me see").await;
    chat.sees("▸ First step").await;
    chat.sees("/w/main.rs  +1 -1").await;
    chat.asks("Edit /w/main.rs?").await;
    chat.keys("y");
    chat.sees("✓ Edit main.rs").await;
    chat.sees("building é").await;
    worker.cue.give();
    chat.sees("built").await;
    chat.sees("exit code 3").await;
    chat.sees("all done").await;
    chat.sees_no_more("working").await;
    assert_eq!(
        chat.history().matches("> work").count(),
        1,
        "the echo of the prompt is not shown:\n{}",
        chat.history()
    );
    chat.say("wait");
    chat.sees("I wait").await;
    chat.keys(CTRL_C);
    chat.sees("cancelled").await;
}

/// An agent whose work goes on after its turns.
#[derive(Clone, Default)]
struct Watcher {
    cue: Cue,
}

impl AgentSession for Watcher {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text().into_owned();
        let tool = turn.tool(format!("Watch the {text}")).kind(ToolKind::Other);
        let tool = if text == "server" { tool } else { tool.cancellable() };
        let work = tool.start().await?.into_background()?;
        let cue = self.cue.clone();
        tokio::spawn(async move {
            match work.until_cancelled(cue.given()).await {
                Ok(()) => work.complete(["all is well".into()]).await,
                Err(_) => work.cancel().await,
            }
        });
        turn.say(format!("I watch the {text}.")).await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn background_work_is_listed_cancelled_and_shown_when_it_ends() {
    let watcher = Watcher::default();
    let mut chat = open(watcher.clone()).await;
    chat.say("/tasks");
    chat.sees("nothing runs in the background").await;

    chat.say("build");
    chat.sees("▸ tool Watch the build (continues in the background)").await;
    chat.sees("▸ in the background: Watch the build (/tasks cancels it)").await;
    chat.sees_no_more("working").await;
    chat.say("/tasks");
    chat.sees("Cancel background work").await;
    chat.keys(ENTER);
    chat.sees("! cancelled: Watch the build").await;
    chat.sees_no_more("in the background: Watch").await;

    // Work that ends by itself.
    chat.say("tests");
    chat.sees("in the background: Watch the tests").await;
    chat.sees_no_more("working").await;
    watcher.cue.give();
    chat.sees("✓ tool Watch the tests").await;
    chat.sees("all is well").await;
    chat.sees_no_more("in the background: Watch").await;

    chat.say("server");
    chat.sees("in the background: Watch the server").await;
    chat.sees_no_more("working").await;
    chat.say("/tasks");
    chat.sees("Cancel background work").await;
    chat.keys(ENTER);
    chat.sees("does not offer to cancel \"Watch the server\"").await;
    chat.sees("in the background: Watch the server").await;
    assert!(!chat.history().contains("not finished"), "{}", chat.history());
}
