//! Commands in the background: their output comes later, and they end with the session.

use std::io::Read as _;
use std::path::PathBuf;

use attache::client::Client;
use attache::wire::v1::PermissionOptionKind;
use attache_agent::model::Api;
use attache_agent::{Mode, Options};
use serde_json::{Value, json};

use crate::rig::{Project, allow, connect, run, session};
use crate::sloppy::{Reply, call, start, text};

/// A FIFO that is at its end when no process has it open any more.
struct Fifo(PathBuf);

impl Fifo {
    fn new(project: &Project) -> Self {
        let path = project.outside("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        Fifo(path)
    }

    /// A command line that holds the FIFO open in two processes.
    fn line(&self) -> String {
        format!("exec 3>{}; echo ready; echo ready >&3; sleep 1000 & sleep 1000", self.0.display())
    }

    /// Reads until no process has it open. Waits for the first that opens it.
    fn read(&self) -> tokio::task::JoinHandle<String> {
        let path = self.0.clone();
        tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            std::fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
            text
        })
    }
}

/// The names of the tools in a request.
fn tools(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// The last result in a request.
fn result(body: &Value) -> String {
    body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}

fn background(line: &str) -> Reply {
    Reply::Call("run", json!({"command": line, "background": true}).to_string())
}

#[tokio::test]
async fn output_comes_later_and_once() {
    let project = Project::new();
    let fifo = Fifo::new(&project);
    let line = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 3";
    let replies = [
        background(line),
        call("output", "{\"id\": \"bg1\"}"),
        call("write", "{\"path\": \"go\", \"content\": \"\"}"),
        call("output", "{\"id\": \"bg1\", \"wait\": 60}"),
        call("output", "{\"id\": \"bg7\"}"),
        background(&fifo.line()),
        call("stop", "{\"id\": \"bg2\"}"),
        text("Done."),
    ];
    let reader = fifo.read();
    let (mut session, server) = start(&project, Api::Chat, Mode::Ask, &replies).await;
    let seen = allow(&mut session, "go").await;
    assert_eq!(seen.text, "Done.", "{seen:#?}");
    // A command needs its permission; looking at it and stopping it does not.
    assert_eq!(seen.asked.len(), 3, "{:?}", seen.titles_asked());
    assert!(serde_json::to_string(&seen.asked[0]).unwrap().contains("in the background"));
    let asked = server.seen();
    let results: Vec<String> = asked[1..].iter().map(|asked| result(&asked.body)).collect();
    assert_eq!(results[0], "runs in the background as bg1; see `output`");
    assert!(results[1].starts_with("one\n(running for "), "{results:?}");
    assert_eq!(results[3], "two\n(ended with exit code 3)");
    assert_eq!(results[4], "no background command `bg7`; there are: bg1");
    assert!(results[6].starts_with("ready\n(killed by "), "{results:?}");
    assert_eq!(reader.await.unwrap(), "ready\n", "its children are gone too");
    // The tools are offered once there is something to use them for.
    assert!(!tools(&asked[0].body).contains(&"output".to_owned()));
    assert!(["output", "stop"].iter().all(|name| tools(&asked[1].body).contains(&(*name).to_owned())));
}

#[tokio::test]
async fn a_command_that_ends_at_once_is_reported_at_once() {
    let project = Project::new();
    let replies = [background("echo wrong >&2; exit 4"), text("Oh.")];
    let (mut session, server) = start(&project, Api::Chat, Mode::Ask, &replies).await;
    allow(&mut session, "go").await;
    assert_eq!(result(&server.seen()[1].body), "wrong\n(exit code 4)");
    assert!(!tools(&server.seen()[1].body).contains(&"output".to_owned()));
}

#[tokio::test]
async fn all_end_with_the_session() {
    let project = Project::new();
    let fifo = Fifo::new(&project);
    let reader = fifo.read();
    let script = format!(
        "== when \"go\"\n--\ncall run {}\n--\nsay ${{result}}\n",
        json!({"command": fifo.line(), "background": true})
    );
    let options = Options { mode: Some(Mode::Ask), ..project.script(&script) };
    let agent = connect(Client::new(), options).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    assert!(allow(&mut session, "go").await.text.contains("bg1"));
    session.close().await.unwrap();
    assert_eq!(reader.await.unwrap(), "ready\n");
}

#[tokio::test]
async fn all_end_with_the_connection() {
    let project = Project::new();
    let fifo = Fifo::new(&project);
    let reader = fifo.read();
    let script = format!(
        "==\n--\ncall run {}\n--\nsay ${{result}}\n",
        json!({"command": fifo.line(), "background": true})
    );
    let mut session = session(&project, &script, Mode::Ask).await;
    assert!(allow(&mut session, "go").await.text.contains("bg1"));
    drop(session);
    assert_eq!(reader.await.unwrap(), "ready\n");
}

#[tokio::test]
async fn without_a_permission_nothing_starts_and_the_number_is_limited() {
    let project = Project::new();
    let script = format!(
        "==\n--\ncall run {}\n--\nsay ${{result}}\n",
        json!({"command": "touch x; sleep 9", "background": true})
    );
    for mode in [Mode::Ask, Mode::Plan] {
        let mut session = session(&project, &script, mode).await;
        run(&mut session, "go", PermissionOptionKind::RejectOnce).await;
        assert!(!project.has("x"), "{mode}");
    }
    let many: Vec<String> = (0..10)
        .map(|number| {
            format!("--\ncall run {}\n", json!({"command": format!("sleep 100{number}"), "background": true}))
        })
        .collect();
    let mut session =
        session(&project, &format!("==\n{}--\nsay ${{result}}\n", many.concat()), Mode::Auto).await;
    let seen = allow(&mut session, "go").await;
    assert!(seen.text.contains("8 commands run in the background already"), "{}", seen.text);
    session.close().await.unwrap();
}

#[tokio::test]
async fn in_a_sandbox_it_is_asked_for_in_auto_mode_too() {
    let project = Project::new();
    let script = format!(
        "==\n--\ncall run {}\n--\nsay ${{result}}\n",
        json!({"command": "touch inside ../outside; echo done; until [ -e stop ]; do sleep 0.01; done", "background": true})
    );
    let options = Options { mode: Some(Mode::Auto), ..project.sandboxed(&script) };
    let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
    let seen = allow(&mut session, "go").await;
    assert_eq!(seen.asked.len(), 1, "{seen:#?}");
    assert!(seen.text.contains("bg1"), "{}", seen.text);
    assert!(project.has("inside") && !project.outside("outside").exists());
    session.close().await.unwrap();
}
