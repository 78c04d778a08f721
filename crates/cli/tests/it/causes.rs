//! An agent that fails says why, and so does the program.

use crate::chat_rig::Start;
use crate::world::World;

/// The response of claude-agent-acp when its Claude Code process has ended.
const ERROR: &str = r#"{"code":-32603,"message":"Internal error","data":{"details":"Claude Code process exited with code 1"}}"#;

fn fails(method: &str) -> String {
    format!(
        "on {method}\n  stderr Error: no key in the keychain\n  raw {{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{ERROR}}}\n"
    )
}

#[test]
fn the_details_and_the_last_lines_of_stderr_are_shown() {
    let world = World::new().agent(&fails("session/prompt"));
    let run = world.run(&["exec", "hi"]).code(1);
    assert_eq!(
        run.stdout,
        "[error] RUNTIME: Internal error: Claude Code process exited with code 1\nstderr:\n  Error: no key in the keychain\n\
         hint: attache doctor scripted\n"
    );
    let run = world.run(&["--format", "quiet", "exec", "hi"]).code(1);
    assert_eq!(
        run.stderr,
        "[attache] error: RUNTIME Internal error: Claude Code process exited with code 1; stderr: Error: no key in the keychain\n"
    );
    let run = world.run(&["compare", "scripted", "hi"]).code(1);
    assert!(run.stdout.contains("Internal error: Claude Code process exited with code 1"), "{}", run.stdout);
    world.run(&["sessions", "new"]).ok();
    let run = world.run(&["prompt", "hi"]).code(1);
    assert!(
        run.stdout.starts_with("[error] RUNTIME: Internal error: Claude Code process exited"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.ends_with("hint: attache doctor scripted\n"), "{}", run.stdout);
}

#[test]
fn also_before_there_is_a_session() {
    let world = World::new().agent(&fails("session/new"));
    for args in [&["exec", "hi"][..], &["sessions", "new"]] {
        let run = world.run(args).code(1);
        let shown = format!("{}{}", run.stdout, run.stderr);
        for words in [
            "Internal error: Claude Code process exited with code 1\n",
            "stderr:\n  Error: no key in the keychain\n",
            "hint: attache doctor scripted\n",
        ] {
            assert!(shown.contains(words), "{args:?}: {shown}");
        }
    }
    let run = world.run(&["doctor"]).code(1);
    assert!(run.stdout.contains("Internal error: Claude Code process exited with code 1"), "{}", run.stdout);
    assert!(!run.stdout.contains("-32603"), "{}", run.stdout);
}

#[test]
fn an_agent_that_ends_is_quoted_wherever_it_ran() {
    let world = World::new().agent("on session/prompt\n  stderr no such model\n  exit 3\n");
    let wanted = "[error] RUNTIME: the agent ended (exit code 3)\nstderr:\n  no such model\nhint: attache doctor scripted\n";
    assert_eq!(world.run(&["exec", "hi"]).code(1).stdout, wanted);
    world.run(&["sessions", "new"]).ok();
    assert_eq!(world.run(&["prompt", "hi"]).code(1).stdout, wanted);
    let run = world.run(&["--format", "json", "--json-strict", "exec", "hi"]).code(1);
    let last = run.json().pop().unwrap();
    assert_eq!(last["error"]["message"], "the agent ended (exit code 3)");
    assert_eq!(last["error"]["data"]["stderr"][0], "no such model");
}

#[test]
fn a_secret_on_stderr_is_not_shown() {
    let world = World::new()
        .env("MY_API_KEY", "sekrit-0123456789")
        .agent("on session/prompt\n  stderr the key sekrit-0123456789 is wrong\n  exit 3\n");
    let run = world.run(&["exec", "hi"]).code(1);
    assert!(run.stdout.contains("the key") && !run.stdout.contains("sekrit"), "{}", run.stdout);
}

#[tokio::test]
async fn the_chat_says_it_too() {
    let mut chat = Start::new().with_script(&fails("session/prompt")).await;
    chat.say("hi");
    chat.sees("Internal error: Claude Code process exited with code 1").await;
    chat.sees("attache doctor").await;
}
