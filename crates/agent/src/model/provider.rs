//! Providers of models, from settings, environment and client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Api, Key, ModelInfo, Price};
use attache_http::proxy::is_loopback;
use parking_lot::RwLock;

/// A provider of models.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The first part of a model's name: `anthropic`, `ollama`, …
    pub id: String,
    /// The name for people.
    pub name: String,
    /// Its protocol.
    pub api: Api,
    /// Its base URL.
    pub base_url: String,
    /// Its API key, if known.
    pub key: Option<Key>,
    /// Where the key is from.
    pub key_source: KeySource,
    /// Additional headers, whose values may be secret.
    pub headers: Vec<(String, Key)>,
    /// Models to list, besides known and discovered ones.
    pub models: Vec<String>,
    /// Whether it may be used.
    pub enabled: bool,
    /// Environment variables for its key; empty if it needs none.
    pub key_vars: Vec<String>,
    /// How long it may be silent; `None` for the default.
    pub timeout: Option<Duration>,
    /// How its models answer.
    pub sampling: Sampling,
    /// The same for single models, by id.
    pub model_sampling: BTreeMap<String, Sampling>,
    /// Whether its models may search the web with the provider's own tool, if its protocol has one.
    pub web_search: bool,
    /// Instructions for its models, by id; those under the empty id are for all others.
    pub prompts: BTreeMap<String, String>,
}

/// How a model answers and what it costs. What is `None` is up to the provider.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sampling {
    /// How random answers are, from 0.
    pub temperature: Option<f64>,
    /// The most tokens of a response.
    pub max_tokens: Option<u32>,
    /// The tokens of a conversation, if the server reports them wrongly or not at all.
    pub window: Option<u64>,
    /// Prices in the place of the known ones.
    pub price: PriceSettings,
}

/// Prices in US dollars per million tokens. What is `None` is the known price of the model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PriceSettings {
    /// Input.
    pub input: Option<f64>,
    /// Output.
    pub output: Option<f64>,
    /// Input from a cache; a tenth of the input's price if that one is set.
    pub cache_read: Option<f64>,
    /// Input written to a cache; a quarter more than the input's price if that one is set.
    pub cache_write: Option<f64>,
}

impl PriceSettings {
    /// Sets a price; `false` if there is none of that name.
    fn set(&mut self, field: &str, value: &str) -> Result<bool, String> {
        let price = match field {
            "input" => &mut self.input,
            "output" => &mut self.output,
            "cache_read" => &mut self.cache_read,
            "cache_write" => &mut self.cache_write,
            _ => return Ok(false),
        };
        let dollars = value.parse().ok().filter(|dollars: &f64| dollars.is_finite() && *dollars >= 0.0);
        let wrong = || format!("`{value}` is not a price in dollars per million tokens");
        *price = Some(dollars.ok_or_else(wrong)?);
        Ok(true)
    }

    /// These prices, and `other` where there is none.
    fn or(self, other: PriceSettings) -> Self {
        PriceSettings {
            input: self.input.or(other.input),
            output: self.output.or(other.output),
            cache_read: self.cache_read.or(other.cache_read),
            cache_write: self.cache_write.or(other.cache_write),
        }
    }

    /// The price of a model whose known price is `known`; `None` if input or output has none.
    pub(super) fn apply(&self, known: Option<Price>) -> Option<Price> {
        let input = self.input.or(known.map(|known| known.input))?;
        let output = self.output.or(known.map(|known| known.output))?;
        let usual = Price::with_usual_cache(input, output);
        let base = known.filter(|_| self.input.is_none()).unwrap_or(usual);
        Some(Price {
            input,
            output,
            cache_read: self.cache_read.unwrap_or(base.cache_read),
            cache_write: self.cache_write.unwrap_or(base.cache_write),
        })
    }
}

/// Providers that people run themselves, on this machine or another.
const SELF_HOSTED: [&str; 4] = ["ollama", "lmstudio", "llamacpp", "vllm"];

/// The temperature of models that people run themselves: with their usual ones they write broken
/// tool calls.
const LOCAL_TEMPERATURE: f64 = 0.2;

impl Sampling {
    /// Sets a field; `false` if there is none of that name.
    pub(super) fn set(&mut self, field: &str, value: &str) -> Result<bool, String> {
        let value = value.trim();
        let whole = || value.parse::<u32>().ok().filter(|tokens| *tokens > 0);
        let tokens = || whole().ok_or_else(|| format!("`{value}` is not a number of tokens"));
        match field {
            "temperature" => {
                let temperature = value.parse().ok().filter(|value| (0.0..=2.0).contains(value));
                let wrong = || format!("`{value}` is not a number from 0 to 2");
                self.temperature = Some(temperature.ok_or_else(wrong)?);
            }
            "max_tokens" => self.max_tokens = Some(tokens()?),
            "window" => self.window = Some(tokens()?.into()),
            field => {
                let price = field.strip_prefix("price.");
                return price.map_or(Ok(false), |price| self.price.set(price, value));
            }
        }
        Ok(true)
    }
}

/// Where a key is from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeySource {
    /// The settings, or there is no key.
    #[default]
    Settings,
    /// This environment variable.
    Env(String),
    /// A stored login.
    Store,
    /// The client.
    Client,
}

impl Provider {
    /// An enabled provider without a key.
    pub(super) fn new(id: &str, name: &str, api: Api, base_url: String) -> Self {
        Provider {
            id: id.to_owned(),
            name: name.to_owned(),
            api,
            base_url,
            key: None,
            key_source: KeySource::Settings,
            headers: Vec::new(),
            models: Vec::new(),
            enabled: true,
            key_vars: Vec::new(),
            timeout: None,
            sampling: Sampling::default(),
            model_sampling: BTreeMap::new(),
            web_search: false,
            prompts: BTreeMap::new(),
        }
    }

    /// How a model answers: its own settings, then those of the provider, then the defaults for
    /// models that people run themselves.
    pub(super) fn sampling_of(&self, info: &ModelInfo) -> Sampling {
        let own = self.model_sampling.get(&info.id).copied().unwrap_or_default();
        let is_self_hosted = self.is_self_hosted();
        Sampling {
            temperature: own
                .temperature
                .or(self.sampling.temperature)
                .or_else(|| is_self_hosted.then_some(LOCAL_TEMPERATURE)),
            max_tokens: own
                .max_tokens
                .or(self.sampling.max_tokens)
                .or_else(|| is_self_hosted.then_some(info.max_output)),
            window: own.window.or(self.sampling.window),
            price: own.price.or(self.sampling.price),
        }
    }

    /// The user's instructions for a model.
    pub(super) fn prompt_of(&self, model: &str) -> Option<String> {
        self.prompts.get(model).or_else(|| self.prompts.get("")).cloned()
    }

    /// Whether it is enabled, and has a key or needs none.
    pub fn is_ready(&self) -> bool {
        self.enabled && (self.key.is_some() || !self.headers.is_empty() || self.key_vars.is_empty())
    }

    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        is_loopback(host)
    }

    /// Whether people run it themselves: a server on this machine, or one of the known model
    /// servers elsewhere that needs no key.
    pub fn is_self_hosted(&self) -> bool {
        self.is_local() || self.key_vars.is_empty() && SELF_HOSTED.contains(&self.id.as_str())
    }

    /// Whether it can be asked for its models and their windows.
    pub(super) fn lists_models(&self) -> bool {
        self.is_ready()
            && self.key_vars.is_empty()
            && self.is_self_hosted()
            && matches!(self.api, Api::Chat | Api::Ollama)
    }

    /// Masks this provider's secrets in a text.
    pub(crate) fn mask(&self, text: &str) -> String {
        let keys = self.key.iter().chain(self.headers.iter().map(|(_, value)| value));
        keys.fold(text.to_owned(), |text, key| key.mask(&text))
    }

    /// The headers of every request to it.
    pub(crate) fn request_headers(&self) -> Vec<(String, String)> {
        let own = self.headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
        // Configured headers come last and so override the others.
        self.api.headers(self.key.as_ref().map(Key::reveal)).into_iter().chain(own).collect()
    }
}

/// All providers, shared: changes apply to the next request, also of open models.
#[derive(Debug, Clone, Default)]
pub struct Providers(Arc<RwLock<Vec<Provider>>>);

impl Providers {
    /// From this list.
    pub fn new(providers: Vec<Provider>) -> Self {
        Providers(Arc::new(RwLock::new(providers)))
    }

    /// All providers, with disabled ones.
    pub fn all(&self) -> Vec<Provider> {
        self.0.read().clone()
    }

    /// The provider with this id.
    pub fn get(&self, id: &str) -> Option<Provider> {
        self.all().into_iter().find(|provider| provider.id == id)
    }

    /// Changes a provider. Returns whether it exists.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut Provider)) -> bool {
        let mut all = self.0.write();
        let found = all.iter_mut().find(|provider| provider.id == id);
        found.map(change).is_some()
    }
}
