//! Settings of models and providers, from the environment, files and flags.

use std::time::Duration;

use super::http_model::Timeouts;
use super::provider::{KeySource, Provider};
use super::{Api, Key};
use attache_http::client::{self as http, HttpClient};

/// Settings of models and providers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The model to use, see [`Models::open`](super::Models::open); `None` for the default.
    pub model: Option<String>,
    /// The providers.
    pub providers: Vec<Provider>,
    /// Whether to discover model servers on this machine.
    pub discover: bool,
    /// Time limits and retries.
    pub timeouts: Timeouts,
    /// The HTTP client; `None` for the environment's proxies and certificates.
    pub http: Option<HttpClient>,
}

/// A built-in provider.
struct BuiltinProvider {
    id: &'static str,
    name: &'static str,
    api: Api,
    base_url: &'static str,
    key_vars: &'static [&'static str],
    url_vars: &'static [&'static str],
}

const BUILTIN: &[BuiltinProvider] = &[
    BuiltinProvider {
        id: "anthropic",
        name: "Anthropic",
        api: Api::Anthropic,
        base_url: "https://api.anthropic.com",
        key_vars: &["ANTHROPIC_API_KEY"],
        url_vars: &["ANTHROPIC_BASE_URL"],
    },
    BuiltinProvider {
        id: "openai",
        name: "OpenAI",
        api: Api::Responses,
        base_url: "https://api.openai.com/v1",
        key_vars: &["OPENAI_API_KEY"],
        url_vars: &["OPENAI_BASE_URL"],
    },
    BuiltinProvider {
        id: "gemini",
        name: "Google Gemini",
        api: Api::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        key_vars: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        url_vars: &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
    },
    BuiltinProvider {
        id: "openrouter",
        name: "OpenRouter",
        api: Api::Chat,
        base_url: "https://openrouter.ai/api/v1",
        key_vars: &["OPENROUTER_API_KEY"],
        url_vars: &["OPENROUTER_BASE_URL"],
    },
    local("ollama", "Ollama", Api::Ollama, "http://127.0.0.1:11434", &["OLLAMA_BASE_URL", "OLLAMA_HOST"]),
    local("lmstudio", "LM Studio", Api::Chat, "http://127.0.0.1:1234/v1", &["LMSTUDIO_BASE_URL"]),
    local("llamacpp", "llama.cpp", Api::Chat, "http://127.0.0.1:8080/v1", &["LLAMACPP_BASE_URL"]),
    local("vllm", "vLLM", Api::Chat, "http://127.0.0.1:8000/v1", &["VLLM_BASE_URL"]),
];

const fn local(
    id: &'static str,
    name: &'static str,
    api: Api,
    base_url: &'static str,
    url_vars: &'static [&'static str],
) -> BuiltinProvider {
    BuiltinProvider { id, name, api, base_url, key_vars: &[], url_vars }
}

impl Settings {
    /// The built-in providers with this process's environment.
    pub fn from_env() -> Self {
        Settings::from_vars(|name| std::env::var(name).ok())
    }

    /// The built-in providers with these variables.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let var = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        let mut providers: Vec<Provider> = BUILTIN.iter().map(|builtin| builtin.provider(&var)).collect();
        // Gateways in front of Anthropic have their own tokens.
        if let Some(token) =
            var("ANTHROPIC_AUTH_TOKEN").and_then(|token| Key::new(&format!("Bearer {}", token.trim())))
            && let Some(anthropic) = providers.iter_mut().find(|provider| provider.id == "anthropic")
            && anthropic.key.is_none()
        {
            anthropic.headers.push(("authorization".to_owned(), token));
            anthropic.key_source = KeySource::Env("ANTHROPIC_AUTH_TOKEN".to_owned());
        }
        Settings { model: None, providers, discover: true, timeouts: Timeouts::default(), http: None }
    }

    /// A provider to change; a new one speaks chat completions and has no URL.
    pub fn provider(&mut self, id: &str) -> &mut Provider {
        let place = self.providers.iter().position(|provider| provider.id == id).unwrap_or_else(|| {
            self.providers.push(Provider::new(id, id, Api::Chat, String::new()));
            self.providers.len() - 1
        });
        &mut self.providers[place]
    }

    /// Applies one setting of a provider: `api`, `base_url`, `name`, `key_env`, `models` (separated
    /// by commas), `enabled`, `timeout` (seconds), `temperature`, `max_tokens`, `window`, `prompt`,
    /// `price.KIND` (`input`, `output`, `cache_read` or `cache_write`, in dollars per million
    /// tokens), the same of a model as `model.NAME.FIELD`, or `headers.NAME`. `var` looks up
    /// environment variables.
    pub fn apply(
        &mut self,
        id: &str,
        field: &str,
        value: &str,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        let provider = self.provider(id);
        match field {
            "api" => {
                let ids = Api::ALL.map(Api::id).join(", ");
                provider.api = Api::from_id(value)
                    .ok_or_else(|| format!("no protocol \"{value}\"; available: {ids}"))?;
            }
            "base_url" => {
                http::check_url(value).map_err(|error| error.to_string())?;
                provider.base_url = value.trim_end_matches('/').to_owned();
            }
            "name" => provider.name = value.to_owned(),
            "key_env" => {
                provider.key = var(value).as_deref().and_then(Key::new);
                provider.key_source = KeySource::Env(value.to_owned());
                provider.key_vars = vec![value.to_owned()];
            }
            "models" => {
                let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                provider.models = names.map(str::to_owned).collect();
            }
            "enabled" => {
                provider.enabled =
                    value.parse().map_err(|_| format!("`{value}` is neither true nor false"))?;
            }
            "timeout" => provider.timeout = Some(seconds(value)?),
            "web_search" => {
                provider.web_search =
                    value.parse().map_err(|_| format!("`{value}` is neither true nor false"))?;
            }
            "prompt" => drop(provider.prompts.insert(String::new(), value.to_owned())),
            field if provider.sampling.set(field, value)? => {}
            field if field.starts_with("model.") => {
                let (model, field) =
                    model_field(&field["model.".len()..]).ok_or("a model has a name and settings")?;
                if field == "prompt" {
                    provider.prompts.insert(model.to_owned(), value.to_owned());
                } else if !provider.model_sampling.entry(model.to_owned()).or_default().set(field, value)? {
                    let known = "temperature, max_tokens, window, prompt, price.{input,output,cache_read,cache_write}";
                    return Err(format!("unknown setting; available: {known}"));
                }
            }
            field => match (field.strip_prefix("headers."), Key::new(value)) {
                (Some(name), Some(value)) => provider.headers.push((name.to_owned(), value)),
                (Some(name), None) => return Err(format!("the header `{name}` is empty")),
                (None, _) => {
                    let known = "api, base_url, name, key_env, models, enabled, timeout, temperature, max_tokens, \
                                 window, price, prompt, web_search, headers, model";
                    return Err(format!("unknown setting; available: {known}"));
                }
            },
        }
        Ok(())
    }

    /// Sets how long models may be silent, in seconds, for all providers.
    pub fn set_timeout(&mut self, value: &str) -> Result<(), String> {
        self.timeouts = self.timeouts.for_silence(seconds(value)?);
        self.providers.iter_mut().for_each(|provider| provider.timeout = None);
        Ok(())
    }

    /// All secrets, for masking.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().flat_map(|provider| {
            let headers = provider.headers.iter().map(|(_, value)| value);
            provider.key.iter().chain(headers).map(Key::reveal)
        })
    }

    /// Adds keys from a store for the providers without one.
    pub fn with_keys(mut self, lookup: impl Fn(&str) -> Option<Key>) -> Self {
        for provider in self.providers.iter_mut().filter(|provider| !provider.is_ready()) {
            provider.key = lookup(&provider.id);
            provider.key_source = KeySource::Store;
        }
        self
    }
}

impl BuiltinProvider {
    fn provider(&self, var: &impl Fn(&str) -> Option<String>) -> Provider {
        let url = self.url_vars.iter().find_map(|name| var(name));
        let key = self.key_vars.iter().find_map(|name| Some((*name, Key::new(&var(name)?)?)));
        let api = match &url {
            // Replacements for OpenAI rarely speak its newer protocol.
            Some(url) if self.api == Api::Responses && !url.contains("api.openai.com") => Api::Chat,
            _ => self.api,
        };
        let base_url = url.map_or_else(|| self.base_url.to_owned(), |url| address(&url));
        let mut provider = Provider::new(self.id, self.name, api, base_url);
        provider.key_vars = self.key_vars.iter().map(|name| (*name).to_owned()).collect();
        if let Some((name, key)) = key {
            (provider.key, provider.key_source) = (Some(key), KeySource::Env(name.to_owned()));
        }
        provider
    }
}

/// The name and the field in `NAME.FIELD`. Both may contain dots: names of models do, and prices
/// have two parts.
fn model_field(text: &str) -> Option<(&str, &str)> {
    match text.rfind(".price.") {
        Some(at) => Some((&text[..at], &text[at + 1..])),
        None => text.rsplit_once('.'),
    }
}

/// A positive duration of at most a day.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let most = Duration::from_secs(24 * 60 * 60);
    seconds
        .filter(|limit| !limit.is_zero() && *limit <= most)
        .ok_or_else(|| format!("`{text}` is not a number of seconds above 0 and up to {}", most.as_secs()))
}

/// Whether a built-in provider has its default URL.
pub(super) fn has_default_url(provider: &Provider) -> bool {
    BUILTIN.iter().any(|builtin| builtin.id == provider.id && builtin.base_url == provider.base_url)
}

/// The base URL from a variable: `OLLAMA_HOST` may be a host, a host with a port or a URL, and may
/// name all interfaces.
fn address(text: &str) -> String {
    let text = text.trim().trim_end_matches('/');
    if text.contains("://") {
        return text.to_owned();
    }
    let text = text.replace("0.0.0.0", "127.0.0.1");
    match text.contains(':') {
        true => format!("http://{text}"),
        false => format!("http://{text}:11434"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn settings(vars: &[(&str, &str)]) -> Settings {
        Settings::from_vars(|name| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn get<'a>(settings: &'a Settings, id: &str) -> &'a Provider {
        settings.providers.iter().find(|provider| provider.id == id).unwrap()
    }

    #[test]
    fn keys_and_places_come_from_the_environment() {
        let found = settings(&[
            ("ANTHROPIC_API_KEY", "sk-a\n"),
            ("GOOGLE_API_KEY", "g"),
            ("OPENAI_API_KEY", " "),
            ("OPENAI_BASE_URL", "http://localhost:9/v1/"),
            ("OLLAMA_HOST", "0.0.0.0:7"),
        ]);
        assert_eq!(get(&found, "anthropic").key, Key::new("sk-a"));
        assert!(get(&found, "anthropic").is_ready() && !get(&found, "anthropic").is_local());
        assert_eq!(get(&found, "gemini").key, Key::new("g"));
        assert!(!get(&found, "openai").is_ready());
        assert_eq!(get(&found, "openai").api, Api::Chat);
        assert_eq!(get(&found, "openai").base_url, "http://localhost:9/v1");
        assert_eq!(get(&found, "ollama").base_url, "http://127.0.0.1:7");
        assert!(get(&found, "ollama").is_local() && get(&found, "ollama").is_ready());
        assert_eq!(get(&settings(&[]), "openai").api, Api::Responses);
    }

    #[test]
    fn secrets_are_in_no_debug_text() {
        let mut found = settings(&[("ANTHROPIC_API_KEY", "sk-secret"), ("OPENAI_API_KEY", "sk-secret")]);
        found.provider("mine").headers.push(("x-token".into(), Key::new("sk-secret").unwrap()));
        let text = format!("{found:?} {found:#?}");
        assert!(!text.contains("sk-secret"), "{text}");
        assert!(text.contains("x-token"));
    }

    #[test]
    fn files_of_settings_add_and_change_providers() {
        let mut found = settings(&[]);
        let var = |name: &str| (name == "MY_KEY").then(|| "sk-mine".to_owned());
        let mut apply = |id: &str, field: &str, value: &str| found.apply(id, field, value, var);
        apply("mine", "base_url", "https://models.example/v1/").unwrap();
        apply("mine", "key_env", "MY_KEY").unwrap();
        apply("mine", "headers.x-team", "blue").unwrap();
        apply("mine", "models", "big, small").unwrap();
        apply("openai", "api", "chat").unwrap();
        apply("gemini", "enabled", "false").unwrap();
        apply("ollama", "timeout", "600").unwrap();
        for (field, value) in [
            ("api", "smoke"),
            ("base_url", "nowhere"),
            ("enabled", "maybe"),
            ("web_search", "often"),
            ("timeout", "0"),
            ("colour", "red"),
        ] {
            assert!(apply("mine", field, value).is_err(), "{field}");
        }
        let mine = get(&found, "mine");
        assert!(mine.is_ready() && mine.key == Key::new("sk-mine") && mine.headers[0].0 == "x-team");
        assert_eq!((mine.api, mine.base_url.as_str()), (Api::Chat, "https://models.example/v1"));
        assert_eq!(mine.models, ["big", "small"]);
        assert_eq!(get(&found, "openai").api, Api::Chat);
        assert!(!get(&found, "gemini").enabled);
        assert_eq!(get(&found, "ollama").timeout, Some(Duration::from_secs(600)));
        assert_eq!(found.secrets().collect::<Vec<_>>(), ["sk-mine", "blue"]);
    }

    #[test]
    fn a_time_for_all_counts_more_than_one_for_some() {
        let mut found = settings(&[]);
        found.apply("ollama", "timeout", "600", |_| None).unwrap();
        for wrong in ["", "0", "-1", "soon", "inf", "NaN", "1e9"] {
            assert!(found.set_timeout(wrong).is_err(), "{wrong}");
        }
        assert_eq!(get(&found, "ollama").timeout, Some(Duration::from_secs(600)), "nothing was changed");
        found.set_timeout("2.5").unwrap();
        let limit = Duration::from_millis(2500);
        assert_eq!((found.timeouts.first, found.timeouts.idle), (limit, limit));
        assert_eq!(get(&found, "ollama").timeout, None);
    }

    #[test]
    fn a_token_for_a_gateway_and_keys_from_a_store() {
        let found = settings(&[("ANTHROPIC_AUTH_TOKEN", "t"), ("OPENAI_API_KEY", "env")])
            .with_keys(|id| Key::new(&format!("stored-{id}")));
        assert_eq!(get(&found, "anthropic").headers[0].1.reveal(), "Bearer t");
        assert_eq!(get(&found, "anthropic").key, None);
        assert_eq!(get(&found, "openai").key, Key::new("env"));
        assert_eq!(get(&found, "gemini").key, Key::new("stored-gemini"));
    }
}
