//! One turn with everything in it.

use attache::StopReason;
use attache_agent::Mode;

use crate::rig::{Project, allow, session};

#[tokio::test]
async fn plan_read_edit_and_run_in_one_turn() {
    // shows TOOL-01, TOOL-08, TOOL-10, PERM-01, PERM-13, PLAN-01, PLAN-02, PROMPT-07
    let project = Project::new();
    project.write("greet.sh", "echo Helo\n");
    let script = r#"
== when "fix"
--
think let me look
call plan {"entries": [{"content": "fix it", "status": "in_progress"}]}
call read {"path": "greet.sh"}
--
call edit {"path": "greet.sh", "edits": [{"old": "Helo", "new": "Hello"}]}
--
call run {"command": "sh greet.sh"}
--
call plan {"entries": [{"content": "fix it", "status": "completed"}]}
--
say It says Hello now.
"#;
    let mut session = session(&project, script, Mode::Ask).await;
    let seen = allow(&mut session, "please fix greet.sh").await;
    assert_eq!(seen.stop, Some(StopReason::EndTurn), "{seen:#?}");
    assert_eq!(seen.text, "It says Hello now.");
    assert_eq!(seen.thoughts, "let me look");
    assert_eq!(project.read("greet.sh"), "echo Hello\n");
    assert_eq!(seen.plans, [["in_progress fix it"], ["completed fix it"]]);
    assert_eq!(
        seen.states(),
        [
            "read: pending",
            "Read greet.sh: in_progress",
            "Read greet.sh: completed",
            "edit: pending",
            "Edit greet.sh: in_progress",
            "Edit greet.sh: completed",
            "run: pending",
            "`sh greet.sh`: in_progress",
            "`sh greet.sh`: completed",
        ]
    );
    assert_eq!(seen.titles_asked(), ["Edit greet.sh", "`sh greet.sh`"]);
    assert!(
        seen.contents().contains(r#""newText":"echo Hello\n","oldText":"echo Helo\n""#),
        "{}",
        seen.contents()
    );
}
