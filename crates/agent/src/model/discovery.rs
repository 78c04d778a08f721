//! Model servers that people run themselves, and their models.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::provider::Provider;
use super::{Api, ModelInfo, catalog, settings};
use attache_http::client::{HttpClient, Request};

/// The most bytes of a list.
const MAX_LIST: usize = 4 * 1024 * 1024;

/// The longest conversation with a local model, because memory is limited.
const MAX_WINDOW: u64 = 32_768;

/// A model that a server has.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) info: ModelInfo,
    /// Whether the server has reported the window.
    pub(super) has_window: bool,
}

/// Asks all providers in parallel for their models. No key is sent, because another program may
/// listen on the port.
pub(super) async fn models(http: &HttpClient, providers: &[Provider], limit: Duration) -> Vec<Found> {
    let asked =
        providers.iter().map(|provider| {
            let (http, provider) = (http.clone(), provider.clone());
            async move {
                tokio::time::timeout(limit, of(&http, &provider)).await.ok().flatten().unwrap_or_default()
            }
        });
    in_parallel(asked).await.into_iter().flatten().collect()
}

/// Runs all futures as tasks and returns their results in order. Dropping this aborts them.
async fn in_parallel<T: Default + Send + 'static>(
    work: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let mut tasks = JoinSet::new();
    let mut results = Vec::new();
    for (at, work) in work.enumerate() {
        tasks.spawn(async move { (at, work.await) });
        results.push(T::default());
    }
    while let Some(done) = tasks.join_next().await {
        if let Ok((at, result)) = done {
            results[at] = result;
        }
    }
    results
}

async fn of(http: &HttpClient, provider: &Provider) -> Option<Vec<Found>> {
    let root = provider.base_url.trim_end_matches("/v1");
    if provider.api == Api::Ollama {
        return ollama(http, provider, root).await;
    }
    if provider.id == "lmstudio"
        && let Some(list) =
            ask::<List<LmStudioModel>>(http, Request::get(format!("{root}/api/v0/models"))).await
    {
        return Some(list.data.into_iter().filter_map(|model| model.info(provider)).collect());
    }
    let list: List<OpenAiModel> = ask(http, Request::get(format!("{}/models", provider.base_url))).await?;
    let owner = list.data.first()?.owned_by.as_deref().unwrap_or_default();
    // Any program may listen on such ports; at its default URL a server has to identify itself.
    if settings::has_default_url(provider) && provider.id != "lmstudio" && owner != provider.id {
        return None;
    }
    let props: LlamaProps = match owner {
        "llamacpp" => ask(http, Request::get(format!("{root}/props"))).await.unwrap_or_default(),
        _ => LlamaProps::default(),
    };
    Some(list.data.iter().map(|model| model.info(provider, &props)).collect())
}

#[derive(Deserialize)]
struct List<T> {
    data: Vec<T>,
}

/// A model as llama.cpp, vLLM and others list it.
#[derive(Deserialize)]
struct OpenAiModel {
    id: String,
    owned_by: Option<String>,
    max_model_len: Option<u64>,
    context_length: Option<u64>,
    meta: Option<ContextSize>,
}

/// The properties of a llama.cpp server.
#[derive(Deserialize, Default)]
#[serde(default)]
struct LlamaProps {
    default_generation_settings: ContextSize,
    modalities: Modalities,
}

#[derive(Deserialize, Default)]
struct ContextSize {
    n_ctx: Option<u64>,
}

#[derive(Deserialize, Default)]
struct Modalities {
    vision: Option<bool>,
    audio: Option<bool>,
}

impl OpenAiModel {
    fn info(&self, provider: &Provider, props: &LlamaProps) -> Found {
        let mut info = catalog::info(&provider.id, &self.id);
        let from_meta = self.meta.as_ref().and_then(|meta| meta.n_ctx);
        let window = self.max_model_len.or(props.default_generation_settings.n_ctx).or(from_meta);
        let has_window = set_window(&mut info, window.or(self.context_length));
        info.images = props.modalities.vision.unwrap_or(info.images);
        info.audio = props.modalities.audio.unwrap_or(info.audio);
        // llama.cpp names its models by file.
        let file = self.id.rsplit('/').next().unwrap_or_default();
        info.name = format!("{} ({})", file.trim_end_matches(".gguf"), provider.name);
        Found { info, has_window }
    }
}

#[derive(Deserialize)]
struct LmStudioModel {
    id: String,
    r#type: Option<String>,
    loaded_context_length: Option<u64>,
    max_context_length: Option<u64>,
}

impl LmStudioModel {
    fn info(&self, provider: &Provider) -> Option<Found> {
        if self.r#type.as_deref() == Some("embeddings") {
            return None;
        }
        let mut info = catalog::info(&provider.id, &self.id);
        let has_window = set_window(&mut info, self.loaded_context_length.or(self.max_context_length));
        info.images = self.r#type.as_deref() == Some("vlm");
        info.name = format!("{} ({})", self.id, provider.name);
        Some(Found { info, has_window })
    }
}

/// A response takes at most a quarter of the window. Returns whether there is a window.
pub(super) fn set_window(info: &mut ModelInfo, window: Option<u64>) -> bool {
    let Some(window) = window.filter(|window| *window > 0) else { return false };
    info.window = window;
    info.max_output = u32::try_from(window / 4).unwrap_or(u32::MAX).clamp(256, 32_000);
    true
}

#[derive(Deserialize)]
struct OllamaTags {
    models: Vec<OllamaTag>,
}

#[derive(Deserialize)]
struct OllamaTag {
    name: String,
}

/// The details of an Ollama model.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OllamaModel {
    capabilities: Option<Vec<String>>,
    model_info: Map<String, Value>,
}

async fn ollama(http: &HttpClient, provider: &Provider, root: &str) -> Option<Vec<Found>> {
    let tags: OllamaTags = ask(http, Request::get(format!("{root}/api/tags"))).await?;
    let details = tags.models.iter().map(|tag| {
        let request = Request::post_json(format!("{root}/api/show"), &json!({ "model": tag.name }));
        let http = http.clone();
        async move { ask::<OllamaModel>(&http, request).await.unwrap_or_default() }
    });
    let details = in_parallel(details).await;
    Some(tags.models.iter().zip(details).filter_map(|(tag, model)| model.info(provider, &tag.name)).collect())
}

impl OllamaModel {
    fn info(&self, provider: &Provider, name: &str) -> Option<Found> {
        // Older servers do not report capabilities; then they are tried.
        let has = |word: &str| self.capabilities.as_ref().map(|list| list.iter().any(|known| known == word));
        if has("completion") == Some(false) {
            return None;
        }
        let mut info = catalog::info(&provider.id, name);
        let mut lengths = self.model_info.iter().filter(|(key, _)| key.ends_with(".context_length"));
        let has_window = set_window(
            &mut info,
            lengths.find_map(|(_, length)| length.as_u64()).map(|length| length.min(MAX_WINDOW)),
        );
        info.images = has("vision").unwrap_or(false);
        info.thinking = has("thinking").unwrap_or(false);
        info.tools = has("tools").unwrap_or(true);
        info.name = format!("{name} ({})", provider.name);
        Some(Found { info, has_window })
    }
}

async fn ask<T: DeserializeOwned>(http: &HttpClient, request: Request) -> Option<T> {
    let mut response = http.send(request).await.ok()?;
    let body = response.body.bytes(MAX_LIST).await.ok()?;
    (response.status == 200).then(|| serde_json::from_slice(&body).ok())?
}
