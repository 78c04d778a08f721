//! One agent program and one client program, over version 1 and over version 2.

use std::collections::HashMap;
use std::sync::Arc;

use attache::agent::{Agent, AgentSession, TerminalExit, Tool, ToolChange, ToolStatus, Turn, usual_options};
use attache::client::{Client, Event, Protocol, Session, SessionState, ToolCall};
use attache::wire::v1::PermissionOptionKind::{AllowOnce, RejectOnce};
use attache::wire::v1::{
    Content, PlanEntry, PlanEntryPriority, PlanEntryStatus, PlanUpdateContent, ProtocolVersion,
    ToolCallContent, ToolKind,
};
use attache::{ContentBlock, Edit, Link, Prompt, Result, StopReason};
use proptest::prelude::*;

/// The agent program.
#[derive(Clone)]
struct Worker;

impl AgentSession for Worker {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        match &*prompt.text() {
            "talk" => {
                turn.think("hm").await?;
                turn.say("one ").await?;
                turn.say("two").await?;
                let mut message = turn.message();
                message.say("Three").await?;
                message.replace("Three and four").await?;
                let entry = |status| PlanEntry::new("step", PlanEntryPriority::High, status);
                turn.plan(vec![entry(PlanEntryStatus::Pending)]).await?;
                turn.plan(vec![entry(PlanEntryStatus::Completed)]).await?;
            }
            "edit" => {
                let edit = Edit::add("/work/a", "1\n");
                let tool = turn.tool("Edit a").id("t").kind(ToolKind::Edit).location("/work/a", Some(1));
                let tool = tool.edit(edit).start().await?;
                if !turn.ask(&tool, usual_options()).await?.is_allowed() {
                    tool.fail("not allowed").await?;
                    return Ok(StopReason::Refusal);
                }
                tool.run().await?;
                tool.append("half").await?;
                tool.update(ToolChange::new().title("Edited a").raw_output(serde_json::json!({"ok": true})))
                    .await?;
                tool.complete([]).await?;
            }
            "question" => {
                let question = turn.question("Run it?").command("make", "/work");
                let allowed = question.ask().await?.is_allowed();
                turn.say(if allowed { "allowed" } else { "denied" }).await?;
            }
            "run" => {
                let tool = turn.tool("Run").id("r").kind(ToolKind::Execute).start().await?;
                let terminal = tool.terminal("make").start().await?;
                terminal.write("out\n").await?;
                terminal.exit(TerminalExit::code(0)).await?;
                tool.update(ToolChange::new().status(ToolStatus::Completed)).await?;
            }
            "background" => {
                let work = turn.tool("Watch").id("b").start().await?.into_background()?;
                work.run().await?;
                work.message().say("built").await?;
                work.complete([]).await?;
            }
            "forever" => {
                let _tool = turn.tool("Wait").id("w").start().await?;
                turn.say("waiting").await?;
                turn.cancellation().cancelled().await;
            }
            "fail" => return Err(attache::Error::refuse(-31999, "away")),
            _ => return Ok(StopReason::MaxTokens),
        }
        Ok(StopReason::EndTurn)
    }
}

/// What a user sees, in lines. The rules below are all differences that a client program has to allow for.
#[derive(Default)]
struct Screen {
    lines: Vec<String>,
    terminals: HashMap<String, String>,
    calls: HashMap<String, String>,
    state: Option<SessionState>,
}

impl Screen {
    fn show(&mut self, line: String) {
        self.lines.push(line);
    }

    fn event(&mut self, event: &Event) {
        match event {
            // Only version 2 has ids of messages everywhere.
            Event::Text(text) => self.show(format!("text {}", text.text)),
            Event::Thought(text) => self.show(format!("thought {}", text.text)),
            // Version 1 has one plan without an id.
            Event::Plan(plan) => self.show(format!("plan {:?}", plan.entries)),
            Event::PlanUpdate(update) => {
                let PlanUpdateContent::Items(plan) = &update.plan else { panic!("{update:?}") };
                self.show(format!("plan {:?}", plan.entries));
            }
            Event::Permission(ask) => self.show(format!("ask {}", ask.title().unwrap_or_default())),
            // A question without a call reports one in version 1, and has one that the client makes in version 2.
            Event::ToolCall(change) if change.call.id.as_str().contains('-') => {}
            Event::ToolCall(change) => self.tool(&change.call),
            // Version 1 shows a terminal as text of its call, version 2 apart.
            Event::Terminal(change) => {
                let terminal = &change.terminal;
                let (command, output) =
                    (terminal.command.as_deref(), String::from_utf8_lossy(&terminal.output));
                let text = format!("```\n$ {}\n{output}```", command.unwrap_or_default());
                self.terminals.insert(terminal.id.to_string(), text);
            }
            // Only version 2 lists background work, and repeats the state for it.
            Event::Background(_) => {}
            Event::State(state) if self.state.as_ref() == Some(state) => {}
            Event::State(state) => {
                self.state = Some(state.clone());
                self.show(format!("{state:?}"));
            }
            other => self.show(format!("{other:?}")),
        }
    }

    fn tool(&mut self, call: &ToolCall) {
        // Version 1 has no status for cancelled and paused calls.
        let status = match &call.status {
            ToolStatus::Cancelled => &ToolStatus::Failed,
            ToolStatus::Paused => &ToolStatus::InProgress,
            other => other,
        };
        let mut line =
            format!("tool {} {:?} {:?} {status:?} {:?}", call.id, call.title, call.kind, call.locations);
        // Terminals are complete at the end of the call.
        if status.is_final() {
            for content in &call.content {
                line += &match content {
                    ToolCallContent::Terminal(terminal) => {
                        self.terminals[terminal.terminal_id.as_str()].clone()
                    }
                    ToolCallContent::Content(Content { content: ContentBlock::Text(text), .. }) => {
                        text.text.clone()
                    }
                    other => format!("{other:?}"),
                };
            }
            line += &format!("{:?}", call.raw_output);
        }
        // Version 1 repeats a call when a terminal has output.
        if self.calls.insert(call.id.to_string(), line.clone()).as_ref() != Some(&line) {
            self.show(line);
        }
    }
}

/// The client program.
async fn play(session: &mut Session, prompt: &str, screen: &mut Screen) {
    screen.show(format!("> {prompt}"));
    let mut turn = session.prompt(prompt).await.unwrap();
    loop {
        let event = match turn.next().await {
            Ok(Some(event)) => event,
            Ok(None) => return screen.show(format!("end {:?}", turn.stop_reason())),
            Err(error) => return screen.show(format!("error {error}")),
        };
        screen.event(&event);
        match event {
            Event::Text(text) if &*text == "waiting" => turn.cancel(),
            Event::Permission(ask) => ask.choose_kind(if prompt == "edit" { AllowOnce } else { RejectOnce }),
            _ => {}
        }
    }
}

async fn run<S: AgentSession + Clone>(worker: S, prompts: &[&str], protocol: Protocol) -> Vec<String> {
    let (ours, theirs) = Link::pair();
    let agent = Agent::new(move |_| {
        let worker = worker.clone();
        async { Ok(worker) }
    });
    let serving = tokio::spawn(agent.protocol_v2().serve(theirs));
    let agent = Client::new().protocol(protocol).connect(ours).await.unwrap();
    let expected = if protocol == Protocol::V2 { ProtocolVersion::V2 } else { ProtocolVersion::V1 };
    assert_eq!(agent.protocol_version(), expected);
    let mut session = agent.new_session("/work").await.unwrap();
    let mut screen = Screen::default();
    for prompt in prompts {
        play(&mut session, prompt, &mut screen).await;
    }
    drop((session, agent));
    serving.await.unwrap().unwrap();
    screen.lines
}

#[tokio::test(start_paused = true)]
async fn a_user_sees_the_same_over_both_versions() {
    let prompts = ["talk", "edit", "question", "run", "background", "forever", "fail", "other"];
    let [one, two] = [Protocol::V1, Protocol::V2].map(|protocol| run(Worker, &prompts, protocol));
    let (one, two) = (one.await, two.await);
    assert!(one.len() > 40, "{one:#?}");
    assert_eq!(one, two);
}

/// Something that an agent reports.
#[derive(Debug, Clone)]
enum Report {
    Say(String),
    Think(String),
    /// The message with an id grows.
    Grow(String),
    Plan(usize),
    Start(usize),
    Append(usize, String),
    Add(usize, String),
    Title(usize, String),
    Pause(usize),
    Run(usize),
    Terminal(usize, String),
    End(usize, ToolStatus),
}

/// An agent program that reports a list of things.
#[derive(Clone)]
struct Reporter(Arc<Vec<Report>>);

impl AgentSession for Reporter {
    async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
        let mut tools: HashMap<usize, Tool> = HashMap::new();
        let (mut message, mut text) = (turn.message(), String::new());
        for (number, report) in self.0.iter().enumerate() {
            match report {
                Report::Say(text) => turn.say(text).await?,
                Report::Think(text) => turn.think(text).await?,
                Report::Grow(more) => {
                    text.push_str(more);
                    message.replace(text.clone()).await?;
                }
                Report::Plan(entries) => {
                    let entry = PlanEntry::new("step", PlanEntryPriority::Low, PlanEntryStatus::Pending);
                    turn.plan(vec![entry; *entries]).await?;
                }
                Report::Start(tool) => {
                    let started = turn.tool("Tool").id(format!("t{number}")).start().await?;
                    tools.insert(*tool, started);
                }
                Report::End(tool, status) => {
                    if let Some(tool) = tools.remove(tool) {
                        tool.update(ToolChange::new().status(status.clone())).await?;
                    }
                }
                Report::Append(tool, _)
                | Report::Add(tool, _)
                | Report::Title(tool, _)
                | Report::Terminal(tool, _)
                | Report::Pause(tool)
                | Report::Run(tool) => {
                    let Some(tool) = tools.get(tool) else { continue };
                    match report {
                        Report::Append(_, text) => tool.append(text.as_str()).await?,
                        Report::Add(_, text) => tool.edit(Edit::add("/work/a", format!("{text}\n"))).await?,
                        Report::Title(_, title) => tool.update(tool.change().title(title)).await?,
                        Report::Pause(_) => tool.pause().await?,
                        Report::Terminal(_, output) => {
                            let terminal = tool.terminal("make").start().await?;
                            terminal.write(format!("{output}\n")).await?;
                            terminal.exit(TerminalExit::code(0)).await?;
                        }
                        _ => tool.run().await?,
                    }
                }
            }
        }
        Ok(StopReason::EndTurn)
    }
}

fn reports() -> impl Strategy<Value = Vec<Report>> {
    let (tool, text) = (0..3_usize, "[a-zä\u{2028}]{1,4}");
    let status =
        prop_oneof![Just(ToolStatus::Completed), Just(ToolStatus::Failed), Just(ToolStatus::Cancelled)];
    let report = prop_oneof![
        text.prop_map(Report::Say),
        text.prop_map(Report::Think),
        text.prop_map(Report::Grow),
        (0..3_usize).prop_map(Report::Plan),
        tool.clone().prop_map(Report::Start),
        (tool.clone(), text).prop_map(|(tool, text)| Report::Append(tool, text)),
        (tool.clone(), text).prop_map(|(tool, text)| Report::Add(tool, text)),
        (tool.clone(), text).prop_map(|(tool, text)| Report::Title(tool, text)),
        tool.clone().prop_map(Report::Pause),
        tool.clone().prop_map(Report::Run),
        (tool.clone(), text).prop_map(|(tool, text)| Report::Terminal(tool, text)),
        (tool, status).prop_map(|(tool, status)| Report::End(tool, status)),
    ];
    proptest::collection::vec(report, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_reported_is_seen_the_same(reports in reports()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let reporter = Reporter(Arc::new(reports));
        let see = |protocol| runtime.block_on(run(reporter.clone(), &["go"], protocol));
        let (one, two) = (see(Protocol::V1), see(Protocol::V2));
        prop_assert_eq!(one, two);
    }
}
