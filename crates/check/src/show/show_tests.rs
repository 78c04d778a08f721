#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use crate::Role;
use crate::trace::{Entry, EntryKind, Header, LineEnd, Trace};

fn trace() -> Trace {
    let lines = [
        (
            Role::Client,
            r#"{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/p","mcpServers":[]}}"#,
        ),
        (Role::Agent, r#"{"jsonrpc":"2.0","id":0,"result":{"sessionId":"s1"}}"#),
        (
            Role::Client,
            r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"fix\nit"}]}}"#,
        ),
        (
            Role::Agent,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I \u001b[31mlook"}}}}"#,
        ),
        (
            Role::Agent,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":" at it"}}}}"#,
        ),
        (
            Role::Agent,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Edit a.rs","kind":"edit","status":"pending"}}}"#,
        ),
        (
            Role::Agent,
            r#"{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t","title":"Edit a.rs"},"options":[]}}"#,
        ),
        (
            Role::Client,
            r#"{"jsonrpc":"2.0","id":5,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}"#,
        ),
        (
            Role::Agent,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}}}"#,
        ),
        (Role::Agent, "a log line"),
        (
            Role::Agent,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}}}"#,
        ),
        (
            Role::Agent,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"plan","entries":[{"content":"do","status":"completed","priority":"high"}]}}}"#,
        ),
        (Role::Agent, r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}"#),
        (Role::Client, r#"{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}"#),
        (Role::Agent, r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no such method"}}"#),
        (
            Role::Client,
            r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}"#,
        ),
    ];
    let entries = lines.into_iter().enumerate().map(|(index, (from, text))| Entry {
        at: Duration::from_millis(index as u64 * 10),
        kind: EntryKind::Line { from, text: text.into(), end: LineEnd::Lf },
    });
    Trace { head: Header { command: vec!["agent".into()], ..Header::default() }, entries: entries.collect() }
}

#[test]
fn a_conversation_is_shown_in_order() {
    let expected = "\
── session s1 ──
   20.0 ms  user     fix
                     it
   30.0 ms  agent    I \\u{1b}[31mlook at it
   50.0 ms  edit     Edit a.rs (completed, 50.0 ms)
   60.0 ms  session/request_permission Edit a.rs → chose yes
  110.0 ms  plan
            [x] do
  120.0 ms  end      end_turn
  150.0 ms  user     \n";
    assert_eq!(conversation(&trace(), None), expected);
    assert_eq!(conversation(&trace(), Some("other")), "");
}

#[test]
fn a_summary_counts_and_names_what_went_wrong() {
    let text = summary(&trace());
    for part in [
        "session   s1: 1 turn, 1 tool call\n",
        "noise     1 line that",
        "       6  agent   session/update",
        "no such method",
        "never answered: session/prompt of the client",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}

#[test]
fn times_are_those_of_tools_and_requests() {
    let text = timing(&trace());
    assert!(text.contains("50.0 ms    30.0 ms    20.0 ms  Edit a.rs (completed)"), "{text}");
    assert!(text.contains("20.0 ms   100.0 ms  session/prompt of the client"), "{text}");
    assert!(text.contains("open  session/prompt"), "{text}");
}

#[test]
fn a_filter_takes_calls_with_their_answers() {
    let count = |wanted: Selection| {
        let mut filter = Filter::new(wanted);
        trace().entries.iter().filter(|entry| filter.matches(entry)).count()
    };
    assert_eq!(count(Selection::default()), 16);
    assert_eq!(count(Selection { method: Some("session/prompt".into()), ..Selection::default() }), 3);
    assert_eq!(
        count(Selection {
            method: Some("session/*".into()),
            from: Some(Role::Client),
            ..Selection::default()
        }),
        5
    );
    assert_eq!(count(Selection { kind: Some("plan".into()), ..Selection::default() }), 1);
    assert_eq!(count(Selection { session: Some("s1".into()), ..Selection::default() }), 11);
}

#[test]
fn lines_are_short_and_cannot_move_the_cursor() {
    for entry in &trace().entries {
        let line = line(entry, 60);
        assert!(line.chars().count() <= 60 && !line.contains(['\n', '\u{1b}']), "{line}");
    }
    let update = line(&trace().entries[3], 200);
    assert!(update.contains("agent  → session/update agent_message_chunk"), "{update}");
}

/// A recording of the interop agent with a client on the official SDK, over version 2.
const RECORDED_V2: &str = include_str!("../../tests/data/v2.jsonl");
const SHOWN_V2: &str = include_str!("../../tests/data/v2.txt");

#[test]
fn a_recording_of_version_2_is_shown() {
    let trace = Trace::read(RECORDED_V2.as_bytes()).unwrap();
    let shown = conversation(&trace, None);
    // Times are those of the file, so the text is always the same.
    assert_eq!(shown, SHOWN_V2, "{shown}");
    let text = summary(&trace);
    assert!(text.contains("protocol  version 2\n"), "{text}");
    assert!(!text.contains("never answered"), "{text}");
}

#[test]
fn everything_of_version_2_is_shown() {
    let mut lines = vec![
        (Role::Client, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}"#.to_owned()),
        (Role::Agent, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"}}}"#.to_owned()),
        (Role::Client, r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}}"#.to_owned()),
        (Role::Agent, r#"{"jsonrpc":"2.0","id":1,"result":{"messageId":"m1"}}"#.to_owned()),
    ];
    let updates = [
        r#"{"sessionUpdate":"state_update","state":"running"}"#,
        r#"{"sessionUpdate":"user_message","messageId":"m1","content":[{"type":"text","text":"go"},{"type":"resource_link","uri":"file:///a","name":"a"}]}"#,
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"dra"}}"#,
        r#"{"sessionUpdate":"agent_thought_chunk","messageId":"a","content":{"type":"text","text":"why"}}"#,
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"ft"}}"#,
        r#"{"sessionUpdate":"agent_message","messageId":"a","content":[{"type":"text","text":"final"}]}"#,
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":" text"}}"#,
        r#"{"sessionUpdate":"agent_message","messageId":"gone","content":[{"type":"text","text":"x"}]}"#,
        r#"{"sessionUpdate":"agent_message","messageId":"gone","content":null}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"Edit","kind":"edit","status":"in_progress"}"#,
        r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"two files"}}}"#,
        r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"diff","changes":[{"operation":"modify","path":"/p/a"}],"patch":{"format":"git_patch","text":"--- /p/a\n+++ /p/a\n@@ -1 +1 @@\n-x\n+\u001b[2Jy\n"}}}"#,
        r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"diff","changes":[{"operation":"move","oldPath":"/p/b","path":"/p/c"}]}}"#,
        r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"terminal","terminalId":"term"}}"#,
        // "é" is cut between two chunks, and the last one would clear the screen.
        r#"{"sessionUpdate":"terminal_update","terminalId":"term","command":"cargo test","output":{"data":"b25lDQrD"}}"#,
        r#"{"sessionUpdate":"terminal_output_chunk","terminalId":"term","data":"qQ0KG1sySg=="}"#,
        r#"{"sessionUpdate":"terminal_update","terminalId":"term","exitStatus":{"exitCode":3}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","title":null,"name":"edit_file","status":"cancelled"}"#,
        r#"{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"do","status":"cancelled","priority":"high"}]}}"#,
        r#"{"sessionUpdate":"state_update","state":"requires_action","background":[{"type":"terminal","terminalId":"bg"}]}"#,
        r#"{"sessionUpdate":"state_update","state":"_sleeping"}"#,
        r#"{"sessionUpdate":"_vendor","a":1}"#,
        r#"{"sessionUpdate":"terminal_output_chunk","terminalId":"term"}"#,
        r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"error","error":{"code":-32603,"message":"no model"},"background":[]}"#,
        r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"error"}"#,
    ];
    lines.extend(updates.map(|update| {
        let update = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        );
        (Role::Agent, update)
    }));
    lines.extend([
        (Role::Agent, r#"{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s","title":"Run it?","subject":{"type":"command","command":"rm x","cwd":"/p"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}"#.to_owned()),
        (Role::Client, r#"{"jsonrpc":"2.0","id":9,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#.to_owned()),
        (Role::Client, r#"{"jsonrpc":"2.0","id":2,"method":"tool_call/cancel","params":{"sessionId":"s","toolCallId":"t"}}"#.to_owned()),
        (Role::Agent, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#.to_owned()),
        (Role::Client, r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"more"}]}}"#.to_owned()),
        (Role::Agent, r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32800,"message":"cancelled"}}"#.to_owned()),
    ]);
    let entries = lines.into_iter().map(|(from, text)| Entry {
        at: Duration::ZERO,
        kind: EntryKind::Line { from, text: text.into(), end: LineEnd::Lf },
    });
    let trace = Trace { head: Header::default(), entries: entries.collect() };
    let expected = "\
── session s ──
      0 µs  user     go
                     [file:///a]
      0 µs  state    running
      0 µs  agent    final text
      0 µs  thought  why
      0 µs  agent    [no content]
      0 µs  edit     edit_file (cancelled, 0 µs)
                     two files
                     --- /p/a
                     +++ /p/a
                     @@ -1 +1 @@
                     -x
                     +\\u{1b}[2Jy
                     move /p/b to /p/c
      0 µs  terminal $ cargo test (exit 3)
                     one
                     é
                     \\u{1b}[2J
      0 µs  plan
            [-] do
      0 µs  state    requires_action
      0 µs  state    background: terminal bg
      0 µs  state    _sleeping
      0 µs  _vendor
      0 µs  terminal_output_chunk (malformed)
      0 µs  end      error: no model
      0 µs  state    background: none
      0 µs  session/request_permission Run it? ($ rm x) → chose y
      0 µs  tool_call/cancel t → done
      0 µs  user     more
      0 µs  refused  cancelled
";
    assert_eq!(conversation(&trace, None), expected);
    assert!(summary(&trace).contains("session   s: 1 turn, 1 tool call\n"));
    assert!(timing(&trace).contains("edit_file (cancelled)"));
}
