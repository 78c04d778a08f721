//! A model that is played from a file, for demos and tests.
//!
//! `docs/guide/providers.md` describes the format. There is no state between requests: the next
//! response follows from the conversation in the request, so a script continues after a restart and
//! serves many sessions at once.

mod parse;
mod play;

use std::path::Path;
use std::sync::Arc;

use super::{Model, ModelInfo, Request, Stream, ToolCall};
use parse::Script;

/// A model that is played from a file.
#[derive(Debug)]
pub struct Scripted {
    info: ModelInfo,
    script: Arc<Script>,
}

impl Scripted {
    /// Reads a script from a file.
    pub fn open(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the script {}: {error}", path.display()))?;
        Scripted::new(&path.display().to_string(), &text)
    }

    /// Parses a script. `id` is the name in lists and errors.
    pub fn new(id: &str, text: &str) -> Result<Self, String> {
        let script = parse::script(text).map_err(|error| format!("{id}: {error}"))?;
        let head = &script.head;
        let title = head.name.clone().unwrap_or_else(|| {
            Path::new(id)
                .file_stem()
                .map_or_else(|| id.to_owned(), |stem| stem.to_string_lossy().into_owned())
        });
        let info = ModelInfo {
            provider: "script".to_owned(),
            id: id.to_owned(),
            // It must not be mistaken for a language model.
            name: format!("{title} (scripted, no language model)"),
            window: head.window,
            max_output: u32::try_from(head.window / 4).unwrap_or(u32::MAX).min(32_000),
            images: head.images,
            audio: head.audio,
            thinking: true,
            tools: true,
            price: head.price,
            prompt: None,
        };
        Ok(Scripted { info, script: Arc::new(script) })
    }
}

impl Model for Scripted {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn start(&self, request: Request) -> Stream {
        let script = self.script.clone();
        Stream::new(|events| async move { play::answer(&script, &request, &events).await })
    }
}

#[cfg(test)]
mod tests;
