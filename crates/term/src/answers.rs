//! The answers to a question: a letter, a number, arrows and Enter, or a text that says what to do
//! instead.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::editor::{ActionResult, Editor};
use crate::render::style::{Colour, Line, Style};
use crate::render::text::{Look, reveal, wrap};

/// The row after the answers.
pub const INSTEAD: &str = "No, and do this instead";

/// An answer to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The letter that chooses it.
    pub key: Option<char>,
    /// Its text.
    pub label: String,
    /// Whether it allows what is asked about.
    pub allows: bool,
}

/// The result of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The key has no meaning.
    Ignored,
    /// The selection or the text changed.
    Changed,
    /// The answer with this index is chosen.
    Chosen(usize),
    /// The question is refused, and this text says what to do instead.
    Instead(String),
    /// Esc: whatever asks is to be interrupted.
    Interrupt,
}

/// Rendered answers, and the cursor if a text is written.
#[derive(Debug, Default)]
pub struct RenderedAnswers {
    /// The rows.
    pub lines: Vec<Line>,
    /// Row and column of the cursor.
    pub cursor: Option<(usize, usize)>,
}

/// Answers with a selection.
#[derive(Debug, Default)]
pub struct Answers {
    answers: Vec<Answer>,
    /// The selected row: an answer, or after them [`INSTEAD`].
    selected: usize,
    /// The text of [`INSTEAD`], while it is being written.
    instead: Option<Editor>,
}

impl Answers {
    /// Answers of which the first is selected.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Answers {
        Answers { answers: answers.into_iter().collect(), selected: 0, instead: None }
    }

    /// Returns the letter of [`INSTEAD`], unless an answer has it.
    fn instead_key(&self) -> Option<char> {
        self.answers.iter().all(|answer| answer.key != Some('i')).then_some('i')
    }

    /// Renders the rows. Keys are shown once they work (`ready`).
    pub fn render(&self, columns: usize, rows: usize, look: Look, ready: bool) -> RenderedAnswers {
        let mut lines = Vec::new();
        // Where the selected row begins.
        let mut first = 0;
        let all = self.answers.iter().map(|answer| (answer.key, answer.label.as_str(), answer.allows));
        for (at, (key, label, allows)) in all.chain([(self.instead_key(), INSTEAD, false)]).enumerate() {
            let colour = if allows { Colour::Green } else { Colour::Red };
            let key = key.map_or(String::new(), |key| key.to_string());
            let selected = ready && at == self.selected;
            if selected {
                first = lines.len();
            }
            let pointer = if selected { look.pick("❯ ", "> ") } else { "  " };
            let line = match ready {
                true => Line::styled(format!("{pointer}{} {key:1} ", at + 1), Style::BOLD.colour(colour)),
                false => Line::styled(look.pick("  ·   ", "  .   "), Style::DIM),
            };
            let style = if selected { Style::BOLD } else { Style::PLAIN };
            let label = Line::styled(one_line(label, look), style);
            lines.extend(wrap(&label, columns, &line, &Line::from("      ")));
        }
        let Some(instead) = &self.instead else {
            // Enter must not choose a row that cannot be seen.
            lines.drain(..first.min(lines.len().saturating_sub(rows)));
            lines.truncate(rows.max(1));
            return RenderedAnswers { lines, cursor: None };
        };
        let prompt = Line::styled("      > ", Style::BOLD.colour(Colour::Cyan));
        let rendered = instead.render(&prompt, columns, (rows / 4).max(1), look);
        let cursor = Some((lines.len() + rendered.row, rendered.column));
        lines.extend(rendered.lines);
        RenderedAnswers { lines, cursor }
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if let Some(instead) = &mut self.instead {
            if key.code == KeyCode::Esc {
                self.instead = None;
                return Outcome::Changed;
            }
            return match instead.key(key) {
                ActionResult::Submit(text) => Outcome::Instead(text),
                _ => Outcome::Changed,
            };
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Outcome::Ignored;
        }
        let rows = self.answers.len() + 1;
        let at = match key.code {
            KeyCode::Esc => return Outcome::Interrupt,
            KeyCode::Up | KeyCode::BackTab => {
                self.selected = (self.selected + rows - 1) % rows;
                return Outcome::Changed;
            }
            KeyCode::Down | KeyCode::Tab => {
                self.selected = (self.selected + 1) % rows;
                return Outcome::Changed;
            }
            KeyCode::Enter => Some(self.selected),
            KeyCode::Char(c) if Some(c) == self.instead_key() => Some(rows - 1),
            KeyCode::Char(c) => match c.to_digit(10) {
                Some(number) => (number as usize).checked_sub(1),
                None => self.answers.iter().position(|answer| answer.key == Some(c)),
            },
            _ => None,
        };
        match at.filter(|at| *at < rows) {
            Some(at) if at + 1 == rows => {
                self.selected = at;
                self.instead = Some(Editor::default());
                Outcome::Changed
            }
            Some(at) => Outcome::Chosen(at),
            None => Outcome::Ignored,
        }
    }

    /// Inserts pasted text into the text that says what to do instead. A paste never answers.
    pub fn paste(&mut self, text: &str) {
        if let Some(instead) = &mut self.instead {
            instead.paste(text);
        }
    }
}

/// Returns the text in one line with control characters made visible.
pub fn one_line(text: &str, look: Look) -> String {
    reveal(text, look).replace('\n', look.pick("⏎", " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::plain;

    const LOOK: Look = Look { colours: false, unicode: true };

    fn answers() -> Answers {
        let answer = |key, label: &str, allows| Answer { key: Some(key), label: label.to_owned(), allows };
        Answers::new([answer('y', "Yes", true), answer('n', "No\n", false)])
    }

    fn press(answers: &mut Answers, code: KeyCode) -> Outcome {
        answers.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn letters_numbers_arrows_and_esc_answer() {
        let code = |c| KeyCode::Char(c);
        assert_eq!(press(&mut answers(), code('y')), Outcome::Chosen(0));
        assert_eq!(press(&mut answers(), code('2')), Outcome::Chosen(1));
        assert_eq!(press(&mut answers(), code('4')), Outcome::Ignored);
        assert_eq!(press(&mut answers(), code('0')), Outcome::Ignored);
        assert_eq!(press(&mut answers(), KeyCode::Esc), Outcome::Interrupt);
        let mut moved = answers();
        assert_eq!(press(&mut moved, KeyCode::Down), Outcome::Changed);
        assert_eq!(press(&mut moved, KeyCode::Enter), Outcome::Chosen(1));
        let ctrl = KeyEvent::new(code('y'), KeyModifiers::CONTROL);
        assert_eq!(answers().key(ctrl), Outcome::Ignored);
    }

    #[test]
    fn a_text_says_what_to_do_instead() {
        let mut answers = answers();
        answers.paste("not an answer");
        assert_eq!(press(&mut answers, KeyCode::Char('i')), Outcome::Changed);
        for c in "use y".chars() {
            assert_eq!(press(&mut answers, KeyCode::Char(c)), Outcome::Changed);
        }
        let rendered = answers.render(40, 24, LOOK, true);
        assert_eq!(
            plain(&rendered.lines),
            "  1 y Yes\n  2 n No⏎\n❯ 3 i No, and do this instead\n      > use y\n"
        );
        assert_eq!(rendered.cursor, Some((3, 13)));
        assert_eq!(press(&mut answers, KeyCode::Enter), Outcome::Instead("use y".to_owned()));
    }

    #[test]
    fn the_selected_row_is_seen() {
        let answer = |n: usize| Answer { key: None, label: format!("answer {n}"), allows: true };
        let mut many = Answers::new((1..=9).map(answer));
        assert_eq!(plain(&many.render(40, 2, LOOK, true).lines), "❯ 1   answer 1\n  2   answer 2\n");
        for _ in 0..8 {
            press(&mut many, KeyCode::Down);
        }
        assert_eq!(
            plain(&many.render(40, 2, LOOK, true).lines),
            "❯ 9   answer 9\n  10 i No, and do this instead\n"
        );
    }

    #[test]
    fn keys_are_shown_once_they_work() {
        let early = answers().render(40, 24, LOOK, false);
        assert_eq!(plain(&early.lines), "  ·   Yes\n  ·   No⏎\n  ·   No, and do this instead\n");
    }
}
