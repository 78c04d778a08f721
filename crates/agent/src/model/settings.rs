//! What is set about models before anybody is asked: by the environment, by files, by flags.

use std::time::Duration;

use super::provider::{KeyFrom, Provider};
use super::remote::Patience;
use super::{Api, Key};
use crate::http::{self, Http};

/// Providers and habits.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The model to use, as [`Models::open`](super::Models::open) takes it; `None` for whatever there is.
    pub model: Option<String>,
    /// The providers.
    pub providers: Vec<Provider>,
    /// Whether to look for servers on this machine.
    pub look_around: bool,
    /// How long to wait for what.
    pub patience: Patience,
    /// How to get out; `None` for the way that the environment says.
    pub http: Option<Http>,
}

/// A provider that is known from the start.
struct Usual {
    id: &'static str,
    name: &'static str,
    api: Api,
    base_url: &'static str,
    key_vars: &'static [&'static str],
    url_vars: &'static [&'static str],
}

const USUAL: &[Usual] = &[
    Usual {
        id: "anthropic",
        name: "Anthropic",
        api: Api::Anthropic,
        base_url: "https://api.anthropic.com",
        key_vars: &["ANTHROPIC_API_KEY"],
        url_vars: &["ANTHROPIC_BASE_URL"],
    },
    Usual {
        id: "openai",
        name: "OpenAI",
        api: Api::Responses,
        base_url: "https://api.openai.com/v1",
        key_vars: &["OPENAI_API_KEY"],
        url_vars: &["OPENAI_BASE_URL"],
    },
    Usual {
        id: "gemini",
        name: "Google Gemini",
        api: Api::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        key_vars: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        url_vars: &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
    },
    Usual {
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
) -> Usual {
    Usual { id, name, api, base_url, key_vars: &[], url_vars }
}

impl Settings {
    /// The usual providers with what this process's environment says.
    pub fn from_env() -> Self {
        Settings::from_vars(|name| std::env::var(name).ok())
    }

    /// The usual providers with what these variables say.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let var = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        let mut providers: Vec<Provider> = USUAL.iter().map(|usual| usual.provider(&var)).collect();
        // Gateways in front of Anthropic take a token of their own.
        if let Some(token) =
            var("ANTHROPIC_AUTH_TOKEN").and_then(|token| Key::new(&format!("Bearer {}", token.trim())))
            && let Some(anthropic) = providers.iter_mut().find(|provider| provider.id == "anthropic")
            && anthropic.key.is_none()
        {
            anthropic.headers.push(("authorization".to_owned(), token));
            anthropic.key_from = KeyFrom::Env("ANTHROPIC_AUTH_TOKEN".to_owned());
        }
        Settings { model: None, providers, look_around: true, patience: Patience::default(), http: None }
    }

    /// A provider to change; one that is not known yet speaks chat completions, and has no URL.
    pub fn provider(&mut self, id: &str) -> &mut Provider {
        let place = self.providers.iter().position(|provider| provider.id == id).unwrap_or_else(|| {
            self.providers.push(Provider {
                id: id.to_owned(),
                name: id.to_owned(),
                api: Api::Chat,
                base_url: String::new(),
                key: None,
                key_from: KeyFrom::Settings,
                headers: Vec::new(),
                models: Vec::new(),
                enabled: true,
                key_vars: Vec::new(),
                timeout: None,
            });
            self.providers.len() - 1
        });
        &mut self.providers[place]
    }

    /// Takes one line of a file of settings about a provider: `api`, `base_url`, `name`, `key_env`, `models` (separated by
    /// commas), `enabled`, `timeout` (seconds), or `headers.NAME`. `var` looks up variables of the environment.
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
                let words = Api::ALL.map(Api::word).join(", ");
                provider.api = Api::from_word(value)
                    .ok_or_else(|| format!("`{value}` is no language; there are {words}"))?;
            }
            "base_url" => {
                http::check_url(value).map_err(|error| error.to_string())?;
                provider.base_url = value.trim_end_matches('/').to_owned();
            }
            "name" => provider.name = value.to_owned(),
            "key_env" => {
                provider.key = var(value).as_deref().and_then(Key::new);
                provider.key_from = KeyFrom::Env(value.to_owned());
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
            field => match (field.strip_prefix("headers."), Key::new(value)) {
                (Some(name), Some(value)) => provider.headers.push((name.to_owned(), value)),
                (Some(name), None) => return Err(format!("the header `{name}` is empty")),
                (None, _) => {
                    let known = "api, base_url, name, key_env, models, enabled, timeout and headers";
                    return Err(format!("`{field}` is not known; there are {known}"));
                }
            },
        }
        Ok(())
    }

    /// How long models may be silent, in seconds, whoever offers them and whatever was said before.
    pub fn set_timeout(&mut self, value: &str) -> Result<(), String> {
        self.patience = self.patience.for_silence(seconds(value)?);
        self.providers.iter_mut().for_each(|provider| provider.timeout = None);
        Ok(())
    }

    /// All secrets in here, for those who must keep them out of what they write.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().flat_map(|provider| {
            let headers = provider.headers.iter().map(|(_, value)| value);
            provider.key.iter().chain(headers).map(Key::reveal)
        })
    }

    /// Takes keys from a store for the providers that have none yet.
    pub fn with_keys(mut self, lookup: impl Fn(&str) -> Option<Key>) -> Self {
        for provider in self.providers.iter_mut().filter(|provider| !provider.is_ready()) {
            provider.key = lookup(&provider.id);
            provider.key_from = KeyFrom::Store;
        }
        self
    }
}

impl Usual {
    fn provider(&self, var: &impl Fn(&str) -> Option<String>) -> Provider {
        let url = self.url_vars.iter().find_map(|name| var(name));
        let key = self.key_vars.iter().find_map(|name| Some((*name, Key::new(&var(name)?)?)));
        let api = match &url {
            // Whoever stands in for OpenAI rarely speaks its newer language.
            Some(url) if self.api == Api::Responses && !url.contains("api.openai.com") => Api::Chat,
            _ => self.api,
        };
        Provider {
            id: self.id.to_owned(),
            name: self.name.to_owned(),
            api,
            base_url: url.map_or_else(|| self.base_url.to_owned(), |url| address(&url)),
            key_from: key.as_ref().map_or(KeyFrom::Settings, |(name, _)| KeyFrom::Env((*name).to_owned())),
            key: key.map(|(_, key)| key),
            headers: Vec::new(),
            models: Vec::new(),
            enabled: true,
            key_vars: self.key_vars.iter().map(|name| (*name).to_owned()).collect(),
            timeout: None,
        }
    }

    /// Whether a provider was moved away from its usual place.
    fn is_at_home(&self, provider: &Provider) -> bool {
        self.base_url == provider.base_url
    }
}

/// More than none, and no more than a clock can count.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let most = Duration::from_secs(24 * 60 * 60);
    seconds
        .filter(|limit| !limit.is_zero() && *limit <= most)
        .ok_or_else(|| format!("`{text}` is no number of seconds, above 0 and up to {}", most.as_secs()))
}

/// Whether a provider is where it usually is.
pub(super) fn is_at_home(provider: &Provider) -> bool {
    USUAL.iter().any(|usual| usual.id == provider.id && usual.is_at_home(provider))
}

/// `OLLAMA_HOST` may be a host, a host with a port, or a URL, and may name all interfaces.
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
        assert_eq!((found.patience.first, found.patience.idle), (limit, limit));
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
