//! Servers on this machine, and the names of models.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache::client::Client;
use attache_agent::model::{Api, Key, Models, Settings};
use attache_agent::{Options, Sandbox, TrustSource};
use attache_http::client::HttpClient;
use serde_json::{Value, json};

use crate::models::settings;
use crate::models_server::{Seen, Server, Step, whole};
use crate::rig::{Project, allow, connect};
use crate::sloppy;

/// A server that answers these paths with JSON and everything else with 404.
async fn listing(paths: Vec<(&'static str, Value)>) -> Server {
    Server::answering(move |seen: &Seen| -> Vec<Step> {
        match paths.iter().find(|(path, _)| *path == seen.path()) {
            Some((_, body)) => whole(200, "", &body.to_string()),
            None => whole(404, "", "{}"),
        }
    })
    .await
}

#[tokio::test]
async fn servers_on_this_machine_say_what_they_have() {
    let ollama = Server::answering(|seen: &Seen| {
        let body = match (seen.path(), seen.body["model"].as_str()) {
            ("/api/tags", _) => {
                json!({"models": [{"name": "qwen3:latest"}, {"name": "embed"}, {"name": "old"}]})
            }
            ("/api/show", Some("qwen3:latest")) => json!({
                "capabilities": ["completion", "tools", "thinking", "vision"],
                "model_info": {"qwen3.context_length": 262_144, "qwen3.block_count": 3},
            }),
            ("/api/show", Some("embed")) => json!({"capabilities": ["embedding"]}),
            _ => return whole(500, "", "{}"),
        };
        whole(200, "", &body.to_string())
    })
    .await;
    let llama = listing(vec![
        ("/v1/models", json!({"data": [{"id": "/w/small.gguf", "owned_by": "llamacpp"}]})),
        ("/props", json!({"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": true}})),
    ])
    .await;
    let studio = listing(vec![(
        "/api/v0/models",
        json!({"data": [{"id": "gemma", "type": "vlm", "max_context_length": 8192}, {"id": "e", "type": "embeddings"}]}),
    )])
    .await;
    let vllm = listing(vec![(
        "/v1/models",
        json!({"data": [{"id": "org/model", "owned_by": "vllm", "max_model_len": 16_000}]}),
    )])
    .await;
    let mut settings = settings(Api::Chat, "https://nowhere.test");
    settings.discover = true;
    settings.timeouts.discovery = Duration::from_secs(60);
    settings.provider("ollama").base_url = ollama.url.clone();
    for (id, server) in [("llamacpp", &llama), ("lmstudio", &studio), ("vllm", &vllm)] {
        settings.provider(id).base_url = format!("{}/v1", server.url);
    }
    let models = Models::discover(&settings).await.unwrap();
    let list = models.list();
    let found: Vec<_> = list.iter().map(|model| (model.spec(), model.window, model.images)).collect();
    let expected = [
        ("ollama/qwen3:latest", 32_768, true),
        ("ollama/old", 32_000, false),
        ("lmstudio/gemma", 8192, true),
        ("llamacpp//w/small.gguf", 4096, true),
        ("vllm/org/model", 16_000, false),
    ];
    assert_eq!(found, expected.map(|(spec, window, images)| (spec.to_owned(), window, images)));
    assert_eq!(list[3].name, "small (llama.cpp)");
    assert!(list[0].tools && list[0].thinking);
    assert_eq!(models.choose().as_deref(), Some("ollama/qwen3:latest"));
    // Every name that is listed can be opened; tags may be left out.
    for spec in expected.map(|(spec, ..)| spec).into_iter().chain(["ollama/qwen3", "ollama", "vllm"]) {
        assert!(models.open(spec).is_ok(), "{spec}");
    }
    assert_eq!(models.open("ollama/qwen3").unwrap().info().id, "qwen3:latest");
}

#[tokio::test]
async fn a_server_that_missed_the_first_question_is_asked_again() {
    let questions = AtomicUsize::new(0);
    let llama = Server::answering(move |seen: &Seen| match seen.path() {
        "/v1/models" => whole(200, "", &json!({"data": [{"id": "m", "owned_by": "llamacpp"}]}).to_string()),
        // The first question gets no answer.
        "/props" if questions.fetch_add(1, Ordering::Relaxed) == 0 => vec![Step::Hold],
        "/props" => whole(200, "", &json!({"default_generation_settings": {"n_ctx": 8192}}).to_string()),
        _ => sloppy::encoded(Api::Chat, &sloppy::text("Hi.")),
    })
    .await;
    let mut settings = settings(Api::Chat, "https://nowhere.test");
    settings.discover = true;
    settings.timeouts.discovery = Duration::from_millis(100);
    settings.timeouts.lookup = Duration::from_secs(60);
    for id in ["ollama", "lmstudio", "vllm"] {
        settings.provider(id).enabled = false;
    }
    settings.provider("llamacpp").base_url = format!("{}/v1", llama.url);
    let options = Options {
        model: Some("llamacpp/m".to_owned()),
        models: settings,
        trust: TrustSource::All,
        sandbox: Sandbox::Off,
        ..Options::default()
    };
    let project = Project::new();
    let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(allow(&mut session, "hello").await.text, "Hi.");
    }
    let context = allow(&mut session, "/context").await.text;
    assert!(context.contains("of 8,192 tokens"), "{context}");
    let asked = llama.seen();
    let chats: Vec<_> = asked.iter().filter(|seen| seen.path() == "/v1/chat/completions").collect();
    assert_eq!(chats.len(), 2);
    for chat in chats {
        assert_eq!(chat.body["max_tokens"], 2048, "{}", chat.body);
        assert_eq!(chat.body["tools"].as_array().unwrap().len(), 6, "the small set of tools");
    }
    let props = asked.iter().filter(|seen| seen.path() == "/props").count();
    assert_eq!(props, 2, "what is known is not asked again");
}

#[test]
fn a_model_server_on_another_machine_is_one_too() {
    let mut settings = Settings::from_vars(|name| {
        let url = match name {
            "LLAMACPP_BASE_URL" => "http://192.0.2.7:8080/v1",
            "OLLAMA_HOST" => "http://models.example:11434",
            _ => return None,
        };
        Some(url.to_owned())
    });
    for (id, is_self_hosted) in [("llamacpp", true), ("ollama", true), ("openai", false), ("mine", false)] {
        let provider = settings.provider(id);
        if id == "mine" {
            provider.base_url = "https://models.example/v1".to_owned();
        }
        assert_eq!((provider.is_self_hosted(), provider.is_local()), (is_self_hosted, false), "{id}");
    }
    // One with a key is a service that others run.
    settings.apply("llamacpp", "key_env", "KEY", |_| Some("k".to_owned())).unwrap();
    assert!(!settings.provider("llamacpp").is_self_hosted());
    // A window from the settings leaves room for the response.
    settings.apply("ollama", "window", "8192", |_| None).unwrap();
    settings.http = Some(HttpClient::new(None).unwrap());
    let model = Models::new(&settings).unwrap().open("ollama/qwen3").unwrap();
    assert_eq!((model.info().window, model.info().max_output), (8192, 2048));
}

#[tokio::test]
async fn nothing_there_is_nothing_found() {
    let mut settings = settings(Api::Chat, "https://nowhere.test");
    settings.discover = true;
    // One that is no model server, one that never answers: neither is an error, nor does it take
    // long.
    let other = listing(vec![("/v1/models", json!({"hello": 1}))]).await;
    let silent = Server::start(vec![vec![Step::Hold]]).await;
    settings.provider("vllm").base_url = format!("{}/v1", other.url);
    settings.provider("llamacpp").base_url = format!("{}/v1", silent.url);
    settings.provider("lmstudio").base_url = "http://127.0.0.1:1/v1".to_owned();
    settings.provider("ollama").base_url = "http://127.0.0.1:1".to_owned();
    settings.provider("test").key_vars = vec!["TEST_KEY".to_owned()];
    settings.provider("test").key = None;
    let models = Models::discover(&settings).await.unwrap();
    assert_eq!(models.list(), []);
    assert_eq!(models.choose(), None);
}

#[tokio::test]
async fn a_key_makes_a_provider_the_usual_choice() {
    let mut settings = settings(Api::Chat, "https://nowhere.test");
    settings.provider("gemini").key = Key::new("g");
    let models = Models::new(&settings).unwrap();
    assert!(models.choose().unwrap().starts_with("gemini/"));
    assert!(models.list().iter().all(|model| model.provider == "gemini"));
    settings.provider("test").models = vec!["big".to_owned()];
    assert!(Models::new(&settings).unwrap().list().iter().any(|model| model.spec() == "test/big"));
    settings.model = Some("test/wanted".to_owned());
    assert_eq!(Models::new(&settings).unwrap().choose().as_deref(), Some("test/wanted"));
    for (spec, expected) in [
        ("gemini", Ok("gemini/gemini-3.8-flash")),
        ("gemini-3.5-flash", Ok("gemini/gemini-3.5-flash")),
        ("gemini/gemini-99", Ok("gemini/gemini-99")),
        ("test/a/b:c", Ok("test/a/b:c")),
        ("anthropic/claude-x", Err("ANTHROPIC_API_KEY")),
        ("claude-x", Err("--login anthropic")),
        ("nobody/x", Err("no model \"nobody/x\"")),
        ("x", Err("write `provider/model`")),
        ("script:/no/such/file", Err("cannot read the script")),
        ("vllm", Err("is it running")),
    ] {
        match (models.open(spec), expected) {
            (Ok(model), Ok(expected)) => assert_eq!(model.info().spec(), expected),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{spec}: {error}"),
            (found, expected) => {
                panic!("{spec}: {:?} instead of {expected:?}", found.map(|model| model.info().spec()))
            }
        }
    }
}
