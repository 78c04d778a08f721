//! Cancelling, at every point of a turn: it ends at once as cancelled, and the session continues.

use attache::StopReason;
use attache::client::{Client, Event, Session};
use attache::wire::v1::ToolCallStatus;
use attache_agent::Mode;

use crate::rig::{Project, Seen, allow, session, session_of, take};

/// Cancels when `when` says so, and returns what was seen.
async fn cancel_when(session: &mut Session, prompt: &str, when: impl Fn(&Event) -> bool) -> Seen {
    let mut seen = Seen::default();
    let mut turn = session.prompt(prompt).await.unwrap();
    while let Some(event) = turn.next().await.unwrap() {
        if when(&event) {
            turn.cancel();
        }
        // Questions are left open: cancelling answers them.
        let mut kept = Vec::new();
        take(&mut seen, event, &mut |ask| kept.push(ask));
    }
    seen.stop = turn.stop_reason();
    seen
}

const SCRIPT: &str = r#"
== when "talk"
say one two three
hang
== when "think"
think hm
hang
== when "call"
--
say I look.
call run {"command": "echo started; sleep 600"}
== when "edit"
--
call read {"path": "a.txt"}
call edit {"path": "a.txt", "old": "a", "new": "b"}
== when "cut"
--
call read {"path": "a.txt"}
hang
== when "again"
--
say still here
"#;

#[tokio::test]
async fn while_the_model_talks_or_thinks() {
    // shows CANCEL-04, CANCEL-05, CANCEL-12
    let project = Project::new();
    let mut session = session(&project, SCRIPT, Mode::Auto).await;
    let seen = cancel_when(&mut session, "talk", |event| matches!(event, Event::Text(_))).await;
    assert_eq!(seen.stop, Some(StopReason::Cancelled));
    let seen = cancel_when(&mut session, "think", |event| matches!(event, Event::Thought(_))).await;
    assert_eq!(seen.stop, Some(StopReason::Cancelled));
    assert_eq!(allow(&mut session, "again").await.text, "still here");
}

#[tokio::test]
async fn while_a_command_runs_which_ends_with_it() {
    // shows CANCEL-07, CANCEL-08, TOOL-10
    let project = Project::new();
    for client in [Client::new(), lending()] {
        let mut session = session_of(client, &project, SCRIPT, Mode::Auto).await;
        let running = |event: &Event| matches!(event, Event::ToolCall(change) if change.update.status == Some(ToolCallStatus::InProgress));
        let seen = cancel_when(&mut session, "call", running).await;
        assert_eq!(seen.stop, Some(StopReason::Cancelled), "{seen:#?}");
        assert!(seen.states().last().unwrap().ends_with(": failed"), "{:?}", seen.states());
        assert_eq!(allow(&mut session, "again").await.text, "still here");
    }
}

fn lending() -> Client {
    use attache_host::Host;
    use attache_host::policy::{Mode, Policy};
    Client::new().terminals(Host::new(Policy::new(Mode::APPROVE_ALL)).terminals())
}

#[tokio::test]
async fn while_a_permission_is_asked_for() {
    // shows CANCEL-03, CANCEL-22
    let project = Project::new();
    project.write("a.txt", "a");
    let mut session = session(&project, SCRIPT, Mode::Ask).await;
    let mut turn = session.prompt("edit").await.unwrap();
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::Permission(ask) = event {
            turn.cancel();
            // A client that answers in spite of that changes nothing any more.
            ask.choose_kind(attache::wire::v1::PermissionOptionKind::AllowOnce);
        }
    }
    assert_eq!(turn.stop_reason(), Some(StopReason::Cancelled));
    drop(turn);
    assert_eq!(project.read("a.txt"), "a");
    assert_eq!(allow(&mut session, "again").await.text, "still here");
}

#[tokio::test]
async fn before_a_call_is_complete() {
    let project = Project::new();
    project.write("a.txt", "a");
    let mut session = session(&project, SCRIPT, Mode::Ask).await;
    let seen = cancel_when(&mut session, "cut", |event| matches!(event, Event::ToolCall(_))).await;
    assert_eq!(seen.stop, Some(StopReason::Cancelled));
    assert_eq!(seen.states(), ["read: pending", "read: failed"]);
    assert_eq!(allow(&mut session, "again").await.text, "still here");
}

#[tokio::test]
async fn text_before_a_cancel_stays_in_the_conversation() {
    let project = Project::new();
    let script = "== when \"talk\"\nsay one two three\nhang\n== when \"what\"\nsay ${text}\n";
    let store = project.outside("agent.db");
    let options = attache_agent::Options { store: Some(store.clone()), ..project.script(script) };
    let agent = crate::rig::connect(Client::new(), options).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    cancel_when(&mut session, "talk", |event| matches!(event, Event::Text(_))).await;
    let kept = attache_agent::store::Store::open(&store, attache_host::secrets::Mask::new()).unwrap();
    let context = kept.read(session.id().as_str()).unwrap().context();
    let said: Vec<String> = context.iter().map(|message| message.text()).collect();
    assert_eq!(said[0], "talk");
    assert!(said[1].starts_with("one"), "{said:?}");
    let ended = kept.read(session.id().as_str()).unwrap();
    assert!(format!("{:?}", ended.last().unwrap()).contains("cancelled"), "{ended:?}");
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_leaves_nothing_behind() {
    // shows TERM-20, STDIO-10
    let project = Project::new();
    let script = "==\n--\ncall run {\"command\": \"echo $$ > pid; echo ready; sleep 600\"}\n";
    let (ours, theirs) = attache::Link::pair();
    let options = attache_agent::Options { mode: Some(Mode::Auto), ..project.script(script) };
    let serving = tokio::spawn(attache_agent::serve(options, theirs));
    let agent = Client::new().connect(ours).await.unwrap();
    let mut session = agent.new_session(project.path()).await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    // Its output is shown while it runs.
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::ToolCall(change) = event
            && serde_json::to_string(&change.update.content).unwrap().contains("\\nready")
        {
            break;
        }
    }
    drop(turn);
    drop(session);
    agent.shutdown().await;
    serving.await.unwrap().unwrap();
    let pid = project.read("pid");
    let gone = || !std::path::Path::new("/proc").join(pid.trim()).exists();
    // The guardian ends it; the process table takes a moment to say so.
    let waited = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        while !gone() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.expect("the command is still there");
}
