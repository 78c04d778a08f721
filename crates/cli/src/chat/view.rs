//! From items to lines. Finished items go up into the terminal's own scrollback; items that still
//! change stay below and are redrawn.

use std::path::{Path, PathBuf};

use attache::client::{PlanStatus, plan_status};
use attache::wire::v1::{PlanEntry, PlanEntryPriority, PlanEntryStatus};
use attache_transcript::{Item, ItemKind, Message, PlanBody, Role};

use super::item::{self, Extent, indented};
use super::scrollback::Scrollback;
use super::transcript::{Transcript, message_text};
use crate::client_services::terminals::Outputs;
use attache_term::render::markdown;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{Look, clean, width, wrap};

/// A message that does not end is split at this length, so that drawing stays cheap and memory
/// bounded.
const MAX_OPEN_TEXT: usize = 16 << 10;

/// The frame of a spinner that does not move.
const STILL: usize = usize::MAX;

/// Size and look of the terminal that lines are drawn for.
#[derive(Debug, Clone)]
pub(crate) struct Canvas {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) look: Look,
    /// Working directory; paths inside are shown relative to it.
    pub(crate) cwd: PathBuf,
    /// Frame of the spinner.
    pub(crate) beat: usize,
    /// Show long texts to their end.
    pub(crate) unfold: bool,
}

impl Canvas {
    /// A canvas for lines that go up before their item has ended: a spinner would stand still
    /// there.
    fn still(&self) -> Canvas {
        Canvas { beat: STILL, ..self.clone() }
    }

    pub(crate) fn spinner(&self) -> &'static str {
        if self.beat == STILL {
            return self.look.pick("…", "~");
        }
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

/// The kind of the lines above, which decides whether an empty line follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Above {
    #[default]
    Nothing,
    /// Lines with an empty line below.
    Block,
    /// A tool call of one line; another may follow at once.
    Row,
    /// A notice; another may follow at once.
    Note,
    /// Code whose fence is still open: nothing may come between.
    Fence,
    /// The answer to the lines above.
    Answer,
}

impl Above {
    /// Whether an empty line comes between this kind and the next.
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

/// Decides which items go up and which stay.
#[derive(Debug, Default)]
pub(crate) struct View {
    above: Above,
    pub(crate) scrollback: Scrollback,
}

impl View {
    /// Takes the finished items out of the transcript and returns their lines. If more than `room`
    /// lines would stay, the items above the last one go too, finished or not.
    pub(crate) fn settle(&mut self, transcript: &mut Transcript, canvas: &Canvas, room: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        loop {
            let ready = match transcript.model.front().map(|item| &item.kind) {
                None => break,
                // The question itself is drawn elsewhere.
                Some(ItemKind::Question(_)) => true,
                Some(_) => !transcript.model.is_open(transcript.model.start()),
            };
            if !ready {
                self.take_part(transcript, canvas, &mut lines);
            }
            let full =
                !ready && transcript.model.items().len() > 1 && self.live(transcript, canvas).len() > room;
            if !ready && !full {
                break;
            }
            if let Some(item) = transcript.model.front()
                && let ItemKind::ToolCall(call) = &item.kind
            {
                let mut outputs = transcript.terminal_outputs.lock();
                call.terminals().for_each(|id| outputs.mark_shown(id));
                // The question shows it; its end is drawn when it comes.
                if !call.is_finished() && call.asked {
                    drop(outputs);
                    transcript.retire_front();
                    continue;
                }
                // The turn has ended, the call has not; its end is a new item.
                if call.interrupted && !call.is_final() && transcript.tasks.is_detached(call.id()) {
                    drop(outputs);
                    let row = vec![item::background_row(call, canvas)];
                    self.add(&mut lines, row.clone(), Above::Row);
                    self.scrollback.keep_lines(row, Above::Row);
                    transcript.model.pop_front();
                    continue;
                }
                if !call.is_finished() {
                    let drawn = item::render(item, Extent::Live, &outputs, &canvas.still());
                    drop(outputs);
                    let above = above(item, &drawn);
                    self.add(&mut lines, drawn.clone(), above);
                    self.scrollback.keep_lines(drawn, above);
                    transcript.retire_front();
                    continue;
                }
            }
            if let Some(item) = transcript.model.pop_front() {
                self.finish(item, None, &transcript.terminal_outputs.lock(), canvas, &mut lines);
            }
        }
        lines
    }

    /// Draws an item, or a part of one, that does not change any more.
    fn finish(
        &mut self,
        item: Item,
        after: Option<Above>,
        outputs: &Outputs,
        canvas: &Canvas,
        lines: &mut Vec<Line>,
    ) {
        let number = self.scrollback.next_number(&item);
        let extent = if canvas.unfold { Extent::Open } else { Extent::Folded(number) };
        let drawn = item::render(&item, extent, outputs, canvas);
        if drawn.is_empty() {
            return;
        }
        let above = after.unwrap_or_else(|| above(&item, &drawn));
        self.scrollback.keep(number, item, &drawn, above);
        self.add(lines, drawn, above);
    }

    /// Places lines between the items.
    pub(crate) fn aside(&mut self, new: Vec<Line>) -> Vec<Line> {
        self.place(new, Above::Block)
    }

    /// Places lines that answer the lines above.
    pub(crate) fn answer(&mut self, new: Vec<Line>) -> Vec<Line> {
        self.place(new, Above::Answer)
    }

    fn place(&mut self, new: Vec<Line>, above: Above) -> Vec<Line> {
        let mut lines = Vec::new();
        self.scrollback.keep_lines(new.clone(), above);
        self.add(&mut lines, new, above);
        lines
    }

    fn add(&mut self, lines: &mut Vec<Line>, new: Vec<Line>, above: Above) {
        if new.is_empty() {
            return;
        }
        if self.above.is_apart(above) {
            lines.push(Line::new());
        }
        lines.extend(new);
        self.above = above;
    }

    /// Takes out the part of the message in front that does not change any more. A thought stays
    /// together, because it is folded when it is complete.
    fn take_part(&mut self, transcript: &mut Transcript, canvas: &Canvas, lines: &mut Vec<Line>) {
        let Some(Item { session, kind: ItemKind::Message(message) }) = transcript.model.front_mut() else {
            return;
        };
        let mut text = message_text(message);
        let mut at = match message.role {
            Role::Thought => 0,
            _ => markdown::settled(&text),
        };
        let mut fence = None;
        if text.len() - at > MAX_OPEN_TEXT {
            at = forced_split(&text, at);
            fence = text.get(..at).and_then(markdown::open_fence).map(str::to_owned);
        }
        if at == 0 {
            return;
        }
        let mut rest = text.split_off(at);
        if let Some(fence) = &fence {
            // The rest is code too.
            rest.insert_str(0, &format!("{fence}\n"));
        }
        message.content = vec![rest.into()];
        let part = Message { id: None, content: vec![text.into()], ..*message };
        let part = Item { session: session.clone(), kind: ItemKind::Message(part) };
        let after = if fence.is_some() { Above::Fence } else { Above::Block };
        self.finish(part, Some(after), &transcript.terminal_outputs.lock(), canvas, lines);
    }

    /// Draws the items that stay: those that still change, and those after them.
    pub(crate) fn live(&self, transcript: &Transcript, canvas: &Canvas) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut standing = self.above;
        let outputs = transcript.terminal_outputs.lock();
        for (_, item) in transcript.model.items() {
            let drawn = item::render(item, Extent::Live, &outputs, canvas);
            if drawn.is_empty() {
                continue;
            }
            let next = above(item, &drawn);
            if standing.is_apart(next) {
                lines.push(Line::new());
            }
            lines.extend(drawn);
            standing = next;
        }
        lines
    }
}

/// Returns where to split a text that is too long: after a line if there is one, else after a word.
fn forced_split(text: &str, from: usize) -> usize {
    let tail = text.get(from..).unwrap_or_default();
    let cut = tail.rfind('\n').or_else(|| tail.rfind(' ')).map_or(tail.len(), |at| at + 1);
    from + cut
}

/// Returns the kind of an item's lines.
fn above(item: &Item, lines: &[Line]) -> Above {
    match item.kind {
        ItemKind::ToolCall(_) if lines.len() == 1 => Above::Row,
        ItemKind::Notice(_) => Above::Note,
        _ => Above::Block,
    }
}

/// Draws the plans as check lists.
pub(crate) fn plans(transcript: &Transcript, canvas: &Canvas) -> Vec<Line> {
    let mut lines = Vec::new();
    for plan in &transcript.model.plans {
        let text = match &plan.body {
            PlanBody::Entries(entries) if entries.is_empty() => continue,
            PlanBody::Entries(entries) => {
                let done = entries.iter().filter(|entry| plan_status(entry) == PlanStatus::Completed).count();
                lines.push(Line::styled(format!("Plan {done}/{}", entries.len()), Style::BOLD));
                lines.extend(entries.iter().flat_map(|entry| plan_entry(entry, canvas)));
                continue;
            }
            PlanBody::Markdown(text) => text.clone(),
            PlanBody::File(uri) => format!("see {uri}"),
        };
        lines.push(Line::styled("Plan", Style::BOLD));
        let text = markdown::render(&text, canvas.columns.saturating_sub(2), Style::PLAIN, canvas.look);
        lines.extend(indented(text, 2));
    }
    lines
}

fn plan_entry(entry: &PlanEntry, canvas: &Canvas) -> Vec<Line> {
    let look = canvas.look;
    let (mark, style) = match plan_status(entry) {
        PlanStatus::Completed => (look.pick("  ☑ ", "  [x] "), Style::DIM.strike()),
        PlanStatus::Cancelled => (look.pick("  ☒ ", "  [-] "), Style::DIM.strike()),
        PlanStatus::InProgress => (look.pick("  ▸ ", "  [>] "), Style::BOLD),
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
