//! From what an agent says to lines on a screen. Everything here is a function of its arguments: no terminal, no clock.
//!
//! `filter` makes text harmless, `text` measures and wraps it; `style` is a line with its looks; the rest turns Markdown, code, tables
//! and changes of files into lines.

pub mod diff;
pub mod filter;
mod highlight;
pub mod markdown;
pub mod style;
mod table;
pub mod text;
