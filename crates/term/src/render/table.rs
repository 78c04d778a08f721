//! Tables that fit the screen.

use super::style::{Line, Style};
use super::text::{Look, wrap};

/// With narrower columns the table becomes a list.
const NARROWEST: usize = 4;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Centre,
    Right,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) align: Vec<Align>,
    /// The first row is the head.
    pub(super) rows: Vec<Vec<Line>>,
}

impl Table {
    pub(super) fn render(&self, columns: usize, look: Look) -> Vec<Line> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        if count == 0 {
            return Vec::new();
        }
        let gaps = (count - 1) * 3;
        match columns.checked_sub(gaps).and_then(|room| self.widths(count, room)) {
            Some(widths) => self.grid(&widths, look),
            None => self.list(columns),
        }
    }

    /// Returns the widths of the columns, if there is room; the widest shrink first.
    fn widths(&self, count: usize, room: usize) -> Option<Vec<usize>> {
        let natural = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.map(Line::width).max().unwrap_or(0).max(1)
        };
        let natural: Vec<usize> = (0..count).map(natural).collect();
        if natural.iter().map(|width| (*width).min(NARROWEST)).sum::<usize>() > room {
            return None;
        }
        // The largest common bound with which all columns fit.
        let fits = |bound: usize| natural.iter().map(|width| (*width).min(bound)).sum::<usize>() <= room;
        let bound = (NARROWEST..=room.max(NARROWEST)).rev().find(|bound| fits(*bound))?;
        let mut widths: Vec<usize> = natural.iter().map(|width| (*width).min(bound)).collect();
        let mut left = room - widths.iter().sum::<usize>();
        for (width, natural) in widths.iter_mut().zip(&natural) {
            let more = left.min(natural - *width);
            *width += more;
            left -= more;
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize], look: Look) -> Vec<Line> {
        let bar = look.pick(" │ ", " | ");
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| {
                    let cell = row.get(column).cloned().unwrap_or_default();
                    wrap(&cell, *width, &Line::new(), &Line::new())
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for y in 0..height {
                let mut line = Line::new();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    if column > 0 {
                        line.push(bar, Style::DIM);
                    }
                    let text = cell.get(y).cloned().unwrap_or_default();
                    self.place(&text, column, *width, &mut line);
                }
                lines.push(line);
            }
            if at == 0 {
                let (dash, cross) = look.pick(("─", "─┼─"), ("-", "-+-"));
                let dashes: Vec<String> = widths.iter().map(|width| dash.repeat(*width)).collect();
                lines.push(Line::styled(dashes.join(cross), Style::DIM));
            }
        }
        lines
    }

    fn place(&self, text: &Line, column: usize, width: usize, line: &mut Line) {
        let space = width.saturating_sub(text.width());
        let before = match self.align.get(column) {
            Some(Align::Right) => space,
            Some(Align::Centre) => space / 2,
            _ => 0,
        };
        line.push(" ".repeat(before), Style::PLAIN);
        line.append(text);
        line.push(" ".repeat(space - before), Style::PLAIN);
    }

    /// Renders a list: each cell after the name of its column.
    fn list(&self, columns: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let Some((head, rows)) = self.rows.split_first() else { return lines };
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                lines.push(Line::new());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut line = head.get(column).cloned().unwrap_or_default();
                line.push(": ", Style::DIM);
                line.append(cell);
                lines.extend(wrap(&line, columns, &Line::new(), &Line::from("  ")));
            }
        }
        lines
    }
}
