//! What scripts for acpx rely on beside the commands themselves: `sessions watch`, `compare`,
//! members of results, archives.

use serde_json::{Value, json};

use crate::world::World;

const NAMED: &str = r#"on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}
on session/new
  reply {"sessionId":"s-$pid","_meta":{"agentSessionId":"inner-1"},"modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}}
on session/resume
  reply {"modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}}
on session/prompt
  think hm
  say you said $prompt
  raw {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn","usage":{"inputTokens":4,"outputTokens":1,"totalTokens":5}}}
"#;

const ASKS: &str = r#"on session/prompt
  call session/request_permission {"toolCall":{"toolCallId":"t","title":"Edit a","kind":"edit","rawInput":{"path":"a"}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"n","name":"N","kind":"reject_once"}]}
  say done
  done end_turn
"#;

#[test]
fn results_say_which_session_and_whether_it_was_taken_up_again() {
    let world = World::new().agent(NAMED);
    let new = world.run(&["--format", "json", "sessions", "new"]).json().remove(0);
    assert_eq!(new["agentSessionId"], "inner-1");
    let set = |args: &[&str]| {
        let args: Vec<&str> = ["--format", "json"].iter().chain(args).copied().collect();
        world.run(&args).code(0).json().remove(0)
    };
    let first = set(&["set-mode", "code"]);
    assert_eq!((&first["resumed"], &first["agentSessionId"]), (&json!(true), &json!("inner-1")));
    assert_eq!(set(&["set-mode", "ask"])["resumed"], false);
    let show = world.run(&["sessions", "show"]).ok();
    assert!(show.contains("agentSessionId: inner-1\n"), "{show}");
}

#[test]
fn a_record_has_the_conversation() {
    let world = World::new().agent(NAMED);
    world.run(&["sessions", "new"]).ok();
    world.run(&["prompt", "hello"]).ok();
    let show = world.run(&["--format", "json", "sessions", "show"]).json().remove(0);
    assert_eq!(show["messages"][0]["User"]["content"][0]["Text"], "hello", "{show}");
    let said = &show["messages"][1]["Agent"]["content"];
    assert_eq!(said[0]["Thinking"]["text"], "hm", "{show}");
    assert_eq!(said[1]["Text"], "you said hello", "{show}");
    assert_eq!(show["cumulative_token_usage"]["total_tokens"], 5);
}

#[test]
fn an_unattended_escalation_is_reported_to_the_agent() {
    let world = World::new().agent(ASKS);
    let policy = r#"{"escalate":["edit"]}"#;
    let run = world.run(&["--format", "json", "--policy", policy, "exec", "x"]).code(5);
    let answer = run.json().into_iter().find(|line| line.pointer("/result/outcome").is_some()).unwrap();
    let escalation = &answer["result"]["_meta"]["acpx"]["permissionEscalation"];
    assert_eq!(escalation["type"], "permission_escalation", "{answer}");
    assert_eq!((&escalation["toolKind"], &escalation["matchedRule"]), (&json!("edit"), &json!("edit")));
    assert_eq!(escalation["toolInput"]["path"], "a");
    // Asked by the mode, and not by a rule.
    let run = world.run(&["--format", "json", "--ask", "exec", "x"]).code(5);
    let answer = run.json().into_iter().find(|line| line.pointer("/result/outcome").is_some()).unwrap();
    assert!(answer["result"].get("_meta").is_none(), "{answer}");
}

#[test]
fn a_session_can_be_watched() {
    let world = World::new().agent(NAMED);
    world.run(&["sessions", "new", "--name", "w"]).ok();
    world.run(&["-s", "w", "one"]).ok();
    let mut watching = world.start(&["--format", "json", "sessions", "watch", "-s", "w"]);
    watching.until("turn_result");
    let queued = world.run(&["--format", "json", "-s", "w", "--no-wait", "two"]).json().remove(0);
    watching.until("turn_started");
    watching.until("turn_result");
    world.run(&["sessions", "close", "w"]).ok();
    let run = watching.end().code(0);
    let events = run.json();
    let kinds =
        |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<Value>>();
    assert_eq!(kinds("turn_started").len(), 2);
    assert_eq!(kinds("turn_started")[1]["requestId"], queued["requestId"]);
    assert_eq!(kinds("turn_result")[1]["result"], json!({ "status": "completed", "stopReason": "end_turn" }));
    let prompts = kinds("message").into_iter().filter(|event| event["message"]["method"] == "session/prompt");
    let prompts: Vec<Value> = prompts.collect();
    assert!(prompts[1]["message"].get("at").is_none(), "only what went over the wire: {}", prompts[1]);
    // From a cursor on, only what came after it.
    let cursor = kinds("turn_result")[0]["cursor"].as_str().unwrap().to_owned();
    let rest =
        world.run(&["--format", "json", "sessions", "watch", "-s", "w", "--cursor", &cursor]).code(0).json();
    assert_eq!(rest[0]["type"], "turn_started");
    assert_eq!(rest, events[events.len() - rest.len()..]);
    let text = world.run(&["sessions", "watch", "-s", "w"]).ok();
    assert!(text.contains("you said two\n") && text.contains("] completed: end_turn cursor="), "{text}");
    assert_eq!(
        world.run(&["--format", "quiet", "sessions", "watch", "-s", "w"]).ok(),
        "you said one\nyou said two\n"
    );
    for wrong in ["x", "0000000000000000-3", &format!("{cursor}00000")] {
        world.run(&["sessions", "watch", "-s", "w", "--cursor", wrong]).code(2);
    }
    world.run(&["sessions", "watch", "-s", "nothing"]).code(1);
}

#[test]
fn a_watcher_leaves_when_it_wants_to_and_when_the_turn_is_lost() {
    let world = World::new().agent("on session/prompt\n  say begun\\n\n  wait nothing\n");
    world.run(&["sessions", "new"]).ok();
    let mut prompt = world.start(&["prompt", "go"]);
    prompt.until("begun");
    let mut watching = world.start(&["sessions", "watch"]);
    watching.until("begun");
    watching.signal("INT");
    watching.end().code(0);
    let mut watching = world.start(&["sessions", "watch"]);
    watching.until("begun");
    let status = world.run(&["--format", "json", "status"]).json().remove(0);
    let pid = status["pid"].to_string();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    let run = watching.end().code(1);
    assert!(run.stderr.contains("ended without a response"), "{run:?}");
    prompt.end();
}

#[test]
fn agents_are_compared() {
    let world = World::new().agent(NAMED);
    world.named_agent("other", ASKS);
    world.named_agent("broken", "on session/prompt\n  fail -32603 out of luck\n");
    let run = world.run(&["--format", "json", "compare", "scripted", "other", "broken", "hello"]).code(1);
    let rows = run.json().remove(0);
    assert_eq!(rows[0]["status"], "ok", "{rows}");
    assert_eq!((&rows[0]["final_message"], &rows[0]["total_tokens"]), (&json!("you said hello"), &json!(5)));
    assert_eq!((&rows[1]["status"], &rows[1]["permission_denied"]), (&json!("permission_denied"), &json!(1)));
    assert_eq!(rows[2]["status"], "error");
    assert!(rows[2]["error"].as_str().unwrap().contains("out of luck"), "{rows}");
    world.run(&["compare", "other", "hello"]).code(5);
    let quiet =
        world.run(&["--format", "quiet", "--approve-all", "compare", "scripted", "other", "hello"]).ok();
    assert_eq!(quiet, "scripted\tok\nother\tok\n");
    world.write("p.txt", "from a file");
    let text = world.run(&["compare", "scripted", "-f", "p.txt"]).ok();
    assert!(text.starts_with("agent     status") && text.contains("you said from a file"), "{text}");
    world.run(&["compare", "scripted"]).code(2);
    world.run(&["--agent", "x", "compare", "scripted", "hello"]).code(2);
}

#[test]
fn prompts_without_a_session_can_be_switched_off() {
    let world = World::new().agent(NAMED);
    world.settings("exec = false");
    for args in [&["exec", "x"][..], &["compare", "scripted", "x"]] {
        let run = world.run(args).code(1);
        assert!(run.stderr.contains("`exec = false`"), "{run:?}");
    }
    world.pipe(&[], "x").code(1);
    let run = world.run(&["--format", "json", "exec", "x"]).code(1);
    assert_eq!(run.json()[0]["error"]["data"]["detailCode"], "EXEC_DISABLED");
    world.run(&["sessions", "new"]).ok();
    world.run(&["prompt", "x"]).ok();
}

/// As acpx 0.19 writes it.
#[test]
fn an_archive_of_acpx() {
    let world = World::new().agent(NAMED);
    let dir = world.dir.to_str().unwrap().to_owned();
    let archive = json!({
        "format_version": 1, "exported_at": "2026-11-15T12:43:10.325Z", "exported_by": "acpx",
        "session": {
            "record_id": "s-1", "name": "w", "agent": "scripted", "cwd_relative": dir, "cwd_original": dir,
            "created_at": "2026-11-15T12:43:02.300Z", "updated_at": "2026-11-15T12:43:05.713Z",
            "state": {
                "schema": "acpx.session.v1", "acpx_record_id": "s-1", "acp_session_id": "s-1",
                "agent_session_id": "inner-1", "agent_command": "scripted", "cwd": dir, "name": "w",
                "created_at": "2026-11-15T12:43:02.300Z", "last_used_at": "2026-11-15T12:43:05.713Z",
                "closed": true, "closed_at": "2026-11-15T12:43:09.503Z", "title": null,
                "acpx": { "desired_mode_id": "code" },
            },
        },
        "history": [
            { "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} },
            { "jsonrpc": "2.0", "id": 2, "method": "session/prompt",
              "params": { "sessionId": "s-1", "prompt": [{ "type": "text", "text": "hello" }] } },
            { "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s-1",
              "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "you said hello" } } } },
            { "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "end_turn" } },
        ],
    });
    world.write("theirs.json", &archive.to_string());
    let run = world.run(&["--format", "json", "sessions", "import", "theirs.json", "--name", "mine"]).code(0);
    assert_eq!(run.json()[0]["record_id"], "s-1");
    let history = world.run(&["--format", "quiet", "sessions", "history", "mine"]).ok();
    assert_eq!(history, "hello\nyou said hello\n");
    world.run(&["-s", "mine", "again"]).ok();
    let sent = world.log();
    let resumed = sent.iter().find(|line| line["method"] == "session/resume").unwrap();
    assert_eq!(resumed["params"]["sessionId"], "s-1");
    let mode = sent.iter().find(|line| line["method"] == "session/set_mode").unwrap();
    assert_eq!(mode["params"]["modeId"], "code");
    let mut newer = archive;
    newer["format_version"] = json!(2);
    world.write("newer.json", &newer.to_string());
    world.run(&["sessions", "import", "newer.json"]).code(2);
}
