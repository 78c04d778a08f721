//! Shows a document page by page, so that nothing the user agrees to is cut or scrolls away unread.

use super::channel::Channel;
use super::document::Document;
use super::marks::Mark;

/// Rows that stay free below a page, for the question about it.
const FREE: usize = 2;
/// A page has at least so many lines, however low the terminal is.
const LEAST: usize = 4;

/// How far the user has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// To the end.
    Complete,
    /// The user stopped after `shown` of `total` lines.
    Stopped {
        /// Lines that were shown.
        shown: usize,
        /// Lines of the document.
        total: usize,
    },
}

/// Shows a document. After each page, `answer` returns the typed line: `q` or the end of the input
/// stops, `a` shows the rest, anything else shows the next page. A stream that is not a terminal
/// gets the whole document at once.
pub async fn show(
    document: &Document,
    channel: &mut Channel,
    mut answer: impl AsyncFnMut() -> Option<String>,
) -> Reading {
    let Some((columns, rows)) = channel.surface().size() else {
        document.write(channel);
        let _ = channel.write();
        return Reading::Complete;
    };
    let lines = document.lines(columns, channel.surface().look());
    let page = rows.saturating_sub(FREE).max(LEAST);
    let total = lines.len();
    let mut shown = 0;
    let mut all = false;
    loop {
        // A single further line is shorter than the prompt for it.
        let end = if all || total - shown <= page + 1 { total } else { shown + page };
        lines.get(shown..end).unwrap_or_default().iter().for_each(|line| channel.line(line));
        shown = end;
        if shown == total {
            let _ = channel.write();
            return Reading::Complete;
        }
        let more = format!("{} of {total} lines, Enter shows more (a: all, q: stop reading) ", shown);
        channel.part(&Mark::Question.then(more));
        let _ = channel.write();
        let typed = answer().await;
        channel.answered();
        match typed.as_deref().map(str::trim) {
            None | Some("q" | "Q") => return Reading::Stopped { shown, total },
            Some("a" | "A") => all = true,
            Some(_) => {}
        }
    }
}
