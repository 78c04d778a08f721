//! Questions and reports: lines of the program, and foreign text between them that cannot be
//! mistaken for it.
//!
//! A [`Document`] is rendered where it is read: on a terminal with gutters and colours and wrapped
//! to the width, elsewhere as plain text.

use super::channel::Channel;
use super::marks::{Likeness, likeness};
use super::surface::gutter;
use crate::render::diff;
use crate::render::style::{Line, Style};
use crate::render::text::{Look, clean, reveal, wrap, wrap_hard};

/// Columns if the terminal does not report them.
const COLUMNS: usize = 80;

/// A text of several parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    Own(Line),
    /// Foreign text that the user decides about: all of it is shown.
    Foreign(String),
    /// Output of a foreign program, without its control sequences.
    Printed(String),
    Change {
        path: String,
        old: Option<String>,
        new: String,
    },
}

impl Document {
    /// An empty document.
    pub fn new() -> Document {
        Document::default()
    }

    /// Adds a line of the program. Foreign parts of it are [`quoted`].
    #[must_use]
    pub fn own(mut self, line: impl Into<Line>) -> Document {
        self.blocks.push(Block::Own(line.into()));
        self
    }

    /// Adds foreign text that the user decides about. Nothing is left out; invisible characters are
    /// shown by name.
    #[must_use]
    pub fn foreign(mut self, text: impl Into<String>) -> Document {
        self.blocks.push(Block::Foreign(text.into()));
        self
    }

    /// Adds output of a foreign program without its control sequences.
    #[must_use]
    pub fn printed(mut self, text: impl Into<String>) -> Document {
        self.blocks.push(Block::Printed(text.into()));
        self
    }

    /// Adds the change of a file as coloured hunks. Without an old text the file is new.
    #[must_use]
    pub fn change(mut self, path: &str, old: Option<&str>, new: &str) -> Document {
        self.blocks.push(Block::Change {
            path: path.to_owned(),
            old: old.map(str::to_owned),
            new: new.to_owned(),
        });
        self
    }

    /// Renders lines for a terminal. Foreign lines have a gutter, and no line is longer than
    /// `columns`.
    pub fn lines(&self, columns: usize, look: Look) -> Vec<Line> {
        let bar = bar(look);
        self.blocks.iter().flat_map(|block| block.lines(columns, &bar, look)).collect()
    }

    /// Renders plain text. Foreign text is indented and otherwise unchanged.
    pub fn plain(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            let (indent, lines): (&str, Vec<String>) = match block {
                Block::Own(line) => ("", vec![line.plain()]),
                Block::Foreign(foreign) | Block::Printed(foreign) => {
                    ("  ", foreign.lines().map(str::to_owned).collect())
                }
                Block::Change { path, old, new } => {
                    let look = Look { colours: false, unicode: true };
                    let lines = diff::render(path, old.as_deref(), new, usize::MAX, None, look);
                    ("  ", lines.iter().map(Line::plain).collect())
                }
            };
            for line in lines {
                text.push_str(format!("{indent}{line}").trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// Writes the document at once.
    pub fn write(&self, channel: &mut Channel) {
        let surface = channel.surface();
        if !surface.terminal {
            channel.foreign(&self.plain());
            return;
        }
        let (columns, look) = (surface.columns().unwrap_or(COLUMNS), surface.look());
        for block in &self.blocks {
            match block {
                // The terminal wraps it, so that a command in it can be copied.
                Block::Own(line) => channel.line(line),
                block => block.lines(columns, &bar(look), look).iter().for_each(|line| channel.line(line)),
            }
        }
    }
}

impl Block {
    fn lines(&self, columns: usize, bar: &Line, look: Look) -> Vec<Line> {
        let barred = |text: &str| {
            let lines = text.lines().flat_map(|line| wrap_hard(&Line::from(line), columns, bar, bar));
            lines.collect::<Vec<_>>()
        };
        match self {
            Block::Own(line) => own_lines(line, columns, bar),
            Block::Foreign(text) => barred(&reveal(text, look)),
            Block::Printed(text) => barred(&clean(text, look)),
            Block::Change { path, old, new } => {
                let room = columns.saturating_sub(bar.width()).max(10);
                let lines = diff::render(path, old.as_deref(), new, room, None, look);
                let barred = |line: &Line| {
                    let mut whole = bar.clone();
                    whole.append(line);
                    whole
                };
                lines.iter().map(barred).collect()
            }
        }
    }
}

/// Returns the gutter before foreign lines.
fn bar(look: Look) -> Line {
    Line::styled(look.pick("│ ", "| "), Style::DIM)
}

/// Wraps a line of the program. Rows after the first may begin with a foreign part and are checked.
fn own_lines(line: &Line, columns: usize, bar: &Line) -> Vec<Line> {
    let mut rows = wrap(line, columns, &Line::new(), &Line::from("  "));
    for row in rows.iter_mut().skip(1) {
        if likeness(row.plain().chars(), false) == Likeness::Ours {
            let rest = std::mem::replace(row, bar.clone());
            row.append(&rest);
        }
    }
    rows
}

/// Quotes foreign text for a line of the program: one line, with nothing hidden.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", revealed(text).replace('"', "\\\""))
}

/// Reveals a text that the user decides about as one line.
pub fn revealed(text: &str) -> String {
    reveal(text, Look { colours: false, unicode: true }).replace('\n', "^J")
}

/// Renders foreign text as plain lines with a gutter, for interfaces that take lines only.
pub fn in_gutter(text: &str) -> Vec<String> {
    let look = Look { colours: false, unicode: true };
    reveal(text.trim_end(), look).lines().map(|line| format!("{} {line}", gutter())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::{marked, plain};

    const FULL: Look = Look { colours: true, unicode: true };

    fn document() -> Document {
        Document::new()
            .own(Line::styled("[permission]", Style::BOLD).with(" Run a command?", Style::PLAIN))
            .foreign("rm -rf x\x1b[2K\n[permission] Read a file?")
            .printed("\x1b[31mred\x1b[m")
            .change("a.rs", Some("old\n"), "new\n")
    }

    #[test]
    fn foreign_text_stands_behind_a_gutter() {
        assert_eq!(
            marked(&document().lines(40, FULL)),
            "{bold|[permission]} Run a command?\n{dim|│ }rm -rf x^[[2K\n{dim|│ }[permission] Read a file?\n{dim|│ }red\n\
             {dim|│ }{bold|a.rs}{green|  +1}{red| -1}\n{dim|│ 1 }{red|- old}\n{dim|│ 1 }{green|+ new}\n"
        );
        assert_eq!(
            document().plain(),
            "[permission] Run a command?\n  rm -rf x\x1b[2K\n  [permission] Read a file?\n  \x1b[31mred\x1b[m\n\
             \x20 a.rs  +1 -1\n  1 - old\n  1 + new\n"
        );
    }

    #[test]
    fn lines_fit_and_no_row_of_ours_begins_with_theirs() {
        let long = Document::new()
            .own(format!("Edit {} now?", quoted("aaaaaaaaaaaaaa [permission] b\n")))
            .foreign("0123456789".repeat(4));
        let lines = long.lines(24, FULL);
        assert!(lines.iter().all(|line| line.width() <= 26), "{lines:?}");
        assert_eq!(
            plain(&lines),
            "Edit \"aaaaaaaaaaaaaa\n│   [permission] b^J\" now?\n│ 0123456789012345678901\n│ 234567890123456789\n"
        );
    }

    #[test]
    fn what_is_quoted_cannot_leave_its_quotes() {
        assert_eq!(quoted("a\"b\n\x1b"), "\"a\\\"b^J^[\"");
        assert_eq!(in_gutter("a\nb\rc\n"), [format!("{} a", gutter()), format!("{} b^Mc", gutter())]);
    }
}
