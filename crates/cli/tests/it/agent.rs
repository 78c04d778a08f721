//! `attache agent` as editors start it.

use attache::client::{Client, Session};
use attache::{Command, Link, StopReason};

use crate::agent_wire::AgentWire;
use crate::world::World;

async fn start(world: &World, script: &str, args: &[&str]) -> Session {
    let path = world.path("model.script");
    std::fs::write(&path, script).unwrap();
    let model = format!("script:{}", path.display());
    let command = Command::new(env!("CARGO_BIN_EXE_attache"))
        .args(["agent", "--model", &model])
        .args(args)
        .env("ATTACHE_HOME", world.home())
        .current_dir(&world.dir);
    let agent = Client::new().connect(Link::command(command).unwrap()).await.unwrap();
    agent.new_session(&world.dir).await.unwrap()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn mode_and_session_directory_are_configurable() {
    // shows STDIO-10
    let world = World::new();
    let store = world.path("sessions.db");
    block_on(async {
        let script = "==\n--\ncall write {\"path\": \"a.txt\", \"content\": \"a\"}\n--\nsay done\n";
        let store = store.display().to_string();
        let mut session =
            start(&world, script, &["--mode", "code", "--thinking", "low", "--store", &store]).await;
        assert_eq!(session.modes().unwrap().current_mode_id.as_str(), "code");
        let agent = session.agent().clone();
        let mut turn = session.prompt("go").await.unwrap();
        assert_eq!(turn.text().await.unwrap(), "done");
        assert_eq!(turn.stop_reason(), Some(StopReason::EndTurn));
        drop(turn);
        assert!(agent.shutdown().await.unwrap().success());
    });
    assert_eq!(world.read("a.txt"), "a");
    assert!(store.exists());
}

#[test]
fn mistakes_in_its_flags_are_reported() {
    let world = World::new();
    for args in [
        ["agent", "--mode", "yolo"],
        ["agent", "--thinking", "deep"],
        ["agent", "--max-steps", "0"],
        ["agent", "--model-timeout", "soon"],
    ] {
        let run = world.run(&args).code(2);
        assert!(run.stderr.contains(args[2]), "{}", run.stderr);
    }
}

#[test]
fn the_settings_for_editors_in_the_guide_start_the_agent() {
    let guide = include_str!("../../../../docs/guide/agent.md");
    let blocks: Vec<(&str, &str)> = guide
        .split("\n```")
        .filter_map(|part| part.split_once('\n'))
        .filter(|(kind, _)| ["json", "lua", "elisp"].contains(kind))
        .collect();
    let mut editors = 0;
    for (kind, text) in blocks {
        let line: Vec<String> = match kind {
            "json" => {
                let settings: serde_json::Value = serde_json::from_str(text).unwrap();
                let agent = settings["agent_servers"].as_object().unwrap().values().next().unwrap();
                let args = agent["args"].as_array().unwrap().iter();
                std::iter::once(&agent["command"])
                    .chain(args)
                    .map(|word| word.as_str().unwrap().to_owned())
                    .collect()
            }
            "lua" => words(text, "commands = { default = {", "}"),
            _ => words(text, "acp-make-client", ":context-buffer"),
        };
        assert_eq!(line, ["attache", "agent"], "{text}");
        let world = World::new();
        let more: Vec<&str> = line[2..].iter().map(String::as_str).collect();
        // It says hello, and can be asked for a session.
        let mut agent = AgentWire::start(&world, &more);
        agent.open(&world.dir);
        agent.end();
        editors += 1;
    }
    assert_eq!(editors, 4, "Zed, JetBrains, Neovim, Emacs");
}

/// The texts in quotes between these two.
fn words(text: &str, from: &str, to: &str) -> Vec<String> {
    let (_, rest) = text.split_once(from).unwrap();
    let (inner, _) = rest.split_once(to).unwrap();
    inner.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn in_a_sandbox_commands_write_only_below_the_project() {
    if attache_host::sandbox::Backend::detect(std::path::Path::new(env!("CARGO_BIN_EXE_attache"))).is_none() {
        return;
    }
    let world = World::new();
    let outside = world.path("outside");
    let script = format!(
        "==\n--\ncall run {}\n--\nsay ${{result}}\n",
        serde_json::json!({"command": format!("echo in > inside; echo out > {}", outside.display())})
    );
    let text = block_on(async {
        let mut session = start(&world, &script, &["--mode", "auto", "--no-store", "--sandbox"]).await;
        session.prompt("go").await.unwrap().text().await.unwrap()
    });
    assert!(!outside.exists(), "{text}");
    assert_eq!(world.read("inside"), "in\n", "{text}");
}
