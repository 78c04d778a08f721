//! The pictures of the site, as SVG inside the pages: a bar, a cell of the matrix, and all rules of
//! a peer.

use std::fmt::Write as _;

use super::facts::Rule;
use super::{Record, rule_path};

/// The class of a status in the style sheet.
fn class(status: Option<&str>) -> &'static str {
    match status {
        Some("pass") => "kept",
        Some("broken") => "broken",
        Some("advice") => "advice",
        Some(_) => "other",
        None => "unknown",
    }
}

/// The word for a status.
fn word(status: Option<&str>) -> &str {
    match status {
        Some("pass") => "kept",
        Some("advice") => "worth a look",
        Some(status) => status,
        None => "not kept of this run, or not judged",
    }
}

/// The share of rules that were kept, broken and not seen.
pub(super) fn bar(record: &Record) -> String {
    const WIDTH: u64 = 120;
    let total: u64 = record.counts.values().sum::<u64>().max(1);
    let duties = record.broken_in(&["mandatory", "capability"]) as u64;
    let parts =
        [("kept", record.count("pass")), ("broken", duties), ("advice", record.count("fail") - duties)];
    let mut out = format!(
        "<svg width=\"{WIDTH}\" height=\"10\" viewBox=\"0 0 {WIDTH} 10\" role=\"img\" aria-label=\"{} of {total} rules kept, {} broken\">\
         <rect class=\"other\" width=\"{WIDTH}\" height=\"10\"/>",
        record.count("pass"),
        record.count("fail"),
    );
    let mut at = 0;
    for (class, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        // A single failure is still seen.
        let width = (count * WIDTH / total).max(2);
        let _ = write!(out, "<rect class=\"{class}\" x=\"{at}\" width=\"{width}\" height=\"10\"/>");
        at += width;
    }
    out + "</svg>"
}

/// A cell of the matrix. The shape differs as well as the colour.
pub(super) fn cell(status: Option<&str>) -> String {
    let shape = match class(status) {
        "kept" => "<circle class=\"kept\" cx=\"7\" cy=\"7\" r=\"4\"/>",
        "broken" => "<path class=\"broken\" d=\"M1 3l2-2 4 4 4-4 2 2-4 4 4 4-2 2-4-4-4 4-2-2 4-4z\"/>",
        "advice" => "<path class=\"advice\" d=\"M7 1l6 12h-12z\"/>",
        _ => "<rect class=\"other\" x=\"5\" y=\"6\" width=\"4\" height=\"2\"/>",
    };
    format!(
        "<svg width=\"14\" height=\"14\" viewBox=\"0 0 14 14\" role=\"img\"><title>{}</title>{shape}</svg>",
        word(status)
    )
}

/// Every rule of a peer as a square, by section; each leads to the page of its rule.
pub(super) fn all(record: &Record, rules: &[&Rule]) -> String {
    const SIDE: usize = 14;
    const LABEL: usize = 70;
    const COLUMNS: usize = 50;
    if record.status.is_empty() {
        return String::new();
    }
    let (mut squares, mut row) = (String::new(), 0);
    for section in rules.chunk_by(|one, next| one.section() == next.section()) {
        let _ = write!(squares, "<text x=\"0\" y=\"{}\">{}</text>", row * SIDE + 11, section[0].section());
        for (number, rule) in section.iter().enumerate() {
            let status = record.status_of(&rule.id);
            let _ = write!(
                squares,
                "<a href=\"../{}\"><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"11\" height=\"11\" rx=\"2\"><title>{}: {}</title></rect></a>",
                rule_path(&rule.id),
                class(status),
                LABEL + (number % COLUMNS) * SIDE,
                (row + number / COLUMNS) * SIDE + 1,
                rule.id,
                word(status),
            );
        }
        row += section.len().div_ceil(COLUMNS);
    }
    let longest = rules.chunk_by(|one, next| one.section() == next.section()).map(<[_]>::len).max();
    let width = LABEL + longest.unwrap_or(0).min(COLUMNS) * SIDE;
    format!(
        "<svg class=\"all\" width=\"{width}\" height=\"{0}\" viewBox=\"0 0 {width} {0}\" role=\"img\" aria-label=\"every rule by section\">{squares}</svg>\n\
         <p class=\"dim\">{1} kept {2} broken {3} worth a look {4} not applicable or not exercised. Each square is a rule.</p>\n",
        row * SIDE,
        square("kept"),
        square("broken"),
        square("advice"),
        square("other"),
    )
}

fn square(class: &str) -> String {
    format!(
        "<svg width=\"11\" height=\"11\" viewBox=\"0 0 11 11\" aria-hidden=\"true\"><rect class=\"{class}\" width=\"11\" height=\"11\" rx=\"2\"/></svg>"
    )
}
