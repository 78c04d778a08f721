//! Model servers on this machine and their models.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::provider::Provider;
use super::{Api, ModelInfo, catalog, settings};
use crate::http::{Http, Request};

/// The most bytes of a list.
const MAX_LIST: usize = 4 * 1024 * 1024;

/// The longest conversation with a local model, because memory is limited.
const MAX_WINDOW: u64 = 32_768;

/// Asks all providers in parallel for their models. No key is sent, because another program may listen on the port.
pub(super) async fn models(http: &Http, providers: &[Provider], limit: Duration) -> Vec<ModelInfo> {
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

async fn of(http: &Http, provider: &Provider) -> Option<Vec<ModelInfo>> {
    let root = provider.base_url.trim_end_matches("/v1");
    if provider.api == Api::Ollama {
        return ollama(http, provider, root).await;
    }
    if provider.id == "lmstudio"
        && let Some(list) = ask(http, Request::get(format!("{root}/api/v0/models"))).await
    {
        return Some(list["data"].as_array()?.iter().filter_map(|model| lmstudio(provider, model)).collect());
    }
    let list = ask(http, Request::get(format!("{}/models", provider.base_url))).await?;
    let list = list["data"].as_array()?;
    let owner = list.first()?["owned_by"].as_str().unwrap_or_default();
    // Any program may listen on such ports; at its default URL a server has to identify itself.
    if settings::has_default_url(provider) && provider.id != "lmstudio" && owner != provider.id {
        return None;
    }
    let props = match owner {
        "llamacpp" => ask(http, Request::get(format!("{root}/props"))).await.unwrap_or_default(),
        _ => Value::Null,
    };
    Some(list.iter().filter_map(|model| openai(provider, model, &props)).collect())
}

/// A model as llama.cpp, vLLM and others list it.
fn openai(provider: &Provider, model: &Value, props: &Value) -> Option<ModelInfo> {
    let mut info = catalog::info(&provider.id, model["id"].as_str()?);
    let sizes = [
        &model["max_model_len"],
        &props["default_generation_settings"]["n_ctx"],
        &model["meta"]["n_ctx"],
        &model["context_length"],
    ];
    fit(&mut info, sizes.iter().find_map(|size| size.as_u64()));
    info.images = props["modalities"]["vision"].as_bool().unwrap_or(info.images);
    info.audio = props["modalities"]["audio"].as_bool().unwrap_or(info.audio);
    // llama.cpp names its models by file.
    let file = info.id.rsplit('/').next().unwrap_or_default();
    info.name = format!("{} ({})", file.trim_end_matches(".gguf"), provider.name);
    Some(info)
}

fn lmstudio(provider: &Provider, model: &Value) -> Option<ModelInfo> {
    let kind = model["type"].as_str().unwrap_or("llm");
    if kind == "embeddings" {
        return None;
    }
    let mut info = catalog::info(&provider.id, model["id"].as_str()?);
    fit(&mut info, model["loaded_context_length"].as_u64().or_else(|| model["max_context_length"].as_u64()));
    info.images = kind == "vlm";
    info.name = format!("{} ({})", info.id, provider.name);
    Some(info)
}

/// A response takes at most a quarter of the window.
fn fit(info: &mut ModelInfo, window: Option<u64>) {
    if let Some(window) = window.filter(|window| *window > 0) {
        info.window = window;
        info.max_output = u32::try_from(window / 4).unwrap_or(u32::MAX).clamp(256, 32_000);
    }
}

async fn ollama(http: &Http, provider: &Provider, root: &str) -> Option<Vec<ModelInfo>> {
    let list = ask(http, Request::get(format!("{root}/api/tags"))).await?;
    let names: Vec<&str> =
        list["models"].as_array()?.iter().filter_map(|model| model["name"].as_str()).collect();
    let shown = names.iter().map(|name| {
        let question = Request::post_json(format!("{root}/api/show"), &json!({ "model": name }));
        let http = http.clone();
        async move { ask(&http, question).await }
    });
    let shown = in_parallel(shown).await;
    let models = names.iter().zip(shown).filter_map(|(name, about)| {
        let about = about.unwrap_or_default();
        let can: Option<Vec<&str>> =
            about["capabilities"].as_array().map(|list| list.iter().filter_map(Value::as_str).collect());
        // Older servers do not report capabilities; then it is tried.
        let has = |word: &str| can.as_ref().map(|can| can.contains(&word));
        if has("completion") == Some(false) {
            return None;
        }
        let mut info = catalog::info(&provider.id, name);
        let sizes = about["model_info"].as_object().into_iter().flatten();
        let size =
            sizes.filter(|(key, _)| key.ends_with(".context_length")).find_map(|(_, size)| size.as_u64());
        fit(&mut info, size.map(|size| size.min(MAX_WINDOW)));
        info.images = has("vision").unwrap_or(false);
        info.thinking = has("thinking").unwrap_or(false);
        info.tools = has("tools").unwrap_or(true);
        info.name = format!("{name} ({})", provider.name);
        Some(info)
    });
    Some(models.collect())
}

async fn ask(http: &Http, request: Request) -> Option<Value> {
    let mut answer = http.send(request).await.ok()?;
    let body = answer.body.bytes(MAX_LIST).await.ok()?;
    (answer.status == 200).then(|| serde_json::from_slice(&body).ok())?
}
