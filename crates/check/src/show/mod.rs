//! A recording for people: as a summary, as a conversation, by time, or line by line.
//!
//! `summary.rs` folds a trace, `session.rs` one session (`v2.rs` on version 2), `text.rs` formats
//! the result, `lines.rs` formats single entries, as `--follow` does. Control characters are made
//! visible: a recording must not move the cursor.

mod lines;
mod session;
mod summary;
mod text;
mod v2;

pub use lines::{Filter, Selection, line};
pub use session::{Event, Item, SessionEvents, ToolTime};
pub use summary::{Request, Summary};
pub use text::{conversation, summary, timing};

/// Returns text that can be printed on a terminal: line feeds and tabs stay, other control
/// characters are shown as `\u{…}`.
pub fn visible(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => clean.push(c),
            // Marks that change the direction of writing can hide a part of a line.
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                clean.extend(c.escape_unicode())
            }
            c => clean.push(c),
        }
    }
    clean
}

/// Formats a duration: `12 µs`, `3.4 ms`, `1.25 s`, `2 min 5 s`.
pub fn span(time: std::time::Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1000 => format!("{micros} µs"),
        1000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        1_000_000..60_000_000 => format!("{:.2} s", micros as f64 / 1e6),
        _ => format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60),
    }
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
