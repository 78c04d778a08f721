//! The first start on a terminal, without settings.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::auth_terminal::Terminal;
use crate::world::{World, test_agent};

const QUESTION: &str = "Which agent do you want to talk to?";
const CTRL_D: &str = "\x04";

/// Starts the program where only a Gemini CLI is installed, which is a scripted agent.
fn start(world: &World, env: &[(&str, &str)]) -> Terminal {
    let script = world.write("script", "on prompt\n  say hello\n");
    let gemini = world.write(
        "bin/gemini",
        &format!("#!/bin/sh\nexec '{}' '{}'\n", test_agent().display(), script.display()),
    );
    fs::set_permissions(&gemini, fs::Permissions::from_mode(0o755)).unwrap();
    let bin = world.dir.join("bin");
    let mut all = vec![("PATH", bin.to_str().unwrap())];
    for key in
        ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"]
    {
        all.push((key, ""));
    }
    // Nothing listens there.
    for server in ["OLLAMA_HOST", "LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL"] {
        all.push((server, "http://127.0.0.1:9"));
    }
    all.extend(env);
    Terminal::start(world, &[], &all)
}

fn settings(world: &World) -> String {
    fs::read_to_string(world.home().join("config.toml")).unwrap_or_default()
}

#[test]
fn the_agents_that_work_are_offered_once() {
    let world = World::new();
    let key = [("ANTHROPIC_API_KEY", "sk-test")];
    let mut terminal = start(&world, &key);
    terminal.sees(QUESTION);
    terminal.sees("1  attache      Attaché's own agent, with Anthropic (ANTHROPIC_API_KEY)");
    terminal.sees("2  gemini       Gemini CLI, which is installed");
    terminal.sees("Which one?");
    terminal.keys("2\r");
    terminal.sees("gemini is the default now");
    terminal.sees("/help shows");
    terminal.keys(CTRL_D);
    assert!(terminal.end().0.success());
    assert!(settings(&world).contains("default_agent = \"gemini\""), "{}", settings(&world));

    let mut again = start(&world, &key);
    again.sees("/help shows");
    again.keys(CTRL_D);
    let (status, text) = again.end();
    assert!(status.success());
    assert!(!text.contains(QUESTION), "{text}");
}

#[test]
fn an_agent_that_is_chosen_for_want_of_a_model_becomes_the_default() {
    let world = World::new();
    let mut terminal = start(&world, &[]);
    terminal.sees("No model yet");
    terminal.sees("3  Use another agent: gemini");
    terminal.sees("Which one?");
    terminal.keys("3\r");
    terminal.sees("gemini is the default now");
    terminal.sees("/help shows");
    terminal.keys(CTRL_D);
    assert!(terminal.end().0.success());
    assert!(settings(&world).contains("default_agent = \"gemini\""), "{}", settings(&world));
}
