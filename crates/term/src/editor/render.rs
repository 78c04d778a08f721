//! Renders the editor.

use super::Editor;
use crate::render::style::{Colour, Line, Style};
use crate::render::text::{Look, char_width, clean, cut_line, width};

/// The rendered editor and its cursor.
#[derive(Debug, PartialEq, Eq)]
pub struct RenderedEditor {
    pub lines: Vec<Line>,
    pub row: usize,
    pub column: usize,
}

impl Editor {
    /// Renders at most `rows` rows around the cursor.
    pub fn render(&self, prompt: &Line, columns: usize, rows: usize, look: Look) -> RenderedEditor {
        if let Some(search) = &self.search {
            let found = search.found.and_then(|at| self.history.get(at)).unwrap_or_default();
            let line = Line::styled("search: ", Style::DIM).with(clean(&search.wanted, look), Style::BOLD);
            let column = line.width().min(columns);
            let found = clean(found.lines().next().unwrap_or_default(), look);
            let line = cut_line(&line.with("  ", Style::PLAIN).with(found, Style::DIM), columns, look);
            return RenderedEditor { lines: vec![line], row: 0, column };
        }
        let mut painted = self.paint_text(prompt, columns.max(8), rows, look);
        let outside = self.text.get(..self.window(columns.max(8), rows).0).unwrap_or_default();
        let outside = outside.matches('\n').count();
        let fits = painted.row < rows && outside == 0;
        // A row says how much is above, if there is room for it.
        let note = usize::from(!fits && rows > 2);
        let first = painted.row.saturating_sub(rows.saturating_sub(1 + note));
        painted.lines.drain(..first);
        painted.lines.truncate(rows.saturating_sub(note).max(1));
        painted.row -= first;
        let above = first + outside;
        if note > 0 && above > 0 {
            let indent = " ".repeat(prompt.width());
            let text = format!("{indent}{} {above} above", look.pick("…", "..."));
            painted.lines.insert(0, cut_line(&Line::styled(text, Style::DIM), columns, look));
            painted.row += 1;
        }
        painted
    }

    /// Returns the part of the text that can be visible: a paste may be huge.
    fn window(&self, columns: usize, rows: usize) -> (usize, usize) {
        let most = (columns * rows).max(256);
        let back = self.before().char_indices().rev().nth(most).map_or(0, |(at, _)| at);
        // Starts at the beginning of a line, if one is near.
        let from = self.text.get(back..self.at).and_then(|near| near.find('\n')).filter(|_| back > 0);
        let ahead = self.after().char_indices().nth(most).map_or(self.text.len(), |(at, _)| self.at + at);
        (from.map_or(back, |at| back + at + 1), ahead)
    }

    fn paint_text(&self, prompt: &Line, columns: usize, rows: usize, look: Look) -> RenderedEditor {
        let rest = Line::from(" ".repeat(prompt.width()));
        let (from, to) = self.window(columns, rows);
        let mut lines = vec![if from == 0 { prompt.clone() } else { rest.clone() }];
        let (mut row, mut column) = (0, prompt.width());
        let mut used = prompt.width();
        let seen = self.text.get(from..to).unwrap_or_default();
        for (at, c) in seen.char_indices().map(|(at, c)| (from + at, c)) {
            let shown = match c {
                '\n' => String::new(),
                '\t' => "    ".to_owned(),
                c => clean(c.encode_utf8(&mut [0; 4]), look).into_owned(),
            };
            let wide = if look.unicode && c != '\t' { char_width(c) } else { width(&shown) };
            if c != '\n' && used + wide > columns {
                lines.push(rest.clone());
                used = rest.width();
            }
            if at == self.at {
                (row, column) = (lines.len() - 1, used);
            }
            if c == '\n' {
                lines.push(rest.clone());
                used = rest.width();
                continue;
            }
            used += wide;
            if let Some(last) = lines.last_mut() {
                last.push(shown, Style::PLAIN);
            }
        }
        if self.at == to {
            if used >= columns {
                lines.push(rest.clone());
                used = rest.width();
            }
            (row, column) = (lines.len() - 1, used);
        }
        RenderedEditor { lines, row, column }
    }

    /// Renders the menu around the chosen candidate.
    pub fn render_menu(&self, columns: usize, rows: usize, look: Look) -> Vec<Line> {
        let Some(menu) = &self.menu else { return Vec::new() };
        let chosen = menu.chosen.unwrap_or(0);
        let from = chosen.saturating_sub(rows.saturating_sub(1));
        let longest = menu.items.iter().map(|item| width(&item.label)).max().unwrap_or(0).min(columns / 2);
        let mut lines = Vec::new();
        for (at, item) in menu.items.iter().enumerate().skip(from).take(rows) {
            let style =
                if menu.chosen == Some(at) { Style::PLAIN.reverse() } else { Style::of(Colour::Cyan) };
            let label = clean(&item.label, look);
            let mut line = Line::from("  ").with(label.as_ref(), style);
            line.push(" ".repeat(longest.saturating_sub(width(&label)) + 2), Style::PLAIN);
            line.push(clean(item.about.lines().next().unwrap_or_default(), look), Style::DIM);
            lines.push(cut_line(&line, columns, look));
        }
        let more = menu.items.len().saturating_sub(from + lines.len());
        if more > 0 {
            lines.push(Line::styled(format!("  {} {more} more", look.pick("…", "...")), Style::DIM));
        }
        lines
    }
}
