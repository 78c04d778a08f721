//! Checks of values that both sides exchange.

use std::path::Path;

use crate::{Error, Result};

/// The text of a path, which must be absolute to mean the same to both sides.
pub(crate) fn absolute(path: &Path) -> Result<&str> {
    match path.to_str() {
        Some(text) if path.is_absolute() => Ok(text),
        Some(text) => Err(Error::Invalid(format!("not an absolute path: `{text}`"))),
        None => Err(Error::Invalid(format!("not a UTF-8 path: `{}`", path.display()))),
    }
}

// SYSP-03: a system prompt holds text, at least one block of it.
#[cfg(feature = "unstable")]
pub(crate) fn system_prompt_content(prompt: &attache_wire::v1::SystemPrompt) -> Result<()> {
    use attache_wire::v1::ContentBlock;
    let text = prompt.content.iter().all(|block| matches!(block, ContentBlock::Text(_)));
    match text && !prompt.content.is_empty() {
        true => Ok(()),
        false => Err(Error::Invalid("a system prompt needs text blocks, at least one".to_owned())),
    }
}

/// An error that names the value and the alternatives: `no mode "9"; available: ask, plan`.
pub(crate) fn unknown<'a>(what: &str, value: &str, available: impl Iterator<Item = &'a str>) -> String {
    let available = available.collect::<Vec<_>>().join(", ");
    match available.as_str() {
        "" => format!("no {what} {value:?}"),
        list => format!("no {what} {value:?}; available: {list}"),
    }
}
