//! The demo, as anybody would run it first.

use crate::chat_rig::{CTRL_D, Start};
use crate::world::World;

#[test]
fn the_demo_ends_green() {
    let world = World::new();
    let out = world.run(&["demo"]).ok();
    let at = |words: &str| out.find(words).unwrap_or_else(|| panic!("no `{words}` in:\n{out}"));
    // What is said comes in the order in which it happens.
    let order = [
        "The model is scripted",
        "FAILED  0 °C should be 32 °F, got -32",
        "plan  [>] find where it goes wrong   [ ] fix it   [ ] run the test",
        "done  Search for `to_fahrenheit` in .",
        "? may the agent do this: Edit temperature.sh",
        "+     echo $(($1 * 9 / 5 + 32))",
        "the demo's policy answers",
        "done  Edit temperature.sh",
        "terminal  $ sh test.sh",
        "| ok      0 °C is 32 °F",
        "done  `sh test.sh`",
        "plan  [x] find where it goes wrong   [x] fix it   [x] run the test",
        "agent> The test passes",
        "Green",
    ];
    let places: Vec<usize> = order.iter().map(|words| at(words)).collect();
    assert!(places.is_sorted(), "{places:?}\n{out}");
    assert!(out.contains("done  Read test.sh") && out.contains("done  Read temperature.sh"), "{out}");
    assert!(!out.contains("was not run"), "{out}");
}

#[tokio::test]
async fn on_a_terminal_the_demo_plays_in_the_chat_and_no_means_no() {
    for (answer, end) in [("y", "Green, after"), ("n", "The test still fails: the edit was not made")] {
        let mut chat = Start::new().args(&["demo"]).size(40, 100).run_alone();
        chat.sees("Ctrl-D leaves it").await;
        chat.asks("Edit").await;
        chat.keys(answer);
        if answer == "y" {
            chat.sees_no_more(" 1 y ").await;
            chat.asks("sh test.sh").await;
            chat.keys(answer);
        }
        chat.sees_no_more(" 1 y ").await;
        chat.sees_no_more("Esc interrupts").await;
        chat.prompts("").await;
        chat.keys(CTRL_D);
        chat.sees(end).await;
        assert!(chat.exit().await.success());
    }
}

#[test]
fn without_agent_and_model_the_next_steps_are_shown() {
    let world = World::new();
    let mut command = world.command(&["--deny-all", "exec", "hello"]);
    for provider in ["ANTHROPIC", "OPENAI", "GEMINI", "GOOGLE", "OPENROUTER"] {
        command.env_remove(format!("{provider}_API_KEY"));
    }
    command.env_remove("ANTHROPIC_AUTH_TOKEN");
    // No process listens there.
    for server in ["OLLAMA_HOST", "LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL"] {
        command.env(server, "http://127.0.0.1:9");
    }
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for words in ["no model", "ANTHROPIC_API_KEY", "ollama serve", "attache demo"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
