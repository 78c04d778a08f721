//! Files and terminals of the hub's machine, and rules that decide before people.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use attache_host::policy::{Mode, Policy};
use attache_hub::{Identity, Provision};
use serde_json::{Value, json};

use crate::rig::{Rig, TestClient, stop_reason};

/// A directory that is removed with this value.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("provision-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path.canonicalize().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn with(self, name: &str, text: &str) -> Directory {
        std::fs::write(self.0.join(name), text).unwrap();
        self
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rig(mode: Mode) -> Rig {
    Rig::with(|options| options.provide(move |roots| Some(Provision::new(Policy::new(mode).roots(roots)))))
}

async fn open(client: &mut TestClient, directory: &Directory) -> String {
    let response = client.call("session/new", json!({"cwd": directory.0, "mcpServers": []})).await;
    response["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

/// The text that the agent says in a turn.
async fn said(client: &mut TestClient, session: &str, prompt: &str) -> String {
    client.seen.clear();
    assert_eq!(stop_reason(&client.prompt(session, prompt).await), "end_turn");
    client.texts().pop().unwrap()
}

#[tokio::test]
async fn agents_use_files_and_terminals_of_the_hub() {
    let (directory, outside) = (Directory::new().with("a", "text"), Directory::new().with("b", "secret"));
    let rig = rig(Mode::APPROVE_ALL);
    let mut client = rig.client().await;
    let session = open(&mut client, &directory).await;
    assert_eq!(rig.record.of("offered"), ["true"]);
    assert_eq!(said(&mut client, &session, &format!("read {}", directory.path("a"))).await, "text");
    assert_eq!(said(&mut client, &session, &format!("write {}", directory.path("new"))).await, "written");
    assert_eq!(said(&mut client, &session, "run cat new").await, "written");
    for path in [outside.path("b"), directory.path("../b"), "/etc/passwd".to_owned()] {
        assert_eq!(said(&mut client, &session, &format!("read {path}")).await, "refused");
    }
    assert_eq!(said(&mut client, &session, &format!("write {}", outside.path("c"))).await, "refused");
    // Another agent has them too, after the first has ended.
    client.call("session/close", json!({"sessionId": session})).await;
    client.load(&session).await;
    assert_eq!(said(&mut client, &session, &format!("read {}", directory.path("a"))).await, "text");
}

#[tokio::test]
async fn without_a_provision_nothing_is_offered() {
    let directory = Directory::new().with("a", "text");
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = open(&mut client, &directory).await;
    assert_eq!(rig.record.of("offered"), ["false"]);
    assert_eq!(said(&mut client, &session, &format!("read {}", directory.path("a"))).await, "refused");
}

/// A client that offers its buffers.
async fn editor(rig: &Rig, identity: Identity) -> TestClient {
    let mut editor = rig.connect(identity);
    let capabilities = json!({"fs": {"readTextFile": true}});
    editor.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    editor
}

async fn answer_read(editor: &mut TestClient, outcome: (&str, Value)) -> Value {
    let asked = editor.until(|message| message["method"] == "fs/read_text_file").await;
    editor.send(json!({"jsonrpc": "2.0", "id": asked["id"], outcome.0: outcome.1})).await;
    asked
}

#[tokio::test]
async fn an_editors_unsaved_text_counts_while_it_is_there() {
    let directory = Directory::new().with("a", "stored");
    let rig = rig(Mode::APPROVE_ALL);
    let mut client = rig.client().await;
    let session = open(&mut client, &directory).await;
    let mut editor = editor(&rig, Identity::new("editor")).await;
    editor.load(&session).await;
    let read = format!("read {}", directory.path("a"));

    let turn = client.start_prompt(&session, &read).await;
    let asked = answer_read(&mut editor, ("result", json!({"content": "unsaved"}))).await;
    assert_eq!(asked["params"]["path"], directory.path("a"));
    assert_eq!(asked["params"]["sessionId"], session);
    client.response(turn).await;
    assert_eq!(client.texts(), ["unsaved"]);

    // A file that only the editor has.
    client.seen.clear();
    let turn = client.start_prompt(&session, &format!("read {}", directory.path("new"))).await;
    answer_read(&mut editor, ("result", json!({"content": "not saved yet"}))).await;
    client.response(turn).await;
    assert_eq!(client.texts(), ["not saved yet"]);

    // One that it does not know.
    client.seen.clear();
    let turn = client.start_prompt(&session, &read).await;
    answer_read(&mut editor, ("error", json!({"code": -32002, "message": "not open"}))).await;
    client.response(turn).await;
    assert_eq!(client.texts(), ["stored"]);

    // What is outside of the session is not asked for.
    assert_eq!(said(&mut client, &session, "read /etc/passwd").await, "refused");

    // It leaves while it is asked.
    client.seen.clear();
    let turn = client.start_prompt(&session, &read).await;
    editor.until(|message| message["method"] == "fs/read_text_file").await;
    drop(editor);
    client.response(turn).await;
    assert_eq!(client.texts(), ["stored"]);
    assert_eq!(said(&mut client, &session, &read).await, "stored");
}

#[tokio::test]
async fn an_editor_on_another_machine_is_not_asked() {
    let directory = Directory::new().with("a", "stored");
    let rig = rig(Mode::APPROVE_ALL);
    let mut client = rig.client().await;
    let session = open(&mut client, &directory).await;
    let mut far = editor(&rig, Identity::new("editor").from("192.0.2.7:4000")).await;
    far.load(&session).await;
    assert_eq!(said(&mut client, &session, &format!("read {}", directory.path("a"))).await, "stored");
    far.call("session/list", json!({})).await;
    assert!(!far.seen.iter().any(|message| message["method"] == "fs/read_text_file"));
}

#[tokio::test]
async fn rules_decide_before_people() {
    let directory = Directory::new();
    let rig = rig(Mode::APPROVE_ALL);
    let mut client = rig.client().await;
    let session = open(&mut client, &directory).await;
    let edit = format!("edit-file {}", directory.path("a"));
    assert_eq!(said(&mut client, &session, &edit).await, "written");
    assert_eq!(rig.record.of("answered"), ["yes"]);
    assert!(!client.seen.iter().any(|message| message["method"] == "session/request_permission"));
    let metrics = rig.hub.metrics();
    assert!(metrics.contains("attache_hub_decisions_total 1\n"), "{metrics}");
}

#[tokio::test]
async fn what_people_allow_is_not_asked_twice() {
    let directory = Directory::new();
    let rig = rig(Mode::ASK);
    let mut client = rig.client().await;
    let session = open(&mut client, &directory).await;
    let turn = client.start_prompt(&session, &format!("edit-file {}", directory.path("a"))).await;
    let question = client.question().await;
    client.choose(&question, "yes").await;
    client.response(turn).await;
    assert_eq!(client.texts(), ["written"]);
    assert_eq!(rig.record.of("answered"), ["yes"]);

    // What the agent does without asking becomes a question of the hub.
    for (option, text) in [("allow", "written"), ("reject", "refused")] {
        client.seen.clear();
        let turn = client.start_prompt(&session, &format!("write {}", directory.path("b"))).await;
        let asked = client.until(|message| message["method"] == "session/request_permission").await;
        let title = asked["params"]["toolCall"]["title"].as_str().unwrap();
        assert!(title.contains(&directory.path("b")), "{title}");
        client.choose(&asked["id"], option).await;
        client.response(turn).await;
        assert_eq!(client.texts(), [text]);
    }
}
