//! Who is asked for what, and what an answer does.

use attache::client::Client;
use attache::wire::v1::{PermissionOptionKind, ToolCallContent};
use attache::{SessionId, StopReason};
use attache_agent::{Mode, Options, Sandbox};

use crate::rig::{Project, allow, connect, json, run, run_with, session};

const EDIT: &str = "==\n--\ncall read {\"path\": \"a.txt\"}\n--\ncall edit {\"path\": \"a.txt\", \"old\": \"a\", \"new\": \"b\"}\n--\nsay ${result}\n";

#[tokio::test]
async fn a_question_shows_the_change_and_no_means_no() {
    // shows PERM-01, PERM-02, PERM-03, PERM-10, PERM-13
    let project = Project::new();
    project.write("a.txt", "a\n");
    let mut session = session(&project, EDIT, Mode::Ask).await;
    let mut before = String::new();
    let seen = run_with(&mut session, "go", |ask| {
        before = project.read("a.txt");
        let kinds: Vec<&str> = ask.options().iter().map(|option| option.kind.as_str()).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "allow_always", "reject_once"]);
        let labels: Vec<&str> = ask.options().iter().map(|option| option.name.as_str()).collect();
        assert_eq!(
            labels,
            [
                "Yes, once",
                "Yes, until this session ends: edit files",
                "Always in this project: edit files (attache-agent)",
                "No"
            ]
        );
        ask.choose_kind(PermissionOptionKind::RejectOnce);
    })
    .await;
    // shows PERM-15
    assert_eq!(before, "a\n", "nothing happens before the answer");
    assert_eq!(project.read("a.txt"), "a\n");
    assert_eq!(seen.text, "the user did not allow this");
    assert_eq!(seen.stop, Some(StopReason::EndTurn));
    assert_eq!(
        seen.states(),
        [
            "read: pending",
            "Read a.txt: in_progress",
            "Read a.txt: completed",
            "edit: pending",
            "Edit a.txt: failed"
        ]
    );
    assert!(seen.calls.last().unwrap().content.is_none(), "the change that was not made is still shown");
    let content = seen.asked[0].content.as_ref().unwrap();
    assert!(matches!(&content[0], ToolCallContent::Diff(diff) if diff.new_text == "b\n"), "{content:?}");
}

#[tokio::test]
async fn a_question_without_an_answer_is_no_approval() {
    // shows PERM-09
    let project = Project::new();
    project.write("a.txt", "a\n");
    let mut session = session(&project, EDIT, Mode::Ask).await;
    let seen = run_with(&mut session, "go", |ask| ask.cancel()).await;
    assert_eq!(project.read("a.txt"), "a\n");
    assert_eq!(seen.text, "the user did not allow this");
}

#[tokio::test]
async fn always_is_remembered_for_just_that_and_for_one_session() {
    // shows PERM-14
    let project = Project::new();
    project.write("a.txt", "1");
    let script = r#"==
--
call read {"path": "a.txt"}
call read {"path": "b.txt"}
--
call write {"path": "a.txt", "content": "2"}
--
call write {"path": "b.txt", "content": "3"}
call run {"command": "touch c"}
--
call run {"command": "touch c"}
call run {"command": "touch c d"}
--
say done
"#;
    let mut session = session(&project, script, Mode::Ask).await;
    let seen = run(&mut session, "go", PermissionOptionKind::AllowAlways).await;
    assert_eq!(seen.titles_asked(), ["Write a.txt", "`touch c`", "`touch c d`"]);
    let agent = session.agent().clone();
    let mut other = agent.new_session(project.path()).await.unwrap();
    let seen = allow(&mut other, "go").await;
    assert_eq!(seen.asked.len(), 5, "another session is asked again");
}

#[tokio::test]
async fn nothing_outside_is_read_or_written_without_a_question_in_any_mode() {
    // shows ROOT-17, ROOT-18
    let project = Project::new();
    let secret = project.outside("secret.txt");
    let target = project.outside("target.txt");
    std::fs::write(&secret, "the secret").unwrap();
    std::fs::write(&target, "untouched").unwrap();
    std::os::unix::fs::symlink(&secret, project.path().join("link")).unwrap();
    std::os::unix::fs::symlink(project.outside(""), project.path().join("dir")).unwrap();
    let calls = [
        format!("call read {{\"path\": {}}}", json(&secret)),
        "call read {\"path\": \"../secret.txt\"}".to_owned(),
        "call read {\"path\": \"link\"}".to_owned(),
        "call read {\"path\": \"dir/secret.txt\"}".to_owned(),
        "call search {\"pattern\": \"secret\", \"path\": \"..\"}".to_owned(),
        "call list {\"path\": \"dir\"}".to_owned(),
        "call glob {\"pattern\": \"*\", \"path\": \"/etc\"}".to_owned(),
        format!("call write {{\"path\": {}, \"content\": \"x\"}}", json(&target)),
        "call edit {\"path\": \"../target.txt\", \"old\": \"un\", \"new\": \"\"}".to_owned(),
        "call delete {\"path\": \"../target.txt\"}".to_owned(),
        "call move {\"from\": \"../target.txt\", \"to\": \"taken.txt\"}".to_owned(),
        "call run {\"command\": \"cat ../secret.txt\", \"cwd\": \"..\"}".to_owned(),
    ];
    for mode in [Mode::Ask, Mode::Code, Mode::Auto, Mode::Plan] {
        let script = format!("==\n--\n{}\n--\nsay ${{result}}\n", calls.join("\n"));
        let mut session = session(&project, &script, mode).await;
        let seen = run(&mut session, "go", PermissionOptionKind::RejectOnce).await;
        assert!(!seen.text.contains("the secret"), "{mode}: {}", seen.text);
        assert!(!seen.contents().contains("the secret"), "{mode}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "untouched", "{mode}");
        // In plan mode what changes something is not even asked for.
        assert_eq!(
            seen.asked.len(),
            // What is outside must have been read before it can be edited, and here that was
            // refused.
            if mode == Mode::Plan { 7 } else { 11 },
            "{mode}: {:?}",
            seen.titles_asked()
        );
    }
}

#[tokio::test]
async fn allowed_files_outside_are_read() {
    let project = Project::new();
    let outside = project.outside("other.txt");
    std::fs::write(&outside, "from outside").unwrap();
    let script = format!(
        "==\n--\ncall read {{\"path\": {0}}}\ncall write {{\"path\": {0}, \"content\": \"changed\"}}\n--\nsay ${{result}}\n",
        json(&outside)
    );
    let mut session = session(&project, &script, Mode::Ask).await;
    let seen = allow(&mut session, "go").await;
    assert!(seen.text.contains("from outside"), "{}", seen.text);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "changed");
}

#[tokio::test]
async fn commands_that_only_look_are_free_and_all_others_are_asked_for() {
    let project = Project::new();
    project.write("a.txt", "hello\n");
    let free = ["ls", "cat a.txt", "grep -n hello a.txt | head -3"];
    let asked = [
        "cat a.txt; touch x",
        "cat a.txt && touch x",
        "cat $(touch x)",
        "cat `touch x`",
        "cat a.txt > x",
        "FOO=1 touch x",
        "cat /etc/passwd",
        "cat ../x",
        "ls & touch x",
        "ls\ntouch x",
        "find . -delete",
    ];
    let call = |line: &&str| format!("call run {}", serde_json::json!({"command": line}));
    let script = |lines: &[&str]| {
        format!("==\n--\n{}\n--\nsay ${{result}}\n", lines.iter().map(call).collect::<Vec<_>>().join("\n"))
    };
    let sandboxed = |lines: &[&str], mode| {
        let options = Options { mode: Some(mode), ..project.sandboxed(&script(lines)) };
        async { connect(Client::new(), options).await.new_session(project.path()).await.unwrap() }
    };
    let mut looking = sandboxed(&free, Mode::Ask).await;
    let seen = run(&mut looking, "go", PermissionOptionKind::RejectOnce).await;
    assert!(seen.asked.is_empty(), "{:?}", seen.titles_asked());
    assert!(seen.text.contains("1:hello"), "{}", seen.text);
    let mut acting = sandboxed(&asked, Mode::Ask).await;
    let seen = run(&mut acting, "go", PermissionOptionKind::RejectOnce).await;
    assert_eq!(seen.asked.len(), asked.len(), "{:?}", seen.titles_asked());
    assert!(!project.has("x"));
    let mut planning = sandboxed(&asked, Mode::Plan).await;
    let seen = run(&mut planning, "go", PermissionOptionKind::AllowOnce).await;
    assert!(seen.asked.is_empty() && !project.has("x"), "{:?}", seen.titles_asked());
    // Without a sandbox the table alone is not enough, and everything is asked about.
    for sandbox in [Sandbox::Off, Sandbox::Missing] {
        let options = Options { mode: Some(Mode::Code), sandbox, ..project.script(&script(&free)) };
        let mut bare = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
        let seen = run(&mut bare, "go", PermissionOptionKind::RejectOnce).await;
        assert_eq!(seen.asked.len(), free.len(), "{:?}", seen.titles_asked());
    }
}

#[tokio::test]
async fn sessions_do_not_share_anything() {
    // shows PROMPT-12, CANCEL-11
    let project = Project::new();
    let script = "== when \"hang\"\nhang\n== when \"say\"\nsay ${text}\n";
    let mut one = session(&project, script, Mode::Ask).await;
    let agent = one.agent().clone();
    let mut two = agent.new_session(project.path()).await.unwrap();
    let ids: Vec<SessionId> = vec![one.id().clone(), two.id().clone()];
    assert_ne!(ids[0], ids[1]);
    let mut hanging = one.prompt("hang").await.unwrap();
    assert_eq!(allow(&mut two, "say two").await.text, "say two");
    hanging.cancel();
    while hanging.next().await.unwrap().is_some() {}
    assert_eq!(hanging.stop_reason(), Some(StopReason::Cancelled));
    drop(hanging);
    assert_eq!(allow(&mut one, "say one").await.text, "say one");
}
