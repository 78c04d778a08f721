//! Command lines of the settings before and after tool calls and at the end of a turn.

use attache::wire::v1::PermissionOptionKind;
use attache_agent::{Hooks, Mode, Options};
use serde_json::Value;

use crate::rig::{Project, Seen};
use crate::sloppy::{self, Reply, call, text};

fn writes(path: &str, content: &str) -> Reply {
    call("write", &format!("{{\"path\": \"{path}\", \"content\": \"{content}\"}}"))
}

async fn play(
    project: &Project,
    hooks: Hooks,
    mode: Mode,
    replies: Vec<Reply>,
    kind: PermissionOptionKind,
) -> (Seen, Vec<String>) {
    let options = Options { mode: Some(mode), hooks, ..Options::default() };
    let (seen, last) = sloppy::play_in_project(project, options, replies, kind).await;
    (seen, last.iter().map(Value::to_string).collect())
}

fn line(line: &str) -> Option<String> {
    Some(line.to_owned())
}

const ALLOW: PermissionOptionKind = PermissionOptionKind::AllowOnce;

#[tokio::test]
async fn a_hook_before_a_call_can_prevent_it() {
    let project = Project::new();
    let guard = "case $ATTACHE_TOOL_PATH in secret*) echo \"$ATTACHE_HOOK: $ATTACHE_TOOL is not for secrets\"; exit 1;; esac";
    let hooks = Hooks { before_tool: line(guard), ..Hooks::default() };
    let replies = vec![writes("secret.txt", "x"), writes("open.txt", "y"), text("Done.")];
    let (seen, last) = play(&project, hooks, Mode::Auto, replies, ALLOW).await;
    assert_eq!(seen.text, "Done.", "{seen:#?}");
    assert!(!project.has("secret.txt"));
    assert_eq!(project.read("open.txt"), "y");
    assert!(
        last[1].contains("not run: the hook") && last[1].contains("before_tool: write is not for secrets"),
        "{}",
        last[1]
    );
    assert!(!last[2].contains("hook"), "{}", last[2]);
}

#[tokio::test]
async fn calls_that_only_read_have_no_hooks() {
    let project = Project::new();
    project.write("a.txt", "text");
    let hooks = Hooks { before_tool: line("exit 1"), after_tool: line("exit 1"), turn_end: None };
    let replies = vec![call("read", "{\"path\": \"a.txt\"}"), text("Done.")];
    let (seen, last) = play(&project, hooks, Mode::Auto, replies, ALLOW).await;
    assert_eq!(
        seen.calls.iter().filter(|call| format!("{call:?}").contains("exit 1")).count(),
        0,
        "{seen:#?}"
    );
    assert!(last[1].contains("text"), "{}", last[1]);
}

#[tokio::test]
async fn a_hook_after_a_call_gets_its_arguments_and_reports_to_the_model() {
    let project = Project::new();
    let after = "printf '%s' \"$ATTACHE_TOOL_INPUT\" > input.json; grep -q good \"$ATTACHE_TOOL_PATH\" || { echo 'not good'; exit 3; }";
    let hooks = Hooks { after_tool: line(after), ..Hooks::default() };
    let replies = vec![writes("a.txt", "bad"), writes("b.txt", "good"), text("Done.")];
    let (_, last) = play(&project, hooks, Mode::Auto, replies, ALLOW).await;
    assert!(last[1].contains("After this call the hook") && last[1].contains("not good"), "{}", last[1]);
    assert!(!last[2].contains("After this call"), "{}", last[2]);
    let input: Value = serde_json::from_str(&project.read("input.json")).unwrap();
    assert_eq!(input["content"], "good");
}

#[tokio::test]
async fn a_hook_at_the_end_lets_the_model_continue_at_most_three_times() {
    let project = Project::new();
    let hooks = Hooks {
        turn_end: line("test -e done.txt || { echo 'done.txt is missing'; exit 1; }"),
        ..Hooks::default()
    };
    let replies = vec![text("Finished."), writes("done.txt", "x"), text("Now it is.")];
    let (seen, last) = play(&project, hooks.clone(), Mode::Auto, replies, ALLOW).await;
    assert!(
        last[1].contains("At the end of your turn the hook") && last[1].contains("done.txt is missing"),
        "{}",
        last[1]
    );
    assert_eq!(last.len(), 3);
    assert!(seen.text.ends_with("Now it is."), "{}", seen.text);
    let stubborn = (0..4).map(|_| text("Finished.")).collect();
    let (seen, last) = play(&Project::new(), hooks, Mode::Auto, stubborn, ALLOW).await;
    assert_eq!(last.len(), 4, "{seen:#?}");
}

#[tokio::test]
async fn hooks_need_a_permission_and_a_guard_that_is_denied_allows_nothing() {
    let project = Project::new();
    let hooks = Hooks { before_tool: line("python3 guard.py"), ..Hooks::default() };
    let replies = vec![writes("a.txt", "x"), text("Done.")];
    let (seen, last) = play(&project, hooks, Mode::Code, replies, PermissionOptionKind::RejectOnce).await;
    assert_eq!(seen.titles_asked().len(), 1, "{:?}", seen.titles_asked());
    assert!(seen.titles_asked()[0].contains("python3 guard.py"), "{:?}", seen.titles_asked());
    assert!(!project.has("a.txt"), "{last:?}");
}
