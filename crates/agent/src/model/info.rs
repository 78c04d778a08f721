//! Properties of a model.

use super::event::Usage;

/// Properties of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The provider: `anthropic`, `openai`, `gemini`, `openrouter`, `ollama`, … or `script`.
    pub provider: String,
    /// The provider's name for it.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// Tokens of a conversation; a careful guess if the provider does not report them.
    pub window: u64,
    /// The most tokens of one response.
    pub max_output: u32,
    /// Whether it accepts images.
    pub images: bool,
    /// Whether it accepts audio.
    pub audio: bool,
    /// Whether it supports thinking levels.
    pub thinking: bool,
    /// Whether it can call tools.
    pub tools: bool,
    /// Its price, if known.
    pub price: Option<Price>,
    /// The user's instructions for this model.
    pub prompt: Option<String>,
}

/// The largest window that counts as small.
const SMALL_WINDOW: u64 = 16 << 10;

impl ModelInfo {
    /// Whether the window is so small that prompt and tools have to be short.
    pub(crate) fn has_small_window(&self) -> bool {
        self.window <= SMALL_WINDOW
    }

    /// The name for [`Models::open`](super::Models::open), `provider/id`.
    pub fn spec(&self) -> String {
        match self.provider.as_str() {
            "script" => format!("script:{}", self.id),
            provider => format!("{provider}/{}", self.id),
        }
    }
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input from a cache.
    pub cache_read: f64,
    /// Input written to a cache.
    pub cache_write: f64,
}

impl Price {
    /// Every provider's cache costs a tenth to read; writing to it costs a quarter more where it
    /// costs at all.
    pub(crate) fn with_usual_cache(input: f64, output: f64) -> Self {
        Price { input, output, cache_read: input / 10.0, cache_write: input * 1.25 }
    }

    /// The cost of a response, in US dollars.
    pub fn of(&self, usage: &Usage) -> f64 {
        let tokens = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        tokens.iter().map(|(count, price)| *count as f64 * price).sum::<f64>() / 1e6
    }
}
