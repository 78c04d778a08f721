//! Renders text to styled lines. Pure functions: no terminal, no clock.
//!
//! `filter` removes control characters, `text` measures and wraps, `style` is a styled line; the others render
//! Markdown, code, tables and diffs.

pub mod diff;
pub mod filter;
mod highlight;
pub mod markdown;
pub mod style;
mod table;
pub mod text;
