//! The look of an item: a message, a tool call, the output of a command, a notice.

use std::path::Path;

use attache::wire::v1::{Notice, ToolCallContent, ToolCallStatus, ToolKind};
use attache::wire::{Json, Patch};
use attache_transcript::{Item, ItemKind, Role, ToolCall};
use serde_json::Value;

use super::transcript::{Severity, describe, message_text};
use super::view::Canvas;
use crate::client_services::terminals::{Outputs, TerminalOutput};
use crate::output;
use attache_term::render::link::Link;
use attache_term::render::sgr::coloured;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, cut, cut_line, reveal, width, wrap, wrap_hard};
use attache_term::render::{diff, markdown};

/// Rows of a change under a finished tool call.
const DIFF_ROWS: usize = 24;
/// Lines of output under a finished tool call.
const OUTPUT_ROWS: usize = 8;
/// Lines of output of a running command.
const LIVE_ROWS: usize = 6;
/// Lines of a thought, and of a long prompt.
const THOUGHT_ROWS: usize = 6;
const PROMPT_ROWS: usize = 20;

/// How much of an item is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The end of an item that still changes.
    Live,
    /// Long texts are folded; `/show` with the number unfolds them.
    Folded(Option<usize>),
    /// Nothing is folded.
    Open,
    /// Nothing is folded, and the raw input and output of tools are shown.
    Details,
}

impl Extent {
    fn is_open(self) -> bool {
        matches!(self, Extent::Open | Extent::Details)
    }
}

/// Draws an item.
pub(crate) fn render(item: &Item, extent: Extent, outputs: &Outputs, canvas: &Canvas) -> Vec<Line> {
    let is_inner = item.session.is_some();
    match &item.kind {
        ItemKind::Message(message) => text_of(message.role, &message_text(message), is_inner, extent, canvas),
        ItemKind::ToolCall(call) => tool_lines(call, is_inner, extent, outputs, canvas),
        ItemKind::Terminal(number) => {
            outputs.by_number(*number).map_or(Vec::new(), |output| terminal(output, extent, canvas))
        }
        ItemKind::Notice(notice) => notice_lines(notice, canvas),
        // A notice above them says what they are.
        ItemKind::Compaction(compaction) => match &compaction.summary {
            Patch::Set(summary) => {
                let text: Vec<String> = summary.iter().map(describe).collect();
                text_of(Role::Thought, &text.join("\n\n"), is_inner, extent, canvas)
            }
            _ => Vec::new(),
        },
        ItemKind::SessionMessage(message) => match &message.content {
            Patch::Set(content) => {
                let text: Vec<String> = content.iter().map(describe).collect();
                text_of(Role::Agent, &text.join("\n"), true, extent, canvas)
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn text_of(role: Role, text: &str, is_inner: bool, extent: Extent, canvas: &Canvas) -> Vec<Line> {
    let indent = usize::from(is_inner) * 2;
    match role {
        Role::User => {
            let lines = echo_prompt(text, canvas);
            if lines.len() <= PROMPT_ROWS || extent.is_open() {
                return lines;
            }
            fold_end(lines, PROMPT_ROWS / 2, extent, canvas.columns, canvas)
        }
        Role::Thought => {
            let columns = canvas.columns.saturating_sub(2 + indent);
            let lines = markdown::render(text, columns, Style::DIM.italic(), canvas.look);
            indented(fold_thought(lines, extent, columns, canvas), 2 + indent)
        }
        Role::Agent => {
            let base = if is_inner { Style::DIM } else { Style::PLAIN };
            indented(markdown::render(text, canvas.columns.saturating_sub(indent), base, canvas.look), indent)
        }
    }
}

/// Folds a long thought: its beginning while it grows, its end when it is complete.
fn fold_thought(mut lines: Vec<Line>, extent: Extent, columns: usize, canvas: &Canvas) -> Vec<Line> {
    // One line more or less is not worth a fold.
    let over = lines.len().saturating_sub(THOUGHT_ROWS);
    if over <= 1 || extent.is_open() {
        return lines;
    }
    match extent {
        Extent::Live => {
            lines.drain(..over);
            lines.insert(0, cut_line(&fold_line(over, extent, canvas), columns, canvas.look));
        }
        _ => lines = fold_end(lines, THOUGHT_ROWS, extent, columns, canvas),
    }
    lines
}

/// Folds the end of a long text.
fn fold_end(mut lines: Vec<Line>, kept: usize, extent: Extent, columns: usize, canvas: &Canvas) -> Vec<Line> {
    let over = lines.len().saturating_sub(kept);
    lines.truncate(kept);
    lines.push(cut_line(&fold_line(over, extent, canvas), columns, canvas.look));
    lines
}

/// Returns the line in place of folded ones.
fn fold_line(count: usize, extent: Extent, canvas: &Canvas) -> Line {
    let dots = canvas.look.pick("…", "...");
    let how = match extent {
        Extent::Folded(Some(number)) => format!(" (Ctrl-O, /show {number})"),
        Extent::Live | Extent::Folded(None) => " (Ctrl-O)".to_owned(),
        // They were dropped to bound the memory.
        Extent::Open | Extent::Details => " before, no longer available".to_owned(),
    };
    Line::styled(format!("{dots} {}{how}", output::count(count as u64, "line")), Style::DIM)
}

pub(crate) fn indented(mut lines: Vec<Line>, by: usize) -> Vec<Line> {
    if by > 0 {
        for line in lines.iter_mut().filter(|line| !line.spans.is_empty()) {
            let rest = std::mem::replace(line, Line::from(" ".repeat(by)));
            line.append(&rest);
        }
    }
    lines
}

/// Draws a prompt.
pub(crate) fn echo_prompt(text: &str, canvas: &Canvas) -> Vec<Line> {
    let mark = Line::styled("> ", Style::BOLD.colour(Colour::Cyan));
    let rest = Line::from("  ");
    let mut lines: Vec<Line> = Vec::new();
    for line in clean(text.trim_end(), canvas.look).lines() {
        let first = if lines.is_empty() { &mark } else { &rest };
        lines.extend(wrap(&Line::styled(line, Style::BOLD), canvas.columns, first, &rest));
    }
    lines
}

fn notice_lines(notice: &Notice, canvas: &Canvas) -> Vec<Line> {
    let (mark, style) = match notice.severity {
        Severity::Warning => ("! ", Style::of(Colour::Yellow)),
        Severity::Error => (canvas.look.pick("✗ ", "x "), Style::of(Colour::Red)),
        // NOTE-03: an unknown severity gets a plain presentation.
        _ => (canvas.look.pick("· ", "* "), Style::DIM),
    };
    let (first, rest) = (Line::styled(mark, style), Line::from("  "));
    let mut lines: Vec<Line> = Vec::new();
    let texts = std::iter::once(&notice.title).chain(&notice.description);
    for line in texts.flat_map(|text| clean(text, canvas.look).lines().map(str::to_owned).collect::<Vec<_>>())
    {
        let before = if lines.is_empty() { &first } else { &rest };
        lines.extend(wrap(&Line::styled(line, style), canvas.columns, before, &rest));
    }
    lines
}

/// Draws the first line of a tool call: status, kind and title.
pub(crate) fn tool_row(tool: &ToolCall, is_inner: bool, canvas: &Canvas) -> Line {
    let look = canvas.look;
    let (mark, style, word) = match tool.status() {
        ToolCallStatus::Completed => (look.pick("✓", "+"), Style::of(Colour::Green), ""),
        ToolCallStatus::Failed => (look.pick("✗", "x"), Style::of(Colour::Red), failure_word(tool, canvas)),
        _ if tool.interrupted => (look.pick("○", "o"), Style::DIM, " (not finished)"),
        ToolCallStatus::InProgress => (canvas.spinner(), Style::of(Colour::Yellow), ""),
        _ if tool.asked => (canvas.spinner(), Style::DIM, " (waiting for you)"),
        _ => (canvas.spinner(), Style::DIM, " (waiting)"),
    };
    status_row(tool, is_inner, (mark, style, word), canvas)
}

/// Returns the word for a call that failed. The reason stands below if the agent gives one.
fn failure_word(tool: &ToolCall, canvas: &Canvas) -> &'static str {
    if tool.denied {
        " (not allowed)"
    } else if tool.content().is_empty() && tool.state.raw_output.is_none() && canvas.columns >= 60 {
        " (failed; the agent gives no reason)"
    } else {
        " (failed)"
    }
}

/// Draws a tool call that continues after its turn.
pub(crate) fn background_row(tool: &ToolCall, canvas: &Canvas) -> Line {
    let status = (canvas.look.pick("▸", ">"), Style::DIM, " (continues in the background)");
    status_row(tool, false, status, canvas)
}

fn status_row(
    tool: &ToolCall,
    is_inner: bool,
    (mark, style, word): (&str, Style, &str),
    canvas: &Canvas,
) -> Line {
    let look = canvas.look;
    let mut line = Line::from(if is_inner { "  " } else { "" });
    line.push(mark, style);
    let title = clean(tool.title(), look);
    let title = title.lines().next().unwrap_or_default();
    // Many titles begin with their kind, as in `Read src/main.rs`.
    let kind = kind_name(tool.kind());
    let said = title.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case(kind));
    line.push(if said { " ".to_owned() } else { format!(" {kind} ") }, Style::DIM);
    let file = tool.locations().first().and_then(|place| Link::to_file(&place.path));
    // A link leads only to what can be read.
    let named = tool.locations().first().is_some_and(|place| title.contains(canvas.short(&place.path)));
    let style = Style::PLAIN.link(file.filter(|_| named));
    line.push(if title.is_empty() { tool.id().as_str() } else { title }, style);
    if let Some(place) = tool.locations().first() {
        let path = canvas.short(&place.path);
        let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path);
        if !title.contains(name) {
            let at = place.line.map_or(String::new(), |line| format!(":{line}"));
            line.push(" ", Style::DIM);
            line.push(format!("{}{at}", clean(path, look)), Style::DIM.link(file));
        }
    }
    let allowed = tool.allowed_by.as_ref().map_or(String::new(), |by| {
        format!("{}allowed by {}", look.pick(" · ", " - "), clean(by, look).replace('\n', " "))
    });
    // The status and the reason stay readable however long the title is.
    let allowed = cut(&allowed, canvas.columns / 2, look);
    let mut line = cut_line(&line, canvas.columns.saturating_sub(width(word) + width(&allowed)), look);
    line.push(word, style);
    line.push(allowed, Style::DIM);
    line
}

fn tool_lines(
    tool: &ToolCall,
    is_inner: bool,
    extent: Extent,
    outputs: &Outputs,
    canvas: &Canvas,
) -> Vec<Line> {
    let mut lines = vec![tool_row(tool, is_inner, canvas)];
    if extent == Extent::Live {
        for output in tool.terminals().filter_map(|id| outputs.get(id)) {
            output_lines(output, extent, canvas, &mut lines);
        }
        return lines;
    }
    if extent == Extent::Details {
        for place in tool.locations() {
            let at = place.line.map_or(String::new(), |line| format!(":{line}"));
            let place = Line::styled(format!("{}{at}", reveal(&place.path, canvas.look)), Style::DIM);
            lines.extend(wrap_hard(&place, canvas.columns, &Line::from("  "), &Line::from("  ")));
        }
        raw("input", tool.state.raw_input.as_ref(), canvas, &mut lines);
    }
    for content in tool.content() {
        match content {
            ToolCallContent::Diff(_) if tool.asked && extent != Extent::Details => {}
            ToolCallContent::Diff(change) => {
                let most = (!extent.is_open()).then_some(DIFF_ROWS);
                let columns = canvas.columns.saturating_sub(2);
                let path = canvas.short(&change.path);
                let old = change.old_text.as_deref();
                let rows = diff::render(path, old, &change.new_text, columns, most, canvas.look);
                lines.extend(indented(rows, 2));
            }
            ToolCallContent::Terminal(terminal) => {
                if let Some(output) = outputs.get(terminal.terminal_id.as_str()) {
                    output_lines(output, extent, canvas, &mut lines);
                    end_of(output, canvas, &mut lines);
                }
            }
            ToolCallContent::Content(content)
                if tool.denied && repeats(tool, &describe(&content.content)) => {}
            ToolCallContent::Content(content) => {
                content_lines(&describe(&content.content), extent, canvas, &mut lines);
            }
            _ => {}
        }
    }
    if extent == Extent::Details {
        raw("output", tool.state.raw_output.as_ref(), canvas, &mut lines);
    } else if tool.content().is_empty()
        && let Some(text) = raw_text(tool)
    {
        text_lines(&text, extent, canvas, &mut lines);
    }
    lines
}

/// Whether the content of a refused call only says again what the question showed: its title or its
/// command.
fn repeats(tool: &ToolCall, text: &str) -> bool {
    let lines: Vec<&str> = text.trim().lines().filter(|line| !markdown::is_fence(line)).collect();
    let text = lines.join("\n");
    let text = text.trim().trim_matches('`');
    let input = tool.state.raw_input.as_ref().and_then(|input| input.parse::<Value>().ok());
    let command = input.as_ref().and_then(|input| input.get("command")?.as_str());
    text == tool.title() || command.is_some_and(|command| command.trim() == text)
}

/// Returns the output as one text, for agents that provide it only in raw form.
fn raw_text(tool: &ToolCall) -> Option<String> {
    let output: Value = tool.state.raw_output.as_ref()?.parse().ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    text(&output)
        .or_else(|| ["output", "stdout", "content", "error"].iter().find_map(|name| text(output.get(name)?)))
}

/// Returns the word for a kind of tool.
fn kind_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Execute => "run",
        ToolKind::SwitchMode => "mode",
        ToolKind::Other => "tool",
        kind => kind.as_str(),
    }
}

/// Draws the raw input or output of a tool as indented JSON.
fn raw(name: &str, json: Option<&Json>, canvas: &Canvas, lines: &mut Vec<Line>) {
    let Some(json) = json else { return };
    let value = json.parse::<Value>();
    let text = match &value {
        Ok(Value::String(text)) => text.clone(),
        Ok(value) => format!("{value:#}"),
        Err(_) => json.get().to_owned(),
    };
    lines.push(Line::styled(format!("  {name}"), Style::BOLD));
    text_lines(&text, Extent::Open, canvas, lines);
}

/// Draws text under a tool call; of a long one the end is shown.
fn text_lines(text: &str, extent: Extent, canvas: &Canvas, lines: &mut Vec<Line>) {
    let all: Vec<&str> = text.trim_end().lines().collect();
    let over = if extent.is_open() { 0 } else { all.len().saturating_sub(OUTPUT_ROWS) };
    barred(over, all.get(over..).unwrap_or_default(), extent, canvas, lines);
}

/// Draws content of a tool call. It is Markdown, but most agents send plain output: only code
/// blocks tell them apart.
fn content_lines(text: &str, extent: Extent, canvas: &Canvas, lines: &mut Vec<Line>) {
    if !text.lines().any(|line| line.trim_start().starts_with("```")) {
        return text_lines(text, extent, canvas, lines);
    }
    let bar = Line::styled(canvas.look.pick("  │ ", "  | "), Style::DIM);
    let columns = canvas.columns.saturating_sub(bar.width());
    let rows = markdown::render(text, columns, Style::DIM, canvas.look);
    let over = if extent.is_open() { 0 } else { rows.len().saturating_sub(OUTPUT_ROWS) };
    if over > 0 {
        let mut line = bar.clone();
        line.append(&fold_line(over, extent, canvas));
        lines.push(cut_line(&line, canvas.columns, canvas.look));
    }
    for row in rows.iter().skip(over) {
        let mut line = bar.clone();
        line.append(row);
        lines.push(cut_line(&line, canvas.columns, canvas.look));
    }
}

fn output_lines(output: &TerminalOutput, extent: Extent, canvas: &Canvas, lines: &mut Vec<Line>) {
    let most = match extent {
        Extent::Live if canvas.unfold => canvas.rows,
        Extent::Live => LIVE_ROWS,
        Extent::Folded(_) => OUTPUT_ROWS,
        Extent::Open | Extent::Details => usize::MAX,
    };
    let (over, tail) = output.tail(most);
    barred(over, &tail, extent, canvas, lines);
}

/// Draws lines with a bar on the left, below a line that counts the folded ones.
fn barred(over: usize, tail: &[&str], extent: Extent, canvas: &Canvas, lines: &mut Vec<Line>) {
    let bar = Line::styled(canvas.look.pick("  │ ", "  | "), Style::DIM);
    if over > 0 {
        let mut line = bar.clone();
        line.append(&fold_line(over, extent, canvas));
        lines.push(cut_line(&line, canvas.columns, canvas.look));
    }
    for line in tail {
        let text = coloured(line, Style::DIM, canvas.look);
        if extent.is_open() {
            lines.extend(wrap_hard(&text, canvas.columns, &bar, &bar));
        } else {
            // An overview: long lines are cut, not wrapped.
            let mut line = bar.clone();
            line.append(&text);
            lines.push(cut_line(&line, canvas.columns, canvas.look));
        }
    }
}

fn end_of(output: &TerminalOutput, canvas: &Canvas, lines: &mut Vec<Line>) {
    if let Some(status) = &output.how {
        let line = Line::styled(format!("    {}", clean(status, canvas.look)), Style::of(Colour::Red));
        lines.push(cut_line(&line, canvas.columns, canvas.look));
    }
}

fn terminal(output: &TerminalOutput, extent: Extent, canvas: &Canvas) -> Vec<Line> {
    let command = Line::styled("$ ", Style::DIM)
        .with(reveal(&output.command, canvas.look).replace('\n', " "), Style::PLAIN);
    let mut lines = match extent.is_open() {
        true => wrap_hard(&command, canvas.columns, &Line::new(), &Line::from("  ")),
        false => vec![cut_line(&command, canvas.columns, canvas.look)],
    };
    output_lines(output, extent, canvas, &mut lines);
    end_of(output, canvas, &mut lines);
    lines
}

/// Draws text that the user decides about, in full.
pub(crate) fn in_full(text: &str, canvas: &Canvas) -> Vec<Line> {
    let prefix = Line::from("  ");
    let shown = reveal(text, canvas.look);
    shown.lines().flat_map(|line| wrap_hard(&Line::from(line), canvas.columns, &prefix, &prefix)).collect()
}
