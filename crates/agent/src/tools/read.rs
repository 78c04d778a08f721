//! `read`: a text file, some lines of it, or an image.

use attache::wire::v1::{ContentBlock, ImageContent, ToolKind};
use attache_host::policy::Effect;
use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, missing, number, text};
use crate::model::Part;
use crate::text::clip_marked;
use crate::workspace::WorkspacePath;

/// The most lines of one read.
const MAX_LINES: u32 = 2000;
/// The longest line, in bytes.
const MAX_LINE: usize = 2000;
/// The largest image, in bytes.
const MAX_IMAGE: u64 = 5 << 20;

pub(crate) struct Read;

impl Tool for Read {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            ToolKind::Read,
            "read",
            "Reads a text file, with line numbers before each line (they are not part of the file). Long files are \
             read in parts with `line` and `limit`. Images (png, jpeg, gif, webp) can be read too.",
            &[
                ("path", text("the file, absolute or relative to the working directory"), true),
                ("line", number("the first line to read, from 1"), false),
                ("limit", number("how many lines to read; default: 2000"), false),
            ],
        )
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let path = cx.resolve(arguments.text("path")?)?;
        let line = arguments.number("line")?;
        let limit = arguments.number("limit")?.unwrap_or(MAX_LINES).min(MAX_LINES);
        let name = cx.short(&path);
        let title = match line {
            Some(line) => format!("Read {name} from line {line}"),
            None => format!("Read {name}"),
        };
        let effects = vec![Effect::Read(path.for_policy())];
        let shown = path.clone();
        let work = move |cx: ToolContext, _| async move { read(&cx, &path, line, limit).await };
        Ok(Job::new(title, effects, work).location(&shown, line))
    }
}

async fn read(cx: &ToolContext, path: &WorkspacePath, line: Option<u32>, limit: u32) -> Result<Output> {
    if path.is_dir() {
        return Err(format!("{} is a directory; use `list`", cx.short(path)).into());
    }
    if let Some(mime) = image_type(path) {
        return read_image(cx, path, mime).await;
    }
    cx.session.workspace.mark_read(path);
    let first = line.unwrap_or(1);
    // One line more shows whether there are more.
    let read = cx.session.workspace.read(&cx.turn, path, line, Some(limit.saturating_add(1))).await;
    let read = match read {
        Err(_) if !path.real.exists() => return Err(missing::error(cx, path).await),
        read => read?,
    };
    let (shown, more) = numbered(&read, first, limit, cx.result_limit);
    cx.session.workspace.mark_seen(path, (first == 1 && more.is_none()).then_some(read.as_str()));
    let total = match more {
        None => Some(first as usize - 1 + read.lines().count()),
        Some(_) => cx.session.workspace.count_lines(&cx.turn, path).await,
    };
    let mut answer = match shown.is_empty() {
        true if first > 1 => format!("(the file has fewer than {first} lines)"),
        true => "(the file is empty)".to_owned(),
        false => shown,
    };
    match (more, total) {
        (Some(next), Some(total)) => {
            answer.push_str(&format!(
                "(lines {first} to {} of {total}; continue with line={next})\n",
                next - 1
            ));
        }
        (Some(next), None) => answer.push_str(&format!("(there is more; continue with line={next})\n")),
        (None, Some(1)) => answer.push_str("(end of the file, 1 line)\n"),
        (None, Some(total)) if !read.is_empty() => {
            answer.push_str(&format!("(end of the file, {total} lines)\n"));
        }
        (None, _) => {}
    }
    Ok(Output::text(answer))
}

/// Lines with their numbers, and the first line that did not fit.
pub(super) fn numbered(text: &str, first: u32, limit: u32, max_text: usize) -> (String, Option<u32>) {
    let mut shown = String::new();
    for (number, line) in (first..).zip(text.lines()) {
        // The first line is always shown, so that a read makes progress.
        if number - first >= limit || number > first && shown.len() + line.len().min(MAX_LINE) > max_text {
            return (shown, Some(number));
        }
        shown.push_str(&format!("{number}\t{}\n", clip_marked(line, MAX_LINE, " [… cut]")));
    }
    (shown, None)
}

/// The media type of an image, by its name.
fn image_type(path: &WorkspacePath) -> Option<&'static str> {
    match path.named.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

async fn read_image(cx: &ToolContext, path: &WorkspacePath, mime: &str) -> Result<Output> {
    if !cx.session.accepts_images() {
        return Err(format!("{} is an image, and this model does not accept images", cx.short(path)).into());
    }
    let data = BASE64_STANDARD.encode(cx.session.workspace.bytes(path, MAX_IMAGE).await?);
    let block = ContentBlock::from(ImageContent::new(data.clone(), mime));
    let image = Part::Image { mime: mime.to_owned(), data };
    Ok(Output { parts: vec![image], content: Some(vec![block.into()]), ..Output::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_bounded() {
        let most = 64 << 10;
        assert_eq!(numbered("a\nb\n", 1, 5, most), ("1\ta\n2\tb\n".to_owned(), None));
        assert_eq!(numbered("a\nb\nc", 7, 2, most), ("7\ta\n8\tb\n".to_owned(), Some(9)));
        assert_eq!(numbered("aaaa\nb", 1, 9, 2), ("1\taaaa\n".to_owned(), Some(2)));
        let (shown, more) = numbered(&"x".repeat(3000), 1, 5, most);
        assert!(shown.len() < 2100 && shown.contains("cut") && more.is_none());
        let (shown, more) = numbered(&"y\n".repeat(100_000), 1, 1_000_000, most);
        assert!(shown.len() < most + 100 && more.is_some());
    }
}
