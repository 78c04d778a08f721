//! What the demo prints of a turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache::client::Event;
use attache::wire::v1::{PlanEntryStatus, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate};
use attache_host::terminals::TerminalEvent;

use crate::output::{Channel, Document, Mark, Output};
use attache_term::render::style::Line;

/// The screen. Terminals print from threads of their own, so what is printed is one line at a time.
#[derive(Clone)]
pub(super) struct Show(Arc<Mutex<State>>);

struct State {
    out: Channel,
    /// Whose text is on the present line, if any is.
    open: Option<&'static str>,
    titles: HashMap<ToolCallId, String>,
}

impl Show {
    pub(super) fn new(out: Output) -> Self {
        Show(Arc::new(Mutex::new(State {
            out: Channel::new(out.stdout),
            open: None,
            titles: HashMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn prompt(&self, text: &str) {
        self.state().line(&format!("\nyou> {text}\n"));
    }

    /// The end of the turn: whatever follows begins on a line of its own.
    pub(super) fn end(&self) {
        self.state().line("");
    }

    pub(super) fn event(&self, event: Event) {
        let mut state = self.state();
        match event {
            Event::Text(text) => state.text("agent> ", &text),
            Event::Thought(text) => state.text("thinks> ", &text),
            Event::Plan(plan) => {
                let entries = plan.entries.iter().map(|entry| {
                    let mark = match entry.status {
                        PlanEntryStatus::Completed => "x",
                        PlanEntryStatus::InProgress => ">",
                        _ => " ",
                    };
                    format!("[{mark}] {}", entry.content)
                });
                let entries: Vec<String> = entries.collect();
                state.line(&format!("plan  {}", entries.join("   ")));
            }
            Event::ToolCall(change) => state.call(&change.update),
            _ => {}
        }
    }

    /// A question, with what it is about.
    pub(super) fn question(&self, call: &ToolCallUpdate) {
        let mut state = self.state();
        let title = state.title(call);
        state.line("");
        let mut document =
            Document::new().own(Mark::Question.then(format!("may the agent do this: {title}")));
        for content in call.content.iter().flatten() {
            if let ToolCallContent::Diff(diff) = content {
                document = document.change(&diff.path, diff.old_text.as_deref(), &diff.new_text);
            }
        }
        document.write(&mut state.out);
        let _ = state.out.write();
    }

    /// What happens on a terminal that the agent was lent.
    pub(super) fn terminal(&self, event: TerminalEvent<'_>) {
        let mut state = self.state();
        match event {
            TerminalEvent::Started { command, .. } => state.line(&format!("terminal  $ {command}")),
            TerminalEvent::Output { text, .. } => {
                text.lines()
                    .filter(|line| !line.trim().is_empty())
                    .for_each(|line| state.line(&format!("    | {}", inline(line))));
            }
            TerminalEvent::Ended { status, .. } => {
                let code =
                    status.exit_code.map_or("no exit code".to_owned(), |code| format!("exit code {code}"));
                state.line(&format!("    | ({code})"));
            }
            _ => {}
        }
    }
}

impl State {
    fn text(&mut self, who: &'static str, text: &str) {
        if self.open != Some(who) {
            self.line("");
            self.out.part(&Line::from(who));
        }
        self.out.foreign(text);
        self.open = Some(who);
        let _ = self.out.write();
    }

    fn line(&mut self, text: &str) {
        if self.open.take().is_some() {
            self.out.end_line();
        }
        if !text.is_empty() {
            self.out.one_line(text);
        }
        let _ = self.out.write();
    }

    fn title(&mut self, call: &ToolCallUpdate) -> String {
        if let Some(title) = &call.title {
            self.titles.insert(call.tool_call_id.clone(), title.clone());
        }
        self.titles.get(&call.tool_call_id).cloned().unwrap_or_default()
    }

    fn call(&mut self, call: &ToolCallUpdate) {
        let title = self.title(call);
        match call.status {
            Some(ToolCallStatus::Completed) => self.line(&format!("done  {title}")),
            Some(ToolCallStatus::Failed) => self.line(&format!("failed  {title}")),
            _ => {}
        }
    }
}

/// A line of a command's output, without the carriage return that terminals want.
fn inline(line: &str) -> &str {
    line.trim_end_matches('\r')
}
