//! A screen as SVG: one text element for each run of cells in one style.

use std::fmt::Write as _;

use vt100::Color;

const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 16.0;
const BAR: f64 = 32.0;
const FOREGROUND: &str = "#d8dee9";
const BACKGROUND: &str = "#171b22";

/// The sixteen colours that programs name by number.
const NAMED: [&str; 16] = [
    "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9", "#7f8897",
    "#ff7b86", "#b5e890", "#f5d08a", "#7cc0ff", "#d99af0", "#7fd8e4", "#ffffff",
];

#[derive(PartialEq, Clone)]
struct Style {
    foreground: String,
    background: Option<String>,
    bold: bool,
    italic: bool,
    underline: bool,
    dim: bool,
}

/// Draws the rows of a screen from `first` on, without the empty ones at its end.
pub(super) fn draw(screen: &vt100::Screen, first: u16) -> String {
    let (rows, columns) = screen.size();
    let used = |row: &u16| {
        (0..columns).any(|column| screen.cell(*row, column).is_some_and(vt100::Cell::has_contents))
    };
    let last = (0..rows).rev().find(used).unwrap_or(0).max(first) + 1;
    let width = f64::from(columns) * WIDTH + 2.0 * MARGIN;
    let height = f64::from(last - first) * HEIGHT + BAR + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"The chat asks before it edits a file\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"9\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (at, colour) in (0..).zip(["#ff5f57", "#febc2e", "#28c840"]) {
        let _ = writeln!(out, "<circle cx=\"{}\" cy=\"16\" r=\"6\" fill=\"{colour}\"/>", 20 + at * 20);
    }
    out.push_str(
        "<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\" \
         xml:space=\"preserve\">\n",
    );
    for row in first..last {
        for (column, length, text, style) in runs(screen, row, columns) {
            draw_run(&mut out, row - first, column, length, &text, &style);
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// The runs of a row: column, number of columns, text, style.
fn runs(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<(u16, u16, String, Style)> {
    let mut runs: Vec<(u16, u16, String, Style)> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column) else { continue };
        if cell.is_wide_continuation() {
            if let Some(run) = runs.last_mut() {
                run.1 += 1;
            }
            continue;
        }
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let style = style(cell);
        match runs.last_mut() {
            Some(run) if run.3 == style => {
                run.1 += 1;
                run.2.push_str(text);
            }
            _ => runs.push((column, 1, text.to_owned(), style)),
        }
    }
    runs
}

fn draw_run(out: &mut String, row: u16, column: u16, length: u16, text: &str, style: &Style) {
    let x = MARGIN + f64::from(column) * WIDTH;
    let y = BAR + f64::from(row) * HEIGHT;
    let width = f64::from(length) * WIDTH;
    if let Some(background) = &style.background {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{background}\"/>"
        );
    }
    // Spaces at both ends draw nothing; without them the length of the text is right.
    let start = text.len() - text.trim_start().len();
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return;
    }
    let x = x + start as f64 * WIDTH;
    let trailing = text.len() - start - trimmed.len();
    let width = (f64::from(length) - (start + trailing) as f64) * WIDTH;
    let mut attributes = format!("fill=\"{}\"", style.foreground);
    let flags = [
        (style.bold, " font-weight=\"bold\""),
        (style.italic, " font-style=\"italic\""),
        (style.underline, " text-decoration=\"underline\""),
        (style.dim, " opacity=\"0.62\""),
    ];
    flags.iter().filter(|(on, _)| *on).for_each(|(_, text)| attributes.push_str(text));
    let escaped = trimmed.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" {attributes}>{escaped}</text>",
        y + 13.5,
    );
}

fn style(cell: &vt100::Cell) -> Style {
    let foreground = colour(cell.fgcolor());
    let background = colour(cell.bgcolor());
    let (foreground, background) = if cell.inverse() {
        let swapped = background.unwrap_or_else(|| BACKGROUND.to_owned());
        (swapped, Some(foreground.unwrap_or_else(|| FOREGROUND.to_owned())))
    } else {
        (foreground.unwrap_or_else(|| FOREGROUND.to_owned()), background)
    };
    Style {
        foreground,
        background,
        bold: cell.bold(),
        italic: cell.italic(),
        underline: cell.underline(),
        dim: cell.dim(),
    }
}

fn colour(colour: Color) -> Option<String> {
    let rgb = |red: u8, green: u8, blue: u8| format!("#{red:02x}{green:02x}{blue:02x}");
    match colour {
        Color::Default => None,
        Color::Idx(index @ 0..16) => Some(NAMED[usize::from(index)].to_owned()),
        Color::Idx(index @ 16..232) => {
            let level = |value: u8| if value == 0 { 0 } else { 55 + value * 40 };
            let index = index - 16;
            Some(rgb(level(index / 36), level(index / 6 % 6), level(index % 6)))
        }
        Color::Idx(index) => {
            let grey = 8 + (index - 232) * 10;
            Some(rgb(grey, grey, grey))
        }
        Color::Rgb(red, green, blue) => Some(rgb(red, green, blue)),
    }
}
