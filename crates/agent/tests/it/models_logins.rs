//! Keys that are kept, logins, and providers that the client sets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache::agent::{Auth as _, Providers as _};
use attache::wire::v1::{AuthMethod, AuthState, LlmProtocol, SetProviderRequest};
use attache_agent::auth::{Keyring, Keys, Logins};
use attache_agent::model::{Api, Key, Models, Settings};
use attache_agent::providers::Routes;

use crate::models::{KEY, ask, good};
use crate::models_server::{Server, whole};

/// A directory that is gone with the test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("attache-logins-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Dir(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key() -> Key {
    Key::new(KEY).unwrap()
}

/// A keyring that keeps its keys as files; `works` says whether it keeps anything.
fn keyring(dir: &Path, works: bool) -> Keyring {
    let program = dir.join("secret-tool");
    let place = dir.join("ring");
    fs::create_dir_all(&place).unwrap();
    let store = if works { "cat > " } else { "cat > /dev/null; : " };
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = store ]; then {store} '{0}'/\"$6\"; \
         elif [ \"$1\" = lookup ]; then cat '{0}'/\"$5\"; \
         elif [ \"$1\" = clear ]; then rm -f '{0}'/\"$5\"; fi\n",
        place.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Keyring::at(&program)
}

#[test]
fn a_key_is_kept_in_a_file_that_only_its_user_can_read() {
    let dir = Dir::new("file");
    let keys = Keys::new(&dir.0.join("config")).with_keyring(None);
    assert_eq!(keys.get("anthropic"), None);
    let place = keys.set("anthropic", &key()).unwrap();
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
    keys.set("openai", &Key::new("other-key").unwrap()).unwrap();
    assert_eq!(keys.get("anthropic"), Some(key()));
    assert!(!format!("{keys:?}").contains("secret"));
    assert_eq!(keys.remove("anthropic"), Ok(true));
    assert_eq!(keys.remove("anthropic"), Ok(false));
    assert_eq!((keys.get("anthropic"), keys.get("openai")), (None, Key::new("other-key")));
    keys.remove("openai").unwrap();
    assert!(!Path::new(&place).exists(), "nothing is left behind");
    // A damaged file is not overwritten, and its content is not shown.
    fs::write(&place, format!("{{\"keys\": {KEY}")).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).unwrap();
    let error = keys.set("openai", &key()).unwrap_err();
    assert!(error.contains("damaged") && !error.contains("secret"), "{error}");
    assert_eq!(keys.get("anthropic"), None);
    // A file that others can read is neither used nor repaired silently.
    fs::remove_file(&place).unwrap();
    keys.set("anthropic", &key()).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(keys.get("anthropic"), None);
    assert!(keys.check().unwrap_err().contains("chmod 600"));
    assert!(keys.set("openai", &key()).unwrap_err().contains("chmod 600"));
}

#[test]
fn a_key_is_kept_in_the_keyring_if_that_works() {
    let dir = Dir::new("ring");
    let keys = Keys::new(&dir.0).with_keyring(Some(keyring(&dir.0, true)));
    assert_eq!(keys.set("anthropic", &key()).as_deref(), Ok("the system's keyring"));
    assert_eq!(keys.get("anthropic"), Some(key()));
    let file = fs::read_to_string(dir.0.join("agent-keys.json")).unwrap();
    assert!(file.contains("keyring") && !file.contains(KEY), "{file}");
    assert_eq!(fs::read_to_string(dir.0.join("ring/anthropic")).unwrap(), KEY);
    assert_eq!(keys.remove("anthropic"), Ok(true));
    assert!(!dir.0.join("ring/anthropic").exists());
    // One that only pretends.
    let keys = Keys::new(&dir.0).with_keyring(Some(keyring(&dir.0, false)));
    assert!(keys.set("openai", &key()).unwrap().ends_with("agent-keys.json"));
    assert_eq!(keys.get("openai"), Some(key()));
    let gone = Keys::new(&dir.0.join("other")).with_keyring(Some(Keyring::at(Path::new("/no/such/program"))));
    assert!(gone.set("openai", &key()).unwrap().ends_with("agent-keys.json"));
}

/// Settings without a provider on this machine.
fn nothing() -> Settings {
    let mut settings = Settings::from_vars(|_| None);
    settings.discover = false;
    for id in ["ollama", "lmstudio", "llamacpp", "vllm"] {
        settings.provider(id).base_url = "http://127.0.0.1:1".to_owned();
    }
    settings
}

/// AUTH-01, AUTH-15, AUTH-21
#[tokio::test]
async fn missing_keys_can_be_given_in_several_ways_and_are_found_when_looked_for_again() {
    let dir = Dir::new("logins");
    let keys = Keys::new(&dir.0).with_keyring(None);
    let models = Models::new(&nothing()).unwrap();
    let logins = Logins::new(models.clone(), keys.clone());
    let error = logins.no_model().unwrap();
    assert!(error.is_auth_required());
    let text = error.to_string();
    for way in ["ANTHROPIC_API_KEY", "--login", "Ollama", "attache demo"] {
        assert!(text.contains(way), "{way}: {text}");
    }
    assert_eq!(logins.status().state, AuthState::Unauthenticated);
    let methods = logins.methods();
    let terminal = methods.iter().find_map(|method| match method {
        AuthMethod::Terminal(method) if method.id == "anthropic-login" => method.args.clone(),
        _ => None,
    });
    assert_eq!(terminal.unwrap(), ["--login", "anthropic"]);
    let variable = methods.iter().find_map(|method| match method {
        AuthMethod::EnvVar(method) if method.id == "gemini-env" => Some(method.vars[0].clone()),
        _ => None,
    });
    let variable = variable.unwrap();
    assert!(variable.name == "GEMINI_API_KEY" && variable.is_secret());
    let look = methods.iter().find_map(|method| match method {
        AuthMethod::Agent(method) => Some(method.id.clone()),
        _ => None,
    });
    assert!(look.is_some());
    assert!(logins.refresh().await.unwrap_err().is_auth_required());
    keys.set("anthropic", &key()).unwrap();
    logins.refresh().await.unwrap();
    assert!(logins.no_model().is_none());
    assert!(models.choose().unwrap().starts_with("anthropic/"));
    assert!(
        !logins
            .methods()
            .iter()
            .any(|method| method.id().is_some_and(|id| id.as_str().starts_with("anthropic")))
    );
    let status = logins.status();
    assert_eq!(status.state, AuthState::Authenticated);
    let accounts = status.accounts.unwrap();
    assert_eq!((accounts[0].label.as_str(), accounts[0].active), ("Anthropic (stored key)", Some(true)));
    // AUTH-17
    logins.forget().unwrap();
    assert!(logins.no_model().is_some());
    assert_eq!(keys.get("anthropic"), None);
    let told = format!("{logins:?} {models:?}");
    assert!(!told.contains("secret"), "{told}");
}

#[tokio::test]
async fn environment_keys_and_models_without_keys_are_distinguished() {
    let dir = Dir::new("status");
    let keys = Keys::new(&dir.0).with_keyring(None);
    let settings = Settings::from_vars(|name| (name == "OPENAI_API_KEY").then(|| KEY.to_owned()));
    let logins = Logins::new(Models::new(&settings).unwrap(), keys.clone());
    assert_eq!(logins.status().accounts.unwrap()[0].label, "OpenAI (OPENAI_API_KEY)");
    let mut scripted = nothing();
    scripted.model = Some("script:x".to_owned());
    let logins = Logins::new(Models::new(&scripted).unwrap(), keys);
    assert_eq!((logins.status().state, logins.no_model().is_none()), (AuthState::NotRequired, true));
}

/// PROV-03, PROV-04, PROV-05, PROV-09
#[tokio::test]
async fn the_client_decides_where_models_are_reached() {
    let server = Server::answering(|seen| match seen.path() {
        "/v1/messages" => good(Api::Anthropic),
        "/v1/chat/completions" => good(Api::Chat),
        _ => whole(404, "", "{}"),
    })
    .await;
    let mut settings = nothing();
    settings.provider("anthropic").key = Some(key());
    settings.timeouts.discovery = Duration::from_secs(60);
    let models = Models::new(&settings).unwrap();
    let routes = Routes::new(models.clone());
    let list = routes.list().await.unwrap();
    assert!(!format!("{list:?}").contains("secret"));
    let find = |id: &str| list.iter().find(|provider| provider.provider_id == id).unwrap().clone();
    assert_eq!(find("anthropic").current.unwrap().base_url, "https://api.anthropic.com");
    assert_eq!(find("openai").current, None, "there is no key for it");
    assert_eq!(find("anthropic").supported, [LlmProtocol::Anthropic]);
    let mut set = SetProviderRequest::new("anthropic", LlmProtocol::Anthropic, format!("{}/", server.url));
    set.headers.insert("x-gateway".to_owned(), "gateway-secret".to_owned());
    let model = models.open("anthropic/claude-sonnet-5-5").unwrap();
    routes.set(set).await.unwrap();
    let (_, error) = ask(&*model).await;
    assert_eq!(error, None, "a model that was open goes the new way");
    assert_eq!(server.seen()[0].header("x-gateway"), Some("gateway-secret"));
    assert_eq!(server.seen()[0].header("x-api-key"), None, "our own key does not go to another place");
    let list = routes.list().await.unwrap();
    assert!(!format!("{list:?}{models:?}").contains("gateway-secret"));
    routes.disable("anthropic".into()).await.unwrap();
    let list = routes.list().await.unwrap();
    let disabled = list.iter().find(|provider| provider.provider_id == "anthropic").unwrap();
    assert_eq!(disabled.current, None);
    assert!(ask(&*model).await.1.is_some());
    assert_eq!(server.seen().len(), 1);
    let wrong = SetProviderRequest::new("openai", LlmProtocol::OpenAi, "ftp://x");
    assert!(routes.set(wrong).await.is_err());
    // Without headers, for a server that needs none.
    let plain = SetProviderRequest::new("openai", LlmProtocol::OpenAi, format!("{}/v1", server.url));
    routes.set(plain).await.unwrap();
    let (_, error) = ask(&*models.open("openai/some").unwrap()).await;
    assert_eq!(error, None);
    assert_eq!(server.seen().last().unwrap().path(), "/v1/chat/completions");
}
