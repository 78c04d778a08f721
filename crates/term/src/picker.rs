//! A list to choose from: type to search, arrows, Enter, Esc.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::editor::fuzzy;
use crate::render::style::{Colour, Line, Style};
use crate::render::text::{Look, clean, cut_line, width};

/// Most rows on the screen.
const MAX_ROWS: usize = 10;

/// A row of the list with the value that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<T> {
    /// Its text.
    pub label: String,
    /// What is said about it, which the search finds too.
    pub about: String,
    /// Whether it is marked and selected first.
    pub current: bool,
    /// The value.
    pub value: T,
}

/// The result of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Picked<T> {
    /// The key has no meaning.
    Nothing,
    /// The search or the selection changed.
    Changed,
    /// A row was chosen.
    Value(T),
    /// The user left the list.
    Left,
}

/// A list with a search.
#[derive(Debug, Clone)]
pub struct Picker<T> {
    title: String,
    rows: Vec<Row<T>>,
    search: String,
    /// Indices of the rows that match, the best first.
    found: Vec<usize>,
    /// The selected one of them.
    at: usize,
}

impl<T: Clone> Picker<T> {
    /// A list with this title.
    pub fn new(title: impl Into<String>, rows: Vec<Row<T>>) -> Picker<T> {
        let at = rows.iter().position(|row| row.current).unwrap_or(0);
        let found = (0..rows.len()).collect();
        Picker { title: title.into(), rows, search: String::new(), found, at }
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Picked<T> {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let count = self.found.len().max(1);
        match key.code {
            KeyCode::Esc => return Picked::Left,
            KeyCode::Char('c' | 'g') if ctrl => return Picked::Left,
            KeyCode::Up | KeyCode::BackTab => self.at = (self.at + count - 1) % count,
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1) % count,
            KeyCode::Char('p') if ctrl => self.at = (self.at + count - 1) % count,
            KeyCode::Char('n') if ctrl => self.at = (self.at + 1) % count,
            KeyCode::PageUp => self.at = self.at.saturating_sub(MAX_ROWS),
            KeyCode::PageDown => self.at = (self.at + MAX_ROWS).min(count - 1),
            KeyCode::Enter => {
                let row = self.found.get(self.at).and_then(|at| self.rows.get(*at));
                return row.map_or(Picked::Nothing, |row| Picked::Value(row.value.clone()));
            }
            KeyCode::Backspace => {
                self.search.pop();
                self.find();
            }
            KeyCode::Char('u') if ctrl => {
                self.search.clear();
                self.find();
            }
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                self.search.push(c);
                self.find();
            }
            _ => return Picked::Nothing,
        }
        Picked::Changed
    }

    fn find(&mut self) {
        let texts = self.rows.iter().map(|row| format!("{} {}", row.label, row.about));
        self.found = fuzzy::best(&self.search, texts, usize::MAX);
        self.at = 0;
    }

    /// Renders the list and the place of the cursor.
    pub fn render(&self, columns: usize, rows: usize, look: Look) -> (Vec<Line>, (usize, usize)) {
        let mut head = Line::styled(clean(&self.title, look), Style::BOLD);
        head.push("  ", Style::PLAIN);
        head.push(clean(&self.search, look), Style::of(Colour::Cyan));
        let column = head.width().min(columns);
        if self.search.is_empty() {
            head.push("type to search", Style::DIM);
        }
        let mut lines = vec![cut_line(&head, columns, look)];
        let room = MAX_ROWS.min(rows.saturating_sub(4)).max(1);
        let from = self.at.saturating_sub(room - 1);
        let labels = self.found.iter().filter_map(|at| self.rows.get(*at));
        let widest = labels.clone().map(|row| width(&row.label)).max().unwrap_or(0).min(columns / 2);
        for (at, row) in labels.enumerate().skip(from).take(room) {
            let selected = at == self.at;
            let pointer = if selected { look.pick("❯ ", "> ") } else { "  " };
            let mark = if row.current { "* " } else { "  " };
            let style = if selected { Style::BOLD.colour(Colour::Cyan) } else { Style::PLAIN };
            let label = cut_line(&Line::styled(one_line(&row.label, look), style), widest.max(8), look);
            let gap = widest.saturating_sub(label.width()) + 2;
            let mut line = Line::styled(format!("{pointer}{mark}"), style);
            line.append(&label);
            line.push(" ".repeat(gap), Style::PLAIN);
            line.push(one_line(&row.about, look), Style::DIM);
            lines.push(cut_line(&line, columns, look));
        }
        if self.found.is_empty() {
            lines.push(Line::styled("    nothing matches", Style::DIM));
        }
        let more = self.found.len().saturating_sub(from + room);
        let help = match more {
            0 => "Enter chooses, Esc leaves".to_owned(),
            more => format!("Enter chooses, Esc leaves; {more} more below"),
        };
        lines.push(cut_line(&Line::styled(format!("    {help}"), Style::DIM), columns, look));
        (lines, (0, column))
    }
}

fn one_line(text: &str, look: Look) -> String {
    clean(text, look).replace('\n', " ")
}
