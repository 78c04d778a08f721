//! Terminal toolkit: text in, styled lines out, and a guarded way to the terminal.
//!
//! Nothing here knows sessions or the Agent Client Protocol. Read in this order:
//!
//! - [`render`] turns text, Markdown, code, tables and diffs into styled lines. Pure functions.
//! - [`editor`] is a line editor: keys in, text and cursor out. It does not touch the terminal.
//! - [`output`] writes to stdout and stderr, and keeps control characters away from terminals.
//! - [`screen`] draws frames below the scrollback; [`device`] switches raw mode and reads keys.
//! - [`picker`] is a list with a search, [`answers`] the answers to a question; [`dialog`] shows
//!   them for a command.
//!
//! Text from outside never reaches a terminal with its control characters.

pub mod answers;
pub mod device;
pub mod dialog;
pub mod editor;
pub mod output;
pub mod picker;
pub mod render;
pub mod screen;
