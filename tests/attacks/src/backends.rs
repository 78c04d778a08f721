//! The sandbox backends of this machine.

use crate::editor::{Answer, Editor};
use crate::model::{Model, run};
use crate::world::Suite;

/// The ways to confine commands that work on this machine.
pub(crate) fn backends(suite: &Suite) -> &[&'static str] {
    suite.backends.get_or_init(|| {
        let works = |backend: &&'static str| {
            let model = Model::start(vec![run("ls")]);
            let world = model.serves(suite.world()).with("ATTACHE_SANDBOX_BACKEND", *backend);
            let editor = Editor::start(&world, &["--sandbox", "--mode", "auto"]);
            let turn = editor.and_then(|mut editor| editor.prompt("go", Answer::Reject));
            turn.is_ok() && model.result(0).is_some_and(|result| result.contains("README.md"))
        };
        ["namespaces", "bubblewrap", "landlock"].into_iter().filter(works).collect()
    })
}
