//! The picture: one table per transport, a row per client, a column per server.

use std::fmt::Write as _;

const LABEL: usize = 150;
const CELL: usize = 172;
const ROW: usize = 66;
const HEAD: usize = 64;
const BETWEEN: usize = 16;
const GAP: usize = 4;
const MARGIN: usize = 16;
const FOOT: usize = 68;
/// The side of a colour in the legend.
const KEY: usize = 12;
/// Characters of the smaller letters that fit into a cell.
const WIDTH: usize = 26;
/// Lines of these letters in a cell.
const LINES: usize = 2;

/// Colours for a light and a dark page. The picture has its own background, because the theme of a
/// page may differ from that of the browser, which is the one that the query sees.
const STYLE: &str = "\
text{font-family:-apple-system,BlinkMacSystemFont,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}\
.page{fill:#ffffff}.title{font-size:17px;font-weight:600}.name{font-size:13px;font-weight:600}\
.axis,.note{font-size:12px;fill:#59636e}.count{font-size:15px;font-weight:600}.less{font-size:12px}\
.all{fill:#cdeed4}.some{fill:#fbe6b0}.none{fill:#fbd0cd}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.axis,.note{fill:#9198a1}\
.all{fill:#16472a}.some{fill:#5c4510}.none{fill:#652424}}";

/// The colours of cells.
const LEGEND: [(&str, &str); 3] = [
    ("all", "the pair finishes every step"),
    ("some", "it does not finish the named steps"),
    ("none", "it finishes nothing"),
];

/// The results over one transport: by client, then by server, then by step.
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) rows: Vec<Vec<Vec<bool>>>,
}

/// Draws the tables.
pub(super) fn svg(names: &[&str], steps: &[&str], tables: &[Table]) -> String {
    let width = 2 * MARGIN + LABEL + CELL * names.len();
    let table = HEAD + ROW * names.len() + BETWEEN;
    let height = 2 * MARGIN + table * tables.len() + FOOT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>Clients and servers of ACP over WebSocket and Streamable HTTP: who finishes what</title>\n\
         <style>{STYLE}</style>\n<rect class=\"page\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n"
    );
    for (at, one) in tables.iter().enumerate() {
        draw(&mut out, names, steps, one, MARGIN + at * table);
    }
    let mut x = MARGIN;
    for (class, meaning) in LEGEND {
        let y = height - MARGIN - FOOT + 14;
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{KEY}\" height=\"{KEY}\" rx=\"2\"/>"
        );
        line(&mut out, "note", x + KEY + 6, y + 10, meaning);
        x += CELL + CELL / 2;
    }
    let all = format!("The {} steps: {}.", steps.len(), steps.join(", "));
    let how = "Each step has a connection of its own, and counts if the client sees exactly what the scenario says.";
    for (at, note) in [all.as_str(), how].into_iter().enumerate() {
        let y = height - MARGIN - FOOT + 46 + at * 18;
        line(&mut out, "note", MARGIN, y, note);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, names: &[&str], steps: &[&str], table: &Table, top: usize) {
    line(out, "title", MARGIN, top + 18, table.title);
    line(out, "axis", MARGIN, top + 50, "client ↓  server →");
    for (column, name) in names.iter().enumerate() {
        line(out, "name", MARGIN + LABEL + CELL * column + 10, top + 50, name);
    }
    for (row, (name, cells)) in names.iter().zip(&table.rows).enumerate() {
        let y = top + HEAD + ROW * row;
        line(out, "name", MARGIN, y + 36, name);
        for (column, cell) in cells.iter().enumerate() {
            let x = MARGIN + LABEL + CELL * column;
            let missing = missing(cell, steps);
            let class = match missing.len() {
                0 => "all",
                count if count == steps.len() => "none",
                _ => "some",
            };
            let (width, height) = (CELL - GAP, ROW - GAP);
            let _ = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\"/>"
            );
            let less = wrap(&missing);
            let first = y + if less.is_empty() { 36 } else { 22 };
            line(out, "count", x + 10, first, &count(&missing, steps));
            for (at, text) in less.iter().enumerate() {
                line(out, "less", x + 10, first + 16 * (at + 1), text);
            }
        }
    }
}

fn line(out: &mut String, class: &str, x: usize, y: usize, text: &str) {
    let _ = writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
}

fn missing<'a>(cell: &[bool], steps: &[&'a str]) -> Vec<&'a str> {
    steps.iter().zip(cell).filter(|(_, is_finished)| !**is_finished).map(|(step, _)| *step).collect()
}

fn count(missing: &[&str], steps: &[&str]) -> String {
    match missing.len() {
        0 => format!("✓ all {}", steps.len()),
        count if count == steps.len() => "✗ nothing".to_owned(),
        count => format!("{} of {}", steps.len() - count, steps.len()),
    }
}

/// The steps that are missing, as lines of a cell.
fn wrap(missing: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (at, step) in missing.iter().enumerate() {
        let step = if at == 0 { format!("not {step}") } else { (*step).to_owned() };
        match lines.last_mut() {
            Some(last) if last.chars().count() + step.chars().count() + 2 <= WIDTH => {
                let _ = write!(last, ", {step}");
            }
            Some(last) => {
                last.push(',');
                lines.push(step);
            }
            None => lines.push(step),
        }
    }
    if lines.len() > LINES {
        // The count says how many there are.
        lines.truncate(LINES);
        lines.iter_mut().skip(1).for_each(|last| last.push('…'));
    }
    lines
}

/// The same for a terminal.
pub(super) fn text(names: &[&str], steps: &[&str], tables: &[Table]) -> String {
    let mut out = String::new();
    for table in tables {
        let _ = writeln!(out, "\n{}", table.title);
        for (client, cells) in names.iter().zip(&table.rows) {
            for (server, cell) in names.iter().zip(cells) {
                let missing = missing(cell, steps);
                let less =
                    if missing.is_empty() { String::new() } else { format!(", not {}", missing.join(", ")) };
                let _ = writeln!(out, "  {client:<18} {server:<18} {}{less}", count(&missing, steps));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_names_what_is_not_finished() {
        let rows =
            vec![vec![vec![true, true], vec![true, false]], vec![vec![false, false], vec![true, true]]];
        let table = || [Table { title: "WebSocket", rows: rows.clone() }];
        let drawn = svg(&["ours", "theirs"], &["new", "load"], &table());
        for class in ["all", "some", "none"] {
            let cells = drawn.matches(&format!("<rect class=\"{class}\"")).count();
            // One more is in the legend.
            assert_eq!(cells, if class == "all" { 3 } else { 2 }, "{class}");
        }
        assert!(drawn.contains(">1 of 2<") && drawn.contains(">not load<"), "{drawn}");
        let told = text(&["ours", "theirs"], &["new", "load"], &table());
        assert!(told.contains("1 of 2, not load"), "{told}");
    }

    #[test]
    fn long_lists_fit_into_a_cell() {
        let lines = wrap(&["prompt", "permission", "cancel", "load", "two sessions", "reconnect"]);
        assert_eq!(lines.len(), LINES);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH + 2), "{lines:?}");
    }
}
