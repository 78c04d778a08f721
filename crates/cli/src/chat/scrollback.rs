//! Items that went up into the terminal's scrollback and can be drawn again, in another width or in
//! full.
//!
//! The terminal's own scrollback cannot be changed. But its last screen can be redrawn, and `/show`
//! draws items again below.

use std::collections::VecDeque;

use attache::wire::Patch;
use attache_transcript::{Item, ItemKind, Role};

use super::item::{self, Extent};
use super::transcript::message_text;
use super::view::{Above, Canvas};
use crate::client_services::terminals::Outputs;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, cut_line, wrap};

/// Bounds of the entries by number and bytes; the oldest are forgotten.
const MAX_ENTRIES: usize = 400;
const MAX_BYTES: usize = 2 << 20;
/// A larger item is kept as it was drawn.
const MAX_ITEM: usize = 1 << 20;
/// Bytes of an item beside its content.
const ITEM_SIZE: usize = 256;
/// Entries that `/show` lists.
const MAX_LISTED: usize = 20;

#[derive(Debug)]
enum Drawable {
    Item(Item),
    /// Lines whose source is gone.
    Lines(Vec<Line>),
}

#[derive(Debug)]
struct Entry {
    /// Number for `/show`.
    number: Option<usize>,
    content: Drawable,
    /// The kind of its lines.
    above: Above,
    size: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Scrollback {
    entries: VecDeque<Entry>,
    size: usize,
    numbered: usize,
}

impl Scrollback {
    /// Returns the number of an item that is about to be kept, if `/show` can show it.
    pub(crate) fn next_number(&mut self, item: &Item) -> Option<usize> {
        let showable = match &item.kind {
            ItemKind::Message(message) => match message.role {
                Role::Thought => true,
                // A prompt that may be folded.
                Role::User => {
                    let text = message_text(message);
                    text.len() > 1_000 || text.lines().nth(9).is_some()
                }
                Role::Agent => false,
            },
            ItemKind::Compaction(compaction) => matches!(compaction.summary, Patch::Set(_)),
            kind => matches!(kind, ItemKind::ToolCall(_) | ItemKind::Terminal(_)),
        };
        self.numbered += usize::from(showable);
        showable.then_some(self.numbered)
    }

    /// Keeps an item that was drawn as `lines`.
    pub(crate) fn keep(&mut self, number: Option<usize>, item: Item, lines: &[Line], above: Above) {
        let size = ITEM_SIZE + item.size();
        if size > MAX_ITEM {
            return self.keep_lines(lines.to_vec(), above);
        }
        self.push(Entry { number, content: Drawable::Item(item), above, size });
    }

    pub(crate) fn keep_lines(&mut self, lines: Vec<Line>, above: Above) {
        let size = lines.iter().flat_map(|line| &line.spans).map(|span| span.text.len() + 64).sum();
        self.push(Entry { number: None, content: Drawable::Lines(lines), above, size });
    }

    fn push(&mut self, entry: Entry) {
        self.size += entry.size;
        self.entries.push_back(entry);
        while self.entries.len() > MAX_ENTRIES || (self.size > MAX_BYTES && self.entries.len() > 1) {
            self.size -= self.entries.pop_front().map_or(0, |entry| entry.size);
        }
    }

    /// Draws the last entries for this canvas, as many lines as fit into `rows`. Unfolded, an entry
    /// that begins on the screen is drawn to its end.
    pub(crate) fn last(&self, rows: usize, outputs: &Outputs, canvas: &Canvas) -> Vec<Line> {
        let folded = Canvas { unfold: false, ..canvas.clone() };
        let (mut from, mut count) = (self.entries.len(), 0);
        for (at, entry) in self.entries.iter().enumerate().rev() {
            if count >= rows {
                break;
            }
            count += entry.lines(outputs, &folded).len() + 1;
            from = at;
        }
        let mut lines = Vec::new();
        let mut above = Above::Nothing;
        for entry in self.entries.iter().skip(from) {
            let next = entry.lines(outputs, canvas);
            if above.is_apart(entry.above) && !next.is_empty() {
                lines.push(Line::new());
            }
            lines.extend(next);
            above = entry.above;
        }
        if !canvas.unfold {
            lines.drain(..lines.len().saturating_sub(rows));
        }
        lines
    }

    /// Draws an item with all its details. The error is for the user.
    pub(crate) fn show(
        &self,
        number: usize,
        outputs: &Outputs,
        canvas: &Canvas,
    ) -> Result<Vec<Line>, &'static str> {
        let entry = self.entries.iter().find(|entry| entry.number == Some(number));
        match entry.map(|entry| &entry.content) {
            Some(Drawable::Item(item)) => Ok(item::render(item, Extent::Details, outputs, canvas)),
            _ if number > 0 && number <= self.numbered => Err("too old, no longer kept"),
            _ => Err("no such block; /show lists them"),
        }
    }

    /// Lists the items that `/show` can show, the newest last.
    pub(crate) fn list(&self, outputs: &Outputs, canvas: &Canvas) -> Vec<Line> {
        let numbered = self.entries.iter().rev().filter_map(|entry| match (&entry.content, entry.number) {
            (Drawable::Item(item), Some(number)) => Some((number, item)),
            _ => None,
        });
        let row = |(number, item): (usize, &Item)| {
            let mut line = Line::styled(format!("  {number} "), Style::of(Colour::Cyan));
            match &item.kind {
                ItemKind::ToolCall(call) => line.append(&item::tool_row(call, false, canvas)),
                ItemKind::Terminal(number) => {
                    let command = outputs.by_number(*number).map_or("", |output| &output.command);
                    line.push(format!("$ {}", clean(command, canvas.look).replace('\n', " ")), Style::PLAIN);
                }
                ItemKind::Message(message) => {
                    let text = clean(&message_text(message), canvas.look).replace('\n', " ");
                    let who = if message.role == Role::User { "prompt" } else { "thought" };
                    line.push(format!("{who}: {text}"), Style::DIM);
                }
                ItemKind::Compaction(_) => line.push("compaction", Style::DIM),
                _ => {}
            }
            cut_line(&line, canvas.columns, canvas.look)
        };
        let mut lines: Vec<Line> = numbered.take(MAX_LISTED).map(row).collect();
        lines.reverse();
        lines
    }
}

impl Entry {
    fn lines(&self, outputs: &Outputs, canvas: &Canvas) -> Vec<Line> {
        match &self.content {
            Drawable::Item(item) => {
                let extent = if canvas.unfold { Extent::Open } else { Extent::Folded(self.number) };
                item::render(item, extent, outputs, canvas)
            }
            Drawable::Lines(lines) => lines.iter().flat_map(|line| rewrap(line, canvas)).collect(),
        }
    }
}

/// Wraps a line that was drawn for another width.
fn rewrap(line: &Line, canvas: &Canvas) -> Vec<Line> {
    if line.width() <= canvas.columns {
        return vec![line.clone()];
    }
    // The indent stays if there is room.
    let text = line.plain();
    let indent = (text.len() - text.trim_start_matches(' ').len()).min(canvas.columns / 4);
    wrap(line, canvas.columns, &Line::new(), &Line::from(" ".repeat(indent)))
}
