//! The agent with providers of models that are real servers on loopback, and do what providers do
//! on bad days. Whatever they do, the session continues.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle};

use crate::agent_api::{APIS, call, content_type, text};
use crate::agent_models_server::{Seen, Server, Step, head, whole};
use crate::agent_wire::{AgentWire, Fault};
use crate::world::{World, eventually};

const KEY: &str = "sk-very-secret-key-0123456789";

type Replies = Arc<Mutex<VecDeque<Vec<Step>>>>;

/// A provider that answers each question with the next of its replies.
struct Provider {
    api: &'static str,
    server: Server,
    replies: Replies,
    runtime: Handle,
    /// Connections that are known to have ended.
    ended: usize,
}

impl Provider {
    fn start(api: &'static str) -> Provider {
        let replies = Replies::default();
        let queue = replies.clone();
        let answer = move |asked: &Seen| match asked.head.starts_with("POST") {
            true => queue.lock().unwrap().pop_front().unwrap_or_default(),
            // The list of models is unknown.
            false => whole(404, "", "{}"),
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let server = runtime.block_on(Server::answering(answer));
        thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Provider { api, server, replies, runtime: handle, ended: 0 }
    }

    fn will(&self, reply: Vec<Step>) {
        self.replies.lock().unwrap().push_back(reply);
    }

    fn will_stream(&self, text: &str) {
        self.will(vec![self.head(), Step::Send(text.as_bytes().to_vec())]);
    }

    fn will_say(&self, words: &str) {
        self.will_stream(&text(self.api, words));
    }

    fn head(&self) -> Step {
        Step::Send(head(200, content_type(self.api), ""))
    }

    /// What the model was asked last.
    fn asked(&self) -> String {
        self.server.seen().iter().rfind(|seen| seen.head.starts_with("POST")).unwrap().body.to_string()
    }

    /// Waits until no connection is left.
    fn is_left(&mut self) {
        while self.ended < self.server.seen().len() {
            let end = async { tokio::time::timeout(Duration::from_secs(60), self.server.gone()).await };
            self.runtime.block_on(end).expect("the agent holds on to a connection");
            self.ended += 1;
        }
    }
}

/// A world whose settings name a provider `test`.
fn world(provider: &Provider) -> World {
    let world = World::new().env("TEST_MODEL_KEY", KEY);
    world.settings(&format!(
        "[providers.test]\nbase_url = \"{}\"\napi = \"{}\"\nkey_env = \"TEST_MODEL_KEY\"\n",
        provider.server.url, provider.api
    ));
    world.write("notes.txt", "the word is marmalade\n");
    world
}

/// A turn that ends well, and what was said in it.
#[track_caller]
fn said(agent: &mut AgentWire, session: &str, prompt: &str) -> String {
    let before = agent.history.len();
    let stop = agent.prompt(session, prompt).unwrap();
    assert_eq!(stop["stopReason"], "end_turn");
    agent.said(before)
}

#[test]
fn a_bad_day_of_every_provider() {
    for api in APIS {
        let mut provider = Provider::start(api);
        let world = world(&provider);
        let mut agent = AgentWire::start(&world, &["--model", "test/some-model"]);
        let session = agent.open(&world.dir);
        bad_day(&mut provider, &mut agent, &session);
        // PROMPT-19 and the rest still hold at the end of it.
        provider.will_say("all is well");
        let stop = agent.prompt(&session, "at last").unwrap();
        assert_eq!(stop["usage"], json!({"totalTokens": 5, "inputTokens": 3, "outputTokens": 2}), "{api}");
        let told = agent.history.iter().map(Value::to_string).collect::<String>();
        assert!(!told.contains(KEY), "{api}: the client got the key: {told}");
        let errors = agent.end();
        assert!(!errors.contains(KEY), "{errors}");
        provider.is_left();
        nothing_holds_the_key(&world, "after the cut");
    }
}

#[test]
fn the_silence_limit_comes_from_a_flag_or_the_environment() {
    let half = b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let (flag, env) = (vec!["--model-timeout", "0.3"], "ATTACHE_MODEL_TIMEOUT");
    // The flag counts more: with what the environment says here the test would wait for hours.
    for (more, seconds) in [(flag, "9999"), (Vec::new(), "0.3")] {
        let provider = Provider::start("chat");
        let world = world(&provider).env(env, seconds);
        let args = [vec!["--model", "test/some-model"], more].concat();
        let mut agent = AgentWire::start(&world, &args);
        let session = agent.open(&world.dir);
        provider.will(vec![provider.head(), Step::Send(half.to_vec()), Step::Hold]);
        match agent.prompt(&session, "hello?") {
            Err(Fault::Refused(error)) => assert!(error.to_string().contains("silent for 0.3 s"), "{error}"),
            other => panic!("{other:?}"),
        }
        provider.will_say("here I am");
        assert_eq!(said(&mut agent, &session, "hello?"), "here I am");
    }
}

fn bad_day(provider: &mut Provider, agent: &mut AgentWire, session: &str) {
    let api = provider.api;
    let fail = |status, more: &str| whole(status, more, r#"{"error":{"message":"not now"}}"#);
    // Asked again, at once or when the provider says.
    provider.will(fail(500, "retry-after-ms: 1\r\n"));
    provider.will(fail(429, "retry-after-ms: 1\r\n"));
    provider.will_say("the third time");
    assert_eq!(said(agent, session, "hello"), "the third time", "{api}");
    // A tool, there and back.
    provider.will_stream(&call(api, "read", r#"{"path": "notes.txt"}"#));
    provider.will_say("marmalade");
    assert_eq!(said(agent, session, "which word?"), "marmalade", "{api}");
    assert!(provider.asked().contains("the word is marmalade"), "{api}: {}", provider.asked());
    // Cut off in the middle of a call.
    let whole_call = call(api, "write", r#"{"path": "new.txt", "content": "no"}"#);
    let cut = whole_call.find("new.txt").unwrap();
    provider.will_stream(&whole_call[..cut]);
    let before = agent.history.len();
    assert!(matches!(agent.prompt(session, "write a file"), Err(Fault::Refused(_))), "{api}");
    let open = agent.history[before..].iter().rfind(|update| update.get("toolCallId").is_some());
    assert!(open.is_none_or(|last| last["status"] == "failed"), "{api}: {open:?}");
    provider.will_say("after the cut");
    assert_eq!(said(agent, session, "and now?"), "after the cut", "{api}");
    // Arguments that are none.
    provider.will_stream(&call(api, "write", r#"{"path": oops"#));
    provider.will_say("my mistake");
    assert_eq!(said(agent, session, "write it again"), "my mistake", "{api}");
    assert_eq!(agent.asked.len(), 0, "{api}: nothing was worth a question");
    // A key that is wrong, reported with the key.
    provider.will(whole(401, "", &format!(r#"{{"error":{{"message":"wrong key {KEY}"}}}}"#)));
    match agent.prompt(session, "who am I?") {
        Err(Fault::Refused(error)) => assert!(!error.to_string().contains(KEY), "{api}: {error}"),
        other => panic!("{api}: {other:?}"),
    }
    endless(provider, agent, session);
    silent(provider, agent, session);
    // A model that says the key aloud: what is kept does not say it.
    provider.will_say(&format!("my key is {KEY}"));
    let before = agent.history.len();
    agent.prompt(session, "say it").unwrap();
    agent.history.truncate(before);
}

/// An answer without end is left when the user says so.
fn endless(provider: &mut Provider, agent: &mut AgentWire, session: &str) {
    let piece = match provider.api {
        "chat" => "data: {\"choices\":[{\"delta\":{\"content\":\"and \"}}]}\n\n",
        "responses" => {
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"and \"}\n\n"
        }
        "anthropic" => {
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"and \"}}\n\n"
        }
        "gemini" => "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"and \"}]}}]}\n\n",
        _ => "{\"message\":{\"content\":\"and \"},\"done\":false}\n",
    };
    let mut steps = vec![provider.head()];
    if provider.api == "anthropic" {
        let begin = text("anthropic", "and ");
        let end = begin.find("data: {\"index\":0,\"type\":\"content_block_stop\"").unwrap();
        steps.push(Step::Send(begin.as_bytes()[..end].to_vec()));
    }
    steps.push(Step::Flood(piece.as_bytes().to_vec()));
    provider.will(steps);
    let turn = agent.begin(session, "count");
    agent.until("the first words", |update| update["sessionUpdate"] == "agent_message_chunk");
    agent.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(agent.wait(turn).unwrap()["stopReason"], "cancelled", "{}", provider.api);
    provider.is_left();
}

/// A provider that says nothing is left too.
fn silent(provider: &mut Provider, agent: &mut AgentWire, session: &str) {
    for steps in [vec![Step::Hold], vec![provider.head(), Step::Hold]] {
        provider.will(steps);
        let before = provider.server.seen().len();
        let turn = agent.begin(session, "hello?");
        eventually("the question", || provider.server.seen().len() > before);
        agent.notify("session/cancel", json!({"sessionId": session}));
        assert_eq!(agent.wait(turn).unwrap()["stopReason"], "cancelled", "{}", provider.api);
        provider.is_left();
    }
}

/// Neither the store nor anything else that is written holds the key, although the store holds what
/// was said.
fn nothing_holds_the_key(world: &World, said: &str) {
    let root = world.path("");
    assert_eq!(files_with(&root, KEY), Vec::<PathBuf>::new());
    let kept = files_with(&root, said);
    assert!(kept.iter().any(|path| path.to_string_lossy().contains("agent.db")), "{kept:?}");
}

fn files_with(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if fs::read(&path).unwrap().windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

/// Keys and places from the environment, as most people have them.
#[test]
fn the_environment_is_enough() {
    for (api, key, place, model) in [
        ("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "anthropic/claude-sonnet-4-5"),
        ("chat", "OPENAI_API_KEY", "OPENAI_BASE_URL", "openai/some-model"),
        ("gemini", "GEMINI_API_KEY", "GEMINI_BASE_URL", "gemini/some-model"),
        ("ollama", "NO_KEY", "OLLAMA_HOST", "ollama/some-model"),
        ("chat", "NO_KEY", "LLAMACPP_BASE_URL", "llamacpp/some-model"),
    ] {
        let provider = Provider::start(api);
        provider.will_say("so it is");
        let world = World::new().env(key, KEY).env(place, &provider.server.url);
        let mut agent = AgentWire::start(&world, &["--model", model]);
        let session = agent.open(&world.dir);
        assert_eq!(said(&mut agent, &session, "hello"), "so it is", "{model}");
        agent.end();
        nothing_holds_the_key(&world, "so it is");
    }
}
