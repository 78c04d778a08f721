//! One agent program and one client program, over version 1 and over version 2: the client sees the same events.

use std::time::Duration;

use attache::agent::{Agent, AgentSession, OpenedSession, Turn, usual_options};
use attache::client::{Client, Event, Protocol, Session};
use attache::wire::v1::{
    AvailableCommand, PermissionOptionKind, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionMode,
    SessionModeState, ToolKind,
};
use attache::{Edit, Error, Link, Prompt, Result, StopReason};

use crate::turn_events::state_name;

/// The agent program. It does not know which version is spoken.
struct Worker;

impl AgentSession for Worker {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        match &*prompt.text() {
            "edit" => edit(turn).await,
            "run" => run(turn).await,
            "fail" => Err(Error::refuse(-32000, "log in first")),
            "wait" => {
                turn.say("waiting").await?;
                turn.until_cancelled(std::future::pending::<()>()).await?;
                Ok(StopReason::EndTurn)
            }
            "stop" => Ok(StopReason::MaxTokens),
            text => {
                turn.think("How do I answer?").await?;
                turn.say("You said: ").await?;
                turn.say(text).await?;
                turn.report_usage(10, 100, None).await?;
                Ok(StopReason::EndTurn)
            }
        }
    }
}

async fn edit(turn: Turn<'_>) -> Result<StopReason> {
    let entry = |status| PlanEntry::new("change a", PlanEntryPriority::High, status);
    turn.plan(vec![entry(PlanEntryStatus::InProgress)]).await?;
    let change = Edit::modify("/work/a", "one\n", "two\n");
    let tool = turn.tool("Change a").kind(ToolKind::Edit).location("/work/a", Some(1)).start().await?;
    tool.edit(change).await?;
    if !turn.ask(&tool, usual_options()).await?.is_allowed() {
        tool.fail("not allowed").await?;
        return Ok(StopReason::Refusal);
    }
    tool.run().await?;
    tool.complete([]).await?;
    turn.plan(vec![entry(PlanEntryStatus::Completed)]).await?;
    turn.say("Done.").await?;
    Ok(StopReason::EndTurn)
}

async fn run(turn: Turn<'_>) -> Result<StopReason> {
    let tool = turn.tool("Test").kind(ToolKind::Execute).name("sh").start().await?;
    tool.run().await?;
    tool.append("first line").await?;
    tool.append("second line").await?;
    tool.complete([]).await?;
    let mut message = turn.message();
    message.say("It ").await?;
    message.say("works.").await?;
    Ok(StopReason::EndTurn)
}

fn agent() -> Agent {
    Agent::new(|_| async {
        let modes = vec![SessionMode::new("ask", "Ask"), SessionMode::new("code", "Code")];
        Ok(OpenedSession::new(Worker)
            .modes(SessionModeState::new("ask", modes))
            .commands(vec![AvailableCommand::new("fix", "Fix it")]))
    })
    .protocol_v2()
}

/// One line per event. The two versions may differ in these points, and the lines hide them:
/// - Text comes in pieces of any size, and message ids are the agent's or made up: pieces are joined.
/// - A plan of version 2 has a name.
/// - The whole list of options comes with a mode of version 2.
fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::Text(text) => format!("text {text}"),
        Event::Thought(text) => format!("thought {text}"),
        Event::State(state) => format!("state {}", state_name(state)),
        Event::ToolCall(change) => {
            let call = &change.call;
            let texts = call.content.len();
            let edits: Vec<_> = call.edits.iter().map(|edit| (edit.operation(), edit.path())).collect();
            let (status, kind) = (call.status.as_str(), call.kind);
            format!("tool {} {kind:?} {status} {:?} {texts} {edits:?}", call.title, call.name)
        }
        Event::Plan(plan) => format!("plan {:?}", plan.entries),
        Event::PlanUpdate(update) => match &update.plan {
            attache::wire::v1::PlanUpdateContent::Items(items) => format!("plan {:?}", items.entries),
            other => format!("{other:?}"),
        },
        Event::ConfigOptions(_) => return None,
        Event::Mode(mode) => format!("mode {mode}"),
        Event::Commands(commands) => format!("commands {}", commands.len()),
        Event::Usage(usage) => format!("usage {} {}", usage.used, usage.size),
        Event::Permission(ask) => {
            let options: Vec<_> = ask.options().iter().map(|option| option.name.as_str()).collect();
            format!("permission {:?} {options:?}", ask.title())
        }
        other => format!("{other:?}"),
    })
}

/// The client program. It does not know which version is spoken.
async fn talk(session: &mut Session, text: &str, answer: PermissionOptionKind, log: &mut Vec<String>) {
    log.push(format!("> {text}"));
    let mut turn = session.prompt(text).await.unwrap();
    loop {
        let event = match turn.next().await {
            Ok(Some(event)) => event,
            Ok(None) => break,
            Err(error) => return log.push(format!("error {error}")),
        };
        let shown = line(&event);
        match (shown, log.last_mut()) {
            (Some(next), Some(last)) if next.starts_with("text ") && last.starts_with("text ") => {
                last.push_str(&next["text ".len()..]);
            }
            (Some(next), _) => log.push(next),
            (None, _) => {}
        }
        match event {
            Event::Permission(ask) => ask.choose_kind(answer),
            Event::Text(text) if &*text == "waiting" => turn.cancel(),
            _ => {}
        }
    }
    log.push(format!("end {:?}", turn.stop_reason().unwrap()));
}

async fn log(protocol: Protocol) -> Vec<String> {
    let (ours, theirs) = Link::pair();
    let serving = tokio::spawn(agent().serve(theirs));
    let agent = Client::new().protocol(protocol).connect(ours).await.unwrap();
    let version = if protocol == Protocol::V2 { "2" } else { "1" };
    assert_eq!(agent.protocol_version().to_string(), version);
    let mut log = vec![format!("{:?}", agent.info().map(|info| &info.name))];
    let mut session = agent.new_session("/work").await.unwrap();
    let deadline = tokio::time::timeout(Duration::from_secs(60), async {
        for text in ["hello", "edit", "run", "stop", "fail", "wait", "hello again"] {
            talk(&mut session, text, PermissionOptionKind::AllowOnce, &mut log).await;
        }
        talk(&mut session, "edit", PermissionOptionKind::RejectOnce, &mut log).await;
        log.push(format!("modes {:?}", session.modes().map(|modes| modes.current_mode_id)));
        session.control().set_mode("code").await.unwrap();
        log.push(format!("modes {:?}", session.modes().map(|modes| modes.current_mode_id)));
        log.push(format!("commands {}", session.commands().len()));
        log.push(format!("unknown mode {:?}", session.control().set_mode("no").await.is_err()));
    });
    deadline.await.expect("the conversation ends");
    drop(session);
    agent.shutdown().await;
    serving.await.unwrap().unwrap();
    log
}

#[tokio::test(start_paused = true)]
async fn the_same_programs_see_the_same_on_both_versions() {
    let (one, two) = (log(Protocol::V1).await, log(Protocol::V2).await);
    for (at, (one, two)) in one.iter().zip(&two).enumerate() {
        assert_eq!(one, two, "line {at}");
    }
    assert_eq!(one.len(), two.len());
    assert!(one.len() > 40, "{one:#?}");
}
