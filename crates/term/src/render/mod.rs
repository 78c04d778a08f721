//! Renders text to styled lines. Pure functions: no terminal, no clock.
//!
//! `filter` removes control characters, `text` measures and wraps, `style` is a styled line; the
//! others render Markdown, code, tables, diffs and the colours of commands.

pub mod diff;
pub mod filter;
mod highlight;
pub mod hunk;
pub mod link;
pub mod markdown;
pub mod sgr;
pub mod style;
mod table;
pub mod text;
