//! Servers on this machine: who is there, and which models it has.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};

use super::provider::Provider;
use super::{Api, ModelInfo, known, settings};
use crate::http::{Http, Request};

/// The most that is read of a list.
const LONGEST: usize = 4 * 1024 * 1024;

/// A conversation with a model that runs here: as long as it can be, but not so long that memory gets short.
const LARGEST_WINDOW: u64 = 32_768;

/// Asks all of these at once and gives back what they have. No key is sent: whoever listens on a port need not be who
/// usually does.
pub(super) async fn models(http: &Http, providers: &[Provider], limit: Duration) -> Vec<ModelInfo> {
    let asked = providers.iter().map(|provider| {
        let asking = tokio::time::timeout(limit, of(http, provider));
        Box::pin(async move { asking.await.ok().flatten().unwrap_or_default() })
    });
    all(asked.collect()).await.into_iter().flatten().collect()
}

/// Waits for all of these at once.
async fn all<F: Future + Unpin>(mut waiting: Vec<F>) -> Vec<F::Output> {
    let mut done: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, place) in waiting.iter_mut().zip(&mut done) {
            if place.is_none()
                && let Poll::Ready(output) = std::pin::Pin::new(future).poll(cx)
            {
                *place = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
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
    // Anything may listen on such ports; at its usual place a server has to say who it is.
    if settings::is_at_home(provider) && provider.id != "lmstudio" && owner != provider.id {
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
    let mut info = known::info(&provider.id, model["id"].as_str()?);
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
    let mut info = known::info(&provider.id, model["id"].as_str()?);
    fit(&mut info, model["loaded_context_length"].as_u64().or_else(|| model["max_context_length"].as_u64()));
    info.images = kind == "vlm";
    info.name = format!("{} ({})", info.id, provider.name);
    Some(info)
}

/// An answer takes at most a quarter of what fits.
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
        Box::pin(ask(http, question))
    });
    let shown = all(shown.collect()).await;
    let models = names.iter().zip(shown).filter_map(|(name, about)| {
        let about = about.unwrap_or_default();
        let can: Option<Vec<&str>> =
            about["capabilities"].as_array().map(|list| list.iter().filter_map(Value::as_str).collect());
        // Older servers do not say what a model can do; then it is tried.
        let has = |word: &str| can.as_ref().map(|can| can.contains(&word));
        if has("completion") == Some(false) {
            return None;
        }
        let mut info = known::info(&provider.id, name);
        let sizes = about["model_info"].as_object().into_iter().flatten();
        let size =
            sizes.filter(|(key, _)| key.ends_with(".context_length")).find_map(|(_, size)| size.as_u64());
        fit(&mut info, size.map(|size| size.min(LARGEST_WINDOW)));
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
    let body = answer.body.bytes(LONGEST).await.ok()?;
    (answer.status == 200).then(|| serde_json::from_slice(&body).ok())?
}
