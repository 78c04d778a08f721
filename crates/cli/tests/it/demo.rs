//! The demo, as anybody would run it first.

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

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_a_person_is_asked_and_no_means_no() {
    use std::io::Read as _;
    use std::io::Write as _;

    let world = World::new();
    for (answer, code) in [("1\n", 0), ("2\n", 1)] {
        let (mut pty, pts) = pty_process::blocking::open().unwrap();
        let command = pty_process::blocking::Command::new(env!("CARGO_BIN_EXE_attache"))
            .arg("demo")
            .env("ATTACHE_HOME", world.home())
            .current_dir(&world.dir);
        let mut child = command.spawn(pts).unwrap();
        let mut screen = String::new();
        let mut bytes = [0; 4096];
        // Each question gets the same answer; the end of the program ends the terminal.
        let mut answered = 0;
        while let Ok(n @ 1..) = pty.read(&mut bytes) {
            screen.push_str(&String::from_utf8_lossy(&bytes[..n]));
            while screen.matches("? your choice: ").count() > answered {
                answered += 1;
                pty.write_all(answer.as_bytes()).unwrap();
            }
        }
        assert_eq!(child.wait().unwrap().code(), Some(code), "{screen}");
        assert!(screen.contains("1) Yes, once") && screen.contains("2) No"), "{screen}");
        assert_eq!(screen.contains("stays as it is"), code == 1, "{screen}");
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
    // Nobody listens there.
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
