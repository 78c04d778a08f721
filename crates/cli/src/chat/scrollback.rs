//! Blocks in the terminal's scrollback that may be drawn again: in another width, or in full.
//!
//! The terminal's own history cannot be changed, but its last screen can be redrawn, and blocks that are
//! still kept can be shown again below.

use std::collections::VecDeque;

use attache::client::Speaker;
use attache::wire::v1::ToolCallContent;

use super::block::{self, Extent};
use super::transcript::{Block, describe};
use super::view::{Above, Canvas};
use crate::client_services::terminals::Outputs;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, cut_line, wrap};

/// Most pieces and bytes that are kept; the oldest are dropped.
const PIECES: usize = 400;
const BYTES: usize = 2 << 20;
/// A larger piece is kept only as its drawn lines.
const LARGEST: usize = 1 << 20;
/// Pieces that `/show` lists.
const LISTED: usize = 20;

#[derive(Debug)]
enum What {
    Block(Block),
    /// Lines without a block behind them.
    Lines(Vec<Line>),
}

#[derive(Debug)]
struct Piece {
    /// The number for `/show`.
    number: Option<usize>,
    what: What,
    /// Decides about an empty line before the next piece.
    above: Above,
    size: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Scrollback {
    pieces: VecDeque<Piece>,
    size: usize,
    numbered: usize,
}

impl Scrollback {
    /// Numbers a block if it is of a kind that can be shown in full.
    pub(crate) fn number(&mut self, block: &Block) -> Option<usize> {
        let showable = match block {
            Block::Message(message) => match message.speaker {
                Speaker::Thought => true,
                // A prompt that may be folded.
                Speaker::User => message.text.len() > 1_000 || message.text.lines().nth(9).is_some(),
                _ => false,
            },
            Block::Tool(_) | Block::Terminal(_) => true,
            Block::Notice(..) => false,
        };
        self.numbered += usize::from(showable);
        showable.then_some(self.numbered)
    }

    /// Keeps a block and, if it is too large, only its drawn `lines`.
    pub(crate) fn keep(&mut self, number: Option<usize>, block: Block, lines: &[Line], above: Above) {
        let size = weight(&block);
        if size > LARGEST {
            return self.keep_lines(lines.to_vec(), above);
        }
        self.push(Piece { number, what: What::Block(block), above, size });
    }

    pub(crate) fn keep_lines(&mut self, lines: Vec<Line>, above: Above) {
        let size = lines.iter().flat_map(|line| &line.spans).map(|span| span.text.len() + 64).sum();
        self.push(Piece { number: None, what: What::Lines(lines), above, size });
    }

    fn push(&mut self, piece: Piece) {
        self.size += piece.size;
        self.pieces.push_back(piece);
        while self.pieces.len() > PIECES || (self.size > BYTES && self.pieces.len() > 1) {
            self.size -= self.pieces.pop_front().map_or(0, |piece| piece.size);
        }
    }

    /// Draws the last pieces for this canvas, as many lines as fit into `rows`. Unfolded, a piece that begins
    /// on the screen is drawn to its end.
    pub(crate) fn last(&self, rows: usize, outputs: &Outputs, canvas: &Canvas) -> Vec<Line> {
        let folded = Canvas { unfold: false, ..canvas.clone() };
        let (mut from, mut count) = (self.pieces.len(), 0);
        for (at, piece) in self.pieces.iter().enumerate().rev() {
            if count >= rows {
                break;
            }
            count += piece.lines(outputs, &folded).len() + 1;
            from = at;
        }
        let mut lines = Vec::new();
        let mut above = Above::Nothing;
        for piece in self.pieces.iter().skip(from) {
            let next = piece.lines(outputs, canvas);
            if above.is_apart(piece.above) && !next.is_empty() {
                lines.push(Line::new());
            }
            lines.extend(next);
            above = piece.above;
        }
        if !canvas.unfold {
            lines.drain(..lines.len().saturating_sub(rows));
        }
        lines
    }

    /// Draws a block in full. The error is a message for the user.
    pub(crate) fn whole(
        &self,
        number: usize,
        outputs: &Outputs,
        canvas: &Canvas,
    ) -> Result<Vec<Line>, &'static str> {
        let piece = self.pieces.iter().find(|piece| piece.number == Some(number));
        match piece.map(|piece| &piece.what) {
            Some(What::Block(block)) => Ok(block::render(block, Extent::Whole, outputs, canvas)),
            _ if number > 0 && number <= self.numbered => Err("too old, no longer kept"),
            _ => Err("no such block; /show lists them"),
        }
    }

    /// Lists the blocks that can be shown in full, the newest last.
    pub(crate) fn list(&self, outputs: &Outputs, canvas: &Canvas) -> Vec<Line> {
        let numbered = self.pieces.iter().rev().filter_map(|piece| match (&piece.what, piece.number) {
            (What::Block(block), Some(number)) => Some((number, block)),
            _ => None,
        });
        let row = |(number, block): (usize, &Block)| {
            let mut line = Line::styled(format!("  {number} "), Style::of(Colour::Cyan));
            match block {
                Block::Tool(tool) => line.append(&block::tool_row(tool, canvas)),
                Block::Terminal(number) => {
                    let command = outputs.by_number(*number).map_or("", |output| &output.command);
                    line.push(format!("$ {}", clean(command, canvas.look).replace('\n', " ")), Style::PLAIN);
                }
                Block::Message(message) => {
                    let text = clean(&message.text, canvas.look).replace('\n', " ");
                    let who = if message.speaker == Speaker::User { "prompt" } else { "thought" };
                    line.push(format!("{who}: {text}"), Style::DIM);
                }
                Block::Notice(..) => {}
            }
            cut_line(&line, canvas.columns, canvas.look)
        };
        let mut lines: Vec<Line> = numbered.take(LISTED).map(row).collect();
        lines.reverse();
        lines
    }
}

impl Piece {
    fn lines(&self, outputs: &Outputs, canvas: &Canvas) -> Vec<Line> {
        match &self.what {
            What::Block(block) => {
                let extent = if canvas.unfold { Extent::Open } else { Extent::Folded(self.number) };
                block::render(block, extent, outputs, canvas)
            }
            What::Lines(lines) => lines.iter().flat_map(|line| again(line, canvas)).collect(),
        }
    }
}

/// Wraps a line that was drawn for another width.
fn again(line: &Line, canvas: &Canvas) -> Vec<Line> {
    if line.width() <= canvas.columns {
        return vec![line.clone()];
    }
    // The indent stays, if there is room.
    let text = line.plain();
    let indent = (text.len() - text.trim_start_matches(' ').len()).min(canvas.columns / 4);
    wrap(line, canvas.columns, &Line::new(), &Line::from(" ".repeat(indent)))
}

/// Estimates the bytes of a block.
fn weight(block: &Block) -> usize {
    const BASE: usize = 256;
    BASE + match block {
        Block::Message(message) => message.text.len(),
        Block::Notice(_, text) => text.len(),
        Block::Terminal(_) => 0,
        Block::Tool(tool) => {
            let content = tool.content.iter().map(|content| match content {
                ToolCallContent::Diff(diff) => {
                    diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len)
                }
                ToolCallContent::Content(content) => describe(&content.content).len(),
                _ => BASE,
            });
            let raw = [&tool.raw_input, &tool.raw_output];
            content.sum::<usize>() + raw.iter().copied().flatten().map(|json| json.get().len()).sum::<usize>()
        }
    }
}
