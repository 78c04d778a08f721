//! What can be asked from here, and how a name becomes a model.

use std::path::Path;
use std::sync::{Arc, RwLock};

use super::provider::{Provider, Providers};
use super::remote::{Patience, Remote};
use super::script::Scripted;
use super::settings::Settings;
use super::{Api, Model, ModelInfo, discover, known};
use crate::http::Http;

/// The models that are known and reachable. Cheap to clone; all clones share what was found and what was set.
#[derive(Clone)]
pub struct Models(Arc<Inner>);

struct Inner {
    providers: Providers,
    /// What servers on this machine said they have.
    found: RwLock<Vec<ModelInfo>>,
    wanted: Option<String>,
    http: Http,
    patience: Patience,
}

impl Models {
    /// With these settings, without looking at anything yet.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let http = match &settings.http {
            Some(http) => http.clone(),
            None => Http::from_env().map_err(|error| error.to_string())?,
        };
        Ok(Models(Arc::new(Inner {
            providers: Providers::new(settings.providers.clone()),
            found: RwLock::default(),
            wanted: settings.model.clone(),
            http,
            patience: settings.patience,
        })))
    }

    /// With these settings and whatever servers on this machine have to offer. Takes less than a second.
    pub async fn discover(settings: &Settings) -> Result<Self, String> {
        let models = Models::new(settings)?;
        if settings.look_around {
            models.look_around().await;
        }
        Ok(models)
    }

    /// Asks the servers on this machine (again) which models they have.
    pub async fn look_around(&self) {
        let asked: Vec<Provider> = self
            .0
            .providers
            .all()
            .into_iter()
            .filter(|provider| provider.is_ready() && provider.key_vars.is_empty() && provider.is_local())
            .filter(|provider| matches!(provider.api, Api::Chat | Api::Ollama))
            .collect();
        let found = discover::models(&self.0.http, &asked, self.0.patience.look).await;
        if let Ok(mut place) = self.0.found.write() {
            *place = found;
        }
    }

    /// The providers, which may be changed.
    pub fn providers(&self) -> &Providers {
        &self.0.providers
    }

    /// The models to choose from: those of providers with a key, and those that were found.
    pub fn list(&self) -> Vec<ModelInfo> {
        let found = self.0.found.read().map(|found| found.clone()).unwrap_or_default();
        let ready = self.0.providers.all().into_iter().filter(Provider::is_ready);
        ready
            .flat_map(|provider| {
                let own = found.iter().filter(|model| model.provider == provider.id).cloned();
                let named = provider.models.iter().map(|id| known::info(&provider.id, id));
                known::listed(&provider.id).into_iter().chain(named).chain(own).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The model to use if nobody chooses: the one that was wanted, else the first of a provider with a key, else the first
    /// on this machine that can use tools. `None` if there is nothing at all.
    pub fn choose(&self) -> Option<String> {
        if let Some(wanted) = &self.0.wanted {
            return Some(wanted.clone());
        }
        let list = self.list();
        list.iter().find(|model| model.tools).or_else(|| list.first()).map(ModelInfo::spec)
    }

    /// Opens a model by name: `anthropic/claude-sonnet-5-5`, `ollama/qwen3`, `script:FILE`, the name of a provider alone
    /// for its usual model, or the name of a model alone if it tells whose it is.
    pub fn open(&self, spec: &str) -> Result<Arc<dyn Model>, String> {
        let spec = spec.trim();
        if let Some(file) = spec.strip_prefix("script:") {
            return Ok(Arc::new(Scripted::open(Path::new(file))?));
        }
        let info = self.find(spec)?;
        let Some(provider) = self.0.providers.get(&info.provider) else {
            return Err(unknown(spec));
        };
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
        Ok(Arc::new(Remote {
            info,
            providers: self.0.providers.clone(),
            http: self.0.http.clone(),
            patience: self.0.patience,
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
            // Ollama's models have a tag that people leave out.
            let tagged =
                list.iter().find(|model| model.provider == provider && model.id == format!("{id}:latest"));
            return Ok(tagged.cloned().unwrap_or_else(|| known::info(provider, id)));
        }
        if let Some(provider) = self.0.providers.get(spec) {
            let own = list.into_iter().find(|model| model.provider == provider.id);
            let usual = || known::listed(&provider.id).into_iter().next();
            return own.or_else(usual).ok_or_else(|| {
                format!("{} has no models here; is it running at {}?", provider.name, provider.base_url)
            });
        }
        known::provider_of(spec).map(|provider| known::info(provider, spec)).ok_or_else(|| unknown(spec))
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
        "there is no key for {}; set {vars}, or log in with `attache agent --login {}`",
        provider.name, provider.id
    )
}

fn unknown(spec: &str) -> String {
    format!(
        "there is no model `{spec}`; write `provider/model`, such as `anthropic/claude-sonnet-5-5` or `ollama/qwen3`"
    )
}
