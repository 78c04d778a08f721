//! The output of the demo.

use std::sync::Arc;

use attache::client::Event;
use attache::wire::v1::{PlanEntryStatus, SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate};
use attache_host::terminals::TerminalEvent;
use parking_lot::{Mutex, MutexGuard};

use crate::output::{Channel, Document, Mark, Output};
use attache_term::render::style::Line;
use attache_transcript::Transcript;

/// Printer of the demo. Terminals print from their own threads, so it is shared and prints line by
/// line.
#[derive(Clone)]
pub(super) struct Printer(Arc<Mutex<State>>);

struct State {
    out: Channel,
    /// Author of the text on the current line, if there is any.
    open: Option<&'static str>,
    /// The tool calls so far.
    transcript: Transcript,
}

impl Printer {
    pub(super) fn new(out: Output) -> Self {
        Printer(Arc::new(Mutex::new(State {
            out: Channel::new(out.stdout),
            open: None,
            transcript: Transcript::default(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    pub(super) fn prompt(&self, text: &str) {
        self.state().line(&format!("\nyou> {text}\n"));
    }

    /// Ends the turn: the next text begins on its own line.
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

    /// Prints a question with the diffs of its tool call.
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

    /// Prints an event of a client terminal.
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

    /// Folds an update and returns the title of its call.
    fn title(&mut self, call: &ToolCallUpdate) -> String {
        self.transcript.fold(SessionUpdate::from(call.clone()).into());
        let known = self.transcript.tool_call(None, &call.tool_call_id);
        known.map_or(String::new(), |(_, call)| call.title().to_owned())
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

/// Returns a line of output without its carriage return.
fn inline(line: &str) -> &str {
    line.trim_end_matches('\r')
}
