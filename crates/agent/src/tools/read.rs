//! `read`: a file, or some lines of it; a picture, if the model takes those.

use attache::wire::v1::{ContentBlock, ImageContent, ToolKind};
use attache_host::policy::Effect;

use super::{Arguments, Boxed, Cx, Job, Output, Tool, clip, number, spec, text};
use crate::ground::{Ground, Place};
use crate::model::{Part, ToolSpec};

/// How many lines are read unless told.
const LINES: u32 = 2000;
/// How long a line may be; what is longer was not written by a person.
const LINE: usize = 2000;
/// The most text of one read.
const MOST: usize = 64 << 10;
/// The largest picture.
const PICTURE: u64 = 5 << 20;

pub(crate) struct Read;

impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        spec(
            "read",
            "Reads a text file, with line numbers before each line (they are not part of the file). Long files are \
             read in parts with `line` and `limit`. Pictures (png, jpeg, gif, webp) can be read too.",
            &[
                ("path", text("the file, absolute or relative to the working directory"), true),
                ("line", number("the first line to read, counted from 1"), false),
                ("limit", number("how many lines to read; 2000 unless given"), false),
            ],
        )
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Read
    }

    fn prepare<'a>(&'a self, cx: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        Box::pin(async move {
            let place = cx.place(arguments.text("path")?)?;
            let line = arguments.number("line")?;
            let limit = arguments.number("limit")?.unwrap_or(LINES).min(LINES);
            let name = cx.short(&place);
            let title = match line {
                Some(line) => format!("Read {name} from line {line}"),
                None => format!("Read {name}"),
            };
            let effects = vec![Effect::Read(place.path())];
            let at = place.clone();
            let work = move |cx: Cx, _| async move { read(&cx, &place, line, limit).await };
            Ok(Job::new(title, ToolKind::Read, effects, work).at(&at, line))
        })
    }
}

async fn read(cx: &Cx, place: &Place, line: Option<u32>, limit: u32) -> Result<Output, String> {
    if Ground::is_dir(place) {
        return Err(format!("{} is a directory; use `list`", cx.short(place)));
    }
    if let Some(mime) = picture(place) {
        return look(cx, place, mime).await;
    }
    cx.live.note_read(&place.real);
    let first = line.unwrap_or(1);
    // One line more tells whether there is more.
    let read = cx.live.ground.read(&cx.turn, place, line, Some(limit.saturating_add(1))).await?;
    let (shown, more) = numbered(&read, first, limit);
    let mut answer = match shown.is_empty() {
        true if first > 1 => format!("(the file has fewer than {first} lines)"),
        true => "(the file is empty)".to_owned(),
        false => shown,
    };
    if let Some(next) = more {
        answer.push_str(&format!("(there is more; read on with line={next})\n"));
    }
    Ok(Output::text(answer))
}

/// Lines with their numbers, and the first line that found no room.
fn numbered(text: &str, first: u32, limit: u32) -> (String, Option<u32>) {
    let mut shown = String::new();
    for (number, line) in (first..).zip(text.lines()) {
        if number - first >= limit || shown.len() >= MOST {
            return (shown, Some(number));
        }
        let (line, cut) = clip(line, LINE);
        shown.push_str(&format!("{number}\t{line}{}\n", if cut { " [… cut]" } else { "" }));
    }
    (shown, None)
}

/// The media type of a picture, by its name.
fn picture(place: &Place) -> Option<&'static str> {
    match place.named.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

async fn look(cx: &Cx, place: &Place, mime: &str) -> Result<Output, String> {
    if !cx.live.takes_images() {
        return Err(format!("{} is a picture, and this model does not take pictures", cx.short(place)));
    }
    let data = base64(&cx.live.ground.bytes(place, PICTURE).await?);
    let block = ContentBlock::from(ImageContent::new(data.clone(), mime));
    let image = Part::Image { mime: mime.to_owned(), data };
    Ok(Output { parts: vec![image], content: Some(vec![block.into()]), ..Output::default() })
}

/// RFC 4648, with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i > three.len() { '=' } else { letter as char });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn lines_are_numbered_and_bounded() {
        assert_eq!(numbered("a\nb\n", 1, 5), ("1\ta\n2\tb\n".to_owned(), None));
        assert_eq!(numbered("a\nb\nc", 7, 2), ("7\ta\n8\tb\n".to_owned(), Some(9)));
        let (shown, more) = numbered(&"x".repeat(3000), 1, 5);
        assert!(shown.len() < 2100 && shown.contains("cut") && more.is_none());
        let (shown, more) = numbered(&"y\n".repeat(100_000), 1, 1_000_000);
        assert!(shown.len() < MOST + 100 && more.is_some());
    }
}
