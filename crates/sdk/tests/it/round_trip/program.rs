//! The agent program: a list of things to do, which it does not know the version of.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use attache::agent::{
    AgentSession, BackgroundTool, Message, SessionHandle, TerminalExit, Tool, ToolChange, ToolContent,
    ToolStatus, Turn,
};
use attache::wire::v1::{
    AvailableCommand, AvailableCommandsUpdate, ContentChunk, Diff, ElicitationSchema, ImageContent,
    MessageId, Notice, NoticeSeverity, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionInfoUpdate,
    SessionUpdate, StringPropertySchema, ToolCallContent, ToolCallLocation, ToolKind, UsageUpdate,
};
use attache::{ContentBlock, Edit, EditOperation, Meta, Patch, Prompt, Result, StopReason};
use proptest::prelude::*;
use serde_json::json;

/// One thing that the agent program does. Numbers choose a message, a tool call or a plan.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Say(String),
    Think(String),
    Image(String),
    /// A chunk with metadata.
    SayWithMeta(String),
    Grow(usize, String),
    Replace(usize, String),
    /// The message with more text at its end.
    Extend(usize, String),
    Clear(usize),
    Plan(u8, u8),
    NamedPlan(usize, u8, u8),
    RemovePlan(usize),
    Start(usize, bool),
    Append(usize, String),
    Edit(usize, EditOperation, String, String),
    Change(usize, Member),
    Terminal(usize, String, i64),
    Background(usize),
    End(usize, ToolStatus),
    Ask {
        about: Option<usize>,
        command: bool,
        description: bool,
        answer: u8,
    },
    Form(u8),
    Session(u8, String),
}

/// A change of a tool call.
#[derive(Debug, Clone)]
pub(super) enum Member {
    Title(String),
    Output(String),
    Meta(String, Option<u8>),
    Location(u32),
    Status(ToolStatus),
    ClearContent,
    ClearLocations,
    ClearOutput,
}

const TOOLS: usize = 3;
pub(super) const PLANS: [&str; 2] = ["build", "test"];

pub(super) fn actions() -> impl Strategy<Value = Vec<Action>> {
    let text = "[a-zä\u{2028}]{1,4}";
    let (tool, message, plan, count) = (0..TOOLS, 0..2_usize, 0..PLANS.len(), 0..4_u8);
    let end = prop_oneof![Just(ToolStatus::Completed), Just(ToolStatus::Failed), Just(ToolStatus::Cancelled)];
    let member = prop_oneof![
        text.prop_map(Member::Title),
        text.prop_map(Member::Output),
        ("[ab]", proptest::option::of(0..3_u8)).prop_map(|(key, value)| Member::Meta(key, value)),
        (1..9_u32).prop_map(Member::Location),
        prop_oneof![Just(ToolStatus::InProgress), Just(ToolStatus::Paused)].prop_map(Member::Status),
        Just(Member::ClearContent),
        Just(Member::ClearLocations),
        Just(Member::ClearOutput),
    ];
    let operation = prop_oneof![
        Just(EditOperation::Add),
        Just(EditOperation::Modify),
        Just(EditOperation::Delete),
        Just(EditOperation::Rename),
    ];
    let messages = prop_oneof![
        text.prop_map(Action::Say),
        text.prop_map(Action::Think),
        text.prop_map(Action::Image),
        text.prop_map(Action::SayWithMeta),
        (message.clone(), text).prop_map(|(message, text)| Action::Grow(message, text)),
        (message.clone(), text).prop_map(|(message, text)| Action::Replace(message, text)),
        (message.clone(), text).prop_map(|(message, text)| Action::Extend(message, text)),
        message.prop_map(Action::Clear),
    ];
    let tools = prop_oneof![
        3 => (tool.clone(), any::<bool>()).prop_map(|(tool, cancellable)| Action::Start(tool, cancellable)),
        1 => (tool.clone(), text).prop_map(|(tool, text)| Action::Append(tool, text)),
        2 => (tool.clone(), operation, text, text)
            .prop_map(|(tool, operation, old, new)| Action::Edit(tool, operation, old, new)),
        4 => (tool.clone(), member).prop_map(|(tool, member)| Action::Change(tool, member)),
        1 => (tool.clone(), text, 0..3_i64).prop_map(|(tool, text, code)| Action::Terminal(tool, text, code)),
        1 => tool.clone().prop_map(Action::Background),
        1 => (tool.clone(), end).prop_map(|(tool, status)| Action::End(tool, status)),
    ];
    let rest = prop_oneof![
        (count.clone(), 0..4_u8).prop_map(|(entries, status)| Action::Plan(entries, status)),
        (plan.clone(), count, 0..4_u8)
            .prop_map(|(plan, entries, status)| Action::NamedPlan(plan, entries, status)),
        plan.prop_map(Action::RemovePlan),
        (proptest::option::of(tool), any::<bool>(), any::<bool>(), 0..3_u8).prop_map(
            |(about, command, description, answer)| Action::Ask { about, command, description, answer }
        ),
        (0..3_u8).prop_map(Action::Form),
        (0..5_u8, text).prop_map(|(kind, text)| Action::Session(kind, text)),
    ];
    proptest::collection::vec(prop_oneof![messages, tools, rest], 1..40)
}

pub(super) fn entries(count: u8, status: u8) -> Vec<PlanEntry> {
    let (status, meta) = match status {
        0 => (PlanEntryStatus::Pending, meta(json!({"step": 1}))),
        1 => (PlanEntryStatus::InProgress, None),
        2 => (PlanEntryStatus::Completed, None),
        // Cancelled, as version 1 says it.
        _ => (PlanEntryStatus::Completed, meta(json!({"attache": {"status": "cancelled"}}))),
    };
    vec![PlanEntry::new("step", PlanEntryPriority::Low, status).meta(meta); usize::from(count)]
}

pub(super) fn edit(operation: EditOperation, old: &str, new: &str) -> Edit {
    // A text that ends within a line, and one that is always another.
    let (old, new) = (format!("same\n{old}"), format!("same\nnew {new}\n"));
    match operation {
        EditOperation::Add => Edit::add("/work/a", new),
        EditOperation::Delete => Edit::delete("/work/a", old),
        EditOperation::Rename => Edit::rename("/work/a", "/work/b", old, new),
        _ => Edit::modify("/work/a", old, new),
    }
}

fn meta(value: serde_json::Value) -> Option<Meta> {
    Meta::new(&value).ok()
}

pub(super) fn form() -> ElicitationSchema {
    ElicitationSchema::new().title("Who".to_owned()).field("name", StringPropertySchema::new(), true)
}

fn as_diff(edit: &Edit) -> ToolContent {
    let diff = Diff::new(edit.path(), edit.new().unwrap()).old_text(edit.old().map(str::to_owned));
    ToolCallContent::Diff(diff.meta(meta(json!({"diff": 1})))).into()
}

/// A tool call that is open.
enum Open {
    Tool(Tool),
    Background(BackgroundTool),
}

impl Deref for Open {
    type Target = Tool;

    fn deref(&self) -> &Tool {
        match self {
            Open::Tool(tool) => tool,
            Open::Background(work) => work,
        }
    }
}

impl Open {
    async fn end(self, status: ToolStatus) -> Result<()> {
        match (self, status) {
            (Open::Tool(tool), ToolStatus::Failed) => tool.fail("failed").await,
            (Open::Tool(tool), ToolStatus::Cancelled) => tool.cancel().await,
            (Open::Tool(tool), _) => tool.complete([]).await,
            (Open::Background(work), ToolStatus::Failed) => work.fail("failed").await,
            (Open::Background(work), ToolStatus::Cancelled) => work.cancel().await,
            (Open::Background(work), _) => work.complete([]).await,
        }
    }
}

/// The ids of messages, each with its handle and how many were there before in its place.
pub(super) type Ids = Arc<Mutex<HashMap<MessageId, (usize, usize)>>>;

/// The agent program. It does not know which version is spoken.
#[derive(Clone)]
pub(super) struct Program {
    pub(super) actions: Arc<Vec<Action>>,
    pub(super) ids: Ids,
    pub(super) session: SessionHandle,
}

impl AgentSession for Program {
    async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
        let mut run = Run::new(turn, self.clone());
        for (number, action) in self.actions.iter().enumerate() {
            run.act(number, action).await?;
        }
        run.finish().await
    }
}

struct Run<'a> {
    turn: Turn<'a>,
    messages: [Message; 2],
    texts: [String; 2],
    tools: BTreeMap<usize, Open>,
    ids: Ids,
    session: SessionHandle,
    replaced: [usize; 2],
}

impl<'a> Run<'a> {
    fn new(turn: Turn<'a>, program: Program) -> Self {
        let messages = [turn.message(), turn.thought()];
        let Program { ids, session, .. } = program;
        Run {
            turn,
            messages,
            texts: Default::default(),
            tools: BTreeMap::new(),
            ids,
            session,
            replaced: [0; 2],
        }
    }

    async fn act(&mut self, number: usize, action: &Action) -> Result<()> {
        let turn = self.turn;
        match action {
            Action::Say(text) => turn.say(text).await,
            Action::Think(text) => turn.think(text).await,
            Action::Image(data) => turn.show(ContentBlock::from(ImageContent::new(data, "image/png"))).await,
            Action::SayWithMeta(text) => {
                let chunk = ContentChunk::new(text.as_str()).meta(meta(json!({"trace": text})));
                turn.send(SessionUpdate::AgentMessageChunk(chunk)).await
            }
            Action::Grow(message, _) | Action::Replace(message, _) | Action::Extend(message, _) => {
                self.change_message(*message, action).await
            }
            Action::Clear(message) => self.change_message(*message, action).await,
            Action::Plan(count, status) => turn.plan(entries(*count, *status)).await,
            Action::NamedPlan(plan, count, status) => {
                turn.plan_named(PLANS[*plan]).set(entries(*count, *status)).await
            }
            Action::RemovePlan(plan) => turn.plan_named(PLANS[*plan]).remove().await,
            Action::Start(tool, cancellable) => {
                let call = turn.tool("Tool").id(format!("t{number}")).kind(ToolKind::Edit).name("edit");
                let call = call.input(json!({"number": number})).location("/work/a", None);
                let call = if *cancellable { call.cancellable() } else { call };
                let meta = Meta::new(&json!({"number": number}))?;
                let started = call.meta(meta).start().await?;
                let before = self.tools.insert(*tool, Open::Tool(started));
                match before {
                    Some(before) => before.end(ToolStatus::Completed).await,
                    None => Ok(()),
                }
            }
            Action::Ask { about, command, description, answer } => {
                let tool = about.and_then(|tool| self.tools.get(&tool));
                let mut question = turn.question(format!("Question {number} {answer}"));
                if let Some(tool) = tool {
                    question = question.about(tool);
                }
                if *command {
                    question = question.command("make", "/work");
                }
                if *description {
                    question = question.description("details");
                }
                let choice = question.ask().await?;
                let chosen = choice.option().map(|option| option.kind);
                turn.say(format!("{chosen:?}")).await
            }
            Action::Form(answer) => {
                let Some(forms) = turn.forms() else { return turn.say("no forms").await };
                let answer = forms.ask(format!("Form {answer}"), form()).await?;
                turn.say(serde_json::to_string(&answer)?).await
            }
            Action::Session(2, text) => {
                self.session.set_mode(if text.len() > 2 { "code" } else { "ask" }).await
            }
            Action::Session(kind, text) => turn.send(session_update(*kind, text)).await,
            Action::Append(tool, _)
            | Action::Edit(tool, ..)
            | Action::Change(tool, _)
            | Action::Terminal(tool, ..)
            | Action::Background(tool)
            | Action::End(tool, _) => self.change_tool(*tool, action).await,
        }
    }

    async fn change_message(&mut self, number: usize, action: &Action) -> Result<()> {
        let (message, text) = (&mut self.messages[number], &mut self.texts[number]);
        match action {
            Action::Grow(_, more) => {
                text.push_str(more);
                message.say(more).await?;
            }
            Action::Replace(_, new) => {
                text.clone_from(new);
                message.replace(new).await?;
            }
            Action::Extend(_, more) => {
                text.push_str(more);
                message.replace(text.clone()).await?;
            }
            _ => {
                text.clear();
                message.clear().await?;
            }
        }
        let mut ids = self.ids.lock().unwrap();
        if !ids.contains_key(message.id()) {
            ids.insert(message.id().clone(), (number, self.replaced[number]));
            self.replaced[number] += 1;
        }
        Ok(())
    }

    async fn change_tool(&mut self, number: usize, action: &Action) -> Result<()> {
        let Some(tool) = self.tools.remove(&number) else { return Ok(()) };
        match action {
            Action::Append(_, text) => tool.append(text.as_str()).await?,
            Action::Edit(_, operation, old, new) => {
                let edit = edit(*operation, old, new);
                match operation {
                    // As an agent reports it that has a diff of version 1, here with metadata.
                    EditOperation::Modify => tool.append(as_diff(&edit)).await?,
                    _ => tool.edit(edit).await?,
                }
            }
            Action::Change(_, member) => tool.update(change(member)).await?,
            Action::Terminal(_, output, code) => {
                let terminal = tool.terminal("make").start().await?;
                terminal.write(format!("{output}\n")).await?;
                terminal.exit(TerminalExit::code(*code)).await?;
            }
            Action::Background(_) => {
                let work = match tool {
                    Open::Tool(tool) => tool.into_background()?,
                    Open::Background(work) => work,
                };
                self.tools.insert(number, Open::Background(work));
                return Ok(());
            }
            Action::End(_, status) => return tool.end(status.clone()).await,
            _ => unreachable!("no change of a tool call"),
        }
        self.tools.insert(number, tool);
        Ok(())
    }

    /// Ends the calls of the turn; the work in the background ends after the turn.
    async fn finish(self) -> Result<StopReason> {
        let mut background = Vec::new();
        for tool in self.tools.into_values() {
            match tool {
                Open::Background(work) => background.push(work),
                tool => tool.end(ToolStatus::Completed).await?,
            }
        }
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        tokio::spawn(async move {
            let _ = end.await;
            for work in background {
                work.message().say("built").await?;
                work.complete([]).await?;
            }
            Ok::<(), attache::Error>(())
        });
        drop(ended);
        Ok(StopReason::EndTurn)
    }
}

fn change(member: &Member) -> ToolChange {
    let mut change = ToolChange::new();
    match member {
        Member::Title(title) => change.title(title),
        Member::Output(output) => change.raw_output(json!(output)),
        Member::Meta(key, value) => change.meta_key(key, json!(value)),
        Member::Location(line) => change.locations(vec![location(*line)]),
        Member::Status(status) => change.status(status.clone()),
        Member::ClearContent => {
            change.content = Patch::Clear;
            change
        }
        Member::ClearLocations => {
            change.locations = Patch::Clear;
            change
        }
        Member::ClearOutput => {
            change.raw_output = Patch::Clear;
            change
        }
    }
}

pub(super) fn location(line: u32) -> ToolCallLocation {
    ToolCallLocation::new("/work/a").line(Some(line))
}

pub(super) fn command(text: &str) -> AvailableCommand {
    AvailableCommand::new("fix", text).meta(meta(json!({"command": 1})))
}

fn session_update(kind: u8, text: &str) -> SessionUpdate {
    match kind {
        0 => AvailableCommandsUpdate::new(vec![command(text)]).into(),
        1 => SessionInfoUpdate::new().title(Some(text.to_owned())).meta(meta(json!({"info": text}))).into(),
        3 => SessionUpdate::UsageUpdate(
            UsageUpdate::new(text.len() as u64, 100_u64).meta(meta(json!({"usage": 1}))),
        ),
        _ => SessionUpdate::Notice(Notice::new(NoticeSeverity::Warning, format!("Notice {text}"))),
    }
}
