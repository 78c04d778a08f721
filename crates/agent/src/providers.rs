//! `providers/*`: the client says where models are reached. What it says lives as long as this process (PROV-11).

use attache::agent::Providers;
use attache::wire::v1::{LlmProtocol, ProviderCurrentConfig, ProviderId, ProviderInfo, SetProviderRequest};
use attache::{Error, Result};

use crate::http;
use crate::model::{Api, Key, KeyFrom, Models, Provider};

/// The providers of some models, for a client to see and to change.
#[derive(Debug, Clone)]
pub struct Routes(Models);

impl Routes {
    /// Those of these models.
    pub fn new(models: Models) -> Self {
        Routes(models)
    }
}

impl Providers for Routes {
    async fn list(&self) -> Result<Vec<ProviderInfo>> {
        Ok(self.0.providers().all().iter().map(info).collect())
    }

    async fn set(&self, request: SetProviderRequest) -> Result<()> {
        http::check_url(&request.base_url).map_err(|error| Error::invalid_params(error.to_string()))?;
        let mut headers = Vec::new();
        for (name, value) in request.headers {
            let Some(value) = Key::new(&value) else { continue };
            headers.push((name, value));
        }
        self.0.providers().change(request.provider_id.as_str(), |provider| {
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
        if self.0.providers().get(request.provider_id.as_str()).is_some_and(|provider| provider.is_local()) {
            self.0.look_around().await;
        }
        Ok(())
    }

    async fn disable(&self, id: ProviderId) -> Result<()> {
        self.0.providers().change(id.as_str(), |provider| provider.enabled = false);
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
