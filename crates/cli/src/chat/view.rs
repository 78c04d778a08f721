//! From blocks to lines: what is finished goes up into the terminal's own history, what still changes stays below and is
//! drawn again and again.

use std::path::{Path, PathBuf};

use attache::client::Speaker;
use attache::wire::v1::{PlanEntryPriority, PlanEntryStatus, ToolCallContent, ToolCallStatus};

use super::output::{Output, Outputs};
use super::render::style::{Colour, Line, Style};
use super::render::text::{Look, clean, cut_line, reveal, width, wrap, wrap_hard};
use super::render::{diff, markdown};
use super::tool::{ToolState, kind_name};
use super::transcript::{Block, Message, PlanBody, Severity, Transcript, describe};

/// A part of a message that does not end is taken out at this length, so that drawing stays cheap and memory flat.
const LONGEST: usize = 16 << 10;
/// Rows of a change under a finished tool call.
const DIFF_ROWS: usize = 24;
/// Lines of output under a finished tool call.
const OUTPUT_ROWS: usize = 8;
/// Lines of output under one that runs.
const LIVE_ROWS: usize = 6;

/// What lines are made for.
#[derive(Debug, Clone)]
pub(crate) struct Canvas {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) look: Look,
    /// Paths below it are shown without it.
    pub(crate) cwd: PathBuf,
    /// Which picture of the spinner.
    pub(crate) beat: usize,
}

impl Canvas {
    pub(crate) fn spinner(&self) -> &'static str {
        const FULL: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
        const ASCII: [&str; 4] = ["|", "/", "-", "\\"];
        let frames: &[&str] = if self.look.unicode { &FULL } else { &ASCII };
        frames.get(self.beat % frames.len()).copied().unwrap_or("*")
    }

    pub(crate) fn short<'a>(&self, path: &'a str) -> &'a str {
        let inside = Path::new(path).strip_prefix(&self.cwd).ok().and_then(Path::to_str);
        inside.filter(|inside| !inside.is_empty()).unwrap_or(path)
    }
}

/// What stands above, as far as it matters for what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Above {
    #[default]
    Nothing,
    /// A block that wants an empty line below it.
    Block,
    /// A tool call of one line; another may follow at once.
    Row,
    /// A notice; another may follow at once.
    Note,
    /// Code whose fence is still open: nothing may come between.
    Fence,
}

/// Decides what goes up and what stays.
#[derive(Debug, Default)]
pub(crate) struct View {
    above: Above,
}

impl View {
    /// Takes what is finished out of the transcript, as lines. If more than `room` lines would stay, what stands above the
    /// last block goes too, finished or not.
    pub(crate) fn settle(&mut self, transcript: &mut Transcript, canvas: &Canvas, room: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(front) = transcript.blocks.front_mut() {
            let ready = match front {
                Block::Message(message) if !message.done => {
                    self.take_part(message, canvas, &mut lines);
                    false
                }
                Block::Tool(tool) => tool.finished(),
                Block::Message(_) | Block::Terminal(_) | Block::Notice(..) => true,
            };
            let full = !ready && transcript.blocks.len() > 1 && self.live(transcript, canvas).len() > room;
            if !ready && !full {
                break;
            }
            let Some(block) = transcript.blocks.pop_front() else { break };
            let (block_lines, above) = finished(&block, &mut transcript.screens.lock(), canvas);
            self.add(&mut lines, block_lines, above);
            if let Block::Tool(tool) = block
                && !tool.finished()
            {
                transcript.send_away(tool);
            }
        }
        lines
    }

    /// Lines that stand for themselves, between the blocks.
    pub(crate) fn aside(&mut self, block: Vec<Line>) -> Vec<Line> {
        let mut lines = Vec::new();
        self.add(&mut lines, block, Above::Block);
        lines
    }

    fn add(&mut self, lines: &mut Vec<Line>, block: Vec<Line>, above: Above) {
        if block.is_empty() {
            return;
        }
        let apart = match (self.above, above) {
            (Above::Nothing | Above::Fence, _) | (Above::Row, Above::Row) | (Above::Note, Above::Note) => {
                false
            }
            (Above::Block | Above::Row | Above::Note, _) => true,
        };
        if apart {
            lines.push(Line::new());
        }
        lines.extend(block);
        self.above = above;
    }

    /// What of a growing message will not change any more.
    fn take_part(&mut self, message: &mut Message, canvas: &Canvas, lines: &mut Vec<Line>) {
        let mut at = markdown::settled(&message.text);
        let mut fence = None;
        if message.text.len() - at > LONGEST {
            at = forced_split(&message.text, at);
            fence = message.text.get(..at).and_then(markdown::open_fence).map(str::to_owned);
        }
        if at == 0 {
            return;
        }
        let rest = message.text.split_off(at);
        let part = std::mem::replace(&mut message.text, rest);
        self.add(lines, render_message(message, &part, canvas), Above::Block);
        if let Some(fence) = fence {
            // The rest is read as code too.
            message.text.insert_str(0, &format!("{fence}\n"));
            self.above = Above::Fence;
        }
    }

    /// What stays: blocks that still change, and what follows them.
    pub(crate) fn live(&self, transcript: &Transcript, canvas: &Canvas) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut view = View { above: self.above };
        let outputs = transcript.screens.lock();
        for block in &transcript.blocks {
            let block_lines = match block {
                Block::Message(message) => render_message(message, &message.text, canvas),
                Block::Tool(tool) => live_tool(tool, &outputs, canvas),
                Block::Terminal(number) => {
                    outputs.by_number(*number).map_or(Vec::new(), |output| terminal(output, canvas))
                }
                Block::Notice(severity, text) => notice(*severity, text, canvas),
            };
            let above = above(block, &block_lines);
            view.add(&mut lines, block_lines, above);
        }
        lines
    }
}

/// Where to cut a text that is too long: behind a line if there is one, else behind a word.
fn forced_split(text: &str, from: usize) -> usize {
    let tail = text.get(from..).unwrap_or_default();
    let cut = tail.rfind('\n').or_else(|| tail.rfind(' ')).map_or(tail.len(), |at| at + 1);
    from + cut
}

fn finished(block: &Block, outputs: &mut Outputs, canvas: &Canvas) -> (Vec<Line>, Above) {
    let lines = match block {
        Block::Message(message) => render_message(message, &message.text, canvas),
        Block::Tool(tool) => {
            tool.terminals().for_each(|id| outputs.mark_shown(id));
            whole_tool(tool, outputs, canvas)
        }
        Block::Terminal(number) => {
            outputs.by_number(*number).map_or(Vec::new(), |output| terminal(output, canvas))
        }
        Block::Notice(severity, text) => notice(*severity, text, canvas),
    };
    let above = above(block, &lines);
    (lines, above)
}

/// What a block is to the one below it.
fn above(block: &Block, lines: &[Line]) -> Above {
    match block {
        Block::Tool(_) if lines.len() == 1 => Above::Row,
        Block::Notice(..) => Above::Note,
        _ => Above::Block,
    }
}

fn render_message(message: &Message, text: &str, canvas: &Canvas) -> Vec<Line> {
    let indent = usize::from(message.inner) * 2;
    match message.speaker {
        Speaker::User => said(text, canvas),
        Speaker::Thought => {
            let lines = markdown::render(
                text,
                canvas.columns.saturating_sub(2 + indent),
                Style::DIM.italic(),
                canvas.look,
            );
            indented(lines, 2 + indent)
        }
        _ => {
            let base = if message.inner { Style::DIM } else { Style::PLAIN };
            indented(markdown::render(text, canvas.columns.saturating_sub(indent), base, canvas.look), indent)
        }
    }
}

fn indented(mut lines: Vec<Line>, by: usize) -> Vec<Line> {
    if by > 0 {
        for line in lines.iter_mut().filter(|line| !line.spans.is_empty()) {
            let rest = std::mem::replace(line, Line::from(" ".repeat(by)));
            line.append(&rest);
        }
    }
    lines
}

/// What the user said.
pub(crate) fn said(text: &str, canvas: &Canvas) -> Vec<Line> {
    let mark = Line::styled("> ", Style::BOLD.colour(Colour::Cyan));
    let rest = Line::from("  ");
    let mut lines: Vec<Line> = Vec::new();
    for line in clean(text.trim_end(), canvas.look).lines() {
        let first = if lines.is_empty() { &mark } else { &rest };
        lines.extend(wrap(&Line::styled(line, Style::BOLD), canvas.columns, first, &rest));
    }
    lines
}

pub(crate) fn notice(severity: Severity, text: &str, canvas: &Canvas) -> Vec<Line> {
    let (mark, style) = match severity {
        Severity::Info => (canvas.look.pick("· ", "* "), Style::DIM),
        Severity::Warning => ("! ", Style::of(Colour::Yellow)),
        Severity::Error => (canvas.look.pick("✗ ", "x "), Style::of(Colour::Red)),
    };
    let (first, rest) = (Line::styled(mark, style), Line::from("  "));
    let mut lines: Vec<Line> = Vec::new();
    for line in clean(text, canvas.look).lines() {
        let before = if lines.is_empty() { &first } else { &rest };
        lines.extend(wrap(&Line::styled(line, style), canvas.columns, before, &rest));
    }
    lines
}

/// The one line of a tool call: how far it is, what kind, what it does.
fn tool_row(tool: &ToolState, canvas: &Canvas) -> Line {
    let look = canvas.look;
    let (mark, style, word) = match tool.status {
        ToolCallStatus::Completed => (look.pick("✓", "+"), Style::of(Colour::Green), ""),
        ToolCallStatus::Failed => (look.pick("✗", "x"), Style::of(Colour::Red), " (failed)"),
        _ if tool.over => (look.pick("○", "o"), Style::DIM, " (not finished)"),
        ToolCallStatus::InProgress => (canvas.spinner(), Style::of(Colour::Yellow), ""),
        _ => (canvas.spinner(), Style::DIM, " (waiting)"),
    };
    let mut line = Line::styled(mark, style).with(format!(" {} ", kind_name(tool.kind)), Style::DIM);
    let title = clean(&tool.title, look);
    let title = title.lines().next().unwrap_or_default();
    line.push(if title.is_empty() { tool.id.as_str() } else { title }, Style::PLAIN);
    if let Some(place) = tool.locations.first() {
        let path = canvas.short(&place.path);
        let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path);
        if !title.contains(name) {
            let at = place.line.map_or(String::new(), |line| format!(":{line}"));
            line.push(format!(" {}{at}", clean(path, look)), Style::DIM);
        }
    }
    // How it ended stays readable however long the title is.
    let mut line = cut_line(&line, canvas.columns.saturating_sub(width(word)), look);
    line.push(word, style);
    line
}

fn live_tool(tool: &ToolState, outputs: &Outputs, canvas: &Canvas) -> Vec<Line> {
    let mut lines = vec![tool_row(tool, canvas)];
    for output in tool.terminals().filter_map(|id| outputs.get(id)) {
        let (before, tail) = output.tail(LIVE_ROWS);
        folded(before, &tail, canvas, &mut lines);
    }
    lines
}

fn whole_tool(tool: &ToolState, outputs: &Outputs, canvas: &Canvas) -> Vec<Line> {
    let mut lines = vec![tool_row(tool, canvas)];
    for content in &tool.content {
        match content {
            ToolCallContent::Diff(_) if tool.shown => {}
            ToolCallContent::Diff(change) => {
                let columns = canvas.columns.saturating_sub(2);
                let path = canvas.short(&change.path);
                let rows = diff::render(
                    path,
                    change.old_text.as_deref(),
                    &change.new_text,
                    columns,
                    Some(DIFF_ROWS),
                    canvas.look,
                );
                lines.extend(indented(rows, 2));
            }
            ToolCallContent::Terminal(terminal) => {
                if let Some(output) = outputs.get(terminal.terminal_id.as_str()) {
                    let (before, tail) = output.tail(OUTPUT_ROWS);
                    folded(before, &tail, canvas, &mut lines);
                    end_of(output, canvas, &mut lines);
                }
            }
            ToolCallContent::Content(content) => fold_text(&describe(&content.content), canvas, &mut lines),
            _ => {}
        }
    }
    if tool.content.is_empty()
        && let Some(text) = tool.raw_text()
    {
        fold_text(&text, canvas, &mut lines);
    }
    lines
}

/// Text under a tool call; of a long one the end is shown.
fn fold_text(text: &str, canvas: &Canvas, lines: &mut Vec<Line>) {
    let all: Vec<&str> = text.trim_end().lines().collect();
    let before = all.len().saturating_sub(OUTPUT_ROWS);
    folded(before, all.get(before..).unwrap_or_default(), canvas, lines);
}

fn folded(before: usize, tail: &[&str], canvas: &Canvas, lines: &mut Vec<Line>) {
    let bar = Line::styled(canvas.look.pick("  │ ", "  | "), Style::DIM);
    if before > 0 {
        let text = format!("{} {before} lines", canvas.look.pick("…", "..."));
        lines.push(bar.clone().with(text, Style::DIM));
    }
    for line in tail {
        // Output is for a glance: what does not fit is cut, not wrapped.
        let line = bar.clone().with(clean(line, canvas.look), Style::DIM);
        lines.push(cut_line(&line, canvas.columns, canvas.look));
    }
}

fn end_of(output: &Output, canvas: &Canvas, lines: &mut Vec<Line>) {
    if let Some(status) = &output.how {
        let line = Line::styled(format!("    {}", clean(status, canvas.look)), Style::of(Colour::Red));
        lines.push(cut_line(&line, canvas.columns, canvas.look));
    }
}

fn terminal(output: &Output, canvas: &Canvas) -> Vec<Line> {
    let command = Line::styled("$ ", Style::DIM)
        .with(reveal(&output.command, canvas.look).replace('\n', " "), Style::PLAIN);
    let mut lines = vec![cut_line(&command, canvas.columns, canvas.look)];
    let (before, tail) = output.tail(OUTPUT_ROWS);
    folded(before, &tail, canvas, &mut lines);
    end_of(output, canvas, &mut lines);
    lines
}

/// The plans as check lists.
pub(crate) fn plans(transcript: &Transcript, canvas: &Canvas) -> Vec<Line> {
    let mut lines = Vec::new();
    for (_, body) in &transcript.plans {
        match body {
            PlanBody::Entries(entries) if entries.is_empty() => {}
            PlanBody::Entries(entries) => {
                let done = entries.iter().filter(|entry| entry.status == PlanEntryStatus::Completed).count();
                lines.push(Line::styled(format!("Plan {done}/{}", entries.len()), Style::BOLD));
                for entry in entries {
                    lines.extend(plan_entry(entry, canvas));
                }
            }
            PlanBody::Text(text) => {
                lines.push(Line::styled("Plan", Style::BOLD));
                lines.extend(indented(
                    markdown::render(text, canvas.columns.saturating_sub(2), Style::PLAIN, canvas.look),
                    2,
                ));
            }
        }
    }
    lines
}

fn plan_entry(entry: &attache::wire::v1::PlanEntry, canvas: &Canvas) -> Vec<Line> {
    let look = canvas.look;
    let (mark, style) = match entry.status {
        PlanEntryStatus::Completed => (look.pick("  ☑ ", "  [x] "), Style::DIM.strike()),
        PlanEntryStatus::InProgress => (look.pick("  ▸ ", "  [>] "), Style::BOLD),
        _ => (look.pick("  ☐ ", "  [ ] "), Style::PLAIN),
    };
    let mut text = Line::styled(clean(&entry.content, look).replace('\n', " "), style);
    if entry.priority == PlanEntryPriority::High && entry.status != PlanEntryStatus::Completed {
        text.push(" !", Style::of(Colour::Yellow));
    }
    wrap(&text, canvas.columns, &Line::from(mark), &Line::from(" ".repeat(width(mark))))
}

/// Text that somebody decides about, in full.
pub(crate) fn in_full(text: &str, canvas: &Canvas) -> Vec<Line> {
    let prefix = Line::from("  ");
    let shown = reveal(text, canvas.look);
    shown.lines().flat_map(|line| wrap_hard(&Line::from(line), canvas.columns, &prefix, &prefix)).collect()
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
