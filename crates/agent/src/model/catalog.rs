//! Models that are known by name, with their sizes and prices.
//!
//! Sizes and prices are those that the providers published in November 2026, for prompts of
//! ordinary length. A model that is not listed works as well; it has no price, and a careful guess
//! for its window.

use super::{ModelInfo, Price};

/// One line of the table.
struct CatalogEntry {
    provider: &'static str,
    /// The beginning of its id; the longest match counts.
    id: &'static str,
    /// The name to show; empty for those that are not listed.
    name: &'static str,
    /// Thousands of tokens: of a conversation, and of a response.
    size: (u32, u32),
    thinking: bool,
    /// Dollars per million tokens, input and output.
    price: Option<(f64, f64)>,
}

const fn line(
    provider: &'static str,
    id: &'static str,
    name: &'static str,
    size: (u32, u32),
    thinking: bool,
    price: Option<(f64, f64)>,
) -> CatalogEntry {
    CatalogEntry { provider, id, name, size, thinking, price }
}

/// The first of a provider is its default.
const TABLE: &[CatalogEntry] = &[
    line("anthropic", "claude-sonnet-5-5", "Claude Sonnet 5.5", (1000, 128), true, Some((2.0, 10.0))),
    line("anthropic", "claude-opus-5-5", "Claude Opus 5.5", (1000, 128), true, Some((4.0, 20.0))),
    line("anthropic", "claude-fable-5-1", "Claude Fable 5.1", (1000, 128), true, Some((10.0, 50.0))),
    line("anthropic", "claude-haiku-5-5", "Claude Haiku 5.5", (1000, 128), true, None),
    line("anthropic", "claude-haiku-4-5", "Claude Haiku 4.5", (200, 64), true, Some((1.0, 5.0))),
    line("anthropic", "claude-opus-5", "", (1000, 128), true, Some((5.0, 25.0))),
    line("anthropic", "claude-sonnet-5", "", (1000, 128), true, Some((2.0, 10.0))),
    line("anthropic", "claude-opus-4", "", (200, 32), true, Some((5.0, 25.0))),
    line("anthropic", "claude-opus-4-1", "", (200, 32), true, Some((15.0, 75.0))),
    line("anthropic", "claude-opus-4-2", "", (200, 32), true, Some((15.0, 75.0))),
    line("anthropic", "claude-sonnet-4", "", (200, 64), true, Some((3.0, 15.0))),
    line("anthropic", "claude-3", "", (200, 8), false, None),
    line("anthropic", "claude", "", (200, 32), true, None),
    line("openai", "gpt-5.4", "GPT-5.4", (1000, 128), true, Some((2.5, 15.0))),
    line("openai", "gpt-5.5", "GPT-5.5", (1000, 128), true, Some((5.0, 30.0))),
    line("openai", "gpt-5.4-mini", "GPT-5.4 mini", (400, 128), true, Some((0.75, 4.5))),
    line("openai", "gpt-5.4-nano", "GPT-5.4 nano", (400, 128), true, Some((0.2, 1.25))),
    line("openai", "gpt-5.4-pro", "", (1000, 128), true, Some((30.0, 180.0))),
    line("openai", "gpt-5.5-pro", "", (1000, 128), true, Some((30.0, 180.0))),
    line("openai", "gpt-5", "", (400, 128), true, None),
    line("openai", "gpt-4", "", (128, 16), false, None),
    line("openai", "gpt-4.1", "", (1000, 32), false, Some((2.0, 8.0))),
    line("openai", "gpt", "", (400, 128), true, None),
    line("openai", "o", "", (200, 100), true, None),
    line("gemini", "gemini-3.8-flash", "Gemini 3.8 Flash", (1048, 65), true, None),
    line("gemini", "gemini-3.1-pro-preview", "Gemini 3.1 Pro", (1048, 65), true, Some((2.0, 12.0))),
    line("gemini", "gemini-3.5-flash", "Gemini 3.5 Flash", (1048, 65), true, Some((1.5, 9.0))),
    line("gemini", "gemini-3.5-flash-lite", "Gemini 3.5 Flash-Lite", (1048, 65), true, Some((0.3, 2.5))),
    line("gemini", "gemini-2.5-pro", "", (1048, 65), true, Some((1.25, 10.0))),
    line("gemini", "gemini-2.5-flash", "", (1048, 65), true, Some((0.3, 2.5))),
    line("gemini", "gemini-2.0", "", (1048, 8), false, None),
    line("gemini", "gemini", "", (1048, 65), true, None),
    line("openrouter", "openrouter/auto", "OpenRouter, its choice", (128, 16), true, None),
];

/// The properties of a model, by its id.
pub(super) fn info(provider: &str, id: &str) -> ModelInfo {
    let fitting = TABLE.iter().filter(|entry| entry.provider == provider && id.starts_with(entry.id));
    match fitting.max_by_key(|entry| entry.id.len()) {
        Some(entry) => entry.info(id),
        None => resold(provider, id).unwrap_or_else(|| unknown(provider, id)),
    }
}

/// A model of another provider that this one resells: the same model at another price.
fn resold(provider: &str, id: &str) -> Option<ModelInfo> {
    let bare = id.rsplit('/').next()?;
    let family = provider_of(bare).filter(|family| *family != provider)?;
    let (provider, id) = (provider.to_owned(), id.to_owned());
    Some(ModelInfo { provider, name: id.clone(), id, price: None, ..info(family, bare) })
}

/// The models of a provider to list.
pub(super) fn listed(provider: &str) -> Vec<ModelInfo> {
    let named = TABLE.iter().filter(|entry| entry.provider == provider && !entry.name.is_empty());
    named.map(|entry| entry.info(entry.id)).collect()
}

/// The provider of models with such ids.
pub(super) fn provider_of(id: &str) -> Option<&'static str> {
    let prefixes = [
        ("claude", "anthropic"),
        ("gpt-", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("gemini-", "gemini"),
    ];
    // OpenAI's open models run elsewhere and can do less.
    let mut matching =
        prefixes.iter().filter(|(prefix, _)| id.starts_with(prefix) && !id.starts_with("gpt-oss"));
    matching.next().map(|(_, provider)| *provider)
}

impl CatalogEntry {
    fn info(&self, id: &str) -> ModelInfo {
        let name = if self.id == id { self.name } else { "" };
        ModelInfo {
            provider: self.provider.to_owned(),
            id: id.to_owned(),
            name: if name.is_empty() { id.to_owned() } else { name.to_owned() },
            window: u64::from(self.size.0) * 1000,
            max_output: self.size.1 * 1000,
            images: true,
            audio: self.provider == "gemini",
            thinking: self.thinking,
            tools: true,
            price: self.price.map(|(input, output)| Price::with_usual_cache(input, output)),
            prompt: None,
        }
    }
}

/// A model without an entry. Images and thinking are not tried, because servers report badly that
/// they lack them.
fn unknown(provider: &str, id: &str) -> ModelInfo {
    ModelInfo {
        provider: provider.to_owned(),
        id: id.to_owned(),
        name: id.to_owned(),
        window: 32_000,
        max_output: 8_000,
        images: provider == "openrouter",
        audio: false,
        thinking: provider == "openrouter",
        tools: true,
        price: None,
        prompt: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_longest_prefix_counts() {
        assert_eq!(info("openai", "gpt-5.4-mini-2026-03-17").price.map(|price| price.input), Some(0.75));
        assert_eq!(info("openai", "gpt-5.4-2026-03-05").price.map(|price| price.input), Some(2.5));
        assert_eq!(info("anthropic", "claude-opus-4-1-20250805").price.map(|price| price.output), Some(75.0));
        assert_eq!(info("anthropic", "claude-opus-4-6").price.map(|price| price.output), Some(25.0));
        assert_eq!(info("anthropic", "claude-next").window, 200_000);
        assert_eq!(info("ollama", "qwen3").window, 32_000);
        assert_eq!(provider_of("claude-x"), Some("anthropic"));
        assert_eq!((provider_of("gpt-oss-20b"), info("vllm", "gpt-oss-20b").images), (None, false));
        let passed_on = info("mine", "anthropic/claude-sonnet-5-5");
        assert_eq!((passed_on.window, passed_on.thinking, passed_on.price), (1_000_000, true, None));
        assert_eq!(passed_on.spec(), "mine/anthropic/claude-sonnet-5-5");
        assert_eq!(provider_of("qwen3"), None);
    }

    #[test]
    fn a_listed_model_is_found_again() {
        for provider in ["anthropic", "openai", "gemini", "openrouter"] {
            let listed = listed(provider);
            assert!(!listed.is_empty(), "{provider}");
            for model in listed {
                assert_eq!(info(provider, &model.id), model);
            }
        }
    }

    #[test]
    fn costs_are_counted_by_kind() {
        let usage = super::super::Usage {
            input: 1_000_000,
            output: 100_000,
            cache_read: 500_000,
            cache_write: 200_000,
            thought: 0,
        };
        let price = info("anthropic", "claude-sonnet-5-5").price.unwrap();
        assert!((price.of(&usage) - (2.0 + 1.0 + 0.1 + 0.5)).abs() < 1e-9);
    }
}
