//! The models on offer, and how a name becomes a model.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::http_model::{HttpModel, Timeouts};
use super::provider::{Provider, Providers};
use super::script::Scripted;
use super::settings::Settings;
use super::{Model, ModelInfo, catalog, discovery};
use attache_http::client::HttpClient;
use parking_lot::RwLock;

/// The models on offer. Clones are cheap and share their state.
#[derive(Clone)]
pub struct Models(Arc<Inner>);

struct Inner {
    providers: Providers,
    /// Models of servers that people run themselves.
    discovered: RwLock<Vec<discovery::Found>>,
    /// Models whose servers answered without a window.
    unknown_windows: RwLock<HashSet<String>>,
    /// Whether servers are asked for their models.
    discover: bool,
    configured: Option<String>,
    http: HttpClient,
    timeouts: Timeouts,
}

impl Models {
    /// With these settings, without local discovery.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let http = match &settings.http {
            Some(http) => http.clone(),
            None => HttpClient::from_env().map_err(|error| error.to_string())?,
        };
        Ok(Models(Arc::new(Inner {
            providers: Providers::new(settings.providers.clone()),
            discovered: RwLock::default(),
            unknown_windows: RwLock::default(),
            discover: settings.discover,
            configured: settings.model.clone(),
            http,
            timeouts: settings.timeouts,
        })))
    }

    /// With these settings and the models of servers that people run themselves. Takes less than a
    /// second.
    pub async fn discover(settings: &Settings) -> Result<Self, String> {
        let models = Models::new(settings)?;
        if settings.discover {
            models.discover_local().await;
        }
        Ok(models)
    }

    /// Asks the servers that people run themselves for their models.
    pub async fn discover_local(&self) {
        let all = self.0.providers.all();
        let asked: Vec<Provider> = all.into_iter().filter(Provider::lists_models).collect();
        let found = discovery::models(&self.0.http, &asked, self.0.timeouts.discovery).await;
        *self.0.discovered.write() = found;
    }

    /// Asks the server of a model for the model's window, if the window is not known yet: a busy
    /// server may have missed the first question. Returns the model with its window.
    pub(crate) async fn look_up(&self, info: &ModelInfo) -> Option<Arc<dyn Model>> {
        let provider = self.0.providers.get(&info.provider)?;
        // Ollama's models have a tag that users omit.
        let is_it = |id: &str| id == info.id || id.strip_suffix(":latest") == Some(&info.id);
        let is_known = |found: &discovery::Found| {
            found.has_window && found.info.provider == info.provider && is_it(&found.info.id)
        };
        if !self.0.discover
            || !provider.lists_models()
            || provider.sampling_of(info).window.is_some()
            || self.0.discovered.read().iter().any(is_known)
            || self.0.unknown_windows.read().contains(&info.spec())
        {
            return None;
        }
        let found = discovery::models(&self.0.http, &[provider], self.0.timeouts.lookup).await;
        let has_window = found.iter().any(is_known);
        if !found.is_empty() {
            if !has_window {
                self.0.unknown_windows.write().insert(info.spec());
            }
            let mut discovered = self.0.discovered.write();
            discovered.retain(|known| known.info.provider != info.provider);
            discovered.extend(found);
        }
        if has_window {
            return self.open(&info.spec()).ok();
        }
        None
    }

    pub(crate) fn http(&self) -> &HttpClient {
        &self.0.http
    }

    /// The providers, which can be changed.
    pub fn providers(&self) -> &Providers {
        &self.0.providers
    }

    /// The models to choose from: those of providers with a key, and discovered ones.
    pub fn list(&self) -> Vec<ModelInfo> {
        let discovered: Vec<ModelInfo> =
            self.0.discovered.read().iter().map(|found| found.info.clone()).collect();
        let ready = self.0.providers.all().into_iter().filter(Provider::is_ready);
        ready
            .flat_map(|provider| {
                let own = discovered.iter().filter(|model| model.provider == provider.id).cloned();
                let named = provider.models.iter().map(|id| catalog::info(&provider.id, id));
                catalog::listed(&provider.id).into_iter().chain(named).chain(own).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The default model: the configured one, else the first of a provider with a key, else the
    /// first on this machine that supports tools.
    pub fn choose(&self) -> Option<String> {
        if let Some(configured) = &self.0.configured {
            return Some(configured.clone());
        }
        let list = self.list();
        list.iter().find(|model| model.tools).or_else(|| list.first()).map(ModelInfo::spec)
    }

    /// Opens a model by name: `anthropic/claude-sonnet-5-5`, `ollama/qwen3`, `script:FILE`, a
    /// provider alone for its default model, or a model alone if its name identifies the provider.
    pub fn open(&self, spec: &str) -> Result<Arc<dyn Model>, String> {
        let spec = spec.trim();
        if let Some(file) = spec.strip_prefix("script:") {
            return Ok(Arc::new(Scripted::open(Path::new(file))?));
        }
        let mut info = self.find(spec)?;
        let Some(provider) = self.0.providers.get(&info.provider) else {
            return Err(unknown(spec));
        };
        let sampling = provider.sampling_of(&info);
        match sampling.window {
            // A response must fit into the window too.
            Some(window) if provider.is_self_hosted() => drop(discovery::set_window(&mut info, Some(window))),
            window => info.window = window.unwrap_or(info.window),
        }
        let sampling = provider.sampling_of(&info);
        info.max_output = sampling.max_tokens.unwrap_or(info.max_output);
        info.price = sampling.price.apply(info.price);
        info.prompt = provider.prompt_of(&info.id);
        if !provider.enabled {
            return Err(format!(
                "the provider `{}` is disabled; enable it or choose another model",
                provider.id
            ));
        }
        if !provider.is_ready() {
            return Err(no_key(&provider));
        }
        if provider.base_url.is_empty() {
            return Err(format!("the provider `{}` has no URL; set one in the settings", provider.id));
        }
        Ok(Arc::new(HttpModel {
            info,
            providers: self.0.providers.clone(),
            http: self.0.http.clone(),
            timeouts: self.0.timeouts,
        }))
    }

    fn find(&self, spec: &str) -> Result<ModelInfo, String> {
        let list = self.list();
        if let Some(found) = list.iter().find(|model| model.spec() == spec || model.id == spec) {
            return Ok(found.clone());
        }
        if let Some((provider, id)) = spec.split_once('/')
            && self.0.providers.get(provider).is_some()
            && !id.is_empty()
        {
            // Ollama's models have a tag that users omit.
            let tagged =
                list.iter().find(|model| model.provider == provider && model.id == format!("{id}:latest"));
            return Ok(tagged.cloned().unwrap_or_else(|| catalog::info(provider, id)));
        }
        if let Some(provider) = self.0.providers.get(spec) {
            let own = list.into_iter().find(|model| model.provider == provider.id);
            let default = || catalog::listed(&provider.id).into_iter().next();
            return own.or_else(default).ok_or_else(|| {
                format!("{} has no models here; is it running at {}?", provider.name, provider.base_url)
            });
        }
        catalog::provider_of(spec).map(|provider| catalog::info(provider, spec)).ok_or_else(|| unknown(spec))
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Models").field("providers", &self.0.providers).finish_non_exhaustive()
    }
}

fn no_key(provider: &Provider) -> String {
    let vars = provider.key_vars.join(" or ");
    format!(
        "no key for {}; set {vars}, or log in with `attache agent --login {}`",
        provider.name, provider.id
    )
}

fn unknown(spec: &str) -> String {
    format!(
        "no model \"{spec}\"; write `provider/model`, such as `anthropic/claude-sonnet-5-5` or `ollama/qwen3`"
    )
}
