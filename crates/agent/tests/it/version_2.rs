//! Commands and changed files, as clients of both versions see them.

use std::sync::{Arc, Mutex};

use attache::client::{Client, Event, Protocol, Session, ToolCallChange};
use attache::wire::v1::{PermissionOptionKind, ToolCallContent};
use attache::{EditOperation, Flow, Link};
use attache_agent::{Mode, Options};

use crate::rig::{Project, connect, session_of};

fn client(protocol: Protocol) -> Client {
    Client::new().protocol(protocol)
}

/// What a turn showed of its commands and files.
#[derive(Default)]
struct Shown {
    text: String,
    /// The last state of the tool call.
    call: Option<ToolCallChange>,
    output: Vec<u8>,
    command: Option<String>,
    exit_code: Option<i64>,
    has_terminal: bool,
}

/// Plays a turn in which everything is allowed. `look` sees the output of a terminal, and says
/// whether it is cancelled.
async fn play(session: &mut Session, mut look: impl FnMut(&str) -> bool) -> Shown {
    let (control, mut shown) = (session.control(), Shown::default());
    let mut turn = session.prompt("go").await.unwrap();
    while let Some(event) = turn.next().await.unwrap() {
        match event {
            Event::Text(text) => shown.text.push_str(&text),
            Event::ToolCall(change) => shown.call = Some(change),
            Event::Permission(ask) => ask.choose_kind(PermissionOptionKind::AllowOnce),
            Event::Terminal(change) => {
                shown.has_terminal = true;
                shown.output.clone_from(&change.terminal.output);
                shown.command.clone_from(&change.terminal.command);
                let exit = change.terminal.exit_status.as_ref();
                shown.exit_code = exit.and_then(|exit| exit.exit_code);
                if exit.is_none() && look(&String::from_utf8_lossy(&shown.output)) {
                    control.cancel_terminal(&change.terminal.id).await.unwrap();
                }
            }
            _ => {}
        }
    }
    shown
}

fn script(calls: &[&str]) -> String {
    let calls: Vec<String> = calls.iter().map(|call| format!("--\ncall {call}\n")).collect();
    format!("==\n{}--\nsay ${{result}}\n", calls.concat())
}

#[tokio::test]
async fn a_command_is_a_terminal_of_the_agent() {
    let project = Project::new();
    // It continues when the client has seen its first line.
    let command = "echo first; while [ ! -e seen ]; do sleep 0.05; done; echo second; exit 3";
    let script = script(&[&format!("run {{\"command\": \"{command}\"}}")]);
    let mut session = session_of(client(Protocol::V2), &project, &script, Mode::Auto).await;
    let seen = play(&mut session, |output| {
        if output.contains("first") {
            project.write("seen", "");
        }
        false
    });
    let shown = seen.await;
    assert_eq!(String::from_utf8_lossy(&shown.output).replace('\r', ""), "first\nsecond\n");
    assert_eq!((shown.command.as_deref(), shown.exit_code), (Some(command), Some(3)));
    assert_eq!(shown.text, "first\nsecond\n(exit code 3)");
    let call = shown.call.unwrap().call;
    assert!(matches!(&call.content[..], [ToolCallContent::Terminal(_)]), "{:?}", call.content);
}

#[tokio::test]
async fn a_stored_command_is_text() {
    let project = Project::new();
    let script = script(&[r#"run {"command": "echo first; exit 3"}"#]);
    for (protocol, other) in [(Protocol::V2, Protocol::V1), (Protocol::V1, Protocol::V2)] {
        let mut options = project.script(&script);
        options.mode = Some(Mode::Auto);
        options.store = Some(project.outside("sessions.db"));
        let mut session =
            connect(client(protocol), options.clone()).await.new_session(project.path()).await.unwrap();
        let shown = play(&mut session, |_| false).await;
        assert_eq!(shown.has_terminal, protocol == Protocol::V2);
        let id = session.id().clone();
        let agent = connect(client(other), options).await;
        let mut replay = agent.loader().unwrap().load(id, project.path()).await.unwrap();
        let mut contents = Vec::new();
        while let Some(event) = replay.next().await.unwrap() {
            match event {
                Event::ToolCall(change) => contents = change.call.content.clone(),
                Event::Terminal(change) => panic!("{change:?}"),
                _ => {}
            }
        }
        let text = serde_json::to_string(&contents).unwrap();
        assert!(text.contains("```\\nfirst\\n```"), "{text}");
    }
}

#[tokio::test]
async fn a_prompt_is_replayed_under_the_id_that_it_had() {
    let project = Project::new();
    let options =
        Options { store: Some(project.outside("sessions.db")), ..project.script("==\n--\nsay one\n") };
    let lines = Arc::new(Mutex::new(Vec::new()));
    let connect = async |options: &Options| {
        let (ours, theirs) = Link::pair();
        let (options, lines) = (options.clone(), lines.clone());
        tokio::spawn(async move { attache_agent::serve(options, theirs).await });
        let tap = move |flow, line: &[u8]| {
            if flow == Flow::In {
                lines.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
            }
        };
        client(Protocol::V2).connect(ours.tap(tap)).await.unwrap()
    };
    let mut session = connect(&options).await.new_session(project.path()).await.unwrap();
    play(&mut session, |_| false).await;
    let replay = connect(&options).await.loader().unwrap().load(session.id().clone(), project.path()).await;
    replay.unwrap().finish().await.unwrap();
    let lines = lines.lock().unwrap();
    let update = |line: &String| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let update = &line["params"]["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        kind.starts_with("user_message").then(|| update["messageId"].to_string())
    };
    let ids: Vec<String> = lines.iter().filter_map(update).collect();
    assert!(ids.len() == 2 && ids[0] == ids[1], "{ids:?}");
}

#[tokio::test]
async fn a_command_can_be_cancelled_alone() {
    let project = Project::new();
    let script = script(&[r#"run {"command": "echo begins; sleep 600"}"#]);
    let mut session = session_of(client(Protocol::V2), &project, &script, Mode::Auto).await;
    let shown = play(&mut session, |output| output.contains("begins")).await;
    assert!(shown.text.ends_with("(cancelled by the user)"), "{}", shown.text);
    assert!(shown.text.starts_with("begins"), "the turn goes on with the output");
}

#[tokio::test]
async fn deleted_and_moved_files_are_changes() {
    let calls = [
        (r#"delete {"path": "a.txt"}"#, EditOperation::Delete, Some("one\n"), "deleted a.txt"),
        (r#"move {"from": "b.txt", "to": "c.txt"}"#, EditOperation::Rename, None, "moved b.txt to c.txt"),
    ];
    for (call, operation, removed, text) in calls {
        for protocol in [Protocol::V1, Protocol::V2] {
            let project = Project::new();
            project.write("a.txt", "one\n");
            project.write("b.txt", "two\n");
            let mut session = session_of(client(protocol), &project, &script(&[call]), Mode::Auto).await;
            let shown = play(&mut session, |_| false).await;
            assert_eq!(shown.text, text);
            let call = shown.call.unwrap().call;
            if protocol == Protocol::V1 {
                let content = serde_json::to_string(&call.content).unwrap();
                assert!(content.contains(text) && call.edits.is_empty(), "{content}");
                continue;
            }
            let [edit] = &call.edits[..] else { panic!("{:?}", call.edits) };
            assert_eq!(edit.operation(), operation);
            assert_eq!(edit.patch().unwrap().contains("-one"), removed.is_some());
        }
    }
}
