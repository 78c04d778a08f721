//! What real agents do on the wire and should not, one agent for each: the program survives all of
//! it.

use crate::world::World;

/// Runs a prompt against an agent that does this, and gives what was said.
#[track_caller]
fn said(script: &str) -> String {
    World::new().agent(script).run(&["--format", "quiet", "--approve-all", "exec", "hi"]).ok()
}

fn prompt(acts: &str) -> String {
    let lines: String = acts.lines().map(|line| format!("  {}\n", line.trim_start())).collect();
    format!("on session/prompt\n{lines}")
}

#[test]
fn unsolicited_responses() {
    let text = said(&prompt(
        r#"raw {"jsonrpc":"2.0","error":{"code":-32601,"message":"$/cancel_request?"}}
        raw {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}
        raw {"jsonrpc":"2.0","id":4711,"result":{}}
        say still here
        done end_turn"#,
    ));
    assert_eq!(text, "still here\n");
}

#[test]
fn ids_that_both_sides_use_and_ids_that_are_texts() {
    // Our own requests begin with 0 too; the agent's are its own.
    let text = said(&prompt(
        r#"raw {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"$session","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}
        raw {"jsonrpc":"2.0","id":"5f0c-uuid","method":"session/request_permission","params":{"sessionId":"$session","toolCall":{"toolCallId":"u"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}
        say asked
        done end_turn"#,
    ));
    assert_eq!(text, "asked\n");
}

#[test]
fn errors_of_their_own_making() {
    let world = World::new().agent(&prompt(
        r#"raw {"jsonrpc":"2.0","id":$id,"error":{"code":400,"message":"{\"error\":{\"message\":\"model not found\"}}"}}"#,
    ));
    let run = world.run(&["exec", "hi"]).code(1);
    assert!(run.stdout.contains("model not found"), "{run:?}");
}

#[test]
fn a_missing_session_in_any_wording() {
    for (code, message) in [(-32002, "not found"), (-32602, "invalid params"), (-32603, "internal error")] {
        let world = World::new().agent(&format!(
            "on initialize\n  reply {{\"protocolVersion\":1,\"agentCapabilities\":{{\"loadSession\":true}}}}\non session/load\n  fail {code} {message}\n"
        ));
        world.run(&["sessions", "new"]).ok();
        // The agent of `sessions new` is gone: the session is looked for, and begun anew.
        assert_eq!(world.run(&["--format", "quiet", "prompt", "hi"]).ok(), "hi\n", "{code}");
    }
}

#[test]
fn null_where_an_object_should_be() {
    let world = World::new().agent(
        r#"on session/new
  reply {"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A","description":null},{"id":"b","name":"B"}]}}
on session/set_mode
  raw {"jsonrpc":"2.0","id":$id,"result":null}
on session/prompt
  update {"sessionUpdate":"available_commands_update","availableCommands":[{"name":"go","description":"Go","input":null}]}
  update {"sessionUpdate":"tool_call","toolCallId":"t","title":"Edit","kind":"edit","status":"completed","locations":[{"path":"/a","line":null}],"content":[{"type":"diff","path":"/a","oldText":null,"newText":"x"}],"rawInput":null}
  raw {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn","usage":null,"_meta":null}}
"#,
    );
    world.run(&["sessions", "new"]).ok();
    world.run(&["set-mode", "b"]).ok();
    let text = world.run(&["exec", "hi"]).ok();
    assert!(text.contains("[tool] Edit (completed)") && text.contains("[done] end_turn"), "{text}");
}

#[test]
fn large_lines_and_odd_letters() {
    let command = format!(r#"{{"name":"c","description":"{}"}}"#, "d".repeat(2000));
    let commands = vec![command; 280].join(",");
    let chunk = "x".repeat(200_000);
    let script = format!(
        "on session/new\n  reply {{\"sessionId\":\"s\"}}\n  update {{\"sessionUpdate\":\"available_commands_update\",\"availableCommands\":[{commands}]}}\non session/prompt\n  say a\u{2028}b\u{2029}c\n  say {chunk}\n  done end_turn\n"
    );
    let text = said(&script);
    assert!(text.starts_with("a\u{2028}b\u{2029}c"), "{}", &text[..20]);
    assert_eq!(text.chars().count(), 5 + 200_000 + 1);
}

#[test]
fn the_kind_of_an_update_comes_last() {
    let text = said(&prompt(
        r#"raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$session","update":{"content":{"text":"late kind","type":"text"},"sessionUpdate":"agent_message_chunk"}}}
        done end_turn"#,
    ));
    assert_eq!(text, "late kind\n");
}

#[test]
fn capabilities_that_are_not_there() {
    let text = said("on initialize\n  reply {\"protocolVersion\":1}\n");
    assert_eq!(text, "hi\n");
}

#[test]
fn a_permission_before_any_prompt() {
    let text = said(
        r#"on session/new
  reply {"sessionId":"s"}
  raw {"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"early"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}
"#,
    );
    assert_eq!(text, "hi\n");
}

#[test]
fn tool_calls_in_the_wrong_order_or_not_at_all() {
    let world = World::new().agent(&prompt(
        r#"call session/request_permission {"toolCall":{"toolCallId":"bare"},"options":[{"optionId":"1","name":"Once","kind":"allow_once"},{"optionId":"2","name":"Once more","kind":"allow_once"},{"optionId":"3","name":"No","kind":"reject_once"}]}
        say $last
        update {"sessionUpdate":"tool_call_update","toolCallId":"bare","status":"completed"}
        update {"sessionUpdate":"tool_call_update","toolCallId":"late","status":"in_progress"}
        update {"sessionUpdate":"tool_call","toolCallId":"late","title":"Named at last","kind":"execute","status":"completed","content":[{"type":"terminal","terminalId":"never-made"}]}
        done end_turn"#,
    ));
    let text = world.run(&["--approve-all", "exec", "hi"]).ok();
    // Of two options of one kind, the first.
    assert!(text.contains(r#""optionId":"1""#), "{text}");
    assert!(
        text.contains("[tool] bare (completed)") && text.contains("[tool] Named at last (completed)"),
        "{text}"
    );
    assert!(text.contains("[terminal] never-made"), "{text}");
}

#[test]
fn a_refusal_may_end_the_turn_either_way() {
    for reason in ["cancelled", "end_turn"] {
        let world = World::new().agent(&prompt(&format!(
            r#"call session/request_permission {{"toolCall":{{"toolCallId":"t","title":"Edit","kind":"edit"}},"options":[{{"optionId":"n","name":"No","kind":"reject_once"}}]}}
            raw {{"jsonrpc":"2.0","id":$id,"result":{{"stopReason":"{reason}"}}}}"#
        )));
        world.run(&["--deny-all", "exec", "hi"]).code(5);
    }
}

#[test]
fn models_that_are_offered_and_cannot_be_set() {
    let world = World::new().agent(
        r#"on session/new
  reply {"sessionId":"s","models":{"currentModelId":"a","availableModels":[{"modelId":"a","name":"A"},{"modelId":"b","name":"B"}]}}
"#,
    );
    let run = world.run(&["--model", "b", "exec", "hi"]).code(1);
    assert!(run.stdout.contains("no session/set_model"), "{run:?}");
    let set = format!(
        "{}on session/set_model\n  reply {{}}\n",
        "on session/new\n  reply {\"sessionId\":\"s\",\"models\":{\"currentModelId\":\"a\",\"availableModels\":[{\"modelId\":\"b\",\"name\":\"B\"}]}}\n"
    );
    World::new().agent(&set).run(&["--model", "b", "exec", "hi"]).ok();
}

#[test]
fn methods_of_their_own() {
    let text = said(&prompt(
        r#"notify craft/progress {"step":1}
        notify qwen/notify/status {"x":null}
        notify _session/retrying {"attempt":2}
        update {"sessionUpdate":"brand_new_kind","anything":[1,2]}
        call craft/ask {"what":"?"}
        say $last
        call _auth/status {"who":"me"}
        done end_turn"#,
    ));
    assert!(text.contains("-32601"), "what is not known is refused, not left open: {text}");
}

#[test]
fn missing_files_as_one_agent_wants_them() {
    let script = prompt("call fs/read_text_file {\"path\":\"$cwd/new.txt\"}\nsay $last\ndone end_turn");
    let world = World::new().agent(&script);
    let run = world.run(&["--format", "quiet", "exec", "hi"]).ok();
    assert!(run.contains("\"code\""), "{run}");
    let file = world.home().join("config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}missing_files_are_empty = true\n")).unwrap();
    assert_eq!(world.run(&["--format", "quiet", "exec", "hi"]).ok(), "{\"content\":\"\"}\n");
}

#[test]
fn gemini_can_create_files() {
    let script = |version: &str| {
        let info = format!("{{\"name\":\"gemini-cli\",\"version\":\"{version}\"}}");
        let turn = prompt("call fs/read_text_file {\"path\":\"$cwd/new.txt\"}\nsay $last\ndone end_turn");
        format!("on initialize\n  reply {{\"protocolVersion\":1,\"agentInfo\":{info}}}\n{turn}")
    };
    let text = World::new().agent(&script("0.61.0")).run(&["--format", "quiet", "exec", "hi"]).ok();
    assert_eq!(text, "{\"content\":\"\"}\n");
    let text = World::new().agent(&script("0.62.0")).run(&["--format", "quiet", "exec", "hi"]).ok();
    assert!(text.contains("\"code\""), "{text}");
}

#[test]
fn a_cancel_that_is_answered_with_an_error() {
    let world = World::new().agent(&prompt(
        r#"say begun\n
        wait session/cancel
        raw {"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"aborted"}}"#,
    ));
    let run = world.run(&["--timeout", "1", "exec", "hi"]).code(3);
    assert!(run.stdout.contains("TIMEOUT"), "{run:?}");
    let mut running = world.start(&["exec", "hi"]);
    running.until("begun");
    running.signal("INT");
    running.end().code(130);
}

#[test]
fn history_that_comes_after_the_answer_to_load() {
    let world = World::new().agent(
        r#"on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"loadSession":true}}
on session/load
  update {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"before"}}
  reply {}
  update {"sessionUpdate":"available_commands_update","availableCommands":[]}
on session/prompt
  say now
  done end_turn
  update {"sessionUpdate":"usage_update","used":1,"size":2}
"#,
    );
    world.run(&["sessions", "new"]).ok();
    assert_eq!(world.run(&["--format", "quiet", "prompt", "hi"]).ok(), "now\n");
    assert_eq!(world.run(&["--format", "quiet", "prompt", "again"]).ok(), "now\n");
}
