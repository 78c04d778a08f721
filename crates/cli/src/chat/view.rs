//! From blocks to lines: what is finished goes up into the terminal's own history, what still changes stays below and is
//! drawn again and again.

use std::path::{Path, PathBuf};

use attache::client::Speaker;
use attache::wire::v1::{PlanEntryPriority, PlanEntryStatus};

use super::block::{self, Extent, indented};
use super::scrollback::Scrollback;
use super::transcript::{Block, Message, PlanBody, Transcript};
use crate::client_services::terminals::Outputs;
use attache_term::render::markdown;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{Look, clean, width, wrap};

/// A part of a message that does not end is taken out at this length, so that drawing stays cheap and memory flat.
const LONGEST: usize = 16 << 10;

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
    /// What is long is shown to its end.
    pub(crate) unfold: bool,
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
pub(crate) enum Above {
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
    /// The answer to what stands above it.
    Answer,
}

impl Above {
    /// Whether an empty line comes between this and what follows.
    pub(crate) fn is_apart(self, next: Above) -> bool {
        match (self, next) {
            (Above::Nothing | Above::Fence, _)
            | (_, Above::Answer)
            | (Above::Row, Above::Row)
            | (Above::Note, Above::Note) => false,
            (Above::Block | Above::Row | Above::Note | Above::Answer, _) => true,
        }
    }
}

/// Decides what goes up and what stays.
#[derive(Debug, Default)]
pub(crate) struct View {
    above: Above,
    pub(crate) scrollback: Scrollback,
}

impl View {
    /// Takes what is finished out of the transcript, as lines. If more than `room` lines would stay, what stands above the
    /// last block goes too, finished or not.
    pub(crate) fn settle(&mut self, transcript: &mut Transcript, canvas: &Canvas, room: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(front) = transcript.blocks.front_mut() {
            let ready = match front {
                Block::Message(message) if !message.done => {
                    self.take_part(message, &transcript.terminal_outputs.lock(), canvas, &mut lines);
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
            if let Block::Tool(tool) = &block {
                let mut outputs = transcript.terminal_outputs.lock();
                tool.terminals().for_each(|id| outputs.mark_shown(id));
            }
            match block {
                Block::Tool(tool) if !tool.finished() => {
                    let block = Block::Tool(tool);
                    let drawn =
                        block::render(&block, Extent::Live, &transcript.terminal_outputs.lock(), canvas);
                    let above = above(&block, &drawn);
                    self.add(&mut lines, drawn.clone(), above);
                    self.scrollback.keep_lines(drawn, above);
                    if let Block::Tool(tool) = block {
                        transcript.send_away(tool);
                    }
                }
                block => self.finish(block, None, &transcript.terminal_outputs.lock(), canvas, &mut lines),
            }
        }
        lines
    }

    /// A block, or a part of one, will not change any more.
    fn finish(
        &mut self,
        block: Block,
        after: Option<Above>,
        outputs: &Outputs,
        canvas: &Canvas,
        lines: &mut Vec<Line>,
    ) {
        let number = self.scrollback.number(&block);
        let extent = if canvas.unfold { Extent::Open } else { Extent::Folded(number) };
        let drawn = block::render(&block, extent, outputs, canvas);
        if drawn.is_empty() {
            return;
        }
        let above = after.unwrap_or_else(|| above(&block, &drawn));
        self.scrollback.keep(number, block, &drawn, above);
        self.add(lines, drawn, above);
    }

    /// Lines that stand for themselves, between the blocks.
    pub(crate) fn aside(&mut self, block: Vec<Line>) -> Vec<Line> {
        self.place(block, Above::Block)
    }

    /// Lines that answer what stands above them.
    pub(crate) fn answer(&mut self, block: Vec<Line>) -> Vec<Line> {
        self.place(block, Above::Answer)
    }

    fn place(&mut self, block: Vec<Line>, above: Above) -> Vec<Line> {
        let mut lines = Vec::new();
        self.scrollback.keep_lines(block.clone(), above);
        self.add(&mut lines, block, above);
        lines
    }

    fn add(&mut self, lines: &mut Vec<Line>, block: Vec<Line>, above: Above) {
        if block.is_empty() {
            return;
        }
        if self.above.is_apart(above) {
            lines.push(Line::new());
        }
        lines.extend(block);
        self.above = above;
    }

    /// What of a growing message will not change any more. A thought stays together: it is folded when it is over.
    fn take_part(
        &mut self,
        message: &mut Message,
        outputs: &Outputs,
        canvas: &Canvas,
        lines: &mut Vec<Line>,
    ) {
        let mut at = match message.speaker {
            Speaker::Thought => 0,
            _ => markdown::settled(&message.text),
        };
        let mut fence = None;
        if message.text.len() - at > LONGEST {
            at = forced_split(&message.text, at);
            fence = message.text.get(..at).and_then(markdown::open_fence).map(str::to_owned);
        }
        if at == 0 {
            return;
        }
        let rest = message.text.split_off(at);
        let text = std::mem::replace(&mut message.text, rest);
        let part = Message { text, id: None, done: true, ..*message };
        let after = if fence.is_some() { Above::Fence } else { Above::Block };
        self.finish(Block::Message(part), Some(after), outputs, canvas, lines);
        if let Some(fence) = fence {
            // The rest is read as code too.
            message.text.insert_str(0, &format!("{fence}\n"));
        }
    }

    /// What stays: blocks that still change, and what follows them.
    pub(crate) fn live(&self, transcript: &Transcript, canvas: &Canvas) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut standing = self.above;
        let outputs = transcript.terminal_outputs.lock();
        for block in &transcript.blocks {
            let drawn = block::render(block, Extent::Live, &outputs, canvas);
            if drawn.is_empty() {
                continue;
            }
            let next = above(block, &drawn);
            if standing.is_apart(next) {
                lines.push(Line::new());
            }
            lines.extend(drawn);
            standing = next;
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

/// What a block is to the one below it.
fn above(block: &Block, lines: &[Line]) -> Above {
    match block {
        Block::Tool(_) if lines.len() == 1 => Above::Row,
        Block::Notice(..) => Above::Note,
        _ => Above::Block,
    }
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

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
