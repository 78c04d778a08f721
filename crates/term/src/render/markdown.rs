//! Markdown for the terminal, also while the text still grows.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::highlight::Highlighter;
use super::link::Link;
use super::style::{Colour, Line, Style};
use super::table::{Align, Table};
use super::text::{Look, clean, reveal, wrap, wrap_hard};

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS)
}

/// Returns how much of a growing text will not change: everything before its last block. An
/// incomplete line can still become part of the block before it.
pub fn settled(text: &str) -> usize {
    let text = text.rfind('\n').and_then(|at| text.get(..=at)).unwrap_or_default();
    let mut depth = 0_usize;
    let mut last = 0;
    for (event, range) in parser(text).into_offset_iter() {
        if depth == 0 && !matches!(event, Event::End(_)) {
            last = range.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    // A block starts at its line.
    text.get(..last).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

/// Returns the line that opened a fence, if the text ends inside one.
pub fn open_fence(text: &str) -> Option<&str> {
    let mut open: Option<(&str, &str)> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let marker = if trimmed.starts_with("```") { '`' } else { '~' };
        let length = trimmed.len() - trimmed.trim_start_matches(marker).len();
        if length < 3 {
            continue;
        }
        let fence = trimmed.get(..length).unwrap_or_default();
        match open {
            None => open = Some((line, fence)),
            Some((_, opened)) if fence.starts_with(opened) && trimmed.trim_end().len() == length => {
                open = None
            }
            Some(_) => {}
        }
    }
    open.map(|(line, _)| line)
}

/// Whether a line only begins or ends a block of code.
pub fn is_fence(line: &str) -> bool {
    let info = line.trim().strip_prefix("```");
    info.is_some_and(|info| info.chars().all(|c| c.is_ascii_alphanumeric() || "+-_.".contains(c)))
}

/// Renders a text. `base` is the default style.
pub fn render(text: &str, columns: usize, base: Style, look: Look) -> Vec<Line> {
    let text = clean(text, look);
    let mut writer = Writer::new(columns, base, look);
    for event in parser(&text) {
        writer.event(event);
    }
    writer.finish()
}

/// A container of lines: a list item or a quotation.
struct Frame {
    /// The prefix of the next line; `rest` is that of the lines after it.
    first: Line,
    rest: Line,
}

/// A list: the number of the next item, if any, and whether empty lines separate items.
struct List {
    number: Option<u64>,
    loose: bool,
    begun: bool,
}

struct Writer {
    columns: usize,
    base: Style,
    look: Look,
    lines: Vec<Line>,
    inline: Line,
    styles: Vec<Style>,
    frames: Vec<Frame>,
    lists: Vec<List>,
    /// Whether the next block has an empty line before it.
    apart: bool,
    code: Option<(Highlighter, String)>,
    table: Option<Table>,
    link: Option<(String, usize)>,
}

impl Writer {
    fn new(columns: usize, base: Style, look: Look) -> Writer {
        Writer {
            columns,
            base,
            look,
            lines: Vec::new(),
            inline: Line::new(),
            styles: Vec::new(),
            frames: Vec::new(),
            lists: Vec::new(),
            apart: false,
            code: None,
            table: None,
            link: None,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.base)
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                // Entities can stand for anything.
                None => self.inline.push(clean(&text, self.look), self.style()),
            },
            Event::Code(text) => self.inline.push(text.into_string(), self.style().colour(Colour::Cyan)),
            Event::Html(text) | Event::InlineHtml(text) => self.html(&text),
            // Models mean the ends of their lines.
            Event::SoftBreak | Event::HardBreak => self.flush(),
            Event::Rule => {
                self.gap();
                let dashes = self.look.pick("─", "-").repeat(self.columns.min(40));
                self.line(&Line::styled(dashes, Style::DIM));
                self.apart = true;
            }
            Event::TaskListMarker(done) => {
                let mark = match (done, self.look.unicode) {
                    (true, true) => "☑ ",
                    (false, true) => "☐ ",
                    (true, false) => "[x] ",
                    (false, false) => "[ ] ",
                };
                self.inline.push(mark, self.style());
            }
            _ => {}
        }
    }

    /// Shows tags as text: an agent that writes `<T>` without quotes means the text.
    fn html(&mut self, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 && !self.inline.spans.is_empty() {
                self.flush();
            }
            self.inline.push(line, self.style());
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let style = self.style();
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                let heading = match level {
                    HeadingLevel::H1 => style.bold().underline(),
                    HeadingLevel::H2 => style.bold(),
                    _ => style.bold().dim(),
                };
                self.styles.push(heading.colour(Colour::Blue));
            }
            Tag::BlockQuote(_) => {
                self.gap();
                let bar = Line::styled(self.look.pick("▌ ", "> "), Style::DIM);
                self.frames.push(Frame { first: bar.clone(), rest: bar });
                self.styles.push(style.italic());
            }
            Tag::CodeBlock(kind) => {
                self.gap();
                let language = match &kind {
                    CodeBlockKind::Fenced(name) => &**name,
                    CodeBlockKind::Indented => "",
                };
                self.code = Some((Highlighter::new(language), String::new()));
            }
            Tag::List(number) => {
                if self.lists.is_empty() {
                    self.gap();
                } else {
                    self.flush();
                    self.apart = false;
                }
                self.lists.push(List { number, loose: false, begun: false });
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.styles.push(style.italic()),
            Tag::Strong => self.styles.push(style.bold()),
            Tag::Strikethrough => self.styles.push(style.strike()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.styles.push(style.underline().link(Link::to_page(&dest_url)));
                self.link = Some((dest_url.into_string(), self.inline.plain().len()));
            }
            Tag::Table(align) => {
                self.gap();
                let align = align.iter().map(|align| match align {
                    Alignment::Right => Align::Right,
                    Alignment::Center => Align::Centre,
                    _ => Align::Left,
                });
                self.table = Some(Table { align: align.collect(), rows: Vec::new() });
            }
            Tag::TableHead => {
                self.styles.push(style.bold());
                self.row();
            }
            Tag::TableRow => self.row(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                if let Some(list) = self.lists.last_mut() {
                    list.loose = true;
                }
                self.apart = true;
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                let style = Style::BOLD.colour(Colour::Blue);
                // Headings show without colours and without bold too.
                if !self.look.colours {
                    self.inline = Line::styled("# ", style).with(self.inline.plain(), style);
                }
                self.flush();
                self.apart = true;
            }
            TagEnd::HtmlBlock => {
                self.flush();
                self.apart = true;
            }
            TagEnd::BlockQuote(_) => {
                self.styles.pop();
                self.frames.pop();
                self.apart = true;
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.apart = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                self.frames.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                let room = self.room();
                for line in table.render(room, self.look) {
                    self.line(&line);
                }
                self.apart = true;
            }
            TagEnd::TableHead => {
                self.styles.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            _ => {}
        }
    }

    fn row(&mut self) {
        if let Some(table) = &mut self.table {
            table.rows.push(Vec::new());
        }
    }

    fn item(&mut self) {
        self.flush();
        let Some(list) = self.lists.last_mut() else { return };
        self.apart = list.loose && list.begun;
        list.begun = true;
        let marker = match &mut list.number {
            Some(number) => {
                let marker = format!("{number}. ");
                *number += 1;
                marker
            }
            None => self.look.pick("• ", "- ").to_owned(),
        };
        self.gap();
        let rest = Line::from(" ".repeat(super::text::width(&marker)));
        self.frames.push(Frame { first: Line::styled(marker, Style::DIM), rest });
        self.apart = false;
    }

    /// Appends the address of a link unless the text is the same.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some((url, from)) = self.link.take() else { return };
        let text = self.inline.plain();
        let shown = text.get(from..).unwrap_or_default();
        let same = url == shown || url.strip_prefix("mailto:") == Some(shown);
        if !same && !url.is_empty() {
            // Nothing of an address may be hidden.
            self.inline.push(" (", Style::DIM);
            let shown = reveal(&url, self.look).replace('\n', " ");
            self.inline.push(shown, Style::DIM.link(Link::to_page(&url)));
            self.inline.push(")", Style::DIM);
        }
    }

    fn code_block(&mut self) {
        let Some((mut highlighter, code)) = self.code.take() else { return };
        for line in code.lines() {
            let line = highlighter.line(line);
            let (first, rest) = self.prefixes();
            let (first, rest) = (first.with("  ", Style::PLAIN), rest.with("  ", Style::PLAIN));
            self.lines.extend(wrap_hard(&line, self.columns, &first, &rest));
        }
        self.apart = true;
    }

    /// Returns the prefixes of the next line and of its continuation lines.
    fn prefixes(&mut self) -> (Line, Line) {
        let (mut first, mut rest) = (Line::new(), Line::new());
        for frame in &mut self.frames {
            first.append(&std::mem::replace(&mut frame.first, frame.rest.clone()));
            rest.append(&frame.rest);
        }
        (first, rest)
    }

    fn room(&self) -> usize {
        let prefix: usize = self.frames.iter().map(|frame| frame.rest.width()).sum();
        self.columns.saturating_sub(prefix).max(1)
    }

    fn line(&mut self, line: &Line) {
        let (first, rest) = self.prefixes();
        self.lines.extend(wrap(line, self.columns, &first, &rest));
    }

    fn flush(&mut self) {
        if !self.inline.spans.is_empty() {
            let line = std::mem::take(&mut self.inline);
            self.line(&line);
        }
    }

    /// Begins a block.
    fn gap(&mut self) {
        self.flush();
        if self.apart && !self.lines.is_empty() {
            let mut line = Line::new();
            for frame in &self.frames {
                line.append(&frame.rest);
            }
            self.lines.push(line);
        }
        self.apart = false;
    }

    fn finish(mut self) -> Vec<Line> {
        self.flush();
        self.lines
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
