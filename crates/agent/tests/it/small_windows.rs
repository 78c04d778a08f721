//! Models with a small window, on a server that reports no usage, in the protocol of every
//! provider.

use std::sync::Mutex;

use attache::StopReason;
use attache::client::{Client, Session};
use attache_agent::model::Api;
use attache_agent::{Mode, Options, Sandbox, TrustSource};
use serde_json::{Value, json};

use crate::models::settings;
use crate::models_server::{Seen as Asked, Server, Step, events};
use crate::rig::{Project, allow, connect};
use crate::sloppy::{Reply, call, encoded, last_text, text};

const WINDOWS: [u64; 3] = [4096, 8192, 16_384];

/// A session whose model has this window and is played by a function.
async fn start(
    project: &Project,
    api: Api,
    window: u64,
    answer: impl Fn(&Asked) -> Vec<Step> + Send + Sync + 'static,
) -> (Session, Server) {
    let server = Server::answering(answer).await;
    let mut models = settings(api, &server.url);
    models.apply("test", "window", &window.to_string(), |_| None).unwrap();
    let options = Options {
        model: Some("test/some-model".to_owned()),
        models,
        mode: Some(Mode::Auto),
        trust: TrustSource::All,
        sandbox: Sandbox::Off,
        ..Options::default()
    };
    (connect(Client::new(), options).await.new_session(project.path()).await.unwrap(), server)
}

fn long_file(project: &Project) {
    let line = |number: u32| format!("line {number} of a long file\n");
    project.write("big.txt", &(1..=1500).map(line).collect::<String>());
}

/// A summary if the request is for one.
fn summary(asked: &Asked) -> Option<Reply> {
    asked.body.to_string().contains("You summarize a conversation").then(|| text("It reads big.txt."))
}

/// A model that reads a file page by page, as the results tell it.
fn reader() -> impl Fn(&Asked) -> Reply {
    let next = Mutex::new(1_u32);
    move |asked| {
        if let Some(summary) = summary(asked) {
            return summary;
        }
        let last = last_text(&asked.body);
        let mut next = next.lock().unwrap();
        if last.contains("(end of the file, 1500 lines)") {
            return text("It has 1500 lines.");
        }
        if let Some((_, line)) = last.split_once("continue with line=") {
            let digits: String = line.chars().take_while(char::is_ascii_digit).collect();
            *next = digits.parse().unwrap();
        }
        Reply::Call("read", json!({"path": "big.txt", "line": *next}).to_string())
    }
}

#[tokio::test]
async fn a_long_file_is_read_to_its_end() {
    for (window, most) in WINDOWS.into_iter().zip([60, 30, 15]) {
        for api in Api::ALL {
            let project = Project::new();
            long_file(&project);
            let reply = reader();
            let (mut session, server) =
                start(&project, api, window, move |asked| encoded(api, &reply(asked))).await;
            let seen = allow(&mut session, "how long is big.txt?").await;
            let requests = server.seen();
            assert_eq!(
                (seen.stop, seen.text.trim_end().ends_with("It has 1500 lines.")),
                (Some(StopReason::EndTurn), true),
                "{window} {api:?}, {} requests: {seen:#?}",
                requests.len()
            );
            assert!(requests.len() <= most, "{window} {api:?}: {} requests", requests.len());
            for asked in &requests {
                let tokens = asked.body.to_string().len() as u64 / 4;
                assert!(tokens < window, "{window} {api:?}: a request of {tokens} tokens");
            }
        }
    }
}

#[tokio::test]
async fn the_same_read_for_ever_ends() {
    for window in WINDOWS {
        for api in Api::ALL {
            let project = Project::new();
            long_file(&project);
            let reply =
                |asked: &Asked| summary(asked).unwrap_or_else(|| call("read", "{\"path\": \"big.txt\"}"));
            let (mut session, server) =
                start(&project, api, window, move |asked| encoded(api, &reply(asked))).await;
            let seen = allow(&mut session, "how long is big.txt?").await;
            assert!(seen.stop != Some(StopReason::EndTurn), "{seen:#?}");
            assert!(server.seen().len() <= 10, "{window} {api:?}: {} requests", server.seen().len());
        }
    }
}

#[tokio::test]
async fn results_of_one_response_share_a_quarter_of_the_window() {
    let project = Project::new();
    long_file(&project);
    let (mut session, server) = start(&project, Api::Chat, 8192, |asked| {
        if last_text(&asked.body) != "read" {
            return encoded(Api::Chat, &text("Done."));
        }
        let read = |index: usize| {
            let arguments = json!({"path": "big.txt", "line": index * 300 + 1}).to_string();
            json!({"index": index, "id": index.to_string(), "function": {"name": "read", "arguments": arguments}})
        };
        let calls = json!({"choices": [{"delta": {"tool_calls": (0..4).map(read).collect::<Vec<_>>()}}]});
        let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
        events(&format!("data: {calls}\n\ndata: {end}\n\n"))
    })
    .await;
    let seen = allow(&mut session, "read").await;
    assert_eq!(seen.text, "Done.", "{seen:#?}");
    let body = &server.seen()[1].body;
    let results = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    let sizes: Vec<usize> = results.map(|result| result["content"].as_str().unwrap().len()).collect();
    assert_eq!(sizes.len(), 4);
    assert!(sizes.iter().all(|size| *size > 1000) && sizes.iter().sum::<usize>() < 9500, "{sizes:?}");
}

#[tokio::test]
async fn a_small_window_gets_few_tools_and_hints_that_name_only_those() {
    for api in Api::ALL {
        let project = Project::new();
        project.write("src/main.rs", "fn main() {}\n");
        let (mut session, server) = start(&project, api, 16_384, move |asked| {
            let is_first = last_text(&asked.body).contains("go");
            let reply = if is_first { call("read", "{\"path\": \"nowhere/zzz.txt\"}") } else { text("Hm.") };
            encoded(api, &reply)
        })
        .await;
        assert_eq!(allow(&mut session, "go").await.text, "Hm.", "{api:?}");
        let asked = server.seen();
        let tools = match api {
            Api::Gemini => &asked[0].body["tools"][0]["functionDeclarations"],
            _ => &asked[0].body["tools"],
        };
        let name = |tool: &Value| {
            let tool = tool.get("function").unwrap_or(tool);
            tool["name"].as_str().unwrap().to_owned()
        };
        let names: Vec<String> = tools.as_array().unwrap().iter().map(name).collect();
        assert_eq!(names, ["read", "list", "search", "edit", "write", "run"], "{api:?}");
        assert!(!tools.to_string().contains("`glob`"), "{api:?}: {tools}");
        let result = last_text(&asked[1].body);
        assert!(result.contains("no such file") && !result.contains("`glob`"), "{api:?}: {result}");
        assert!(
            asked[0].body.to_string().contains("Its files:\\nsrc/main.rs"),
            "the listing: {}",
            asked[0].body
        );
    }
}
