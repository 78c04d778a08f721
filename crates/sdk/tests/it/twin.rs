//! One agent program and one client program, over version 1 and over version 2: the client sees the
//! same.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use attache::agent::{
    Agent, AgentSession, OpenedSession, TerminalExit, ToolChange, ToolStatus, Turn, usual_options,
};
use attache::client::{AgentTerminal, Client, Event, Protocol, Session, ToolCall};
use attache::model::PermissionOptionKind::{self, AllowOnce, RejectOnce};
use attache::model::{
    AvailableCommand, Content, ElicitationSchema, Fields, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    PlanUpdateContent, ProtocolVersion, SessionMode, SessionModeState, StringPropertySchema, ToolCallContent,
    ToolKind,
};
use attache::{ContentBlock, Edit, Error, Link, Meta, Prompt, Result, StopReason};
use serde_json::json;

/// The agent program. It does not know which version is spoken.
#[derive(Clone)]
struct Worker;

impl AgentSession for Worker {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        match &*prompt.text() {
            "talk" => talk(turn).await?,
            id @ ("change" | "refused_change") => return change(turn, id).await,
            id @ ("add" | "refused_add") => return add(turn, id).await,
            "question" => {
                let question = turn.question("Run it?").command("make", "/work");
                let allowed = question.ask().await?.is_allowed();
                turn.say(if allowed { "allowed" } else { "denied" }).await?;
            }
            "append" => append(turn).await?,
            "form" => {
                let forms = turn.forms().ok_or(Error::Unsupported("forms"))?;
                let schema = ElicitationSchema::new().field("name", StringPropertySchema::new(), true);
                let answer = forms.ask("Who?", schema).await?;
                turn.say(serde_json::to_string(&answer)?).await?;
            }
            "meta" => {
                let tool = turn
                    .tool("Look")
                    .id("m")
                    .meta(Meta::new(&json!({"a": 1, "b": {"c": 2}}))?)
                    .start()
                    .await?;
                tool.update(tool.change().meta_key("a", json!(null)).meta_key("b", json!(3))).await?;
                tool.complete([]).await?;
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
            "wait" => {
                turn.say("waiting").await?;
                turn.until_cancelled(std::future::pending::<()>()).await?;
            }
            "login" => return Err(Error::refuse(-32000, "log in first")),
            "fail" => return Err(Error::refuse(-31999, "away")),
            "stop" => return Ok(StopReason::MaxTokens),
            text => {
                turn.think("How do I answer?").await?;
                turn.say("You said: ").await?;
                turn.say(text).await?;
                turn.report_usage(10, 100, None).await?;
            }
        }
        Ok(StopReason::EndTurn)
    }
}

async fn talk(turn: Turn<'_>) -> Result<()> {
    turn.think("hm").await?;
    turn.say("one ").await?;
    turn.say("two").await?;
    let mut message = turn.message();
    message.say("Three").await?;
    message.replace("Three and four").await?;
    let entry = |status| PlanEntry::new("step", PlanEntryPriority::High, status);
    turn.plan(vec![entry(PlanEntryStatus::Pending)]).await?;
    turn.plan(vec![entry(PlanEntryStatus::Completed)]).await
}

async fn change(turn: Turn<'_>, id: &str) -> Result<StopReason> {
    let entry = |status| PlanEntry::new("change a", PlanEntryPriority::High, status);
    turn.plan(vec![entry(PlanEntryStatus::InProgress)]).await?;
    let tool = turn.tool("Change a").id(id).kind(ToolKind::Edit).location("/work/a", Some(1));
    let tool = tool.start().await?;
    tool.edit(Edit::modify("/work/a", "one\n", "two\n")).await?;
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

async fn add(turn: Turn<'_>, id: &str) -> Result<StopReason> {
    let tool = turn.tool("Edit a").id(id).kind(ToolKind::Edit).location("/work/a", Some(1));
    let tool = tool.edit(Edit::add("/work/a", "1\n")).start().await?;
    if !turn.ask(&tool, usual_options()).await?.is_allowed() {
        tool.fail("not allowed").await?;
        return Ok(StopReason::Refusal);
    }
    tool.run().await?;
    tool.append("half").await?;
    tool.update(ToolChange::new().title("Edited a").raw_output(serde_json::json!({"ok": true}))).await?;
    tool.complete([]).await?;
    Ok(StopReason::EndTurn)
}

async fn append(turn: Turn<'_>) -> Result<()> {
    let tool = turn.tool("Test").id("n").kind(ToolKind::Execute).name("sh").start().await?;
    tool.run().await?;
    tool.append("first line").await?;
    tool.append("second line").await?;
    tool.complete([]).await?;
    let mut message = turn.message();
    message.say("It ").await?;
    message.say("works.").await
}

fn agent<S: AgentSession + Clone>(worker: S) -> Agent {
    Agent::new(move |_| {
        let worker = worker.clone();
        async {
            let modes = vec![SessionMode::new("ask", "Ask"), SessionMode::new("code", "Code")];
            Ok(OpenedSession::new(worker)
                .modes(SessionModeState::new("ask", modes))
                .commands(vec![AvailableCommand::new("fix", "Fix it")]))
        }
    })
    .protocol_v2()
}

/// Everything that the client program shows, after the normalisation.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    /// The output of the agent's terminals, to be shown with their calls.
    terminals: Terminals,
    normalizer: Normalizer,
}

impl Log {
    fn add(&mut self, line: String) {
        self.lines.push(line);
    }

    fn event(&mut self, event: &Event) {
        if let Event::Terminal(change) = event {
            self.terminals.note(&change.terminal);
        }
        self.lines.extend(self.normalizer.line(event, &self.terminals));
    }
}

/// Terminals, by id, as the client program shows them.
#[derive(Default)]
struct Terminals(HashMap<String, String>);

impl Terminals {
    fn note(&mut self, terminal: &AgentTerminal) {
        let output = String::from_utf8_lossy(&terminal.output);
        let text = format!("```\n$ {}\n{output}```", terminal.command.as_deref().unwrap_or_default());
        self.0.insert(terminal.id.to_string(), text);
    }

    /// Whether content is a terminal, or its text in version 1.
    fn has(&self, content: &ToolCallContent) -> bool {
        self.show(content).starts_with("```\n$ ")
    }

    fn show(&self, content: &ToolCallContent) -> String {
        match content {
            ToolCallContent::Terminal(terminal) => self.0[terminal.terminal_id.as_str()].clone(),
            ToolCallContent::Content(Content { content: ContentBlock::Text(text), .. }) => text.text.clone(),
            other => format!("{other:?}"),
        }
    }
}

fn call_line(call: &ToolCall, terminals: &Terminals) -> String {
    let ToolCall { id, title, kind, status, name, locations, raw_input, raw_output, meta, .. } = call;
    let edits: Vec<_> = call.edits.iter().map(|edit| (edit.operation(), edit.path())).collect();
    let content: Vec<_> = call.content.iter().map(|content| terminals.show(content)).collect();
    let what = format!("{id} {title:?} {kind:?} {status:?} {name:?} {locations:?}");
    format!("tool {what} {edits:?} {content:?} {raw_input:?} {raw_output:?} {meta:?}")
}

fn line(event: &Event) -> String {
    match event {
        Event::Text(text) => format!("text {}", text.text),
        Event::Thought(text) => format!("thought {}", text.text),
        Event::Permission(ask) => format!("ask {:?} {:?}", ask.title(), ask.options()),
        Event::Elicitation(ask) => format!("form {} {:?}", ask.message(), ask.requested()),
        other => format!("{other:?}"),
    }
}

fn items(plan: &PlanUpdateContent) -> &[PlanEntry] {
    let PlanUpdateContent::Items(plan) = plan else { panic!("{plan:?}") };
    &plan.entries
}

/// Takes away what may differ between the versions, and counts that.
#[derive(Default)]
struct Normalizer {
    /// The latest line of each call, and of the state.
    last: HashMap<String, String>,
    used: BTreeMap<&'static str, usize>,
}

impl Normalizer {
    /// Counts the use of a rule.
    fn allow(&mut self, rule: &'static str, line: Option<String>) -> Option<String> {
        self.count_if(rule, true);
        line
    }

    fn count_if(&mut self, rule: &'static str, is_used: bool) {
        if is_used {
            *self.used.entry(rule).or_default() += 1;
        }
    }

    // The normalisation begins here. Its comments name all differences for a client program.
    fn line(&mut self, event: &Event, terminals: &Terminals) -> Option<String> {
        let (id, line) = match event {
            // 1. Version 1 has one plan, which has no id.
            Event::Plan(plan) => return self.allow("one plan", Some(format!("plan {:?}", plan.entries))),
            Event::PlanUpdate(update) => return Some(format!("plan {:?}", items(&update.plan))),
            // 2. Only version 2 lists background work, and repeats the state for it.
            Event::Background(_) => return self.allow("background", None),
            Event::State(state) => ("", format!("{state:?}")),
            // 3. A question about no call gets one, in version 2 from the client.
            Event::ToolCall(change) if change.id().as_str().contains('-') => {
                return self.allow("question", None);
            }
            // 4. Version 1 shows a terminal as text of its call and repeats the call.
            Event::Terminal(_) => return self.allow("terminal", None),
            Event::ToolCall(change) => {
                let mut call = ToolCall::clone(&change.call);
                call.content.retain(|content| change.call.status.is_final() || !terminals.has(content));
                self.count_if("output", call.content.len() < change.call.content.len());
                // 5. Version 1 has no status for cancelled and paused calls.
                call.status = tool_status_of_v1(&call.status);
                self.count_if("status", call.status != change.call.status);
                (change.id().as_str(), call_line(&call, terminals))
            }
            other => return Some(self::line(other)),
        };
        let before = self.last.insert(id.to_owned(), line.clone());
        let is_same = before.as_ref() == Some(&line);
        self.count_if(if id.is_empty() { "repeated state" } else { "repeated call" }, is_same);
        (!is_same).then_some(line)
    }
    // The normalisation ends here.
}

fn tool_status_of_v1(status: &ToolStatus) -> ToolStatus {
    match status {
        ToolStatus::Cancelled => ToolStatus::Failed,
        ToolStatus::Paused => ToolStatus::InProgress,
        other => other.clone(),
    }
}

#[test]
fn the_normalisation_is_short() {
    let text = include_str!("twin.rs");
    let (_, rest) = text.split_once("\n    // The normalisation begins here.").unwrap();
    let (body, _) = rest.split_once("\n    // The normalisation ends here.").unwrap();
    let lines = body.lines().skip(1).count();
    assert!(lines <= 30, "{lines} lines");
}

/// The client program. It does not know which version is spoken.
async fn play(session: &mut Session, prompt: &str, answer: PermissionOptionKind, log: &mut Log) {
    log.add(format!("> {prompt}"));
    let mut turn = session.prompt(prompt).await.unwrap();
    loop {
        let event = match turn.next().await {
            Ok(Some(event)) => event,
            Ok(None) => return log.add(format!("end {:?}", turn.stop_reason())),
            Err(error) => return log.add(format!("error {error}")),
        };
        log.event(&event);
        match event {
            Event::Text(text) if &*text == "waiting" => turn.cancel(),
            Event::Permission(ask) => ask.choose_kind(answer),
            Event::Elicitation(ask) if answer == AllowOnce => {
                ask.accept([("name", "Ada".into())].into_iter().collect::<Fields<_>>()).unwrap();
            }
            Event::Elicitation(ask) => ask.decline(),
            _ => {}
        }
    }
}

type Prompts<'a> = &'a [(&'a str, PermissionOptionKind)];

async fn record<S: AgentSession + Clone>(worker: S, prompts: Prompts<'_>, protocol: Protocol) -> Log {
    let mut log = Log::default();
    let (ours, theirs) = Link::pair();
    let serving = tokio::spawn(agent(worker).serve(theirs));
    let agent = Client::new().elicitation_forms().protocol(protocol).connect(ours).await.unwrap();
    let expected = if protocol == Protocol::V2 { ProtocolVersion::V2 } else { ProtocolVersion::V1 };
    assert_eq!(agent.protocol_version(), expected);
    log.add(format!("{:?}", agent.info().map(|info| &info.name)));
    let mut session = agent.new_session("/work").await.unwrap();
    let conversation = tokio::time::timeout(Duration::from_secs(60), async {
        for (prompt, answer) in prompts {
            play(&mut session, prompt, *answer, &mut log).await;
        }
        log.add(format!("modes {:?}", session.modes().map(|modes| modes.current_mode_id)));
        session.control().set_mode("code").await.unwrap();
        log.add(format!("modes {:?}", session.modes().map(|modes| modes.current_mode_id)));
        log.add(format!("commands {}", session.commands().len()));
        log.add(format!("unknown mode {:?}", session.control().set_mode("no").await.is_err()));
    });
    conversation.await.expect("the conversation ends");
    drop(session);
    agent.shutdown().await;
    serving.await.unwrap().unwrap();
    log
}

#[tokio::test(start_paused = true)]
async fn the_same_programs_see_the_same_on_both_versions() {
    let names = [
        "hello",
        "talk",
        "change",
        "add",
        "append",
        "form",
        "meta",
        "run",
        "background",
        "stop",
        "login",
        "fail",
        "wait",
        "forever",
        "hello again",
    ];
    let mut prompts = names.map(|name| (name, AllowOnce)).to_vec();
    prompts.extend(["refused_change", "refused_add", "question", "form"].map(|name| (name, RejectOnce)));
    let see = |protocol| record(Worker, &prompts, protocol);
    let (one, two) = (see(Protocol::V1).await, see(Protocol::V2).await);
    for (at, (one, two)) in one.lines.iter().zip(&two.lines).enumerate() {
        assert_eq!(one, two, "line {at}");
    }
    assert_eq!(one.lines.len(), two.lines.len());
    assert!(one.lines.len() > 90, "{:#?}", one.lines);
    // What the rules have taken away, so that a loss does not hide behind one of them.
    let used = BTreeMap::from([("one plan", 5), ("output", 3), ("question", 2), ("repeated call", 3)]);
    assert_eq!(one.normalizer.used, used, "version 1");
    let used = [
        ("background", 2),
        ("output", 1),
        ("question", 2),
        ("repeated call", 1),
        ("repeated state", 2),
        ("status", 1),
        ("terminal", 3),
    ];
    assert_eq!(two.normalizer.used, BTreeMap::from(used), "version 2");
}
