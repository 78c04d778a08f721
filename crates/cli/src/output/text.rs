//! `--format text`: for people. Sections are separated by a blank line; each begins with a word in
//! brackets, except the answer.

use attache::Flow;
use attache::client::plan_status;
use attache::wire::v1::{
    ContentBlock, Notice, NoticeSeverity, PlanEntry, PlanUpdateContent, SessionNotification, SessionUpdate,
    ToolCallUpdate,
};
use attache_rpc::Frame;

use super::answer::{self, Answer};
use super::tool::{Status, Tools, block, cut};
use super::{Mark, Written, failure_document, renderer::WireMessage};
use crate::error::Failure;
use crate::lenient::PromptResult;
use attache_term::render::markdown;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::inline;
use attache_transcript::{BoundedText, Role};

/// Characters of a line that is no message.
const NOISE: usize = 200;
/// Characters of a thought that are shown.
const THOUGHT: usize = 900;

pub(super) struct Text {
    suppress_reads: bool,
    tools: Tools,
    thought: BoundedText,
    /// The answer, where it is drawn.
    answer: Answer,
    /// Whether something was written, so that a section needs a blank line before it.
    begun: bool,
    /// Whether a line that is no message was shown; one is enough.
    noise_shown: bool,
}

impl Text {
    pub(super) fn new(suppress_reads: bool) -> Self {
        // A thought is longer in bytes than in characters, and its whitespace is trimmed.
        let thought = BoundedText::new(Role::Thought, 8 * THOUGHT);
        Text {
            suppress_reads,
            tools: Tools::default(),
            thought,
            answer: Answer::default(),
            begun: false,
            noise_shown: false,
        }
    }

    pub(super) fn message(&mut self, seen: &WireMessage<'_>, out: &mut Written) {
        match &seen.frame {
            Frame::Notification { method, params: Some(params) } if method == "session/update" => {
                if let Ok(notification) = serde_json::from_str::<SessionNotification>(params.get()) {
                    self.update(notification.update, out);
                }
            }
            // Requests of the agent to this client.
            Frame::Request { method, params, .. }
                if seen.flow == Flow::In && (method.starts_with("fs/") || method == "terminal/create") =>
            {
                let what = params.and_then(|params| super::tool::summary(params.get())).unwrap_or_default();
                let line = Mark::Client.then(format!("{} {what}", cut(method, 80)).trim_end());
                self.section(&line, out);
            }
            Frame::Response { outcome: Ok(result), .. } if seen.answers == Some("session/prompt") => {
                self.flush(out);
                let reason = PromptResult::parse(result.get()).stop_reason;
                let reason = reason.as_deref().unwrap_or("unknown");
                let line = Mark::Done.line(Style::DIM).with(format!(" {}", cut(reason, 80)), Style::DIM);
                self.section(&line, out);
            }
            // STDIO-08: stdout belongs to the protocol; the rest of the turn shows as if the line
            // was not there.
            Frame::Malformed(_)
                if seen.flow == Flow::In && !std::mem::replace(&mut self.noise_shown, true) =>
            {
                self.thought_over(out);
                let line = inline(&String::from_utf8_lossy(seen.line), out.stdout.surface().look());
                let text = format!("the agent prints lines that are no messages: {}", cut(&line, NOISE));
                self.section(&Line::styled("! ", Style::of(Colour::Yellow)).with(text, Style::PLAIN), out);
            }
            _ => {}
        }
    }

    fn update(&mut self, update: SessionUpdate, out: &mut Written) {
        if self.thought.fold(&update, ContentBlock::as_text) {
            return;
        }
        self.thought_over(out);
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
                ContentBlock::Text(text) => self.said(&text.text, out),
                other => self.said(&block(other), out),
            },
            SessionUpdate::ToolCall(call) => self.tool((*call).into(), out),
            SessionUpdate::ToolCallUpdate(update) => self.tool(*update, out),
            SessionUpdate::Plan(plan) => self.plan(&plan.entries, out),
            SessionUpdate::PlanUpdate(update) => {
                if let PlanUpdateContent::Items(items) = &update.plan {
                    self.plan(&items.entries, out);
                }
            }
            SessionUpdate::Notice(notice) => self.agent_notice(&notice, out),
            _ => {}
        }
    }

    /// A notice of the agent.
    // NOTE-02: it is shown once; NOTE-03: an unknown severity gets a plain presentation.
    fn agent_notice(&mut self, notice: &Notice, out: &mut Written) {
        let style = match notice.severity {
            NoticeSeverity::Warning => Style::of(Colour::Yellow),
            NoticeSeverity::Error => Style::of(Colour::Red),
            _ => Style::DIM,
        };
        let mut lines =
            std::iter::once(&notice.title).chain(&notice.description).flat_map(|text| text.lines());
        let first = lines.next().unwrap_or_default();
        self.section(&Line::styled("! ", style).with(first, style), out);
        lines.for_each(|line| out.stdout.row(&Line::styled(format!("  {line}"), style)));
    }

    fn plan(&mut self, entries: &[PlanEntry], out: &mut Written) {
        self.section(&Mark::Plan.line(Style::BOLD), out);
        for entry in entries {
            out.stdout.line(&Line::from(format!("  - [{}] {}", plan_status(entry).as_str(), entry.content)));
        }
    }

    /// A piece of the answer.
    fn said(&mut self, text: &str, out: &mut Written) {
        if !answer::is_drawn(out.stdout.surface()) {
            self.begun |= !text.is_empty();
            return out.stdout.foreign(text);
        }
        if !self.answer.has_begun() && !text.trim().is_empty() {
            self.gap(out);
        }
        self.begun |= !text.is_empty();
        self.answer.push(text, &mut out.stdout);
    }

    fn tool(&mut self, update: ToolCallUpdate, out: &mut Written) {
        let Some(shown) = self.tools.update(update, self.suppress_reads) else { return };
        let style = match shown.status {
            Status::Completed => Style::of(Colour::Green),
            Status::Failed => Style::of(Colour::Red),
            Status::Pending | Status::Running => Style::of(Colour::Yellow),
        };
        let line = Mark::Tool.then(format!("{} (", shown.title)).with(shown.status.name(), style);
        self.section(&line.with(")", Style::PLAIN), out);
        let drawn = answer::is_drawn(out.stdout.surface());
        // The indent shows already what is quoted.
        let lines = shown.details.lines().filter(|line| !drawn || !markdown::is_fence(line));
        lines.for_each(|line| out.stdout.row(&Line::from(line)));
    }

    /// A line that stands for itself.
    pub(super) fn notice(&mut self, mark: Mark, text: &str, out: &mut Written) {
        self.thought_over(out);
        self.section(&mark.then(text), out);
    }

    pub(super) fn failure(&mut self, failure: &Failure, out: &mut Written) {
        self.thought_over(out);
        self.gap(out);
        let red = Style::of(Colour::Red);
        let head = Mark::TurnError.line(red).with(format!(" {}: ", failure.kind.name()), red);
        failure_document(head, red, failure).write(&mut out.stdout);
        self.begun = true;
    }

    /// Ends what is open: a thought, a line.
    pub(super) fn flush(&mut self, out: &mut Written) {
        self.thought_over(out);
        self.answer.finish(&mut out.stdout);
        out.stdout.end_line();
    }

    fn thought_over(&mut self, out: &mut Written) {
        let thought = self.thought.take();
        let thought = cut(thought.replace("\r\n", "\n").trim(), THOUGHT);
        let mut lines = thought.lines();
        let Some(first) = lines.next() else { return };
        let line = Mark::Thinking.line(Style::DIM).with(format!(" {first}"), Style::DIM);
        self.section(&line, out);
        for line in lines {
            out.stdout.row(&Line::styled(format!("           {line}"), Style::DIM));
        }
    }

    fn section(&mut self, line: &Line, out: &mut Written) {
        self.gap(out);
        out.stdout.line(line);
        self.begun = true;
    }

    /// Ends the line that is open, and leaves one free.
    fn gap(&mut self, out: &mut Written) {
        self.answer.finish(&mut out.stdout);
        out.stdout.end_line();
        if self.begun {
            out.stdout.line(&Line::new());
        }
    }
}
