//! Tries a key with a request that costs nothing.

use std::time::Duration;

use super::error::ModelError;
use super::provider::Provider;
use super::{Api, Key};
use attache_http::client::{HttpClient, Request};

/// How long the provider may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of an error that are read.
const MAX_ERROR: usize = 64 * 1024;

/// What a provider says about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyCheck {
    /// It lists its models for the key.
    Accepted,
    /// It refuses the key, for this reason.
    Refused(String),
    /// It could not be asked, for this reason.
    Unknown(String),
}

/// Asks a provider for its models with this key.
pub async fn check_key(provider: &Provider, key: &Key) -> KeyCheck {
    match tokio::time::timeout(LIMIT, ask(provider, key)).await {
        Ok(check) => check,
        Err(_) => KeyCheck::Unknown(format!("{} does not answer", provider.name)),
    }
}

async fn ask(provider: &Provider, key: &Key) -> KeyCheck {
    let provider = Provider { key: Some(key.clone()), ..provider.clone() };
    let http = match HttpClient::from_env() {
        Ok(http) => http,
        Err(error) => return KeyCheck::Unknown(error.to_string()),
    };
    let mut request = Request::get(url(&provider));
    for (name, value) in provider.request_headers() {
        request = request.header(&name, &value);
    }
    let mut response = match http.send(request).await {
        Ok(response) => response,
        Err(error) => return KeyCheck::Unknown(provider.mask(&error.to_string())),
    };
    let status = response.status;
    let body = response.body.bytes(MAX_ERROR).await.unwrap_or_default();
    let why = || {
        let error = ModelError::from_response(status, &String::from_utf8_lossy(&body), |_| None);
        provider.mask(&error.message)
    };
    match status {
        200..300 => KeyCheck::Accepted,
        // Google answers a wrong key with 400.
        400 | 401 | 403 => KeyCheck::Refused(why()),
        status => KeyCheck::Unknown(format!("HTTP status {status}")),
    }
}

fn url(provider: &Provider) -> String {
    let base = provider.base_url.trim_end_matches('/');
    match provider.api {
        // Its models are public.
        Api::Chat if provider.id == "openrouter" => format!("{base}/key"),
        Api::Chat | Api::Responses => format!("{base}/models"),
        Api::Anthropic => format!("{}/v1/models", base.trim_end_matches("/v1")),
        Api::Ollama => format!("{}/api/tags", base.trim_end_matches("/v1")),
        Api::Gemini if base.ends_with("/v1beta") || base.ends_with("/v1") => format!("{base}/models"),
        Api::Gemini => format!("{base}/v1beta/models"),
    }
}
