//! `providers/*`: the client configures the providers of models, until this process ends.

// PROV-11

use attache::agent::Providers;
use attache::wire::v1::{LlmProtocol, ProviderCurrentConfig, ProviderId, ProviderInfo, SetProviderRequest};
use attache::{Error, Result};

use crate::model::{Api, Key, KeySource, Models, Provider};
use crate::state::ModelChangeNotifier;
use attache_http::client as http;

/// Lists and changes providers for a client.
#[derive(Debug, Clone)]
pub struct Routes {
    models: Models,
    notifier: ModelChangeNotifier,
}

impl Routes {
    /// The providers of these models.
    pub fn new(models: Models) -> Self {
        Routes { models, notifier: ModelChangeNotifier::default() }
    }

    /// Notifies open sessions when the list of models changes.
    // CONF-16
    pub(crate) fn with_notifier(self, notifier: ModelChangeNotifier) -> Self {
        Routes { notifier, ..self }
    }

    async fn replace(&self, request: SetProviderRequest) {
        let id = request.provider_id.as_str();
        let named = request.headers.iter().filter_map(|(name, value)| Some((name.clone(), Key::new(value)?)));
        let headers = named.collect();
        self.models.providers().change(id, |provider| {
            // PROV-05: replaces the whole configuration, our own key included.
            provider.api = api(&request.api_type, &request.base_url, provider.api);
            provider.base_url = request.base_url.trim_end_matches('/').to_owned();
            provider.headers = headers;
            provider.key = None;
            provider.key_source = KeySource::Client;
            provider.key_vars.clear();
            provider.enabled = true;
        });
        // A model server can list its models.
        if self.models.providers().get(id).is_some_and(|provider| provider.is_self_hosted()) {
            self.models.discover_local().await;
        }
    }
}

impl Providers for Routes {
    async fn list(&self) -> Result<Vec<ProviderInfo>> {
        Ok(self.models.providers().all().iter().map(info).collect())
    }

    async fn set(&self, request: SetProviderRequest) -> Result<()> {
        http::check_url(&request.base_url).map_err(|error| Error::invalid_params(error.to_string()))?;
        self.notifier.watch(&self.models, self.replace(request)).await;
        Ok(())
    }

    async fn disable(&self, id: ProviderId) -> Result<()> {
        let disabling = async {
            self.models.providers().change(id.as_str(), |provider| provider.enabled = false);
        };
        self.notifier.watch(&self.models, disabling).await;
        Ok(())
    }
}

/// Without headers and key. A provider that cannot be used is shown as disabled.
// PROV-03, PROV-04
fn info(provider: &Provider) -> ProviderInfo {
    let supported = match provider.api {
        Api::Anthropic => vec![LlmProtocol::Anthropic],
        Api::Chat | Api::Responses => vec![LlmProtocol::OpenAi],
        // PROV-10: ACP has no name for these.
        Api::Gemini => vec![LlmProtocol::from("_gemini")],
        Api::Ollama => vec![LlmProtocol::from("_ollama"), LlmProtocol::OpenAi],
    };
    let current = provider.is_ready().then(|| {
        let kind = supported.first().cloned().unwrap_or(LlmProtocol::OpenAi);
        ProviderCurrentConfig::new(kind, provider.base_url.clone())
    });
    ProviderInfo::new(provider.id.as_str(), supported, false).current(current)
}

/// OpenAI itself speaks the newer protocol, others the older one.
fn api(kind: &LlmProtocol, base_url: &str, old: Api) -> Api {
    match kind {
        LlmProtocol::Anthropic => Api::Anthropic,
        LlmProtocol::OpenAi if base_url.contains("api.openai.com") => Api::Responses,
        LlmProtocol::OpenAi => Api::Chat,
        _ => old,
    }
}
