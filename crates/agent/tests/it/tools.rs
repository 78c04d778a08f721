//! Every tool, by itself, without a client that provides anything.

use attache::StopReason;
use attache::client::Client;
use attache::wire::v1::ToolCallStatus;
use attache_agent::Mode;

use crate::rig::{Project, Seen, allow, session, session_of};

/// Calls tools once and says what came back.
async fn call(project: &Project, mode: Mode, calls: &str) -> Seen {
    let script = format!("==\n--\n{calls}\n--\nsay ${{result}}\n");
    let mut session = session(project, &script, mode).await;
    let seen = allow(&mut session, "go").await;
    assert_eq!(seen.stop, Some(StopReason::EndTurn), "{seen:#?}");
    seen
}

#[tokio::test]
async fn read_returns_numbered_lines_and_the_rest() {
    let project = Project::new();
    project.write("a.txt", "one\ntwo\nthree\nfour\n");
    let seen = call(&project, Mode::Ask, r#"call read {"path": "a.txt", "line": 2, "limit": 2}"#).await;
    assert_eq!(seen.text, "2\ttwo\n3\tthree\n(lines 2 to 3 of 4; continue with line=4)");
    let location = &seen.calls[1].locations.as_ref().unwrap()[0];
    // shows TOOL-18, TOOL-19
    assert_eq!((location.path.as_str(), location.line), (project.path_of("a.txt").as_str(), Some(2)));
    assert_eq!(seen.calls[1].raw_input.as_ref().unwrap().parse::<serde_json::Value>().unwrap()["limit"], 2);
    assert!(seen.asked.is_empty());
    let seen = call(&project, Mode::Ask, r#"call read {"path": "a.txt", "line": 9}"#).await;
    assert_eq!(seen.text, "(the file has fewer than 9 lines)");
}

#[tokio::test]
async fn read_refuses_what_is_no_text_and_shows_pictures() {
    let project = Project::new();
    std::fs::write(project.path().join("a.bin"), [0, 1, 2]).unwrap();
    std::fs::write(project.path().join("a.png"), [137, 80, 78, 71]).unwrap();
    let calls =
        "call read {\"path\": \"a.bin\"}\ncall read {\"path\": \"none\"}\ncall read {\"path\": \".\"}";
    let seen = call(&project, Mode::Ask, calls).await;
    assert!(seen.text.contains("binary data") && seen.text.contains("no such file"), "{}", seen.text);
    assert!(seen.text.contains("use `list`"), "{}", seen.text);
    assert_eq!(seen.states().iter().filter(|state| state.ends_with("failed")).count(), 3);
    let seen = call(&project, Mode::Ask, r#"call read {"path": "a.png"}"#).await;
    assert!(
        seen.contents().contains(r#""type":"image""#) && seen.contents().contains("iVBORw=="),
        "{seen:#?}"
    );
    let script = "images: no\n==\n--\ncall read {\"path\": \"a.png\"}\n--\nsay ${result}\n";
    let seen = allow(&mut session(&project, script, Mode::Ask).await, "go").await;
    assert!(seen.text.contains("does not accept images"), "{}", seen.text);
}

#[tokio::test]
async fn list_glob_and_search_leave_out_what_is_ignored() {
    let project = Project::new();
    project.write(".gitignore", "target\n");
    project.write("src/main.rs", "fn main() {\n    greet();\n}\n");
    project.write("src/greet.rs", "pub fn greet() {}\n");
    project.write("target/greet.rs", "fn greet() {}\n");
    project.write("notes.md", "Greet people.\n");
    std::os::unix::fs::symlink("/etc", project.path().join("link")).unwrap();
    let seen = call(&project, Mode::Plan, "call list {}").await;
    assert_eq!(seen.text, ".gitignore (7 bytes)\nlink -> /etc\nnotes.md (14 bytes)\nsrc/\ntarget/");
    let seen = call(&project, Mode::Plan, r#"call glob {"pattern": "*.rs"}"#).await;
    let mut found: Vec<&str> = seen.text.lines().collect();
    found.sort_unstable();
    assert_eq!(found, ["src/greet.rs", "src/main.rs"]);
    let seen = call(&project, Mode::Plan, r#"call search {"pattern": "greet\\("}"#).await;
    assert_eq!(seen.text, "src/greet.rs:1:pub fn greet() {}\nsrc/main.rs:2:    greet();");
    let locations = seen.calls.iter().rev().find_map(|call| call.locations.clone()).unwrap();
    assert_eq!(
        (locations[1].path.as_str(), locations[1].line),
        (project.path_of("src/main.rs").as_str(), Some(2))
    );
    let calls = "call search {\"pattern\": \"GREET\", \"ignore_case\": true, \"glob\": \"*.md\"}";
    assert_eq!(call(&project, Mode::Plan, calls).await.text, "notes.md:1:Greet people.");
    let calls = "call search {\"pattern\": \"greet()\", \"literal\": true, \"path\": \"src/main.rs\"}";
    assert_eq!(call(&project, Mode::Plan, calls).await.text, "src/main.rs:2:    greet();");
    let seen =
        call(&project, Mode::Plan, "call search {\"pattern\": \"(\"}\ncall glob {\"pattern\": \"[\"}").await;
    assert!(
        seen.text.contains("not a valid regular expression") && seen.text.contains("not a valid glob"),
        "{}",
        seen.text
    );
}

#[tokio::test]
async fn write_makes_files_and_shows_what_changes() {
    // shows TOOL-15
    let project = Project::new();
    project.write("old.txt", "old\n");
    let calls = "call read {\"path\": \"old.txt\"}\n--\ncall write {\"path\": \"new/dir/a.txt\", \"content\": \"a\\n\"}\ncall write {\"path\": \"old.txt\", \"content\": \"new\\n\"}";
    let seen = call(&project, Mode::Ask, calls).await;
    assert_eq!((project.read("new/dir/a.txt"), project.read("old.txt")), ("a\n".into(), "new\n".into()));
    assert_eq!(seen.text, "created new/dir/a.txt, 1 lines\nreplaced old.txt, 1 lines");
    let shown = seen.contents();
    assert!(shown.contains(r#""newText":"new\n","oldText":"old\n""#), "{shown}");
    let diff = serde_json::to_value(&seen.asked[0].content).unwrap();
    assert_eq!(diff[0]["newText"], "a\n");
    assert!(diff[0].get("oldText").is_none_or(serde_json::Value::is_null), "{diff}");
}

#[tokio::test]
async fn edit_makes_all_edits_or_none() {
    let project = Project::new();
    project.write("a.rs", "fn a() {\n    one();\n}\n\nfn b() {\n    one();\n}\n");
    let two = r#"call read {"path": "a.rs"}
--
call edit {"path": "a.rs", "edits": [
    {"old": "fn a() {\n    one();", "new": "fn a() {\n    two();"},
    {"old": "fn b() {  \n    one();\n}", "new": "fn b() {\n    three();\n}"}]}"#;
    let seen = call(&project, Mode::Code, two).await;
    assert_eq!(project.read("a.rs"), "fn a() {\n    two();\n}\n\nfn b() {\n    three();\n}\n", "{seen:#?}");
    assert!(seen.text.contains("line 1, 5") && seen.text.contains("differed in whitespace"), "{}", seen.text);
    assert!(seen.asked.is_empty());
    let wrong = "call read {\"path\": \"a.rs\"}\n--\n".to_owned()
        + r#"call edit {"path": "a.rs", "edits": [{"old": "two", "new": "2"}, {"old": "()", "new": "x"}]}"#;
    let seen = call(&project, Mode::Code, &wrong).await;
    assert!(
        seen.text.contains("edit 2") && seen.text.contains("4 times (lines 1, 2, 5, 6)"),
        "{}",
        seen.text
    );
    assert!(project.read("a.rs").contains("two"), "nothing was changed");
    let all = r#"call read {"path": "a.rs"}
--
call edit {"path": "a.rs", "old": "fn ", "new": "pub fn ", "all": true}"#;
    call(&project, Mode::Code, all).await;
    assert_eq!(project.read("a.rs").matches("pub fn").count(), 2);
    let seen = call(&project, Mode::Code, r#"call edit {"path": "none.rs", "old": "a", "new": "b"}"#).await;
    assert!(seen.text.contains("no such file: none.rs"), "{}", seen.text);
}

#[tokio::test]
async fn move_and_delete_ask_also_in_code_mode() {
    let project = Project::new();
    project.write("a.txt", "a");
    project.write("b.txt", "b");
    let calls = "call move {\"from\": \"a.txt\", \"to\": \"sub/c.txt\"}\ncall delete {\"path\": \"b.txt\"}";
    let seen = call(&project, Mode::Code, calls).await;
    assert_eq!(seen.titles_asked(), ["Move a.txt to sub/c.txt", "Delete b.txt"]);
    assert!(!project.has("a.txt") && !project.has("b.txt"));
    assert_eq!(project.read("sub/c.txt"), "a");
    let seen = call(&project, Mode::Auto, "call delete {\"path\": \"sub\"}").await;
    assert!(seen.text.contains("a directory"), "{}", seen.text);
    assert!(seen.asked.is_empty());
}

#[tokio::test]
async fn run_returns_output_and_exit_code() {
    let project = Project::new();
    let seen = call(&project, Mode::Auto, r#"call run {"command": "echo out; echo err >&2; exit 3"}"#).await;
    assert_eq!(seen.text, "out\nerr\n(exit code 3)");
    let last = seen.calls.last().unwrap();
    assert_eq!(last.status, Some(ToolCallStatus::Failed));
    assert_eq!(last.raw_output.as_ref().unwrap().parse::<serde_json::Value>().unwrap()["exitCode"], 3);
    let seen = call(&project, Mode::Auto, r#"call run {"command": "pwd", "cwd": "/"}"#).await;
    assert_eq!(seen.titles_asked(), ["`pwd`"], "a command outside of the project is asked for in every mode");
    let seen =
        call(&project, Mode::Auto, r#"call run {"command": "echo begins; sleep 60", "timeout": 1}"#).await;
    assert!(seen.text.contains("begins") && seen.text.contains("took too long"), "{}", seen.text);
}

#[tokio::test]
async fn the_output_of_a_long_command_is_shown_while_it_runs() {
    // shows TOOL-09
    let project = Project::new();
    // It continues when the client has seen its first line.
    let command = "echo first; while [ ! -e seen ]; do sleep 0.05; done; echo second";
    let script = format!("==\n--\ncall run {{\"command\": \"{command}\"}}\n--\nsay done\n");
    let mut session = session(&project, &script, Mode::Auto).await;
    let mut turn = session.prompt("go").await.unwrap();
    let mut shown = false;
    while let Some(event) = turn.next().await.unwrap() {
        if let attache::client::Event::ToolCall(change) = event {
            let content = serde_json::to_string(&change.update.content).unwrap();
            if change.update.status.is_none() && content.contains("first") && !content.contains("second") {
                shown = true;
                project.write("seen", "");
            }
        }
    }
    assert!(shown);
}

#[tokio::test]
async fn calls_that_only_look_run_at_the_same_time() {
    // Two reads through a client that answers neither before both have come.
    let project = Project::new();
    project.write("a", "a");
    project.write("b", "b");
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(2));
    let client = Client::new().read_files(move |_, request: attache::wire::v1::ReadTextFileRequest| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Ok(request.path.rsplit('/').next().unwrap_or_default().to_uppercase())
        }
    });
    let script = "==\n--\ncall read {\"path\": \"a\"}\ncall read {\"path\": \"b\"}\n--\nsay ${result}\n";
    let mut session = session_of(client, &project, script, Mode::Ask).await;
    let seen = allow(&mut session, "go").await;
    assert_eq!(seen.text, "1\tA\n(end of the file, 1 line)\n\n1\tB\n(end of the file, 1 line)");
}

#[tokio::test]
async fn wrong_arguments_and_unknown_tools_are_reported_to_the_model() {
    let project = Project::new();
    let calls = "badcall read {\"path\": \ncall read {\"path\": 7}\ncall nothing {}\ncall read {\"path\": \"a\", \"line\": -1}";
    let seen = call(&project, Mode::Ask, calls).await;
    for words in [
        "not a JSON object",
        "`path` must be a string",
        "no tool `nothing`; available: read",
        "positive integer",
    ] {
        assert!(seen.text.contains(words), "{words}: {}", seen.text);
    }
    assert_eq!(seen.states().iter().filter(|state| state.ends_with("failed")).count(), 4);
}
