//! Providers of models, from settings, environment and client.

use std::sync::Arc;
use std::time::Duration;

use super::{Api, Key};
use crate::http;
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
        }
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
        http::is_loopback(host)
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
