//! Shows a document page by page. What somebody is to agree to must not scroll away unread, and must not be cut.

use super::channel::Channel;
use super::document::Document;
use super::marks::Mark;

/// Rows that stay free below a page, for the question about it.
const FREE: usize = 2;
/// A page has at least so many lines, however low the terminal is.
const LEAST: usize = 4;

/// How far somebody has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// To the end.
    Complete,
    /// They wanted to see no more after so many lines of so many.
    Stopped { shown: usize, total: usize },
}

/// Shows a document. After each page, `answer` gives the line that was typed: `q` or the end of the input stops, `a` shows all that is
/// left, anything else shows the next page. Without a terminal all of it is shown at once.
pub(crate) async fn show(
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
        // One line more is shorter than the question for it.
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
