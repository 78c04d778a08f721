//! Help, completions, the manual, and what a slip of the finger gets.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::world::World;

#[test]
fn every_command_has_help() {
    let world = World::new();
    let top = world.run(&["--help"]).ok();
    let commands =
        top.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<String> =
        commands.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert!(names.len() > 10, "{top}");
    for name in &names {
        let help = world.run(&[name, "--help"]).ok();
        assert!(help.contains("Usage: attache"), "{help}");
        assert_eq!(help, world.run(&["help", name]).ok());
    }
    assert_eq!(world.run(&["-h"]).ok(), top);
    assert!(world.run(&["sessions", "new", "-h"]).ok().contains("--resume-session"));
    assert!(world.run(&["--version"]).ok().starts_with("attache "));
}

#[test]
fn slips_are_usage_errors_with_advice() {
    let world = World::new();
    let run = world.run(&["--aprove-all", "exec", "x"]).code(2);
    assert!(run.stderr.contains("did you mean `--approve-all`?"), "{}", run.stderr);
    let run = world.run(&["sessions", "nwe"]).code(2);
    assert!(run.stderr.contains("did you mean `new`?"), "{}", run.stderr);
    world.run(&["help", "nothing"]).code(2);
    let run = world.run(&["check"]).code(2);
    assert!(run.stderr.contains("`check` needs one of: agent, server, client, trace"), "{}", run.stderr);
    // What would have no effect is refused, wherever it stands.
    for args in [&["exec", "-s", "x", "hi"][..], &["-s", "x", "exec", "hi"], &["sessions", "--local", "new"]]
    {
        let run = world.run(args).code(2);
        assert!(run.stderr.contains("takes no --"), "{}", run.stderr);
    }
    // A mistyped command is a prompt, and there is no session for it.
    let run = world.run(&["sesions", "new"]).code(4);
    assert!(run.stderr.contains("did you mean the command `sessions`?"), "{}", run.stderr);
    world.run(&["--cwd", "/nowhere/at/all", "exec", "x"]).code(2);
    world.run(&["completions", "tcsh"]).code(2);
}

#[test]
fn the_completions_are_scripts() {
    let world = World::new();
    world.settings("[agents.mine]\ncommand = \"x\"\n");
    let script = world.run(&["completions", "bash"]).ok();
    let probe = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let last = words.len() - 1;
        format!("COMP_WORDS=({}); COMP_CWORD={last}; _attache; echo \"${{COMPREPLY[*]}}\"\n", words.join(" "))
    };
    let mut bash = Command::new("bash");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_attache")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    bash.env("ATTACHE_HOME", world.home()).env("PATH", path).current_dir(&world.dir);
    let mut child = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = script;
    input.push_str(&probe(&["attache", "sess"]));
    input.push_str(&probe(&["attache", "--cwd", "/", "mine", "sessions", "ex"]));
    input.push_str(&probe(&["attache", "exec", "--form"]));
    input.push_str(&probe(&["attache", "--format", "j"]));
    input.push_str(&probe(&["attache", "mi"]));
    // After an agent no second one follows.
    input.push_str(&probe(&["attache", "mine", "mi"]));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(output, "sessions\nexport\n--format\njson\nmine mistral-vibe\n\n");
    for shell in ["zsh", "fish"] {
        assert!(world.run(&["completions", shell]).ok().contains("attache"));
    }
}

#[test]
fn the_manual_is_one() {
    let page = World::new().run(&["man"]).ok();
    assert!(page.starts_with(".TH ATTACHE 1"), "{page}");
    for section in ["NAME", "SYNOPSIS", "COMMANDS", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES"] {
        assert!(page.contains(&format!(".SH {section}")), "{section}");
    }
}

#[test]
fn known_agents() {
    let world = World::new();
    world.settings("[agents.mine]\ncommand = \"sh -c x\"\n[agents.gemini]\ncommand = \"my-gemini\"\n");
    let run = world.run(&["--format", "json", "agents"]).code(0);
    let agents = run.json()[0].as_array().unwrap().clone();
    let find = |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap();
    assert_eq!((&find("mine")["source"], &find("mine")["installed"]), (&"config".into(), &true.into()));
    assert_eq!(find("gemini")["command"], "my-gemini");
    assert_eq!(find("attache")["default"], true);
    assert!(world.run(&["agents", "--all"]).ok().contains("goose acp"));
}
