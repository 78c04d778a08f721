//! What a client must have of a program, and which losses of version 1 that takes.

use std::collections::{BTreeMap, BTreeSet};

use attache::agent::ToolStatus;
use attache::client::RequestedInput;
use attache::wire::v1::PermissionOptionKind::{AllowOnce, RejectOnce};
use attache::{Edit, EditOperation, Patch};

use super::program::{self, Action, Member, PLANS};
use super::{Call, Seen, edit_line, plan_line, terminal_text};

/// What a client of a version must have, and which losses that takes.
struct Model<'a> {
    is_v2: bool,
    seen: Seen,
    messages: [Handle; 2],
    tools: BTreeMap<usize, (String, bool)>,
    /// The named plan that a client of version 1 shows.
    shown_plan: Option<usize>,
    losses: &'a mut BTreeSet<&'static str>,
}

/// A message as its program has it.
#[derive(Default, Clone)]
struct Handle {
    text: String,
    /// How many messages were there before in its place.
    number: usize,
    /// Whether the client of version 1 has another text.
    differs: bool,
    known: bool,
}

impl Model<'_> {
    /// Notes a loss by its line in the guide. Returns whether the version has it.
    fn loses(&mut self, line: &'static str) -> bool {
        if !self.is_v2 {
            self.losses.insert(line);
        }
        !self.is_v2
    }

    fn act(&mut self, number: usize, action: &Action) {
        match action {
            Action::Say(text) => self.seen.stream.push(format!("text  {text}")),
            Action::Think(text) => self.seen.stream.push(format!("thought  {text}")),
            Action::Image(data) => self.seen.stream.push(format!("image {data}")),
            Action::SayWithMeta(text) => {
                self.seen.stream.push(format!("text {{\"trace\":\"{text}\"}} {text}"));
            }
            Action::Grow(message, more) => self.append(*message, more),
            Action::Replace(message, new) => self.replace(*message, new),
            Action::Extend(message, more) => {
                let new = format!("{}{more}", self.messages[*message].text);
                self.replace(*message, &new);
            }
            Action::Clear(message) => self.clear(*message),
            Action::Plan(count, status) => {
                self.shown_plan = None;
                let id = if self.is_v2 { "plan" } else { "" };
                self.seen.stream.push(plan_line(id, &program::entries(*count, *status)));
            }
            Action::NamedPlan(plan, count, status) => {
                self.shown_plan = Some(*plan);
                let id = if self.loses("several plans") { "" } else { PLANS[*plan] };
                self.seen.stream.push(plan_line(id, &program::entries(*count, *status)));
            }
            Action::RemovePlan(plan) => match self.loses("several plans") {
                true if self.shown_plan == Some(*plan) => self.seen.stream.push(plan_line("", &[])),
                true => {}
                false => self.seen.stream.push(format!("{} is removed", PLANS[*plan])),
            },
            Action::Start(tool, cancellable) => self.start(number, *tool, *cancellable),
            Action::Ask { about, command, description, answer } => {
                self.ask(
                    number,
                    about.and_then(|tool| self.tools.get(&tool).cloned()),
                    *command,
                    *description,
                    *answer,
                );
            }
            Action::Form(answer) => self.form(*answer),
            Action::Session(kind, text) => self.session(*kind, text),
            Action::Background(tool) => {
                if let Some((id, is_background)) = self.tools.get_mut(tool) {
                    *is_background = true;
                    let id = id.clone();
                    if !self.loses("background work, cancelling one tool call") {
                        self.seen.background.insert(id);
                    }
                }
            }
            Action::End(tool, status) => {
                if let Some((id, _)) = self.tools.remove(tool) {
                    self.end(&id, status.clone());
                }
            }
            Action::Append(tool, _)
            | Action::Edit(tool, ..)
            | Action::Change(tool, _)
            | Action::Terminal(tool, ..) => {
                if let Some((id, _)) = self.tools.get(tool).cloned() {
                    self.change(&id, action);
                }
            }
        }
    }

    fn append(&mut self, message: usize, more: &str) {
        let handle = &mut self.messages[message];
        if !self.is_v2 && std::mem::take(&mut handle.differs) {
            handle.number += 1;
        }
        handle.known = true;
        handle.text.push_str(more);
        self.seen.messages.entry((message, handle.number)).or_default().push_str(more);
        let kind = ["text ", "thought "][message];
        self.seen.stream.push(format!("{kind} {more}"));
    }

    fn replace(&mut self, message: usize, new: &str) {
        let handle = &self.messages[message];
        let rest = new.strip_prefix(handle.text.as_str()).filter(|_| !handle.differs).map(str::to_owned);
        match rest {
            // Text that is new, or that grew.
            Some(rest) if rest.is_empty() => {}
            Some(rest) => self.append(message, &rest),
            None if self.loses("a message with new content") => {
                let handle = &mut self.messages[message];
                handle.text.clear();
                handle.differs = true;
                self.append(message, new);
            }
            None => {
                let handle = &mut self.messages[message];
                handle.text = new.to_owned();
                self.seen.messages.insert((message, 0), new.to_owned());
                self.seen.stream.push(format!("whole {new}"));
            }
        }
    }

    fn clear(&mut self, message: usize) {
        if self.messages[message].text.is_empty() {
            return;
        }
        let is_lost = self.loses("a message with new content");
        let handle = &mut self.messages[message];
        handle.text.clear();
        handle.differs = is_lost;
        if !is_lost {
            self.seen.messages.insert((message, 0), String::new());
            self.seen.stream.push("whole ".to_owned());
        }
    }

    fn start(&mut self, number: usize, tool: usize, cancellable: bool) {
        let id = format!("t{number}");
        let cancellable = cancellable && !self.loses("background work, cancelling one tool call");
        let call = Call {
            title: "Tool".to_owned(),
            name: "edit".to_owned(),
            statuses: vec![ToolStatus::Pending],
            locations: vec!["/work/a None".to_owned()],
            input: format!("{{\"number\":{number}}}"),
            meta: BTreeMap::from([("number".to_owned(), number.to_string())]),
            cancellable,
            ..Call::default()
        };
        self.seen.calls.insert(id.clone(), call);
        self.seen.stream.push(format!("call {id}"));
        if let Some((before, _)) = self.tools.insert(tool, (id, false)) {
            self.end(&before, ToolStatus::Completed);
        }
    }

    fn status(&mut self, id: &str, status: ToolStatus) {
        let is_new = matches!(status, ToolStatus::Paused | ToolStatus::Cancelled);
        let status = match is_new && self.loses("`paused`, `cancelled` tool calls") {
            true if status == ToolStatus::Paused => ToolStatus::InProgress,
            true => ToolStatus::Failed,
            false => status,
        };
        let call = self.seen.calls.get_mut(id).unwrap();
        if call.statuses.last() != Some(&status) {
            call.statuses.push(status);
        }
    }

    fn end(&mut self, id: &str, status: ToolStatus) {
        if status == ToolStatus::Failed {
            let call = self.seen.calls.get_mut(id).unwrap();
            (call.content, call.edits) = (vec!["failed".to_owned()], Vec::new());
        }
        self.status(id, status);
    }

    fn change(&mut self, id: &str, action: &Action) {
        let call = self.seen.calls.get_mut(id).unwrap();
        match action {
            Action::Append(_, text) => call.content.push(text.clone()),
            Action::Terminal(_, output, code) => {
                call.content.push(terminal_text(&format!("{output}\n"), *code));
                self.loses("a terminal of the agent");
            }
            Action::Edit(_, operation, old, new) => {
                let edit = program::edit(*operation, old, new);
                let (old, new) = (edit.old().map(str::to_owned), edit.new().map(str::to_owned));
                let diffs = match operation {
                    EditOperation::Delete if self.loses("an edit") => vec![Edit::write("/work/a", old, "")],
                    EditOperation::Rename if self.loses("an edit") => {
                        vec![Edit::write("/work/a", old, ""), Edit::add("/work/b", new.unwrap())]
                    }
                    EditOperation::Rename => {
                        // The content has the form of version 1, which shows what it cannot express
                        // as text.
                        let note = "move /work/a to /work/b".to_owned();
                        self.seen.calls.get_mut(id).unwrap().content.push(note);
                        vec![edit]
                    }
                    EditOperation::Modify => {
                        let note = "a diff with {\"diff\":1}".to_owned();
                        self.seen.calls.get_mut(id).unwrap().content.push(note);
                        vec![edit]
                    }
                    _ => vec![edit],
                };
                self.seen.calls.get_mut(id).unwrap().edits.extend(diffs.iter().map(edit_line));
            }
            Action::Change(_, member) => match member {
                Member::Title(title) => call.title.clone_from(title),
                Member::Output(output) => call.output = serde_json::json!(output).to_string(),
                Member::Meta(key, Some(value)) => drop(call.meta.insert(key.clone(), value.to_string())),
                Member::Meta(key, None) => drop(call.meta.remove(key)),
                Member::Location(line) => call.locations = vec![format!("/work/a Some({line})")],
                Member::Status(status) => self.status(id, status.clone()),
                Member::ClearContent => (call.content, call.edits) = (Vec::new(), Vec::new()),
                Member::ClearLocations => call.locations.clear(),
                Member::ClearOutput if !call.output.is_empty() => {
                    if !self.loses("a cleared member of a tool call") {
                        self.seen.calls.get_mut(id).unwrap().output.clear();
                    }
                }
                Member::ClearOutput => {}
            },
            _ => unreachable!("no change of a tool call"),
        }
    }

    fn ask(
        &mut self,
        number: usize,
        about: Option<(String, bool)>,
        command: bool,
        description: bool,
        answer: u8,
    ) {
        let title = format!("Question {number} {answer}");
        let about = about.map(|(id, _)| id);
        let mut details = Vec::new();
        if about.is_none() {
            self.loses("a question that is not about a tool call");
            let status = if answer == 0 { ToolStatus::Completed } else { ToolStatus::Failed };
            let title = if command && self.is_v2 { "make" } else { &title };
            self.seen.made_up.push((title.to_owned(), format!("{status:?}")));
        }
        if let Some(call) = about.as_ref().map(|id| &self.seen.calls[id]) {
            details.extend(call.content.clone());
        }
        let shown = !self.is_v2 && (command || description);
        if shown {
            details.extend(command.then(|| "```sh\nmake\n```\nin /work".to_owned()));
            details.extend(description.then(|| "details".to_owned()));
        }
        let description = Some("details").filter(|_| description && self.is_v2);
        let command = Some(("make", "/work")).filter(|_| command && self.is_v2);
        if description.is_some() || command.is_some() {
            details.clear();
        }
        let kinds = "[AllowOnce, AllowAlways, RejectOnce, RejectAlways]";
        self.seen.stream.push(format!("{title} {about:?} {description:?} {command:?} {kinds} {details:?}"));
        let chosen = [Some(AllowOnce), Some(RejectOnce), None][usize::from(answer)];
        self.seen.stream.push(format!("text  {chosen:?}"));
    }

    fn form(&mut self, answer: u8) {
        let form = program::form();
        let requested = Some(RequestedInput::Form(&form));
        self.seen.stream.push(format!("Form {answer} {requested:?}"));
        let said = match answer {
            0 => r#"{"action":"accept","content":{"name":"Ada"}}"#,
            1 => r#"{"action":"decline"}"#,
            _ => r#"{"action":"cancel"}"#,
        };
        self.seen.stream.push(format!("text  {said}"));
    }

    fn session(&mut self, kind: u8, text: &str) {
        let line = match kind {
            0 => format!("{:?}", [program::command(text)]),
            1 => format!("{:?} {}", Patch::Set(text), serde_json::json!({"info": text})),
            2 => {
                let mode = if text.len() > 2 { "code" } else { "ask" };
                if self.seen.mode == mode {
                    return;
                }
                mode.clone_into(&mut self.seen.mode);
                mode.to_owned()
            }
            3 => format!("{} of 100 {{\"usage\":1}}", text.len()),
            _ => format!("Warning Notice {text}"),
        };
        self.seen.stream.push(line);
    }

    /// The turn has ended, and then what runs in the background.
    fn finish(mut self) -> Seen {
        let (background, tools): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.tools).into_values().partition(|(_, is_background)| *is_background);
        tools.iter().for_each(|(id, _)| self.end(id, ToolStatus::Completed));
        for (id, _) in background {
            self.seen.stream.push("text  built".to_owned());
            self.end(&id, ToolStatus::Completed);
        }
        self.seen.made_up.sort();
        self.seen
    }
}

pub(super) fn expected(actions: &[Action], is_v2: bool, losses: &mut BTreeSet<&'static str>) -> Seen {
    let messages: [Handle; 2] = Default::default();
    let seen = Seen { mode: "ask".to_owned(), ..Seen::default() };
    let mut model = Model { is_v2, seen, messages, tools: BTreeMap::new(), shown_plan: None, losses };
    for (number, action) in actions.iter().enumerate() {
        model.act(number, action);
    }
    model.finish()
}

/// All losses that a client of version 1 has from such programs, by their lines in the guide.
pub(super) const LOSSES: [&str; 8] = [
    "a cleared member of a tool call",
    "a message with new content",
    "a question that is not about a tool call",
    "a terminal of the agent",
    "an edit",
    "background work, cancelling one tool call",
    "several plans",
    "`paused`, `cancelled` tool calls",
];
