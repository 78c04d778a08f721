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
