//! Commands of our own agent stay in the sandbox with every backend, also where each of them is a question.

use attache_host::sandbox::{BACKEND_VARIABLE, Backend};
use serde_json::json;

use crate::world::World;

#[test]
fn a_command_that_was_allowed_stays_in_the_sandbox() {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_attache"));
    for backend in Backend::ALL.into_iter().filter(|backend| backend.works(program)) {
        let world = World::new().env(BACKEND_VARIABLE, backend.name());
        let outside = world.path("outside");
        let line = format!("echo in > inside; echo out > {}; echo end", outside.display());
        let script =
            format!("== when \"go\"\ncall run {}\n-- forever\nsay ${{result}}\n", json!({ "command": line }));
        let script = world.write("model.script", &script);
        let argv = json!([program, "agent", "--model", format!("script:{}", script.display())]);
        world.settings(&format!("[agents.attache]\nargv = {argv}\n"));
        let answer = world.run(&["--approve-all", "--format", "quiet", "exec", "go"]).ok();
        assert!(answer.contains("end"), "{}: {answer}", backend.name());
        assert_eq!(world.read("inside"), "in\n", "{}", backend.name());
        assert!(!outside.exists(), "{}: {answer}", backend.name());
    }
}
