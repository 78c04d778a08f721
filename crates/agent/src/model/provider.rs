//! Who offers models, and where: what settings, environment and client say about it.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::{Api, Key};
use crate::http;

/// Somebody who offers models.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The first part of a model's name: `anthropic`, `ollama`, …
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The language it speaks.
    pub api: Api,
    /// Where it is.
    pub base_url: String,
    /// The key, if it needs one and we have it.
    pub key: Option<Key>,
    /// Where the key is from.
    pub key_from: KeyFrom,
    /// Further headers, whose values may be secrets too.
    pub headers: Vec<(String, Key)>,
    /// Models to offer, besides those that are known or found.
    pub models: Vec<String>,
    /// Whether it may be used at all.
    pub enabled: bool,
    /// The variables in which its key is looked for; none if it needs no key.
    pub key_vars: Vec<String>,
    /// How long it may be silent; `None` for as long as anybody.
    pub timeout: Option<Duration>,
}

/// Where a key is from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyFrom {
    /// There is none, or it was set by hand.
    #[default]
    Settings,
    /// This variable of the environment.
    Env(String),
    /// The store of a former login.
    Store,
    /// The client that we work for.
    Client,
}

impl Provider {
    /// Whether it can be asked: it is enabled, and has a key or needs none.
    pub fn is_ready(&self) -> bool {
        self.enabled && (self.key.is_some() || !self.headers.is_empty() || self.key_vars.is_empty())
    }

    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        let place = rest.split('/').next().unwrap_or_default();
        let host = match place.strip_prefix('[') {
            Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
            None => place.split(':').next().unwrap_or_default(),
        };
        http::is_loopback(host)
    }

    /// A text without this provider's secrets.
    pub(crate) fn mask(&self, text: &str) -> String {
        let keys = self.key.iter().chain(self.headers.iter().map(|(_, value)| value));
        keys.fold(text.to_owned(), |text, key| key.mask(&text))
    }

    /// The headers of every request to it.
    pub(crate) fn request_headers(&self) -> Vec<(String, String)> {
        let fixed =
            self.api.fixed_headers().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let key = self.key.iter().map(|key| self.api.key_header(key.reveal()));
        let own = self.headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
        // What was set by hand comes last, and so wins.
        fixed.chain(key).chain(own).collect()
    }
}

/// All providers, shared: what is changed here counts from the next request on, also for models that are open.
#[derive(Debug, Clone, Default)]
pub struct Providers(Arc<RwLock<Vec<Provider>>>);

impl Providers {
    /// These.
    pub fn new(providers: Vec<Provider>) -> Self {
        Providers(Arc::new(RwLock::new(providers)))
    }

    /// All of them, disabled ones too.
    pub fn all(&self) -> Vec<Provider> {
        self.0.read().map(|all| all.clone()).unwrap_or_default()
    }

    /// One of them.
    pub fn get(&self, id: &str) -> Option<Provider> {
        self.all().into_iter().find(|provider| provider.id == id)
    }

    /// Changes one of them; whether it is there.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut Provider)) -> bool {
        let Ok(mut all) = self.0.write() else { return false };
        let found = all.iter_mut().find(|provider| provider.id == id);
        found.map(change).is_some()
    }
}
