//! `/context`, tokens from caches, and prices of the settings.

use attache::client::Client;
use attache_agent::model::Api;
use attache_agent::{Mode, Options, Sandbox, TrustSource};
use serde_json::json;

use crate::models::settings;
use crate::models_server::{Server, Step, head};
use crate::rig::{Project, allow, connect, session};
use crate::sloppy;

/// The estimate in a row of the table.
fn row(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    line.split('|').nth(2).unwrap().trim().replace(',', "").parse().unwrap()
}

#[tokio::test]
async fn the_window_is_shown_by_kind() {
    let project = Project::new();
    project.write("AGENTS.md", &"Be kind. ".repeat(100));
    project.write("a.txt", &"x".repeat(1900));
    let script = "window: 10000\n== when \"read\"\n--\nusage input=100 output=5 cache_write=1500\ncall read {\"path\": \"a.txt\"}\n\
                  --\nusage input=100 output=20 cache_read=1500 cache_write=500\nsay done\n";
    let mut session = session(&project, script, Mode::Ask).await;
    let before = allow(&mut session, "/context").await;
    assert!(before.text.contains("of 10,000 tokens") && before.text.contains("estimated"), "{}", before.text);
    assert!(before.text.contains("has not counted any tokens"), "{}", before.text);
    assert_eq!((row(&before.text, "your messages"), row(&before.text, "tool results")), (0, 0));
    assert!(row(&before.text, "instructions") >= 225, "{}", before.text);
    assert!(row(&before.text, "system prompt") > 100 && row(&before.text, " tools") > 200);

    allow(&mut session, &*format!("read {}", "please ".repeat(80))).await;
    let after = allow(&mut session, "/context").await;
    assert!(
        after.text.contains("2,120 of 10,000 tokens (21 %), by the provider's last count"),
        "{}",
        after.text
    );
    assert!(row(&after.text, "your messages") >= 140 && row(&after.text, "tool results") >= 470);
    assert_eq!(row(&after.text, "free"), 7880);
    assert!(
        after.text.contains("Last request: 2,100 in (1,500 from the cache, 71 %; 500 written to it), 20 out")
    );
    assert!(
        after.text.contains("opened: 3,700 in (1,500 from the cache, 40 %; 2,000 written to it), 25 out")
    );
    // The report is no part of the conversation.
    let again = allow(&mut session, "/context").await;
    assert_eq!(row(&again.text, "your messages"), row(&after.text, "your messages"));
}

#[tokio::test]
async fn cached_tokens_cost_what_the_settings_say() {
    // (protocol, response with 1000 tokens of input, 600 of them from the cache, and 100 of output)
    let responses = [
        (
            Api::Chat,
            json!({"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 600}}}),
        ),
        (
            Api::Responses,
            json!({"type": "response.completed", "response": {"usage": {
            "input_tokens": 1000, "output_tokens": 100, "input_tokens_details": {"cached_tokens": 600}}}}),
        ),
        (
            Api::Gemini,
            json!({"candidates": [{"content": {"parts": [{"text": "Hi."}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100, "cachedContentTokenCount": 600}}),
        ),
        (
            Api::Anthropic,
            json!({"type": "message", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 400, "cache_read_input_tokens": 600, "output_tokens": 100}}),
        ),
    ];
    for (api, response) in responses {
        let mut bytes = Vec::new();
        if api == Api::Responses {
            let said = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hi."});
            bytes.extend(format!("data: {said}\n\n").into_bytes());
        }
        bytes.extend(format!("data: {response}\n\n").into_bytes());
        let server = Server::answering(move |_| {
            vec![Step::Send(head(200, "text/event-stream", "")), Step::Send(bytes.clone())]
        })
        .await;
        let mut models = settings(api, &server.url);
        for (field, value) in [
            ("price.input", "9"),
            ("price.output", "20"),
            ("model.some-model.price.input", "10"),
            ("model.some-model.price.cache_read", "2.5"),
        ] {
            models.apply("test", field, value, |_| None).unwrap();
        }
        for (field, value) in
            [("price.input", "-1"), ("price.input", "free"), ("price.smell", "1"), ("model.price.input", "1")]
        {
            assert!(models.apply("test", field, value, |_| None).is_err(), "{field} {value}");
        }
        let options = Options {
            model: Some("test/some-model".to_owned()),
            models,
            mode: Some(Mode::Ask),
            trust: TrustSource::All,
            sandbox: Sandbox::Off,
            ..Options::default()
        };
        let project = Project::new();
        let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
        assert_eq!(allow(&mut session, "hello").await.text, "Hi.", "{api:?}");
        let seen = allow(&mut session, "/context").await;
        // 400 × 10 + 600 × 2.5 + 100 × 20 dollars per million.
        assert!(seen.text.contains("$0.0075"), "{api:?}: {}", seen.text);
        assert!(seen.text.contains("1,000 in (600 from the cache, 60 %"), "{api:?}: {}", seen.text);
    }
}

/// The estimate of the first request of a session whose model has this window, and the tools in the
/// request.
async fn first_request(window: u64, mode: Mode) -> (u64, Vec<String>, String) {
    let project = Project::new();
    (0..100).for_each(|number| drop(project.write(&format!("src/module_{number}.rs"), "")));
    let server = Server::answering(|_| sloppy::encoded(Api::Chat, &sloppy::text("Hi."))).await;
    let mut models = settings(Api::Chat, &server.url);
    models.apply("test", "window", &window.to_string(), |_| None).unwrap();
    let options = Options {
        model: Some("test/some-model".to_owned()),
        models,
        mode: Some(mode),
        trust: TrustSource::All,
        sandbox: Sandbox::Off,
        ..Options::default()
    };
    let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
    allow(&mut session, "hello").await;
    let seen = allow(&mut session, "/context").await;
    let body = server.seen()[0].body.clone();
    let tools = body["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect();
    let rows = ["system prompt", "instructions", " tools", "your messages"];
    let system = body["messages"][0]["content"].as_str().unwrap().to_owned();
    (rows.iter().map(|name| row(&seen.text, name)).sum(), names, system)
}

#[tokio::test]
async fn the_first_request_is_small() {
    let (full, tools, system) = first_request(200_000, Mode::Ask).await;
    assert!(full < 2_200, "{full}");
    assert!(["glob", "plan", "fetch"].iter().all(|name| tools.contains(&(*name).to_owned())), "{tools:?}");
    assert!(!system.contains("module_1"), "{system}");
    for mode in [Mode::Ask, Mode::Plan] {
        let (small, tools, system) = first_request(16_384, mode).await;
        assert!(small < 1_200, "{small}");
        let expected: &[&str] = match mode {
            Mode::Plan => &["read", "list", "search", "run", "leave_plan_mode"],
            _ => &["read", "list", "search", "edit", "write", "run"],
        };
        assert_eq!(tools, expected);
        assert!(system.contains("src/ (100 files)"), "{system}");
    }
}

#[tokio::test]
async fn instructions_leave_room_in_a_small_window() {
    let project = Project::new();
    project.write("AGENTS.md", &"Be kind. ".repeat(5000));
    let script = "window: 8000\n==\nsay done\n";
    let mut session = session(&project, script, Mode::Ask).await;
    let seen = allow(&mut session, "/context").await;
    assert!((1_900..=2_100).contains(&row(&seen.text, "instructions")), "{}", seen.text);
}

#[tokio::test]
async fn a_model_gets_the_users_instructions_for_it() {
    let project = Project::new();
    for (id, expected) in [("some-model", "Answer in verse."), ("other-model", "Answer in prose.")] {
        let server = Server::answering(|_| sloppy::encoded(Api::Chat, &sloppy::text("Hi."))).await;
        let mut models = settings(Api::Chat, &server.url);
        models.apply("test", "prompt", "Answer in prose.", |_| None).unwrap();
        models.apply("test", "model.some-model.prompt", "Answer in verse.", |_| None).unwrap();
        let model = Some(format!("test/{id}"));
        let options = Options { model, models, trust: TrustSource::All, ..Options::default() };
        let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
        allow(&mut session, "hello").await;
        let body = server.seen()[0].body.clone();
        let system = body["messages"][0]["content"].as_str().unwrap();
        assert!(system.contains(&format!("\n## Instructions for {id}\n\n{expected}\n")), "{system}");
        assert_eq!(system.matches("Answer in").count(), 1, "{system}");
    }
}
