//! Commands of our own agent stay in the sandbox with every backend, also where each of them is a
//! question.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use attache_host::sandbox::{BACKEND_VARIABLE, Backend};
use serde_json::json;

use crate::world::World;

/// Worlds whose own agent runs a command line on a signal, one for each sandbox that works here.
fn worlds(line: impl Fn(&World) -> String) -> impl Iterator<Item = (&'static str, World)> {
    let program = Path::new(env!("CARGO_BIN_EXE_attache"));
    let working = Backend::ALL.into_iter().filter(|backend| backend.works(program));
    working.map(move |backend| {
        let world = World::new().env(BACKEND_VARIABLE, backend.name());
        let call = json!({ "command": line(&world) });
        let script = format!("== when \"go\"\ncall run {call}\n-- forever\nsay ${{result}}\n");
        let script = world.write("model.script", &script);
        let argv = json!([program, "agent", "--model", format!("script:{}", script.display())]);
        world.settings(&format!("[agents.attache]\nargv = {argv}\n"));
        (backend.name(), world)
    })
}

#[test]
fn a_command_that_was_allowed_stays_in_the_sandbox() {
    let line =
        |world: &World| format!("echo in > inside; echo out > {}; echo end", world.path("outside").display());
    for (backend, world) in worlds(line) {
        let answer = world.run(&["--approve-all", "--format", "quiet", "exec", "go"]).ok();
        assert!(answer.contains("end"), "{backend}: {answer}");
        assert_eq!(world.read("inside"), "in\n", "{backend}");
        assert!(!world.path("outside").exists(), "{backend}: {answer}");
    }
}

#[test]
fn a_program_that_the_client_denies_is_not_executed_inside_another_one() {
    for (backend, world) in worlds(|_| "./clean".to_owned()) {
        let script = world.write("clean", "#!/bin/sh\nrm victim\necho end\n");
        std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
        for (policy, remains) in [(r#"{"autoDeny":[{"command":"rm"}]}"#, true), ("{}", false)] {
            world.write("victim", "");
            let args = ["--approve-all", "--policy", policy, "--format", "quiet", "exec", "go"];
            let answer = world.run(&args).ok();
            assert!(answer.contains("end"), "{backend}: {answer}");
            assert_eq!(world.dir.join("victim").exists(), remains, "{backend} {policy}: {answer}");
        }
    }
}
