//! Guarded output to stdout and stderr.
//!
//! `channel` turns text and styles into bytes and keeps control characters away from terminals.
//! `marks` lists the beginnings of the program's own lines, `guard` keeps foreign text from
//! imitating them, `document` and `pager` lay out questions and reports.

mod channel;
mod document;
mod grace;
mod guard;
mod marks;
mod pager;
mod relay;
mod status;
mod surface;

pub use channel::{Channel, Written};
pub use document::{Document, in_gutter, quoted, revealed};
pub(crate) use grace::discard_typed;
pub use grace::{GRACE, wait_unanswered, wait_unanswered_blocking};
pub use marks::Mark;
pub use pager::{Reading, show as show_pages};
pub use relay::Relay;
pub use status::StatusLine;
pub use surface::{Stream, Surface, locale_is_unicode};
