//! Work of the agent that goes on after its turn: its rows, the list of `/tasks`, and its end.

use std::collections::VecDeque;

use attache::client::{BackgroundWork, SessionControl, ToolCallChange};
use attache::wire::v1::{SessionId, TerminalId, ToolCallId, ToolCallUpdate};
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, cut_line, width};

use super::app::{App, Pick};
use super::drive::Driver;
use super::subagents;
use super::transcript::{Severity, Transcript};
use super::ui::TaskResult;
use super::undo::Applied;
use super::view::Canvas;
use crate::error::Failure;
use attache_term::picker::{Picker, Row};

/// Tool calls whose titles are remembered.
const MAX_CALLS: usize = 256;
/// Rows that report about background work.
const MAX_ROWS: usize = 3;

/// The identity of background work, by which it is cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskId {
    ToolCall(ToolCallId),
    Terminal(TerminalId),
    Subagent(SessionId),
}

#[derive(Debug)]
struct Task {
    id: TaskId,
    cancelling: bool,
}

/// A tool call that has not ended.
#[derive(Debug)]
struct OpenCall {
    id: ToolCallId,
    title: String,
    /// Whether it was reported as background work.
    detached: bool,
}

/// The background work of a session of protocol version 2.
// V2-36
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    list: Vec<Task>,
    calls: VecDeque<OpenCall>,
    /// Whether the list came with the replay of a session that is about to be opened.
    replayed: bool,
}

impl Tasks {
    /// An empty list for a session whose history is replayed before it is opened.
    pub(crate) fn of_replay() -> Tasks {
        Tasks { replayed: true, ..Tasks::default() }
    }

    /// Forgets the work of another session.
    pub(crate) fn opened(&mut self) {
        if !std::mem::take(&mut self.replayed) {
            *self = Tasks::default();
        }
    }

    /// Replaces the list.
    pub(crate) fn replace(&mut self, work: &[BackgroundWork]) {
        let before = std::mem::take(&mut self.list);
        for work in work {
            let id = match work {
                BackgroundWork::ToolCall(call) => TaskId::ToolCall(call.tool_call_id.clone()),
                BackgroundWork::Terminal(terminal) => {
                    TaskId::Terminal(TerminalId::from(terminal.terminal_id.as_str()))
                }
                BackgroundWork::Subagent(subagent) => TaskId::Subagent(subagent.session_id.clone()),
                _ => continue,
            };
            if let TaskId::ToolCall(id) = &id
                && let Some(call) = self.calls.iter_mut().find(|call| call.id == *id)
            {
                call.detached = true;
            }
            let cancelling = before.iter().any(|task| task.id == id && task.cancelling);
            self.list.push(Task { id, cancelling });
        }
    }

    /// Notes a change of a tool call of the session itself. Returns whether the call is background
    /// work.
    pub(crate) fn note(&mut self, change: &ToolCallChange) -> bool {
        let id = change.id();
        let known = self.calls.iter().position(|call| call.id == *id);
        let detached = known.and_then(|at| self.calls.get(at)).is_some_and(|call| call.detached);
        if change.call.status.is_final() {
            known.and_then(|at| self.calls.remove(at));
            return detached;
        }
        match known.and_then(|at| self.calls.get_mut(at)) {
            Some(call) if call.title == change.call.title => {}
            Some(call) => call.title.clone_from(&change.call.title),
            None => {
                if self.calls.len() >= MAX_CALLS {
                    self.calls.pop_front();
                }
                let (id, title) = (id.clone(), change.call.title.clone());
                let detached = self.list.iter().any(|task| task.id == TaskId::ToolCall(id.clone()));
                self.calls.push_back(OpenCall { id, title, detached });
            }
        }
        detached
    }

    /// Whether a tool call continues after its turn.
    pub(crate) fn is_detached(&self, id: &ToolCallId) -> bool {
        self.calls.iter().any(|call| call.id == *id && call.detached)
    }

    fn mark_cancelling(&mut self, id: &TaskId) {
        for task in self.list.iter_mut().filter(|task| task.id == *id) {
            task.cancelling = true;
        }
    }
}

/// Returns the whole tool call as one update, for a call that is not on the screen any more.
pub(crate) fn whole_call(change: &ToolCallChange) -> ToolCallUpdate {
    let call = &*change.call;
    let mut update = ToolCallUpdate::new(call.id.clone());
    update.title = Some(call.title.clone());
    update.kind = Some(call.kind);
    update.status = change.update.status;
    update.content = Some(call.content.clone());
    update.locations = Some(call.locations.clone());
    update.raw_input.clone_from(&call.raw_input);
    update.raw_output.clone_from(&call.raw_output);
    update
}

impl Transcript {
    /// Returns the words for background work: the title of a call, a command, the name of a
    /// subagent.
    fn task_title(&self, id: &TaskId) -> String {
        match id {
            TaskId::ToolCall(id) => {
                let known = self.tasks.calls.iter().find(|call| call.id == *id && !call.title.is_empty());
                known.map_or_else(|| id.to_string(), |call| call.title.clone())
            }
            TaskId::Terminal(id) => {
                let outputs = self.terminal_outputs.lock();
                let command = outputs.get(id.as_str()).map(|output| output.command.clone());
                command.filter(|command| !command.is_empty()).unwrap_or_else(|| id.to_string())
            }
            TaskId::Subagent(id) => subagents::name(&self.model, id),
        }
    }

    /// Returns a row for each background work. Subagents have rows of their own.
    pub(crate) fn task_rows(&self, canvas: &Canvas) -> Vec<Line> {
        let tasks = self.tasks.list.iter().filter(|task| !matches!(task.id, TaskId::Subagent(_)));
        let tasks: Vec<&Task> = tasks.collect();
        let shown = if tasks.len() > MAX_ROWS { MAX_ROWS - 1 } else { tasks.len() };
        let mut lines = Vec::new();
        for task in tasks.iter().take(shown) {
            let (how, style) = match task.cancelling {
                true => (" (cancelling)", Style::of(Colour::Yellow)),
                false => (" (/tasks cancels it)", Style::DIM),
            };
            let title = clean(&self.task_title(&task.id), canvas.look).replace('\n', " ");
            let line = Line::styled(canvas.look.pick("▸ ", "> "), Style::DIM)
                .with("in the background: ", Style::DIM)
                .with(title, Style::PLAIN);
            let mut line = cut_line(&line, canvas.columns.saturating_sub(width(how)).max(12), canvas.look);
            line.push(how, style);
            lines.push(cut_line(&line, canvas.columns, canvas.look));
        }
        if tasks.len() > shown {
            let more = format!("  {} more in the background", tasks.len() - shown);
            lines.push(cut_line(&Line::styled(more, Style::DIM), canvas.columns, canvas.look));
        }
        lines
    }
}

impl App {
    /// Offers the background work for cancelling.
    pub(super) fn list_tasks(&mut self) {
        let row = |task: &Task| {
            let kind = match &task.id {
                TaskId::ToolCall(_) => "tool call",
                TaskId::Terminal(_) => "command",
                TaskId::Subagent(_) => "subagent",
            };
            let about = if task.cancelling { format!("{kind}, cancelling") } else { kind.to_owned() };
            let label = self.transcript.task_title(&task.id);
            Row { label, about, current: false, value: Pick::CancelTask(task.id.clone()) }
        };
        let rows: Vec<_> = self.transcript.tasks.list.iter().map(row).collect();
        match rows.is_empty() {
            true => self.notice(Severity::Info, "nothing runs in the background"),
            false => self.picker = Some(Picker::new("Cancel background work", rows)),
        }
    }

    /// Shows the result of a request to cancel background work.
    fn task_cancelled(&mut self, id: &TaskId, result: attache::Result<()>) {
        let title = self.transcript.task_title(id);
        match result {
            // The end is reported by the agent.
            Ok(()) => self.transcript.tasks.mark_cancelling(id),
            Err(attache::Error::Unsupported(_)) => {
                let text =
                    format!("the agent does not offer to cancel \"{title}\"; leaving the chat ends it");
                self.notice(Severity::Warning, text);
            }
            Err(error) => {
                let why = Failure::from(error).message;
                self.notice(Severity::Error, format!("\"{title}\" was not cancelled: {why}"));
            }
        }
    }
}

impl Driver<'_> {
    /// Cancels background work beside the chat.
    pub(super) fn cancel_task(&self, control: SessionControl, id: TaskId) {
        let sender = self.ui.task_results.0.clone();
        tokio::spawn(async move {
            let result = match &id {
                TaskId::ToolCall(id) => control.cancel_tool_call(id).await,
                TaskId::Terminal(id) => control.cancel_terminal(id).await,
                TaskId::Subagent(id) if control.cancel_subagent(id) => Ok(()),
                TaskId::Subagent(_) => Err(attache::Error::Unsupported("to cancel this subagent")),
            };
            let applied = Applied::new(move |app| app.task_cancelled(&id, result));
            let _ = sender.send(TaskResult::Apply(applied)).await;
        });
    }
}
