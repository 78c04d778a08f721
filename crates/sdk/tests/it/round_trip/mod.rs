//! Random programs of an agent, over both versions: what the client has in the end is what the
//! program reported, up to the losses that `docs/guide/versions.md` names. Each of these must
//! happen, and nothing else may be lost.

mod model;
mod program;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use attache::agent::{Agent, OpenedSession, ToolStatus};
use attache::client::{AgentTerminal, Client, Event, Protocol, Session, ToolCall, plan_status};
use attache::wire::v1::PermissionOptionKind::{AllowOnce, RejectOnce};
use attache::wire::v1::{
    Content, Fields, MessageId, PlanEntry, SessionMode, SessionModeState, ToolCallContent,
};
use attache::wire::v2::BackgroundWork;
use attache::{ContentBlock, Edit, EditOperation, Link, Meta};
use model::{LOSSES, expected};
use program::{Action, Ids, Member, Program};
use proptest::prelude::*;

/// What a client has of the whole program.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Content of messages, plans, questions, and what concerns the session, in the order of their
    /// arrival. A call is where it began.
    stream: Vec<String>,
    /// Messages that have a handle: the handle, and how many messages were there before in its
    /// place.
    messages: BTreeMap<(usize, usize), String>,
    calls: BTreeMap<String, Call>,
    /// Calls that were made up for questions.
    made_up: Vec<(String, String)>,
    /// All calls that were listed as work in the background.
    background: BTreeSet<String>,
    mode: String,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Call {
    title: String,
    name: String,
    statuses: Vec<ToolStatus>,
    content: Vec<String>,
    edits: Vec<String>,
    locations: Vec<String>,
    input: String,
    output: String,
    meta: BTreeMap<String, String>,
    cancellable: bool,
}

fn edit_line(edit: &Edit) -> String {
    format!("{:?} {:?} {} {:?}", edit.operation(), edit.old_path(), edit.path(), edit.to_patch())
}

fn plan_line(id: &str, entries: &[PlanEntry]) -> String {
    let entries: Vec<_> =
        entries.iter().map(|entry| (&entry.content, plan_status(entry), meta_text(&entry.meta))).collect();
    format!("{id}: {entries:?}")
}

fn meta_text(meta: &Option<Meta>) -> String {
    meta.as_ref().map(|meta| meta.as_json().get().to_owned()).unwrap_or_default()
}

fn terminal_text(output: &str, code: i64) -> String {
    let end = if code == 0 { String::new() } else { format!("\n(exit code {code})") };
    format!("```\n$ make\n{output}```{end}")
}

/// What the client program makes of the events.
#[derive(Default)]
struct Fold {
    seen: Seen,
    ids: HashMap<MessageId, (usize, usize)>,
    terminals: HashMap<String, AgentTerminal>,
    /// The texts of messages by id; which of them have a handle is known in the end.
    messages: BTreeMap<MessageId, String>,
    calls: BTreeMap<String, (ToolCall, Vec<ToolStatus>)>,
    running: usize,
}

impl Fold {
    fn text(&mut self, kind: &str, text: &str, id: Option<&MessageId>) {
        self.seen.stream.push(format!("{kind} {text}"));
        if let Some(id) = id {
            self.messages.entry(id.clone()).or_default().push_str(text);
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Text(text) => {
                let meta = text.meta.as_ref().map(|meta| meta.as_json().get().to_owned());
                self.text(
                    &format!("text {}", meta.unwrap_or_default()),
                    &text.text,
                    text.message_id.as_ref(),
                );
            }
            Event::Thought(text) => self.text("thought ", &text.text, text.message_id.as_ref()),
            Event::Content(piece) => {
                let ContentBlock::Image(image) = &*piece.block else { panic!("{piece:?}") };
                self.seen.stream.push(format!("image {}", image.data));
            }
            Event::Message(change) => {
                self.seen.stream.push(format!("whole {}", change.text()));
                let before = self.messages.insert(change.message_id.clone(), change.text());
                assert!(before.is_some(), "a message that is new is not replaced");
            }
            Event::Plan(plan) => self.seen.stream.push(plan_line("", &plan.entries)),
            Event::PlanUpdate(update) => {
                let attache::wire::v1::PlanUpdateContent::Items(plan) = &update.plan else {
                    panic!("{update:?}")
                };
                self.seen.stream.push(plan_line(plan.plan_id.as_str(), &plan.entries));
            }
            Event::PlanRemoved(removed) => self.seen.stream.push(format!("{} is removed", removed.plan_id)),
            Event::ToolCall(change) => {
                let (call, statuses) = self.calls.entry(change.id().to_string()).or_insert_with(|| {
                    assert!(change.created, "{change:?}");
                    if !change.id().as_str().contains('-') {
                        self.seen.stream.push(format!("call {}", change.id()));
                    }
                    (ToolCall::clone(&change.call), Vec::new())
                });
                *call = ToolCall::clone(&change.call);
                if statuses.last() != Some(&call.status) {
                    statuses.push(call.status.clone());
                }
            }
            Event::Terminal(change) => {
                self.terminals.insert(change.terminal.id.to_string(), AgentTerminal::clone(&change.terminal));
            }
            Event::Background(work) => {
                self.running = work.len();
                self.seen.background.extend(work.iter().map(|work| {
                    let BackgroundWork::ToolCall(call) = work else { panic!("{work:?}") };
                    call.tool_call_id.to_string()
                }));
            }
            Event::Permission(ask) => {
                let command = ask.command().map(|command| (&command.command, &command.cwd));
                let call = ask.tool_call();
                let about = Some(call.tool_call_id.as_str()).filter(|id| !id.contains('-'));
                let options: Vec<_> = ask.options().iter().map(|option| option.kind).collect();
                let details: Vec<_> = match ask.description().is_some() || command.is_some() {
                    true => Vec::new(),
                    false => call.content.iter().flatten().filter_map(|content| self.show(content)).collect(),
                };
                let title = ask.title().unwrap_or_default().to_owned();
                self.seen.stream.push(format!(
                    "{title} {about:?} {:?} {command:?} {options:?} {details:?}",
                    ask.description()
                ));
                match title.chars().last() {
                    Some('0') => ask.choose_kind(AllowOnce),
                    Some('1') => ask.choose_kind(RejectOnce),
                    _ => ask.cancel(),
                }
            }
            Event::Elicitation(ask) => {
                self.seen.stream.push(format!("{} {:?}", ask.message(), ask.requested()));
                match ask.message().chars().last() {
                    Some('0') => {
                        ask.accept([("name", "Ada".into())].into_iter().collect::<Fields<_>>()).unwrap()
                    }
                    Some('1') => ask.decline(),
                    _ => ask.cancel(),
                }
            }
            Event::Commands(commands) => self.seen.stream.push(format!("{commands:?}")),
            Event::Info(info) => self.seen.stream.push(format!("{:?} {}", info.title, meta_text(&info.meta))),
            Event::Usage(usage) => {
                self.seen.stream.push(format!("{} of {} {}", usage.used, usage.size, meta_text(&usage.meta)))
            }
            Event::Notice(notice) => self.seen.stream.push(format!("{:?} {}", notice.severity, notice.title)),
            // Version 2 has no event for a mode that stays.
            Event::Mode(mode) if *mode.as_str() == *self.seen.mode => {}
            Event::Mode(mode) => {
                self.seen.mode = mode.to_string();
                self.seen.stream.push(mode.to_string());
            }
            // Options come with a mode in version 2, and states are compared by the test of twins.
            Event::ConfigOptions(_) | Event::State(_) => {}
            other => panic!("{other:?}"),
        }
    }

    fn show(&self, content: &ToolCallContent) -> Option<String> {
        match content {
            ToolCallContent::Terminal(terminal) => {
                let terminal = &self.terminals[terminal.terminal_id.as_str()];
                let code = terminal.exit_status.as_ref().unwrap().exit_code.unwrap();
                assert_eq!(terminal.command.as_deref(), Some("make"));
                Some(terminal_text(&String::from_utf8_lossy(&terminal.output), code))
            }
            ToolCallContent::Diff(diff) => {
                diff.meta.as_ref().map(|meta| format!("a diff with {}", meta.as_json().get()))
            }
            other => plain_text(other),
        }
    }

    fn finish(mut self, ids: &Ids) -> Seen {
        self.ids.clone_from(&ids.lock().unwrap());
        for (id, text) in &self.messages {
            if let Some(handle) = self.ids.get(id) {
                self.seen.messages.insert(*handle, text.clone());
            }
        }
        for (id, (call, statuses)) in &self.calls {
            if id.contains('-') {
                self.seen.made_up.push((call.title.clone(), format!("{:?}", call.status)));
                continue;
            }
            let json = |value: &Option<attache::Json>| {
                value.as_ref().map(|v| v.get().to_owned()).unwrap_or_default()
            };
            let meta: Option<BTreeMap<String, serde_json::Value>> =
                call.meta.as_ref().and_then(|meta| meta.as_json().parse().ok());
            let call = Call {
                title: call.title.clone(),
                name: call.name.clone().unwrap_or_default(),
                statuses: statuses.clone(),
                content: call.content.iter().filter_map(|content| self.show(content)).collect(),
                edits: call.edits.iter().map(edit_line).collect(),
                locations: call.locations.iter().map(|l| format!("{} {:?}", l.path, l.line)).collect(),
                input: json(&call.raw_input),
                output: json(&call.raw_output),
                meta: meta.unwrap_or_default().into_iter().map(|(k, v)| (k, v.to_string())).collect(),
                cancellable: call.cancellable,
            };
            self.seen.calls.insert(id.clone(), call);
        }
        self.seen.made_up.sort();
        self.seen
    }
}

fn plain_text(content: &ToolCallContent) -> Option<String> {
    match content {
        ToolCallContent::Content(Content { content: ContentBlock::Text(text), .. }) => {
            Some(text.text.clone())
        }
        _ => None,
    }
}

/// Runs the program with a client of one version.
async fn run(actions: &Arc<Vec<Action>>, protocol: Protocol) -> Seen {
    let ids = Ids::default();
    let (actions, known) = (actions.clone(), ids.clone());
    let agent = Agent::new(move |request| {
        let program = Program { actions: actions.clone(), ids: known.clone(), session: request.session };
        async {
            let modes = vec![SessionMode::new("ask", "Ask"), SessionMode::new("code", "Code")];
            Ok(OpenedSession::new(program).modes(SessionModeState::new("ask", modes)))
        }
    });
    let (ours, theirs) = Link::pair();
    let serving = tokio::spawn(agent.protocol_v2().serve(theirs));
    let client = Client::new().elicitation_forms().notices().protocol(protocol);
    let agent = client.connect(ours).await.unwrap();
    let mut session = agent.new_session("/work").await.unwrap();
    let mut fold = Fold::default();
    "ask".clone_into(&mut fold.seen.mode);
    play(&mut session, &mut fold).await;
    drop(session);
    agent.shutdown().await;
    serving.await.unwrap().unwrap();
    fold.finish(&ids)
}

async fn play(session: &mut Session, fold: &mut Fold) {
    let mut turn = session.prompt("go").await.unwrap();
    while let Some(event) = turn.next().await.unwrap() {
        fold.event(event);
    }
    assert_eq!(turn.stop_reason(), Some(attache::StopReason::EndTurn));
    drop(turn);
    while fold.running > 0 {
        let event = session.next_update().await.unwrap();
        fold.event(event);
    }
}

/// A program with each of the losses.
fn lossy() -> Vec<Action> {
    let text = || "x".to_owned();
    vec![
        Action::Start(0, true),
        Action::Change(0, Member::Output(text())),
        Action::Change(0, Member::ClearOutput),
        Action::Change(0, Member::Status(ToolStatus::Paused)),
        Action::Edit(0, EditOperation::Rename, text(), text()),
        Action::Terminal(0, text(), 2),
        Action::Background(0),
        Action::Grow(0, text()),
        Action::Replace(0, "other".to_owned()),
        Action::Clear(0),
        Action::NamedPlan(0, 1, 0),
        Action::Ask { about: None, command: true, description: true, answer: 0 },
    ]
}

/// Runs a program over both versions, and compares.
fn compare(actions: Vec<Action>, losses: &mut BTreeSet<&'static str>) -> Result<(), TestCaseError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let actions = Arc::new(actions);
    for (protocol, is_v2) in [(Protocol::V1, false), (Protocol::V2, true)] {
        let expected = expected(&actions, is_v2, losses);
        let seen = runtime.block_on(run(&actions, protocol));
        prop_assert_eq!(seen, expected, "{:?}", protocol);
    }
    Ok(())
}

#[test]
fn nothing_is_lost_but_what_the_guide_names() {
    let mut losses = BTreeSet::new();
    compare(lossy(), &mut losses).unwrap();
    assert_eq!(losses, BTreeSet::from(LOSSES));
    let guide = include_str!("../../../../../docs/guide/versions.md");
    for line in LOSSES {
        assert!(guide.contains(&format!("\n| {line} |")), "the guide does not name the loss of {line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_are_seen_as_they_are_up_to_the_losses(actions in program::actions()) {
        compare(actions, &mut BTreeSet::new())?;
    }
}
