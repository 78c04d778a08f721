//! What is known about a model before it is asked.

use super::event::Usage;

/// What is known about a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// Whose it is: `anthropic`, `openai`, `gemini`, `openrouter`, `ollama`, … or `script`.
    pub provider: String,
    /// The provider's name for it.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// How many tokens a conversation may have; a careful guess where the provider does not tell.
    pub window: u64,
    /// The most tokens of one answer.
    pub max_output: u32,
    /// Whether it takes pictures.
    pub images: bool,
    /// Whether it takes sound.
    pub audio: bool,
    /// Whether it can be told how long to think.
    pub thinking: bool,
    /// Whether it can call tools.
    pub tools: bool,
    /// What it costs, if that is known.
    pub price: Option<Price>,
}

impl ModelInfo {
    /// The text that [`Models::open`](super::Models::open) takes, `provider/id`.
    pub fn spec(&self) -> String {
        match self.provider.as_str() {
            "script" => format!("script:{}", self.id),
            provider => format!("{provider}/{}", self.id),
        }
    }
}

/// Prices in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from a cache.
    pub cache_read: f64,
    /// Written to a cache.
    pub cache_write: f64,
}

impl Price {
    /// What an answer cost, in US dollars.
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
