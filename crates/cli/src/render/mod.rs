//! From what an agent says to lines on a screen. Everything here is a function of its arguments: no terminal, no clock.
//!
//! `filter` makes text harmless, `text` measures and wraps it; `style` is a line with its looks; the rest turns Markdown, code, tables
//! and changes of files into lines.

pub(crate) mod diff;
pub(crate) mod filter;
pub(crate) mod highlight;
pub(crate) mod markdown;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod text;
