//! Keys of providers: which ways there are to give us one, where one is kept, and who is logged in.
//!
//! A key comes from the environment, from a login that kept it ([`Keys`]), or from the client ([`crate::providers`]). Where it
//! is kept is told by a file that only the user can read; the key itself is in the system's keyring if there is one,
//! else in that file.

mod keyring;
mod keys;

use attache::agent::Auth;
use attache::wire::v1::{
    AuthAccount, AuthEnvVar, AuthMethod, AuthMethodAgent, AuthMethodEnvVar, AuthMethodId, AuthMethodTerminal,
    AuthState, AuthStatusResponse,
};
use attache::{Error, ErrorObject, Result};

pub use keyring::Keyring;
pub use keys::Keys;

use crate::house::Bell;
use crate::model::{KeyFrom, Models, Provider};

/// The auth method that looks again at what there is.
const LOOK_AGAIN: &str = "look-again";

/// How users log in to the agent.
#[derive(Debug, Clone)]
pub struct Logins {
    models: Models,
    keys: Keys,
    bell: Bell,
}

impl Logins {
    /// Logins that give these models their keys.
    pub fn new(models: Models, keys: Keys) -> Self {
        Logins { models, keys, bell: Bell::default() }
    }

    /// CONF-16: with somebody to tell when there are other models.
    pub(crate) fn telling(self, bell: Bell) -> Self {
        Logins { bell, ..self }
    }

    /// Logs out: [`forget`](Self::forget), and open sessions are told which models are left.
    pub(crate) async fn leave(&self) -> Result<()> {
        self.bell.around(&self.models, async { self.forget() }).await
    }

    async fn look_again(&self) {
        for provider in self.models.providers().all().iter().filter(|provider| !provider.is_ready()) {
            if let Some(key) = self.keys.get(&provider.id) {
                self.models.providers().change(&provider.id, |provider| {
                    (provider.key, provider.key_from) = (Some(key), KeyFrom::Store);
                });
            }
        }
        self.models.look_around().await;
    }

    /// Why no session can begin: there is no model at all. The message says what can be done about it.
    pub fn missing(&self) -> Option<Error> {
        if self.models.choose().is_some() {
            return None;
        }
        let mut error = ErrorObject::auth_required();
        error.message = advice(&self.models);
        Some(Error::Refused(error))
    }

    /// Forgets all keys: those that are kept, and those that this process has in memory.
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

    /// Who is logged in, by provider.
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

/// AUTH-25: for display; whose key it is, not which.
fn label(provider: &Provider) -> String {
    let from = match &provider.key_from {
        KeyFrom::Env(name) => name.as_str(),
        KeyFrom::Store => "kept key",
        KeyFrom::Client => "set by the client",
        KeyFrom::Settings => "settings",
    };
    format!("{} ({from})", provider.name)
}

/// What can be done when there is no model at all.
pub fn advice(models: &Models) -> String {
    let all = models.providers().all();
    let vars: Vec<&str> =
        all.iter().filter_map(|provider| provider.key_vars.first()).map(String::as_str).collect();
    format!(
        "there is no model yet; set one of {}, or log in with `attache agent --login PROVIDER`, or start Ollama, \
         LM Studio, llama.cpp or vLLM on this machine, or see it at work without any with `attache demo`",
        vars.join(", ")
    )
}

impl Auth for Logins {
    /// Ways to give the agent the keys that it has not.
    fn methods(&self) -> Vec<AuthMethod> {
        let missing: Vec<Provider> = self
            .models
            .providers()
            .all()
            .into_iter()
            .filter(|provider| provider.enabled && !provider.is_ready())
            .collect();
        let mut methods: Vec<AuthMethod> = Vec::new();
        for provider in &missing {
            let id = format!("{}-login", provider.id);
            let text = format!("Asks for a key of {} in a terminal and keeps it", provider.name);
            // AUTH-15: the flag leads to a login and nothing else.
            let args = vec!["--login".to_owned(), provider.id.clone()];
            let method =
                AuthMethodTerminal::new(id, format!("{}: log in", provider.name)).description(Some(text));
            methods.push(method.args(Some(args)).into());
        }
        for provider in &missing {
            let vars: Vec<_> =
                provider.key_vars.iter().take(1).map(|name| AuthEnvVar::new(name.clone())).collect();
            let id = format!("{}-env", provider.id);
            methods.push(AuthMethodEnvVar::new(id, format!("{}: API key", provider.name), vars).into());
        }
        let text = "Looks again for kept keys and for model servers on this machine";
        methods
            .push(AuthMethodAgent::new(LOOK_AGAIN, "Look again").description(Some(text.to_owned())).into());
        methods
    }

    /// Sessions can begin without a login: a model may be local, or be set later. Whether there is one is asked then.
    fn is_logged_in(&self) -> bool {
        true
    }

    async fn login(&self, _: &AuthMethodId) -> Result<()> {
        self.bell.around(&self.models, self.look_again()).await;
        self.missing().map_or(Ok(()), Err)
    }
}
