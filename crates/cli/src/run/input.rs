//! The prompt: words, a file, standard input.

use std::io::{IsTerminal as _, Read as _};

use attache::ContentBlock;
use serde_json::Value;

use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};

/// Whether text is piped in.
pub(crate) fn is_piped() -> bool {
    !std::io::stdin().is_terminal()
}

/// Reads the prompt.
pub(crate) fn prompt(cx: &Cx) -> Result<Vec<ContentBlock>> {
    let words = cx.args.words.join(" ");
    let words = words.trim();
    let blocks = match cx.flags.prompt.file.as_deref() {
        Some(_) => with_words(file(cx)?, words),
        None if !words.is_empty() => vec![words.into()],
        None if !is_piped() => {
            return Err(Failure::usage("no prompt").hint("provide it as words, with --file, or pipe it in"));
        }
        None => blocks(&stdin()?)?,
    };
    if blocks.is_empty() {
        return Err(Failure::usage("the prompt is empty"));
    }
    Ok(blocks)
}

/// Reads the prompt of `--file` alone.
pub(super) fn file(cx: &Cx) -> Result<Vec<ContentBlock>> {
    match cx.flags.prompt.file.as_deref().unwrap_or("-") {
        "-" => blocks(&stdin()?),
        file => {
            let path = cx.cwd.join(file);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Failure::usage(format_args!("the prompt {}: {error}", path.display())))?;
            blocks(&text)
        }
    }
}

fn stdin() -> Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
    String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8 text"))
}

/// The words follow the text as a separate block.
fn with_words(mut blocks: Vec<ContentBlock>, words: &str) -> Vec<ContentBlock> {
    if !words.is_empty() {
        blocks.push(words.into());
    }
    blocks
}

/// Plain text is one block; a JSON list of content blocks is taken as it is.
fn blocks(text: &str) -> Result<Vec<ContentBlock>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if text.starts_with('[')
        && let Ok(Value::Array(items)) = serde_json::from_str::<Value>(text)
        && items.iter().any(|item| item.get("type").is_some())
    {
        let read = |(at, item)| {
            serde_json::from_value::<ContentBlock>(item)
                .map_err(|error| Failure::usage(format_args!("block {at} of the prompt: {error}")))
        };
        return items.into_iter().enumerate().map(read).collect();
    }
    Ok(vec![text.into()])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::blocks;

    #[test]
    fn a_list_of_blocks_is_sent_as_blocks_and_anything_else_as_text() {
        assert_eq!(blocks("  hello \n").unwrap(), vec!["hello".into()]);
        assert_eq!(blocks("[1, 2]").unwrap(), vec!["[1, 2]".into()]);
        assert_eq!(blocks("[not json").unwrap(), vec!["[not json".into()]);
        let two = r#"[{"type":"text","text":"a"},{"type":"resource_link","name":"n","uri":"file:///n"}]"#;
        assert_eq!(blocks(two).unwrap().len(), 2);
        assert!(blocks(r#"[{"type":"text"}]"#).is_err());
        assert!(blocks(" ").unwrap().is_empty());
    }
}
