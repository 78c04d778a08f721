//! Who may do what.

use crate::world::World;

/// Asks for a tool and says what came back.
fn asks(kind: &str, title: &str) -> String {
    let input = if kind == "execute" { r#"{"command":"make"}"# } else { r#"{"path":"$cwd/a"}"# };
    format!(
        r#"on session/prompt
  call session/request_permission {{"toolCall":{{"toolCallId":"t","title":"{title}","kind":"{kind}","rawInput":{input}}},"options":[{{"optionId":"once","name":"Once","kind":"allow_once"}},{{"optionId":"always","name":"Always","kind":"allow_always"}},{{"optionId":"no","name":"No","kind":"reject_once"}}]}}
  say $last
  done end_turn
"#
    )
}

#[track_caller]
fn outcome(world: &World, args: &[&str], code: i32) -> String {
    let args: Vec<&str> = args.iter().copied().chain(["--format", "quiet", "exec", "x"]).collect();
    let run = world.run(&args).code(code);
    let answer: serde_json::Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    answer["outcome"]["optionId"].as_str().unwrap_or("cancelled").to_owned()
}

#[test]
fn the_modes() {
    let edit = World::new().agent(&asks("execute", "Run make"));
    assert_eq!(outcome(&edit, &[], 5), "no");
    assert_eq!(outcome(&edit, &["--approve-reads"], 5), "no");
    assert_eq!(outcome(&edit, &["--approve-all"], 0), "once");
    assert_eq!(outcome(&edit, &["--deny-all"], 5), "no");
    let read = World::new().agent(&asks("read", "Read a"));
    // PERM-05: without a setting the user is asked; without a terminal nothing is allowed.
    assert_eq!(outcome(&read, &[], 5), "no");
    assert_eq!(outcome(&read, &["--ask"], 5), "no");
    assert_eq!(outcome(&read, &["--approve-reads"], 0), "once");
    assert_eq!(outcome(&read, &["--deny-all"], 5), "no");
    read.run(&["--deny-all", "--approve-all", "exec", "x"]).code(2);
}

#[test]
fn rules_come_before_the_mode() {
    let world = World::new().agent(&asks("execute", "Run make"));
    assert_eq!(outcome(&world, &["--policy", r#"{"autoApprove":["execute"]}"#, "--deny-all"], 0), "once");
    assert_eq!(
        outcome(&world, &["--policy", r#"{"autoDeny":["run"],"autoApprove":["*"]}"#, "--approve-all"], 5),
        "no"
    );
    assert_eq!(outcome(&world, &["--policy", r#"{"escalate":["execute"]}"#, "--approve-all"], 5), "no");
    assert_eq!(outcome(&world, &["--policy", r#"{"defaultAction":"approve"}"#], 0), "once");
    // What the agent calls it approves nothing.
    assert_eq!(outcome(&world, &["--policy", r#"{"autoApprove":["Run make"]}"#], 5), "no");
    world.write("policy.json", r#"{"autoApprove":[{"command":"make"}]}"#);
    assert_eq!(outcome(&world, &["--permission-policy", "policy.json"], 0), "once");
    for wrong in ["{", r#"{"autoApprove":"x","nonsense":1}"#, "missing.json"] {
        world.run(&["--policy", wrong, "exec", "x"]).code(2);
    }
}

#[test]
fn unattended_questions_can_fail() {
    let world = World::new().agent(&asks("edit", "Edit a"));
    let run = world.run(&["--non-interactive-permissions", "fail", "--format", "json", "exec", "x"]).code(5);
    assert_eq!(run.json().last().unwrap()["error"]["data"]["acpxCode"], "PERMISSION_PROMPT_UNAVAILABLE");
}

#[test]
fn every_decision_is_written_down() {
    let world = World::new().agent(&asks("edit", "Edit a"));
    outcome(&world, &["--approve-all"], 0);
    let audit = std::fs::read_to_string(world.home().join("state/audit.jsonl")).unwrap();
    let entry: serde_json::Value = serde_json::from_str(audit.lines().next().unwrap()).unwrap();
    assert_eq!(entry["agent"], "scripted", "{entry}");
}

#[test]
fn nothing_is_remembered_without_always() {
    let world = World::new().agent(&asks("edit", "Edit a"));
    outcome(&world, &["--approve-all"], 0);
    assert_eq!(world.run(&["permissions"]).ok(), "no permissions are remembered\n");
    world.run(&["permissions", "revoke", "1"]).code(1);
    world.run(&["permissions", "revoke", "x"]).code(2);
}
