//! `providers/*`: the client says where models are reached. What it says lives as long as this process (PROV-11).

use attache::agent::Providers;
use attache::wire::v1::{LlmProtocol, ProviderCurrentConfig, ProviderId, ProviderInfo, SetProviderRequest};
use attache::{Error, Result};

use crate::house::Bell;
use crate::http;
use crate::model::{Api, Key, KeyFrom, Models, Provider};

/// The providers of some models, for a client to see and to change.
#[derive(Debug, Clone)]
pub struct Routes {
    models: Models,
    bell: Bell,
}

impl Routes {
    /// Those of these models.
    pub fn new(models: Models) -> Self {
        Routes { models, bell: Bell::default() }
    }

    /// CONF-16: with somebody to tell when there are other models.
    pub(crate) fn telling(self, bell: Bell) -> Self {
        Routes { bell, ..self }
    }

    async fn put(&self, request: SetProviderRequest) {
        let id = request.provider_id.as_str();
        let named = request.headers.iter().filter_map(|(name, value)| Some((name.clone(), Key::new(value)?)));
        let headers = named.collect();
        self.models.providers().change(id, |provider| {
            // PROV-05: nothing of what was set before stays, our own key neither.
            provider.api = api(&request.api_type, &request.base_url, provider.api);
            provider.base_url = request.base_url.trim_end_matches('/').to_owned();
            provider.headers = headers;
            provider.key = None;
            provider.key_from = KeyFrom::Client;
            provider.key_vars.clear();
            provider.enabled = true;
        });
        // Somebody on this machine can say which models there are.
        if self.models.providers().get(id).is_some_and(|provider| provider.is_local()) {
            self.models.look_around().await;
        }
    }
}

impl Providers for Routes {
    async fn list(&self) -> Result<Vec<ProviderInfo>> {
        Ok(self.models.providers().all().iter().map(info).collect())
    }

    async fn set(&self, request: SetProviderRequest) -> Result<()> {
        http::check_url(&request.base_url).map_err(|error| Error::invalid_params(error.to_string()))?;
        self.bell.around(&self.models, self.put(request)).await;
        Ok(())
    }

    async fn disable(&self, id: ProviderId) -> Result<()> {
        let disabling = async {
            self.models.providers().change(id.as_str(), |provider| provider.enabled = false);
        };
        self.bell.around(&self.models, disabling).await;
        Ok(())
    }
}

/// PROV-03: no headers and no key. PROV-04: one that cannot be used is shown as disabled.
fn info(provider: &Provider) -> ProviderInfo {
    let supported = match provider.api {
        Api::Anthropic => vec![LlmProtocol::Anthropic],
        Api::Chat | Api::Responses => vec![LlmProtocol::OpenAi],
        // PROV-10: the protocol has no word for these.
        Api::Gemini => vec![LlmProtocol::from("_gemini")],
        Api::Ollama => vec![LlmProtocol::from("_ollama"), LlmProtocol::OpenAi],
    };
    let current = provider.is_ready().then(|| {
        let kind = supported.first().cloned().unwrap_or(LlmProtocol::OpenAi);
        ProviderCurrentConfig::new(kind, provider.base_url.clone())
    });
    ProviderInfo::new(provider.id.as_str(), supported, false).current(current)
}

/// OpenAI itself speaks the newer language, everybody else the older one.
fn api(kind: &LlmProtocol, base_url: &str, old: Api) -> Api {
    match kind {
        LlmProtocol::Anthropic => Api::Anthropic,
        LlmProtocol::OpenAi if base_url.contains("api.openai.com") => Api::Responses,
        LlmProtocol::OpenAi => Api::Chat,
        _ => old,
    }
}
