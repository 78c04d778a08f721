//! API keys of providers: logins, storage and status.
//!
//! A key comes from the environment, from a stored login ([`Keys`]), or from the client
//! ([`crate::providers`]). A private file lists the stored keys; the system's keyring holds them if
//! there is one, else that file.

mod keyring;
mod keys;

use attache::agent::{Auth, ClientHandle};
use attache::wire::v1::{
    AuthAccount, AuthEnvVar, AuthMethod, AuthMethodAgent, AuthMethodEnvVar, AuthMethodId, AuthMethodTerminal,
    AuthState, AuthStatusResponse,
};
use attache::{Error, ErrorObject, Result};

pub use keyring::Keyring;
pub use keys::Keys;

use crate::model::{KeySource, Models, Provider};
use crate::state::ModelChangeNotifier;

/// The auth method that searches for keys and servers again.
const LOOK_AGAIN: &str = "look-again";

/// Logins of the agent.
#[derive(Debug, Clone)]
pub struct Logins {
    models: Models,
    keys: Keys,
    notifier: ModelChangeNotifier,
}

impl Logins {
    /// Logins for the providers of these models.
    pub fn new(models: Models, keys: Keys) -> Self {
        Logins { models, keys, notifier: ModelChangeNotifier::default() }
    }

    /// Notifies open sessions when the list of models changes.
    // CONF-16
    pub(crate) fn with_notifier(self, notifier: ModelChangeNotifier) -> Self {
        Logins { notifier, ..self }
    }

    /// Logs out: [`forget`](Self::forget), and notifies open sessions.
    pub(crate) async fn logout(&self) -> Result<()> {
        self.notifier.watch(&self.models, async { self.forget() }).await
    }

    async fn look_again(&self) {
        for provider in self.models.providers().all().iter().filter(|provider| !provider.is_ready()) {
            if let Some(key) = self.keys.get(&provider.id) {
                self.models.providers().change(&provider.id, |provider| {
                    (provider.key, provider.key_source) = (Some(key), KeySource::Store);
                });
            }
        }
        self.models.discover_local().await;
    }

    /// The error if there is no model, with advice.
    pub fn no_model(&self) -> Option<Error> {
        if self.models.choose().is_some() {
            return None;
        }
        let mut error = ErrorObject::auth_required();
        error.message = advice(&self.models);
        Some(Error::Refused(error))
    }

    /// Forgets all keys, stored and in memory.
    pub fn forget(&self) -> Result<()> {
        for provider in self.models.providers().all().iter().filter(|provider| !provider.key_vars.is_empty())
        {
            self.keys.remove(&provider.id).map_err(Error::internal)?;
            self.models.providers().change(&provider.id, |provider| {
                provider.key = None;
                provider.headers.clear();
            });
        }
        Ok(())
    }

    /// The accounts, one per provider with a key.
    pub fn status(&self) -> AuthStatusResponse {
        let chosen = self.models.choose();
        let all = self.models.providers().all();
        let with_key = all.iter().filter(|provider| provider.is_ready() && has_key(provider));
        let accounts: Vec<AuthAccount> = with_key
            .map(|provider| {
                let active =
                    chosen.as_ref().is_some_and(|spec| spec.starts_with(&format!("{}/", provider.id)));
                AuthAccount::new(label(provider)).active(Some(active)) // AUTH-26
            })
            .collect();
        let state = match (accounts.is_empty(), chosen) {
            (false, _) => AuthState::Authenticated,
            (true, Some(_)) => AuthState::NotRequired,
            (true, None) => AuthState::Unauthenticated,
        };
        AuthStatusResponse::new(state).accounts(Some(accounts).filter(|accounts| !accounts.is_empty()))
    }
}

fn has_key(provider: &Provider) -> bool {
    provider.key.is_some() || !provider.headers.is_empty()
}

/// For display, without the key.
// AUTH-25
fn label(provider: &Provider) -> String {
    let from = match &provider.key_source {
        KeySource::Env(name) => name.as_str(),
        KeySource::Store => "stored key",
        KeySource::Client => "set by the client",
        KeySource::Settings => "settings",
    };
    format!("{} ({from})", provider.name)
}

/// Advice for a user without a model.
pub fn advice(models: &Models) -> String {
    let all = models.providers().all();
    let vars: Vec<&str> =
        all.iter().filter_map(|provider| provider.key_vars.first()).map(String::as_str).collect();
    format!(
        "no model: set one of {}, log in with `attache agent --login PROVIDER`, or start Ollama, LM Studio, llama.cpp or \
         vLLM on this machine; `attache demo` works without a model",
        vars.join(", ")
    )
}

impl Logins {
    /// Looks for keys and local models again.
    ///
    /// # Errors
    /// When there is still no model to use.
    pub async fn refresh(&self) -> Result<()> {
        self.notifier.watch(&self.models, self.look_again()).await;
        self.no_model().map_or(Ok(()), Err)
    }
}

impl Auth for Logins {
    /// Ways to provide missing keys.
    fn methods(&self) -> Vec<AuthMethod> {
        let missing: Vec<Provider> = self
            .models
            .providers()
            .all()
            .into_iter()
            .filter(|provider| provider.enabled && !provider.is_ready())
            .collect();
        let logins = missing.iter().map(|provider| {
            let id = format!("{}-login", provider.id);
            let text = format!("Asks for a key of {} in a terminal and stores it", provider.name);
            let method = AuthMethodTerminal::new(id, format!("{}: log in", provider.name));
            // AUTH-15: the flag only logs in.
            let args = vec!["--login".to_owned(), provider.id.clone()];
            method.description(Some(text)).args(Some(args)).into()
        });
        let variables = missing.iter().map(|provider| {
            let vars: Vec<_> =
                provider.key_vars.iter().take(1).map(|name| AuthEnvVar::new(name.clone())).collect();
            let id = format!("{}-env", provider.id);
            AuthMethodEnvVar::new(id, format!("{}: API key", provider.name), vars).into()
        });
        let text = "Searches again for stored keys and for model servers on this machine";
        let search = AuthMethodAgent::new(LOOK_AGAIN, "Rescan for keys and local models")
            .description(Some(text.to_owned()));
        logins.chain(variables).chain([search.into()]).collect()
    }

    /// Sessions can begin without a login, because a model may be local or be configured later.
    fn is_logged_in(&self) -> bool {
        true
    }

    async fn login(&self, _: &AuthMethodId, _: &ClientHandle) -> Result<()> {
        self.refresh().await
    }
}
