//! The models on offer, and how a name becomes a model.

use std::path::Path;
use std::sync::Arc;

use super::http_model::{HttpModel, Timeouts};
use super::provider::{Provider, Providers};
use super::script::Scripted;
use super::settings::Settings;
use super::{Api, Model, ModelInfo, catalog, discovery};
use attache_http::client::HttpClient;
use parking_lot::RwLock;

/// The models on offer. Clones are cheap and share their state.
#[derive(Clone)]
pub struct Models(Arc<Inner>);

struct Inner {
    providers: Providers,
    /// Models of servers on this machine.
    discovered: RwLock<Vec<ModelInfo>>,
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
            configured: settings.model.clone(),
            http,
            timeouts: settings.timeouts,
        })))
    }

    /// With these settings and the models of servers on this machine. Takes less than a second.
    pub async fn discover(settings: &Settings) -> Result<Self, String> {
        let models = Models::new(settings)?;
        if settings.discover {
            models.discover_local().await;
        }
        Ok(models)
    }

    /// Asks the servers on this machine for their models.
    pub async fn discover_local(&self) {
        let asked: Vec<Provider> = self
            .0
            .providers
            .all()
            .into_iter()
            .filter(|provider| provider.is_ready() && provider.key_vars.is_empty() && provider.is_local())
            .filter(|provider| matches!(provider.api, Api::Chat | Api::Ollama))
            .collect();
        let found = discovery::models(&self.0.http, &asked, self.0.timeouts.discovery).await;
        *self.0.discovered.write() = found;
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
        let discovered = self.0.discovered.read().clone();
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
        info.window = sampling.window.unwrap_or(info.window);
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
